"""Lanes: a worker process each, with the plays that it has been given, and how it is ended."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from time import monotonic

from sparq_sim.study.executors.holding import hold_signals
from sparq_sim.study.executors.protocol import Batch, ExecutorError, Outcome, Task
from sparq_sim.study.executors.signals import block_interrupts, settle_worker
from sparq_sim.study.executors.worker import perform

__all__ = ["Lane", "find_pause", "settle_lanes"]

MOST_FALSE_STARTS = 3
"""Workers that die before they can do anything, one after the other, have no prospects."""
GRACE = 5.0
"""Seconds that a worker which is told to end has, to close what it holds."""


class Lane:
    """One worker process, and the plays it has been given, in order.

    A pool of one each, not one pool of many: a killed worker breaks its pool, and thus only its
    own play is lost and only that is to blame.
    """

    def __init__(self) -> None:
        """Start a worker."""
        self.queue: deque[tuple[Future[list[Outcome]], Task]] = deque()
        """What it has been given, in order."""
        self.group: deque[Task] = deque()
        """What it is to be given later."""
        self.quick = False
        """Whether its plays are over in no time."""
        self._false_starts = 0
        self._open()

    def _open(self) -> None:
        # A worker half made would leave a lock that nobody removes.
        with hold_signals():
            # A fork copies the threads' locks but not the threads; a fresh interpreter is always
            # sound.
            self._pool = ProcessPoolExecutor(
                1, mp_context=get_context("spawn"), initializer=settle_worker
            )
            block_interrupts(True)  # Which would hit the worker as it imports.
            try:
                self._ready: Future[int] = self._pool.submit(os.getpid)
            finally:
                block_interrupts(False)
            self._worker: BaseProcess = next(iter(self._pool._processes.values()))
        self.overdue: Future[list[Outcome]] | None = None
        """What the worker was ended for."""
        self._doing: object = None
        self._since = 0.0
        self._kill_at: float | None = None

    def reopen(self) -> None:
        """Replace a dead worker.

        Raises:
            ExecutorError: One after the other dies.
        """
        self._false_starts = 0 if self.began else self._false_starts + 1
        if self._false_starts >= MOST_FALSE_STARTS:
            raise ExecutorError(
                "worker processes die as soon as they start; a script that runs a study must do so "
                "under `if __name__ == '__main__':`, or use the executor InProcess()"
            )
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._open()

    @property
    def began(self) -> bool:
        """Whether the worker is up, or was when it died."""
        return self._ready.done() and self._ready.exception() is None

    @property
    def sentinel(self) -> int:
        """What is ready when the worker has ended."""
        return self._worker.sentinel

    def submit(self, task: Task, batch: Batch) -> None:
        """Give the worker a play.

        Args:
            task: The play.
            batch: It alone, as a worker is sent it.

        Raises:
            BrokenExecutor: The worker is dead.
        """
        with hold_signals():
            self.queue.append((self._pool.submit(perform, batch), task))

    def awaited(self) -> list[Future[list[Outcome]] | Future[int]]:
        """List what comes next of the worker: its play, and before that, that it is up."""
        if not self.queue:
            return []
        return [self.queue[0][0], *([] if self._ready.done() else [self._ready])]

    def close(self) -> None:
        """Have the worker end when it has finished what it has begun."""
        for future, _ in self.queue:
            future.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def end(self, *, told: bool = False) -> None:
        """Tell the worker to end with what it is computing; `press` sees to it that it does.

        Args:
            told: Whether somebody has told it already.
        """
        if self._kill_at is None:
            self._kill_at = monotonic() + GRACE
            if not told:
                with suppress(OSError):
                    self._worker.terminate()

    def bury(self) -> None:
        """Wait until the worker, which has ended, is gone: its sentinel tells a little sooner."""
        self._worker.join(GRACE)

    def press(self, limit: float | None) -> float | None:
        """End the worker if its play takes too long, by force if it does not heed that.

        Args:
            limit: Seconds of real time that a play may take, and closing at the end as well.

        Returns:
            In how many seconds to look again; None if that is not needed.
        """
        if self._kill_at is None:
            if limit is None or not self.began:
                return None
            doing = next((each for each, _ in self.queue if not each.done()), None)
            if doing is not self._doing or not self._since:
                self._doing, self._since = doing, monotonic()
            left = self._since + limit - monotonic()
            if left > 0:
                return left
            self.overdue = doing
            self.end()
        left = (self._kill_at or 0.0) - monotonic()
        if left > 0:
            return left
        with suppress(OSError):
            self._worker.kill()
        return GRACE


def find_pause(lanes: Sequence[Lane], limit: float | None) -> float | None:
    """End workers whose plays take too long, and return in how many seconds to look again.

    Args:
        lanes: All of them.
        limit: Seconds that a play may take.

    Returns:
        None if there is nothing to look for.
    """
    pauses = [pause for lane in lanes if lane.queue and (pause := lane.press(limit)) is not None]
    return min(pauses, default=None)


def settle_lanes(lanes: Sequence[Lane], limit: float | None) -> None:
    """Wait until all workers have ended, and give them no new plays.

    Args:
        lanes: All of them.
        limit: Seconds that a play may take, and closing what is held.
    """
    for lane in lanes:
        lane.close()
    left = list(lanes)
    while left:
        pauses = [pause for lane in left if (pause := lane.press(limit)) is not None]
        ended = connection.wait([lane.sentinel for lane in left], min(pauses, default=None))
        left = [lane for lane in left if lane.sentinel not in ended]
    for lane in lanes:
        lane.bury()
