"""The executor that plays in processes of this machine, one pool of one process a worker.

Not Pebble's pool, which survives killed workers too: plays that share a landscape must go to the
worker that has started it, and a pool that chooses the worker itself cannot promise that.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Any

from sparq_sim.study.executors.lane import Lane, find_pause, settle_lanes
from sparq_sim.study.executors.limit import describe_overtime
from sparq_sim.study.executors.protocol import (
    KILLED,
    ExecutorError,
    Outcome,
    Outcomes,
    Task,
    Work,
)
from sparq_sim.study.executors.signals import Terminated, start_tracker

__all__ = ["Processes", "count_cores"]

MOST_DEATHS = 2
"""A play that has killed this many workers is given up."""
QUICK = 0.5
"""Seconds; a shorter play is worth handing out ahead."""


class Processes:
    """Plays in processes of this machine.

    A killed worker is replaced, and its play tried once more. A worker whose play takes longer than
    the limit is ended, and the play has failed. Ctrl-C lets plays that have begun finish, and a
    second one ends them.
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
        start_tracker()
        lanes: list[Lane] = []
        deaths: Counter[str] = Counter()
        try:
            for _ in range(min(self.jobs, len(work))):
                lanes.append(Lane())
            while True:
                for lane in lanes:
                    _fill(lane, lanes, work)
                waiting: list[Future[Any]] = [future for lane in lanes for future in lane.awaited()]
                if not waiting:
                    return
                wait(waiting, find_pause(lanes, work.limit), return_when=FIRST_COMPLETED)
                for lane in lanes:
                    yield from _drain(lane, deaths, work.limit)
        except KeyboardInterrupt as stop:
            if not isinstance(stop, Terminated):
                _announce_wait(lanes)
            else:
                for lane in lanes:
                    lane.end(told=True)
            raise
        finally:
            _close(lanes, work.limit)


def _fill(lane: Lane, lanes: Sequence[Lane], work: Work) -> None:
    """Keep one play running, and a quick worker another one waiting, so as not to be idle.

    What waits at a worker cannot be called back, so a slow one has nothing waiting.
    """
    while len(lane.queue) < 1 + lane.quick and (task := _next(lane, lanes, work)) is not None:
        try:
            lane.submit(task, work.pack([task]))
        except BrokenExecutor:
            lane.group.appendleft(task)
            if lane.queue:  # Whoever is to blame is in there.
                return
            lane.reopen()


def _drain(lane: Lane, deaths: Counter[str], limit: float | None) -> Iterator[Outcome]:
    while lane.queue and lane.queue[0][0].done():
        future, task = lane.queue.popleft()
        try:
            outcomes = future.result()
        except BrokenExecutor:
            lane.group.extendleft(waiting for _, waiting in reversed(lane.queue))
            lane.queue.clear()
            ended, killed = lane.overdue, lane.began
            lane.reopen()
            if ended is not None:
                # The worker was ended on purpose, which is no death that a play is to blame for.
                if ended is future and limit is not None:
                    yield Outcome(task.play, "failed", limit, message=describe_overtime(limit))
                    continue
            else:
                deaths[task.play.key] += killed
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


def _next(lane: Lane, lanes: Sequence[Lane], work: Work) -> Task | None:
    """Take a play of the lane's own group, of a fresh one, or of whoever has most left."""
    if not lane.group and work.groups:
        lane.group = work.groups.popleft()
    if lane.group:
        return lane.group.popleft()
    longest = max(lanes, key=lambda other: len(other.group)).group
    return longest.pop() if longest else None


def _announce_wait(lanes: Sequence[Lane]) -> None:
    """Write what is waited for after Ctrl-C, and how to wait no longer."""
    begun = sum(
        not future.done() and not future.cancel() for lane in lanes for future, _ in lane.queue
    )
    if begun:
        plays = "1 play" if begun == 1 else f"{begun} plays"
        sys.stderr.write(f"Finishing {plays}; Ctrl-C again ends them at once.\n")
        sys.stderr.flush()


def _close(lanes: Sequence[Lane], limit: float | None) -> None:
    """Wait for the plays that have begun; end them at a second Ctrl-C."""
    try:
        settle_lanes(lanes, limit)
    except KeyboardInterrupt:
        for lane in lanes:
            lane.end()
        settle_lanes(lanes, limit)
        raise
