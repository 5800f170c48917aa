"""What the clocks of virtual and of real time have in common."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, ulp
from typing import TypeVar

__all__ = ["RoundedClock", "call_with", "check_duration"]

T = TypeVar("T")


class RoundedClock:
    """The base of both clocks: moments within a billionth of the start of a round are that start.

    A transit of exactly three periods of 0.1 must arrive with the third round from now, though
    0.1 + 0.3 is not 0.4 in binary.

    Args:
        period: How long a round lasts, in clock units; by default there are no rounds.
    """

    def __init__(self, period: float | None = None) -> None:
        if period is not None and not (period > 0 and isfinite(period)):
            raise ValueError(f"a period must be positive and finite, not {period!r}")
        self._period = period

    def align(self, moment: float) -> float:
        """Return *moment*, or the start of the round that it was meant to be.

        Args:
            moment: In clock units.
        """
        period = self._period
        if period is None or not moment < 2**52 * period:  # Beyond, rounds have no digits left.
            return moment
        start = round(moment / period) * period
        return start if abs(moment - start) <= max(1e-9 * period, 4 * ulp(moment)) else moment


def check_duration(duration: float) -> float:
    """Return *duration* if it is one.

    Args:
        duration: In clock units; infinity included.

    Raises:
        ValueError: If it is negative or not a number.
    """
    if not duration >= 0:
        raise ValueError(f"a duration must be a number, 0 or more, not {duration!r}")
    return duration


def call_with(function: Callable[[float], T], now: float) -> T:
    """Call *function* with *now*, and return what it returns.

    Args:
        function: What is called.
        now: The time that it is given, in clock units.

    Raises:
        RuntimeError: In place of a StopIteration, which neither a coroutine nor a future can pass
            on.
    """
    try:
        return function(now)
    except StopIteration as error:
        told = RuntimeError("a function that was called raised StopIteration")
        raise told.with_traceback(error.__traceback__) from error  # Which names its place.
