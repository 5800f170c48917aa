"""Blocking in real time: processes that compute or sleep while no other process can go on."""

from __future__ import annotations

import types
import warnings
from collections.abc import Awaitable, Callable, Generator
from time import perf_counter
from typing import Any, TypeVar

__all__ = ["BlockingWarning", "watch_steps"]

T = TypeVar("T")

_BLOCKING = 1.0
"""Seconds that one step of a process may take before it is said to hold up all others."""


class BlockingWarning(UserWarning):
    """A process computes or sleeps in real time, and no other process can go on meanwhile."""


@types.coroutine
def watch_steps(work: Awaitable[T], who: str) -> Generator[Any, Any, T]:
    """Await *work*, and warn of each step of it that blocks the event loop.

    Args:
        work: What is to be awaited.
        who: Whose work it is, as the warning names it.

    Returns:
        What *work* returns.
    """
    steps = work.__await__()
    step: Callable[[Any], Any] = steps.send
    given: Any = None
    while True:
        began, starved = perf_counter(), _measure_starved()
        try:
            happening = step(given)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            held = perf_counter() - began
            # A busy machine is nobody's fault; asked for last, since it is seldom needed.
            if held > _BLOCKING and (held := held - _measure_starved() + starved) > _BLOCKING:
                _warn_of_blocking(who, held)
        try:
            given, step = (yield happening), steps.send
        except BaseException as error:
            given, step = error, steps.throw


def _measure_starved() -> float:
    """Return the seconds for which this thread was ready to run and got no processor.

    Only Linux tells; elsewhere, 0.
    """
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _warn_of_blocking(who: str, seconds: float) -> None:
    warnings.warn(
        f"{who} held up all others for {seconds:.1f} s; expected to await: "
        "`await world.clock.sleep(...)` instead of time.sleep, an asynchronous client instead of a "
        "blocking one, and `await world.compute(...)` for long computing",
        BlockingWarning,
        stacklevel=2,
    )
