"""Signals: how a study and its worker processes end, asked to or left alone."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import active_children, parent_process, resource_tracker
from multiprocessing.util import Finalize
from time import sleep
from typing import Any

from sparq_sim.plugin.exits import leave
from sparq_sim.plugin.threads import end_in_time
from sparq_sim.simulation.delivery.programs import kill_all
from sparq_sim.simulation.lifetime import close_all
from sparq_sim.study.executors.holding import when_free
from sparq_sim.study.executors.landscapes import close_landscapes
from sparq_sim.study.executors.worker import serve_one_study

__all__ = ["Terminated", "block_interrupts", "catch_sigterm", "settle_worker", "start_tracker"]

SECONDS_TO_CLOSE = 5.0
"""For a worker whose coordinator has died, to close what it holds."""
_ENDINGS = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
"""By which a process is asked to end at once; the last, when its terminal is closed."""


class Terminated(KeyboardInterrupt):
    """Somebody asked this process to end, by SIGTERM or by closing its terminal."""

    def __init__(self, number: int = signal.SIGTERM) -> None:
        """Tell which signal it was.

        Args:
            number: Of the signal.
        """
        super().__init__(number)
        self.number = number
        """Of the signal."""


@contextmanager
def catch_sigterm() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C in a hurry, as those who send them do not wait for long.

    Worker processes end at once, with what they are computing. Once a signal has come, further
    ones are ignored to the end of the process. A signal that is ignored, as `nohup` ignores
    SIGHUP, stays ignored.

    Yields:
        Nothing.

    Raises:
        Terminated: The signal came.
    """
    if threading.current_thread() is not threading.main_thread():  # Others get no signals.
        yield
        return
    asked: list[int] = []

    def end(number: int, _: object) -> None:
        if asked:
            return
        asked.append(number)
        if number != signal.SIGTERM:
            _leave_terminal()
        for worker in active_children():
            worker.terminate()
        when_free(_raising(lambda: Terminated(number)))

    def interrupt(*_: object) -> None:
        if not asked:
            when_free(_raising(KeyboardInterrupt))

    handlers: dict[int, Callable[[int, Any], None]] = {
        number: end for number in _ENDINGS if signal.getsignal(number) != signal.SIG_IGN
    }
    # Ctrl-C as Python has it could come while a worker is being made.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        handlers[signal.SIGINT] = interrupt
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, _ignore if asked else handler)
        # As Python ends, it gives up its own handlers, and leaves what is ignored.
        for number in before if asked else ():
            signal.signal(number, signal.SIG_IGN)


def _ignore(*_: object) -> None:
    """Ignore a signal; Python would tell of one that has come as SIG_IGN is set."""


def _raising(make: Callable[[], BaseException]) -> Callable[[], None]:
    def raise_it() -> None:
        raise make()

    return raise_it


def _leave_terminal() -> None:
    """Have what is written to a terminal that was closed go nowhere, instead of fail."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
                    os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def start_tracker() -> None:
    """Start the process that removes what killed ones leave; a closed terminal does not end it."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGHUP"):
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        resource_tracker.ensure_running()
    finally:
        signal.signal(signal.SIGHUP, before or signal.SIG_DFL)


def settle_worker() -> None:
    """Leave Ctrl-C to the coordinator, do not outlive it, and close what is held at the end."""
    serve_one_study()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    block_interrupts(False)
    for number in _ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    # Called first of all, but after landscapes are closed.
    Finalize(None, end_in_time, (0, _note), exitpriority=0)
    Finalize(None, close_landscapes, exitpriority=0)
    threading.Thread(target=_follow, daemon=True).start()


def block_interrupts(block: bool) -> None:
    """Have Ctrl-C wait, or not any more; a process that is started meanwhile begins like that.

    Args:
        block: Whether it waits.
    """
    if hasattr(signal, "pthread_sigmask"):
        how = signal.SIG_BLOCK if block else signal.SIG_UNBLOCK
        signal.pthread_sigmask(how, {signal.SIGINT})


def _end(number: int, _: object) -> None:
    """Close what is held, and die of the signal as without it, when what is written is whole."""
    for each in _ENDINGS:  # Once is enough: what closes is left to close.
        signal.signal(each, _ignore)
    when_free(lambda: _end_now(number))


def _end_now(number: int) -> None:
    try:
        kill_all()
        close_all(Terminated(number))
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _follow() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        sleep(SECONDS_TO_CLOSE)
        leave(1)


def _note(text: str) -> None:
    sys.stderr.write(f"Note: in a worker, {text}\n")
