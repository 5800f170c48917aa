"""The executor that plays on any executor of `concurrent.futures`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import suppress

from sparq_sim.study.executors.processes import count_cores
from sparq_sim.study.executors.protocol import (
    KILLED,
    ExecutorError,
    Outcome,
    Outcomes,
    Task,
    Work,
)
from sparq_sim.study.executors.worker import perform

__all__ = ["Pooled"]


class Pooled:
    """Plays on any `concurrent.futures.Executor`, which is left open."""

    def __init__(self, executor: Executor, *, workers: int | None = None) -> None:
        """Choose the executor.

        Args:
            executor: Where plays are computed.
            workers: How many plays it computes at a time; by default, what it seems to be.
        """
        self._executor = executor
        self._workers = workers or getattr(executor, "_max_workers", None) or count_cores()

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays, in pieces of groups; a piece that kills its worker is tried again.

        Args:
            work: What to compute.

        Yields:
            The outcome of each play, as soon as it is known.

        Raises:
            ExecutorError: The executor broke.
        """
        pieces = deque(_pieces(work.groups, 4 * self._workers))
        running: dict[Future[list[Outcome]], list[Task]] = {}
        try:
            while pieces or running:
                while pieces and len(running) < 2 * self._workers:
                    piece = pieces.popleft()
                    running[self._executor.submit(perform, work.pack(piece))] = piece
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    piece = running.pop(future)
                    yield from _settle_piece(future, piece, pieces)
        finally:
            for future in running:
                future.cancel()
            with suppress(CancelledError):
                wait([future for future in running if not future.cancelled()])


def _settle_piece(
    future: Future[list[Outcome]],
    piece: list[Task],
    pieces: deque[list[Task]],
) -> Iterator[Outcome]:
    try:
        yield from future.result()
    except (BrokenExecutor, CancelledError) as error:  # Dask cancels all when its scheduler dies.
        raise ExecutorError(
            f"the executor broke ({error!r}); run again with a new one: finished plays are kept"
        ) from error
    except Exception as error:
        if type(error).__name__ != "KilledWorker":  # Dask's; it may not be installed.
            raise
        if len(piece) == 1:
            yield Outcome(piece[0].play, "killed", message=KILLED)
        else:  # It is not known which of them it was: each goes on alone.
            pieces.extend([task] for task in piece)


def _pieces(groups: Sequence[Sequence[Task]], wanted: int) -> list[list[Task]]:
    """Cut groups until there are as many pieces as *wanted*, or no larger ones than needed."""
    total = sum(map(len, groups))
    longest = max(1, total // max(1, wanted))
    return [
        list(group)[start : start + longest]
        for group in groups
        for start in range(0, len(group), longest)
    ]
