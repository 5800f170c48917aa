"""Clocks: the protocol that virtual and real time share, and the order within one instant.

A process is a coroutine that awaits a `Clock`; it runs unchanged in virtual and in real time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, NewType, Protocol, Self, TypeAlias, TypeVar

if TYPE_CHECKING:
    import simpy

__all__ = [
    "AGENT",
    "ARRIVAL",
    "DEADLINE",
    "Clock",
    "Gate",
    "Order",
    "Process",
    "Signal",
    "SimPyFunction",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SimPyFunction: TypeAlias = "Callable[[simpy.Environment], Generator[simpy.Event, Any, T]]"
"""A classic process function of SimPy, waiting for its environment."""

Order = NewType("Order", int)
"""The rank of what happens at one instant: the lower comes first. SimPy's own events have 1."""

ARRIVAL = Order(1)
DEADLINE = Order(2)
AGENT = Order(3)


class Signal(Protocol):
    """Something that happens once, and can be awaited, by several and also afterwards."""

    def set(self, value: Any = None) -> None:
        """Make it happen now; one that has happened keeps its value."""

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for it; give its value."""


class Process(Protocol[T_co]):
    """A coroutine under way; awaiting it gives its result, or None where it was cancelled.

    One that catches CancelledError goes on, and has a result. One that raises an error ends the
    whole run, so that nobody gets its result.
    """

    def cancel(self) -> None:
        """Have CancelledError raised where it waits, or will wait next, within this instant.

        It is raised after the caller has gone on to its own next wait. A process that has not
        begun never runs; one that has ended is left as it is.
        """

    def __await__(self) -> Generator[Any, Any, T_co | None]:
        """Wait for its end."""


class Clock(Protocol):
    """Time, and what one may do with it.

    At one instant arrivals come first, deadlines next, agents last, each in the order in which
    they were scheduled; an instant is over when nobody is left who stirs in it.
    """

    @property
    def now(self) -> float:
        """The present moment; a play begins at 0."""

    def until(self, moment: float, order: Order = ARRIVAL) -> Awaitable[None]:
        """Wait until *moment*; one that has come is not waited for, except to let others first."""

    def sleep(self, duration: float) -> Awaitable[None]:
        """Wait for a *duration*, infinity included."""

    def call_at(self, moment: float, action: Callable[[], None], order: Order = ARRIVAL) -> None:
        """Call *action* at *moment*."""

    def signal(self) -> Signal:
        """Make a signal that has not happened yet."""

    def start(self, process: Coroutine[Any, Any, T]) -> Process[T]:
        """Let a process run beside this one; a crash in it ends the whole run."""

    def gate(self, capacity: int) -> Gate:
        """Make a gate that lets *capacity* processes through at a time."""

    def compute(
        self, function: Callable[[float], T], now: float, *, still: bool = False
    ) -> Awaitable[T]:
        """Call *function*, which thinks but does not wait, with the moment *now*.

        In virtual time that takes no time; in real time it does, unless time is to stand *still*.
        """

    def follow(self, function: SimPyFunction[T]) -> Awaitable[T]:
        """Run a classic SimPy process function to its end; virtual time only."""

    def watched(self, work: Awaitable[T], who: str) -> Awaitable[T]:
        """Do the *work* of somebody; in real time, warn if it holds up all others."""


class Gate:
    """Lets a limited number of processes through at a time, first come, first served."""

    def __init__(self, clock: Clock, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a gate needs a capacity of at least 1, not {capacity}")
        self._clock = clock
        self._free = capacity
        self._queue: deque[Signal] = deque()

    async def enter(self) -> None:
        """Wait for a slot and take it."""
        if self._free:
            self._free -= 1
            return
        turn = self._clock.signal()
        self._queue.append(turn)
        try:
            await turn
        except BaseException:
            if turn in self._queue:
                self._queue.remove(turn)
            else:  # The slot was handed over at the very instant of giving up.
                self.leave()
            raise

    def leave(self) -> None:
        """Hand the slot to the next in line, or free it."""
        if self._queue:
            self._queue.popleft().set()
        else:
            self._free += 1

    async def __aenter__(self) -> Self:
        await self.enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
