"""The executor that plays in processes of this machine, one pool of one process a worker.

Not Pebble's pool, which survives killed workers too: plays that share a landscape must go to the
worker that has started it, and a pool that chooses the worker itself cannot promise that.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context

from sparq_sim.study.executors.protocol import (
    KILLED,
    ExecutorError,
    Outcome,
    Outcomes,
    Task,
    Work,
)
from sparq_sim.study.executors.signals import Terminated, settle_worker
from sparq_sim.study.executors.worker import perform

__all__ = ["Processes", "count_cores"]

MOST_DEATHS = 2
"""A play that has killed this many workers is given up."""
MOST_FALSE_STARTS = 3
"""Workers that die before they can do anything, one after the other, have no prospects."""
QUICK = 0.5
"""Seconds; a shorter play is worth handing out ahead."""


class Processes:
    """Plays in processes of this machine.

    A killed worker is replaced, and its play tried once more; Ctrl-C lets plays that have begun
    finish, and a second one ends them.
    """

    def __init__(self, jobs: int | None = None) -> None:
        """Choose how many processes play.

        Args:
            jobs: How many; by default, one a core.

        Raises:
            ExecutorError: It is less than 1.
        """
        if jobs is not None and jobs < 1:
            raise ExecutorError(f"jobs must be at least 1, not {jobs}")
        self.jobs = jobs or count_cores()

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays.

        Args:
            work: What to compute.

        Yields:
            The outcome of each play, as soon as it is known.

        Raises:
            ExecutorError: Worker processes cannot start, or have other code than the study.
        """
        lanes = [_Lane.open() for _ in range(min(self.jobs, len(work)))]
        deaths: Counter[str] = Counter()
        try:
            while True:
                for lane in lanes:
                    self._fill(lane, lanes, work)
                waiting = [lane.queue[0][0] for lane in lanes if lane.queue]
                if not waiting:
                    return
                wait(waiting, return_when=FIRST_COMPLETED)
                for lane in lanes:
                    yield from self._drain(lane, deaths)
        except KeyboardInterrupt as stop:
            if not isinstance(stop, Terminated):
                _announce_wait(lanes)
            raise
        finally:
            _close(lanes)

    def _fill(self, lane: _Lane, lanes: Sequence[_Lane], work: Work) -> None:
        """Keep one play running, and a quick worker another one waiting, so as not to be idle.

        What waits at a worker cannot be called back, so a slow one has nothing waiting.
        """
        while len(lane.queue) < 1 + lane.quick and (task := _next(lane, lanes, work)) is not None:
            try:
                lane.queue.append((lane.pool.submit(perform, work.pack([task])), task))
            except BrokenExecutor:
                lane.group.appendleft(task)
                if lane.queue:  # Whoever is to blame is in there.
                    return
                lane.reopen()

    def _drain(self, lane: _Lane, deaths: Counter[str]) -> Iterator[Outcome]:
        while lane.queue and lane.queue[0][0].done():
            future, task = lane.queue.popleft()
            try:
                outcomes = future.result()
            except BrokenExecutor:
                lane.group.extendleft(waiting for _, waiting in reversed(lane.queue))
                lane.queue.clear()
                deaths[task.play.key] += lane.began
                lane.reopen()
                if deaths[task.play.key] >= MOST_DEATHS:
                    yield Outcome(task.play, "killed", message=KILLED)
                else:
                    lane.group.appendleft(task)
            else:
                lane.quick = all(outcome.seconds < QUICK for outcome in outcomes)
                yield from outcomes


def count_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass
class _Lane:
    """One worker process, and the plays it has been given, in order.

    A pool of one each, not one pool of many: a killed worker breaks its pool, and thus only its
    own play is lost and only that is to blame.
    """

    pool: ProcessPoolExecutor
    ready: Future[int]
    queue: deque[tuple[Future[list[Outcome]], Task]] = field(default_factory=deque)
    group: deque[Task] = field(default_factory=deque)
    false_starts: int = 0
    quick: bool = False
    """Whether its plays are over in no time."""

    @classmethod
    def open(cls) -> _Lane:
        pool = _pool()
        return cls(pool, pool.submit(os.getpid))

    def reopen(self) -> None:
        """Replace a dead worker."""
        self.false_starts = 0 if self.began else self.false_starts + 1
        if self.false_starts >= MOST_FALSE_STARTS:
            raise ExecutorError(
                "worker processes die as soon as they start; a script that runs a study must do so "
                "under `if __name__ == '__main__':`, or use the executor InProcess()"
            )
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.pool = _pool()
        self.ready = self.pool.submit(os.getpid)

    @property
    def began(self) -> bool:
        """Whether the worker was up when it died."""
        return self.ready.done() and self.ready.exception() is None

    def kill(self) -> None:
        """End the worker and what it is computing."""
        if self.began:
            with suppress(OSError):
                os.kill(self.ready.result(), signal.SIGTERM)


def _pool() -> ProcessPoolExecutor:
    # A fork copies the threads' locks but not the threads; a fresh interpreter is always sound.
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=settle_worker)


def _next(lane: _Lane, lanes: Sequence[_Lane], work: Work) -> Task | None:
    """Take a play of the lane's own group, of a fresh one, or of whoever has most left."""
    if not lane.group and work.groups:
        lane.group = work.groups.popleft()
    if lane.group:
        return lane.group.popleft()
    longest = max(lanes, key=lambda other: len(other.group)).group
    return longest.pop() if longest else None


def _announce_wait(lanes: Sequence[_Lane]) -> None:
    """Write what is waited for after Ctrl-C, and how to wait no longer."""
    begun = sum(
        not future.done() and not future.cancel() for lane in lanes for future, _ in lane.queue
    )
    if begun:
        plays = "1 play" if begun == 1 else f"{begun} plays"
        sys.stderr.write(f"Finishing {plays}; Ctrl-C again ends them at once.\n")
        sys.stderr.flush()


def _close(lanes: Sequence[_Lane]) -> None:
    """Wait for the plays that have begun; end them at a second Ctrl-C."""
    try:
        for lane in lanes:
            for future, _ in lane.queue:
                future.cancel()
        for lane in lanes:
            lane.pool.shutdown(wait=True, cancel_futures=True)
    except KeyboardInterrupt:
        for lane in lanes:
            lane.kill()
        raise
