"""Blocking: what an expert does in real time while it answers, where it should await."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

from sparq_sim.simulation.delivery.link import Connection, QueryWorld

_ANSWERING = {Connection._carry.__code__, Connection._broadcasting.__code__}
_ALLOWED = QueryWorld.compute.__code__

SLEEPS = "await world.clock.sleep, not time.sleep"
WAITS = "it runs a program and waits for it in real time; write `await world.run([...])`"


@contextmanager
def noting_blocks() -> Iterator[dict[str, str]]:
    """Note what blocks others while an expert answers: sleeping, and waiting for programs.

    What runs by `world.compute` or `world.run` blocks nobody. Who sleeps is not waited for.

    Yields:
        What was seen, by the remedy; nothing at first.
    """
    noted: dict[str, str] = {}
    sleep = time.sleep

    def slumber(seconds: float) -> None:
        if not _is_answering() or _is_called_by_subprocess():
            sleep(seconds)
        else:
            noted.setdefault(SLEEPS, f"time.sleep({seconds})")

    def noting(method: Callable[..., Any]) -> Callable[..., Any]:
        def wait(child: subprocess.Popen[Any], *arguments: Any, **named: Any) -> Any:
            if _is_answering():
                noted.setdefault(WAITS, f"subprocess: {child.args!r:.80}")
            return method(child, *arguments, **named)

        return wait

    system = os.system

    def shell(command: str) -> int:
        if _is_answering():
            noted.setdefault(WAITS, f"os.system({command!r:.80})")
        return system(command)

    popen = subprocess.Popen
    with (
        patch("time.sleep", slumber),
        patch("os.system", shell),
        patch.object(popen, "wait", noting(popen.wait)),
        patch.object(popen, "communicate", noting(popen.communicate)),
    ):
        yield noted


def _is_answering() -> bool:
    """Return whether an expert answers, and computes in a way that is not meant for it."""
    for code in _calls():
        if code is _ALLOWED:
            return False
        if code in _ANSWERING:
            return True
    return False


def _is_called_by_subprocess() -> bool:
    # It looks again and again whether a program has ended, if there is a timeout.
    return sys._getframe(2).f_globals.get("__name__") == "subprocess"


def _calls() -> Iterator[CodeType]:
    """Yield what is being called, from the inside out."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back
