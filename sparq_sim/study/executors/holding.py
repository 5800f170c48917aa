"""Holding: signals that would end a process wait while something is done as a whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["hold_signals", "when_free"]

_within = 0
_waiting: list[Callable[[], None]] = []


@contextmanager
def hold_signals() -> Iterator[None]:
    """Have what `when_free` is given wait until the end of the block.

    Handlers of signals run in the main thread, so that of others nothing has to be held.

    Yields:
        Nothing.
    """
    global _within
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _within += 1
    try:
        yield
    finally:
        _within -= 1
        while _waiting and not _within:
            _waiting.pop(0)()


def when_free(action: Callable[[], None]) -> None:
    """Do something now, or at the end of what is being done as a whole.

    Args:
        action: What to do; it may raise an error.
    """
    if _within:
        _waiting.append(action)
    else:
        action()
