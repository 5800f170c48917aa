"""What a worker does: compute plays, and write each as soon as it is finished."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from sparq_sim.errors import escape_surrogates
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.frames import describe_error
from sparq_sim.study.executors.holding import hold_signals
from sparq_sim.study.executors.landscapes import close_landscapes, share_landscape
from sparq_sim.study.executors.limit import PlayTooLong, describe_overtime, limit_play
from sparq_sim.study.executors.protocol import Batch, ExecutorError, Outcome, Step, Task
from sparq_sim.study.store import FolderStore, PlayFiles, encode
from sparq_sim.study.store.keys import list_plugins, name_code
from sparq_sim.study.store.provenance import Provenance, describe_play

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = ["compute", "perform", "serve_one_study"]

OTHER_CODE = (
    "the code has changed under the study: a file of sparq-sim or of a plug-in was edited after it "
    "was loaded (restart Python, or the notebook's kernel, and run again), or workers have another "
    "version (install the same on both)"
)


class _Memory(threading.local):
    """The scenarios that a thread keeps from batch to batch, by the hash of their pickle."""

    def __init__(self) -> None:
        self.scenarios: dict[bytes, Scenario] = {}


_memory = _Memory()
_ends_with_study = False
"""Whether this process is a worker of one study, and closes what it keeps when it ends."""


def serve_one_study() -> None:
    """Keep what is started from batch to batch; who calls this closes it when the process ends."""
    global _ends_with_study
    _ends_with_study = True


def perform(batch: Batch) -> list[Outcome]:
    """Compute the plays of a batch, and write each as soon as it is finished.

    Args:
        batch: What a worker is sent.

    Returns:
        What became of each play.

    Raises:
        ExecutorError: The code or the files here are not those that the study names.
    """
    home = None
    if batch.folder is not None and (Path(batch.folder) / batch.mark).exists():
        home = FolderStore(batch.folder)
    try:
        return [_receive(step, home, batch.limit) for step in batch.steps]
    finally:
        if not _ends_with_study:  # Nobody says here which batch is the last.
            close_landscapes()


def _receive(step: Step, home: FolderStore | None, limit: float | None) -> Outcome:
    try:
        with refuse_exits(), limit_play(limit):
            scenario = _unpack(step.scenario)
    except PlayTooLong:
        return Outcome(step.play, "failed", message=describe_overtime(limit))
    except Exception as error:
        return Outcome(step.play, "unreadable", message=describe_error(error))
    return compute(Task(step.play, scenario, step.code, step.laws), home, limit=limit)


def compute(task: Task, home: FolderStore | None, *, limit: float | None = None) -> Outcome:
    """Compute a play, unless it is finished, and return what became of it.

    Args:
        task: Which play, what is played, and by which code.
        home: The folder to write it to; without one, its files are in the outcome.
        limit: Seconds after which it is ended here; None where somebody else does.

    Raises:
        ExecutorError: The code or the files here are not those that the study names.
    """
    play, scenario = task.play, task.scenario
    if home and (found := home.peek(play.key, scenario.record)):
        return Outcome(
            play,
            "done",
            average_regret=found.measures["average_regret"],
            mean_reward=found.reward_without_best,
            warnings=tuple(found.warnings),
        )
    began = perf_counter()
    warned: list[str] = []
    try:
        with refuse_exits():
            provenance, files = _play(task, warned, limit)
    except ExecutorError:
        raise
    except (Exception, PlayTooLong) as error:
        late = isinstance(error, PlayTooLong)
        return Outcome(
            play,
            "failed",
            perf_counter() - began,
            message=describe_overtime(limit) if late else describe_error(error, anywhere=True),
            warnings=tuple(warned),
        )
    if home:
        with hold_signals():
            home.keep(files)
    return Outcome(
        play,
        "done",
        perf_counter() - began,
        average_regret=provenance.summary.measures["average_regret"],
        mean_reward=provenance.summary.reward_without_best,
        warnings=tuple(warned),
        files=None if home else files,
    )


def _play(task: Task, warned: list[str], limit: float | None) -> tuple[Provenance, PlayFiles]:
    """Play a *task*, and return what it was and its files; *warned* takes what is warned of."""
    play, scenario = task.play, task.scenario
    if name_code(list_plugins(scenario, play.optimizer)) != task.code:
        raise ExecutorError(OTHER_CODE)
    with _noting(warned), limit_play(limit):
        landscape = share_landscape(scenario.environment, scenario.seed, play.replication)
        trace = scenario.play(play.optimizer, play.replication, landscape=landscape, laws=task.laws)
    provenance = describe_play(
        scenario,
        play.optimizer,
        play.replication,
        trace,
        setting=play.setting,
        identity=play.scenario,
        warnings=warned,
    )
    if provenance.play.key != play.key:
        if not provenance.fingerprint.get("unwritten"):
            raise ExecutorError(_other_files(provenance.fingerprint.get("contents", ())))
        # A function is written as its address, which is another in each process.
        provenance = provenance.with_play(play)
    return provenance, encode(trace, provenance)


def _other_files(files: Iterable[str]) -> str:
    """Explain why a play is another for a worker than for the study, which names *files*."""
    return (
        "the worker sees another scenario: a file that it names has changed since it was loaded "
        "(run again; if a plug-in writes it, let its field be a str, not a Path), or is another "
        f"one there (copy it): {', '.join(files) or 'none is named'}"
    )


@contextmanager
def _noting(texts: list[str]) -> Iterator[None]:
    """Add to *texts* what is warned of meanwhile, instead of printing it, each once.

    Which warnings are shown is decided by Python's filters. All threads share them, so a play in
    another thread than the main one prints its warnings as usual.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        finally:
            texts += dict.fromkeys(map(_warning, caught))


def _warning(caught: warnings.WarningMessage) -> str:
    """Return a warning as text; one of another package with its class and place."""
    if caught.category.__module__.partition(".")[0] == "sparq_sim":
        return escape_surrogates(str(caught.message))
    place = f"{Path(caught.filename).name}:{caught.lineno}"
    return escape_surrogates(f"{caught.category.__name__}: {caught.message} ({place})")


def _unpack(packed: bytes) -> Scenario:
    known = _memory.scenarios
    name = blake2b(packed, digest_size=16).digest()
    if name not in known:
        scenario = pickle.loads(packed)
        while len(known) >= 32:
            known.pop(next(iter(known)))
        known[name] = scenario
    return known[name]
