"""Play cases as a study on every executor: digests must be those of the plays of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sparq_sim.errors import SparqError
from sparq_sim.simulation.laws import Broken
from sparq_sim.study.executors import Dask, InProcess, PlayExecutor, Pooled, Processes
from sparq_sim.study.study import Study
from sparq_sim.vopr.case import Case

__all__ = ["list_executors", "run_on_executor"]

_JOBS = 2


def _pool() -> PlayExecutor:
    return Pooled(ThreadPoolExecutor(_JOBS), workers=_JOBS)


_EXECUTORS: dict[str, Callable[[], PlayExecutor]] = {
    "in-process": InProcess,
    "pooled": _pool,
    "processes": lambda: Processes(_JOBS),
    "dask": lambda: Dask(jobs=_JOBS),
}


def list_executors() -> list[str]:
    """Return the names of the executors that can be had here."""
    return [name for name in _EXECUTORS if name != "dask" or find_spec("distributed")]


def run_on_executor(executor: str, digests: Mapping[Case, str]) -> Iterator[tuple[Case, Broken]]:
    """Play cases on an executor, and yield what does not come out as it should.

    Args:
        executor: Its name.
        digests: The cases to play, each with the digest of its play.

    Yields:
        A case, and how it differs.

    Raises:
        SparqError: There is no such executor.
    """
    if executor not in _EXECUTORS:
        raise SparqError(f"no executor is called {executor!r}; there are: {', '.join(_EXECUTORS)}")
    settings = [({"seed": case.seed}, case.scenario) for case in digests]
    with TemporaryDirectory() as folder:
        study = Study.of(settings, Path(folder) / "study", identity="0" * 12)
        report = study.run(_EXECUTORS[executor](), laws=True)
        reasons = {failed.play.seed: failed.reason for failed in report.failed_plays}
        found = {each.play.seed: each.digest for each in study.store.finished().values()}
    for case, digest in digests.items():
        if case.seed in reasons:
            yield case, Broken(f"{executor} plays what can be played", reasons[case.seed])
        elif found.get(case.seed) != digest:
            told = f"digest {found.get(case.seed)}, here {digest}"
            yield case, Broken(f"{executor} gives the trace of every other executor", told)
