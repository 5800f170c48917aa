"""Threads: those that plug-ins leave behind keep no process from ending."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from sparq_sim.plugin.exits import leave
from sparq_sim.plugin.frames import is_of_plugin

__all__ = ["end_in_time", "name_threads"]

GRACE = 3.0
"""Seconds that threads have to end by themselves after all else has."""


def end_in_time(code: int, tell: Callable[[str], None], grace: float = GRACE) -> None:
    """Have this process end though threads go on, which Python would wait for without end.

    Call it last of all: threads of pools that are idle end when Python does. Nothing is done where
    no thread is left; otherwise those that are left have some time, and then the process ends.

    Args:
        code: The exit code.
        tell: Is told, in that case, which threads went on.
        grace: How many seconds they have.
    """
    if _list_threads():
        watch = threading.Thread(target=_end, args=(code, tell, grace), name="end", daemon=True)
        watch.start()


def _end(code: int, tell: Callable[[str], None], grace: float) -> None:
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        if not _list_threads():
            return
        time.sleep(0.05)
    if left := name_threads():
        tell(
            f"{left} still ran {grace:g} s after the end, and ended with the process; start such a "
            "thread with daemon=True, or end it in __exit__ of what its plug-in starts"
        )
    with suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    leave(code)


def name_threads() -> str:
    """Return the names of the threads that a process would wait for, each with its module."""
    return ", ".join(map(_describe, _list_threads()))


def _list_threads() -> list[threading.Thread]:
    main = threading.main_thread()
    return [
        each
        for each in threading.enumerate()
        if each is not main and not each.daemon and each is not threading.current_thread()
    ]


def _describe(thread: threading.Thread) -> str:
    # Of a pool's thread, the target is that of the pool: what it runs tells more.
    frame = sys._current_frames().get(thread.ident or 0)
    home = _find_home(frame) or getattr(thread, "_target", None) or type(thread)
    module = home if isinstance(home, str) else home.__module__
    return f"the thread {thread.name!r} of {module}"


def _find_home(frame: FrameType | None) -> str:
    """Return the module of the outermost call of a plug-in."""
    found = ""
    while frame is not None:
        if is_of_plugin(frame):
            found = str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    return found
