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
"""A classic process function of SimPy: a generator function of a `simpy.Environment`."""

Order = NewType("Order", int)
"""The rank of what happens at one instant: the lower comes first. SimPy's own events have 1."""

ARRIVAL = Order(1)
"""First within an instant: replies that arrive."""
DEADLINE = Order(2)
"""Then: patience that ends."""
AGENT = Order(3)
"""Last: the agent, which knows all that has happened in the instant."""


class Signal(Protocol):
    """Something that happens once, and that any number of processes may await, also afterwards."""

    def set(self, value: Any = None) -> None:
        """Make it happen now, and wake all who wait for it.

        Args:
            value: What they get. A signal that has happened keeps its first value.
        """

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for it, and return its value."""


class Process(Protocol[T_co]):
    """A coroutine that runs beside others, as `Clock.start` returns it.

    It begins within the instant in which it is started, and ends by returning a result, by being
    cancelled, or by an error. One that catches CancelledError goes on, and has a result. An error
    ends the whole run, so that nobody gets a result.
    """

    def cancel(self) -> None:
        """Raise CancelledError in the process where it waits, or will wait next.

        It is raised within this instant, after the caller has gone on to its own next wait. A
        process that has not begun never runs; one that has ended is left as it is.
        """

    def __await__(self) -> Generator[Any, Any, T_co | None]:
        """Wait for its end, and return its result, or None where it was cancelled."""


class Clock(Protocol):
    """Time, and what processes may do with it. All moments and durations are in clock units.

    At one instant arrivals come first, deadlines next, agents last, each in the order in which
    they were scheduled; an instant is over when no process has anything left to do in it.
    """

    @property
    def now(self) -> float:
        """The present moment; a play begins at 0."""

    @property
    def seconds(self) -> float | None:
        """How long a clock unit lasts, in seconds; None in virtual time."""

    def held_since(self, unix: float) -> float:
        """Return for how many seconds real time went on, and this clock stood still.

        Args:
            unix: Since when, in seconds since 1970.
        """

    def until(self, moment: float, order: Order = ARRIVAL) -> Awaitable[None]:
        """Wait until a moment.

        Args:
            moment: When to go on. A moment that has passed is now, and infinity never comes.
            order: When within the instant. To await now returns at once as an `ARRIVAL`; by
                another order, what comes first at this instant goes first.
        """

    def sleep(self, duration: float) -> Awaitable[None]:
        """Wait for some time.

        Args:
            duration: How long; infinity never ends.

        Raises:
            ValueError: If *duration* is negative or not a number.
        """

    def call_at(self, moment: float, action: Callable[[], None], order: Order = ARRIVAL) -> None:
        """Call a function at a moment.

        Args:
            moment: When. A moment that has passed is now, and infinity never comes.
            action: The function. An error that it raises ends the whole run.
            order: When within the instant.
        """

    def signal(self) -> Signal:
        """Return a new signal, which has not happened yet."""

    def start(self, process: Coroutine[Any, Any, T]) -> Process[T]:
        """Start a process that runs beside this one.

        Args:
            process: The coroutine to run. An error that it raises ends the whole run.

        Returns:
            The process, which may be awaited or cancelled, and need not be.
        """

    def gate(self, capacity: int) -> Gate:
        """Return a new gate.

        Args:
            capacity: How many processes may be within the gate at a time; at least 1.
        """

    def compute(
        self, function: Callable[[float], T], now: float, *, still: bool = False
    ) -> Awaitable[T]:
        """Call a function that computes, and does not wait.

        In virtual time it takes no time. In real time it runs in a thread, so that others go on.

        Args:
            function: What is called with *now*.
            now: The moment that it is told.
            still: Whether real time stands still meanwhile, as it does for the first move.

        Returns:
            What *function* returns.
        """

    def follow(self, function: SimPyFunction[T]) -> Awaitable[T]:
        """Run a classic SimPy process function to its end, in virtual time.

        Args:
            function: Called with the `simpy.Environment` of the clock.

        Returns:
            What the generator returns.

        Raises:
            LiveOnlyError: In real time, where SimPy's events do not happen.
        """

    def watch(self, work: Awaitable[T], who: str) -> Awaitable[T]:
        """Await work of a plug-in, and warn in real time of a step that holds up all others.

        Args:
            work: What is to be awaited.
            who: Whose work it is, as the warning names it.

        Returns:
            What *work* returns.
        """


class Gate:
    """A limited number of slots, served in the order of coming.

    A process takes a slot by `enter` and gives it back by `leave`, or does both by an
    `async with`. One that is cancelled while it waits takes no slot.

    Args:
        clock: The clock by which processes wait.
        capacity: How many slots there are; at least 1.
    """

    def __init__(self, clock: Clock, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a gate needs a capacity of at least 1, not {capacity}")
        self._clock = clock
        self._free = capacity
        self._queue: deque[Signal] = deque()

    async def enter(self) -> None:
        """Wait for a free slot, and take it."""
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
        """Free the slot, and hand it to the next in line if there is one."""
        if self._queue:
            self._queue.popleft().set()
        else:
            self._free += 1

    async def __aenter__(self) -> Self:
        await self.enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
