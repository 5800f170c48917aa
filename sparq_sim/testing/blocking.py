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

from sparq_sim.simulation.delivery.push import broadcast
from sparq_sim.simulation.delivery.service import Service
from sparq_sim.simulation.delivery.world import QueryWorld

__all__ = ["record_blocking_calls"]

_ANSWERING = {Service.carry.__code__, broadcast.__code__}
_ALLOWED = QueryWorld.compute.__code__

_SLEEPS = "await world.clock.sleep, not time.sleep"
_WAITS = "it runs a program and waits for it in real time; write `await world.run([...])`"


@contextmanager
def record_blocking_calls() -> Iterator[dict[str, str]]:
    """Record what blocks others while an expert answers: sleeping, and waiting for programs.

    What runs by `world.compute` or `world.run` blocks nobody. In this context `time.sleep` returns
    at once where an expert calls it.

    Yields:
        What was seen, by the remedy; empty at first.
    """
    seen: dict[str, str] = {}
    sleep = time.sleep

    def record_sleep(seconds: float) -> None:
        if not _is_answering() or _is_called_by_subprocess():
            sleep(seconds)
        else:
            seen.setdefault(_SLEEPS, f"time.sleep({seconds})")

    def recording(method: Callable[..., Any]) -> Callable[..., Any]:
        def wait(child: subprocess.Popen[Any], *arguments: Any, **named: Any) -> Any:
            if _is_answering():
                seen.setdefault(_WAITS, f"subprocess: {child.args!r:.80}")
            return method(child, *arguments, **named)

        return wait

    system = os.system

    def record_shell(command: str) -> int:
        if _is_answering():
            seen.setdefault(_WAITS, f"os.system({command!r:.80})")
        return system(command)

    popen = subprocess.Popen
    with (
        patch("time.sleep", record_sleep),
        patch("os.system", record_shell),
        patch.object(popen, "wait", recording(popen.wait)),
        patch.object(popen, "communicate", recording(popen.communicate)),
    ):
        yield seen


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
