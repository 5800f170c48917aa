"""The clock as it is lent to a source: it notices waits that nobody awaits."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

from sparq_sim.errors import PluginError
from sparq_sim.simulation.clock.base import check_duration
from sparq_sim.simulation.clock.protocol import (
    ARRIVAL,
    Clock,
    Gate,
    Order,
    Process,
    Signal,
    SimPyFunction,
)

__all__ = ["LentClock", "NotAwaitedWarning"]

T = TypeVar("T")

_MOST_FORGOTTEN = 1000
"""After so many waits that nobody awaits, a source is refused more: it may never stop."""


class NotAwaitedWarning(UserWarning):
    """A source calls `clock.sleep` or `clock.until` without `await`, so that no time passes."""


class LentClock:
    """A clock as a source gets it, which counts the waits that the source does not await.

    A call of `sleep` without `await` does nothing at all, and in virtual time nothing shows it.

    Args:
        clock: The clock of the play.
        who: The source, as warnings and errors name it.
    """

    __slots__ = ("_clock", "_who", "forgotten")

    def __init__(self, clock: Clock, who: str) -> None:
        self._clock = clock
        self._who = who
        self.forgotten = 0
        """How many waits have gone without being awaited."""

    @property
    def now(self) -> float:
        """The present moment."""
        return self._clock.now

    @property
    def seconds(self) -> float | None:
        """How long a clock unit lasts, in seconds; None in virtual time."""
        return self._clock.seconds

    def held_since(self, unix: float) -> float:
        """Return for how many seconds the clock stood still since *unix*."""
        return self._clock.held_since(unix)

    def until(self, moment: float, order: Order = ARRIVAL) -> Awaitable[None]:
        """Wait until *moment*."""
        if self.forgotten > _MOST_FORGOTTEN:
            raise PluginError(self._reproach)
        return _Wait(self, self._clock, moment, order)

    def sleep(self, duration: float) -> Awaitable[None]:
        """Wait for a *duration*."""
        return self.until(self._clock.now + check_duration(duration))

    def call_at(self, moment: float, action: Callable[[], None], order: Order = ARRIVAL) -> None:
        """Call *action* at *moment*."""
        self._clock.call_at(moment, action, order)

    def signal(self) -> Signal:
        """Make a signal."""
        return self._clock.signal()

    def start(self, process: Coroutine[Any, Any, T]) -> Process[T]:
        """Start a process that runs beside this one."""
        return self._clock.start(process)

    def gate(self, capacity: int) -> Gate:
        """Make a gate."""
        return self._clock.gate(capacity)

    def compute(
        self, function: Callable[[float], T], now: float, *, still: bool = False
    ) -> Awaitable[T]:
        """Call *function*."""
        return self._clock.compute(function, now, still=still)

    def follow(self, function: SimPyFunction[T]) -> Awaitable[T]:
        """Run a classic SimPy process function to its end."""
        return self._clock.follow(function)

    def watch(self, work: Awaitable[T], who: str) -> Awaitable[T]:
        """Do the *work* of somebody."""
        return self._clock.watch(work, who)

    def warn_of_forgotten(self) -> None:
        """Warn, by a NotAwaitedWarning, that the source does not await its waits."""
        warnings.warn(self._reproach, NotAwaitedWarning, stacklevel=2)

    @property
    def _reproach(self) -> str:
        return (
            f"{self._who} calls clock.sleep or clock.until without await, so that no time passes; "
            "write `await world.clock.sleep(...)`"
        )


class _Wait(Coroutine[Any, Any, None]):
    """A wait that counts as forgotten if it is deleted without having been awaited."""

    __slots__ = ("_clock", "_lent", "_moment", "_order", "_under_way")

    def __init__(self, lent: LentClock, clock: Clock, moment: float, order: Order) -> None:
        self._lent = lent
        self._clock = clock
        self._moment = moment
        self._order = order
        self._under_way: Coroutine[Any, Any, None] | None = None

    async def _wait(self) -> None:
        await self._clock.until(self._moment, self._order)

    def _begun(self) -> Coroutine[Any, Any, None]:
        if self._under_way is None:
            self._under_way = self._wait()
        return self._under_way

    def __await__(self) -> Generator[Any, Any, None]:
        return self._begun().__await__()

    def send(self, value: Any, /) -> Any:
        return self._begun().send(value)

    def throw(self, *error: Any) -> Any:
        return self._begun().throw(*error)

    def close(self) -> None:
        self._begun().close()

    def __del__(self) -> None:
        if self._under_way is None:
            self._lent.forgotten += 1
