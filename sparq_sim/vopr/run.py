"""Run the self-test: many seeds, here or in worker processes, and what failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TypeAlias

from sparq_sim.simulation.laws import Broken
from sparq_sim.vopr.case import Case
from sparq_sim.vopr.check import Checked, check_case
from sparq_sim.vopr.coverage import Coverage, find_kinds
from sparq_sim.vopr.executors import run_on_executor
from sparq_sim.vopr.shrink import shrink

__all__ = ["Failed", "Tested", "Watch", "run_vopr"]

EVERY = 10
"""Of so many seeds, one is played on all executors."""
BATCH = 100
"""So many plays make a study."""


@dataclass(frozen=True)
class Failed:
    """A case that breaks a law, as small as it could be made."""

    case: Case
    """The smallest case that was found."""
    broken: tuple[Broken, ...]
    """What it breaks."""
    command: str
    """The command that plays it again."""


@dataclass
class Tested:
    """What came of all seeds."""

    seeds: int = 0
    """How many were played."""
    failed: list[Failed] = field(default_factory=list)
    """Those that broke a law."""
    met: Coverage = field(default_factory=Coverage)
    """How many seeds had what."""


Watch: TypeAlias = Callable[[Tested], None]
"""Called after each seed."""


def run_vopr(
    cases: Sequence[Case],
    *,
    executors: Sequence[str] = (),
    every: int = EVERY,
    jobs: int = 1,
    most_failed: int = 3,
    watch: Watch | None = None,
) -> Tested:
    """Hold random plays against every law.

    Args:
        cases: What is played.
        executors: The executors on which some of the cases are played as a study.
        every: Of so many cases, one is played on them.
        jobs: How many processes check cases; the executors have their own.
        most_failed: After so many failures, no more cases are begun.
        watch: Called after each case.

    Returns:
        What failed, each shrunk, and what was met.
    """
    tested = Tested()
    digests: dict[Case, str] = {}
    with _opened(jobs) as map_:
        for number, (case, checked) in enumerate(zip(cases, map_(check_case, cases), strict=True)):
            tested.seeds += 1
            tested.met.update(find_kinds(case) | {("fate", fate) for fate in checked.fates})
            if checked.broken:
                tested.failed.append(_shrink(case, checked))
            elif executors and number % every == 0:
                digests[case] = checked.digest
            if len(digests) == BATCH:
                _run_on_all(executors, digests, tested)
                digests = {}
            if watch is not None:
                watch(tested)
            if len(tested.failed) >= most_failed:
                break
    if digests:
        _run_on_all(executors, digests, tested)
    return tested


Map: TypeAlias = Callable[[Callable[[Case], Checked], Iterable[Case]], Iterator[Checked]]


@contextmanager
def _opened(jobs: int) -> Iterator[Map]:
    """Yield what checks cases one after the other: here, or in worker processes."""
    if jobs == 1:
        yield map
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield lambda check, cases: pool.map(check, cases, chunksize=8)
        pool.shutdown(cancel_futures=True)


def _shrink(case: Case, checked: Checked) -> Failed:
    law = checked.broken[0].law

    def breaks(smaller: Case) -> bool:
        return any(broken.law == law for broken in check_case(smaller).broken)

    smallest = shrink(case, breaks)
    return Failed(smallest, check_case(smallest).broken, smallest.command())


def _run_on_all(executors: Sequence[str], digests: dict[Case, str], tested: Tested) -> None:
    for executor in executors:
        tested.met["executor", executor] += len(digests)
        for case, broken in run_on_executor(executor, digests):
            command = case.command("--executor", executor)
            tested.failed.append(Failed(case, (broken,), command))
