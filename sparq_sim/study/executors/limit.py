"""Limit: how long a play may take, and how it is ended from within its own process."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite

from sparq_sim.study.executors.protocol import ExecutorError

__all__ = ["LIMIT", "PlayTooLong", "check_limit", "describe_overtime", "limit_play"]

LIMIT = 3600.0
"""Seconds that a play may take unless something else is said."""
AGAIN = 5.0
"""Seconds after which a play that goes on is stopped again, as what it holds closes slowly."""


class PlayTooLong(KeyboardInterrupt):
    """A play takes longer than its limit; no `except Exception` of a plug-in keeps it going."""


def check_limit(limit: float | None) -> float | None:
    """Return a limit as executors take it.

    Args:
        limit: Seconds that a play may take; None or 0 for no limit.

    Raises:
        ExecutorError: It is no number of seconds.
    """
    if limit is None or limit == 0:
        return None
    if not (limit > 0 and isfinite(limit)):
        raise ExecutorError(
            f"the limit of a play must be a number of seconds above 0, or 0 for none, not {limit}"
        )
    return float(limit)


def describe_overtime(limit: float | None) -> str:
    """Return why a play was given up that took too long.

    Args:
        limit: Seconds that it was allowed; None where that is not known.
    """
    allowed = "its limit" if limit is None else f"{limit:g} s"
    return (
        f"it took longer than {allowed} and was ended: does a plug-in hang? If it needs the "
        "time, give it more: --limit SECONDS, 0 for no limit; in Python run(limit=...)"
    )


@contextmanager
def limit_play(limit: float | None) -> Iterator[None]:
    """End the play that is computed in the block when it takes too long.

    In the main thread a signal does that, which also ends waiting; elsewhere the next step of
    Python does. Native code that does not return is not ended.

    Args:
        limit: Seconds of real time that it may take; None for no limit.

    Yields:
        Nothing.

    Raises:
        PlayTooLong: It takes longer.
    """
    if limit is None:
        yield
    elif _alarm_is_free():
        yield from _limit_by_alarm(limit)
    else:
        yield from _limit_from_outside(limit)


def _alarm_is_free() -> bool:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        return False
    unused = signal.getitimer(signal.ITIMER_REAL)[0] == 0
    return unused and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def _limit_by_alarm(limit: float) -> Iterator[None]:
    within = True

    def end(*_: object) -> None:
        if within:
            raise PlayTooLong

    signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit, AGAIN)
        yield
    finally:
        within = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _limit_from_outside(limit: float) -> Iterator[None]:
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    thread = ctypes.c_ulong(threading.get_ident())
    over = threading.Event()

    def end() -> None:
        wait = limit
        while not over.wait(wait):
            raise_in(thread, ctypes.py_object(PlayTooLong))
            wait = AGAIN

    watcher = threading.Thread(target=end, name="limit of a play", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        _settle(over, watcher)


def _settle(over: threading.Event, watcher: threading.Thread) -> None:
    """Stop the *watcher*, and catch what it has raised if that has not come yet.

    Python cannot take it back: until it comes, CPython up to 3.12 looks for it at each step, and
    hangs under a profiler.
    """
    while True:
        try:
            over.set()
            watcher.join()
            for _ in range(100):  # Here it comes, at the latest.
                pass
            return
        except PlayTooLong:
            continue
