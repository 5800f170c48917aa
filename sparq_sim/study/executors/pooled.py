"""The executor that plays on any executor of `concurrent.futures`."""

from __future__ import annotations

import sys
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
from dataclasses import replace

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

MARGIN = 60.0
"""Seconds beyond the limits of its plays that workers may take to begin and to return a piece."""


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
        patience = None
        if work.limit is not None:
            patience = work.limit * max(map(len, pieces), default=1) + MARGIN
        try:
            while pieces or running:
                while pieces and len(running) < 2 * self._workers:
                    piece = pieces.popleft()
                    # Which worker has it is not known here: the worker ends what takes too long.
                    batch = replace(work.pack(piece), limit=work.limit)
                    running[self._executor.submit(perform, batch)] = piece
                done, _ = wait(running, patience, return_when=FIRST_COMPLETED)
                if not done:
                    _note_silence(patience or 0.0)
                    patience = None
                for future in done:
                    piece = running.pop(future)
                    yield from _settle_piece(future, piece, pieces)
        finally:
            for future in running:
                future.cancel()
            with suppress(CancelledError):
                wait([future for future in running if not future.cancelled()])


def _note_silence(seconds: float) -> None:
    """Write that nothing has come back, though each play should have been ended long ago."""
    sys.stderr.write(
        f"Note: no worker has returned a play for {seconds:.0f} s. Native code that does not "
        "return cannot be ended here: restart the worker that hangs, or stop and use the executor "
        "processes; finished plays are kept.\n"
    )
    sys.stderr.flush()


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
