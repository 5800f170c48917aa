"""Signals: how a study and its worker processes end, asked to or left alone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import active_children, parent_process
from multiprocessing.util import Finalize
from time import sleep

from sparq_sim.simulation.delivery.programs import kill_all
from sparq_sim.simulation.lifetime import close_all
from sparq_sim.study.executors.landscapes import close_landscapes
from sparq_sim.study.executors.worker import serve_one_study

__all__ = ["Terminated", "catch_sigterm", "settle_worker"]

SECONDS_TO_CLOSE = 5.0
"""For a worker whose coordinator has died, to close what it holds."""


class Terminated(KeyboardInterrupt):
    """Somebody asked this process to end, by SIGTERM."""


@contextmanager
def catch_sigterm() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C in a hurry, as those who send it do not wait for long.

    Worker processes end at once, with what they are computing.

    Yields:
        Nothing.

    Raises:
        Terminated: The signal came.
    """

    def end(*_: object) -> None:
        for worker in active_children():
            worker.terminate()
        raise Terminated

    if threading.current_thread() is not threading.main_thread():  # Others get no signals.
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def settle_worker() -> None:
    """Leave Ctrl-C to the coordinator, do not outlive it, and close what is held at the end."""
    serve_one_study()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    Finalize(None, close_landscapes, exitpriority=0)
    threading.Thread(target=_follow, daemon=True).start()


def _end(number: int, _: object) -> None:
    """Close what is held, and die of the signal as without it."""
    try:
        kill_all()
        close_all(Terminated())
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _follow() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
        sleep(SECONDS_TO_CLOSE)
        os._exit(1)
