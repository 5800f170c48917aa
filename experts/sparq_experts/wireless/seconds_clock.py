"""The clock of a network, which counts seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sparq_sim.simulation.clock.protocol import ARRIVAL, Clock, Order

__all__ = ["SecondsClock"]


class SecondsClock:
    """The clock of a play, read in seconds.

    Args:
        clock: The clock of the play.
        seconds: How many seconds a clock unit lasts.
    """

    __slots__ = ("_seconds", "clock")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock = clock
        """In clock units."""
        self._seconds = seconds

    @property
    def now(self) -> float:
        """The present moment, in seconds."""
        return self.clock.now * self._seconds

    def until(self, moment: float, order: Order = ARRIVAL) -> Awaitable[None]:
        """Wait until a moment.

        Args:
            moment: In seconds.
            order: When within the instant.
        """
        return self.clock.until(moment / self._seconds, order)

    def call_at(self, moment: float, action: Callable[[], None]) -> None:
        """Call a function at a moment.

        Args:
            moment: In seconds.
            action: The function.
        """
        self.clock.call_at(moment / self._seconds, action)
