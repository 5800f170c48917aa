"""Virtual time: a discrete-event simulation on SimPy. No other module imports SimPy."""

from __future__ import annotations

import types
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Coroutine, Generator
from heapq import heappush
from math import inf
from operator import attrgetter
from typing import Any, TypeVar

import simpy
from simpy.core import EmptySchedule

from sparq_sim.errors import LiveOnlyError, StuckError
from sparq_sim.simulation.clock.base import RoundedClock, call_with, check_duration
from sparq_sim.simulation.clock.protocol import (
    ARRIVAL,
    Gate,
    Order,
    Process,
    Signal,
    SimPyFunction,
)

__all__ = ["SimClock"]

T = TypeVar("T")


class _Agenda(simpy.Environment):
    """SimPy's environment, able to schedule at a moment m: now + (m - now) is not always m."""

    # SimPy has a type of its own for the order.
    _queue: list[tuple[float, Order, int, simpy.Event]]  # type: ignore[assignment]

    def schedule_at(self, event: simpy.Event, moment: float, order: Order) -> None:
        """Schedule a triggered *event* for *moment*."""
        heappush(self._queue, (moment, order, next(self._eid), event))


class _Happening(simpy.Event):
    """An event that is triggered from the beginning, and processed when its moment comes."""

    _ok = True
    _value = None


class _SimSignal(simpy.Event):
    """A SimPy event, awaitable."""

    def set(self, value: Any = None) -> None:
        """Make it happen now."""
        if not self.triggered:
            self.succeed(value)

    def __await__(self) -> Generator[simpy.Event, Any, Any]:
        return (yield self)


class _SimProcess:
    """A process that takes a coroutine from one SimPy event to the next.

    simpy.Process would do, but it copies exceptions by their arguments, and interrupts with an
    Exception, which a careless `except Exception` in an expert would swallow.
    """

    __slots__ = ("_cancelled", "_clock", "_coroutine", "_ended", "_target", "done", "result")

    def __init__(self, clock: SimClock, coroutine: Coroutine[Any, Any, Any]) -> None:
        agenda = clock.agenda
        self._clock = clock
        self._coroutine = coroutine
        self._ended: _SimSignal | None = None
        self._cancelled = False  # Whether it is, and CancelledError has yet to be raised in it.
        self.done = False
        self.result: Any = None
        # What it waits for; None while it runs.
        self._target: simpy.Event | None = _Happening(agenda)
        self._target.callbacks.append(self._resume)
        # As schedule_at does; processes are what most events belong to.
        heappush(agenda._queue, (agenda._now, ARRIVAL, next(agenda._eid), self._target))
        clock.under_way[self] = None

    def _resume(self, event: simpy.Event) -> None:
        coroutine = self._coroutine
        self._target = None
        while True:
            try:
                if event._ok:
                    target = coroutine.send(event._value)
                else:
                    event.defused = True
                    target = coroutine.throw(event._value)
            except StopIteration as stop:
                self._end(None if self._cancelled else stop.value)
                return
            except CancelledError:
                self._end(None)
                return
            except BaseException:  # Out of SimPy's step and so out of run.
                self._end(None)
                raise
            try:
                callbacks = target.callbacks
            except AttributeError:
                event = self._refuse(target)
                continue
            if callbacks is None:
                event = target
                continue
            if self._cancelled:  # By itself, before it came to wait.
                self._schedule_cancellation()
            else:
                callbacks.append(self._resume)
                self._target = target
            return

    def _refuse(self, target: object) -> simpy.Event:
        return self._failed(
            LiveOnlyError(
                f"{_name(self._coroutine)} awaits {target!r}, which passes in real time only; "
                "under virtual time await the clock: world.clock.sleep(...), or play it live"
            )
        )

    def _failed(self, error: BaseException) -> simpy.Event:
        event = _SimSignal(self._clock.agenda)
        event._ok = False
        event._value = error
        return event

    def _end(self, result: Any) -> None:
        self.done = True
        self.result = result
        self._clock.under_way.pop(self, None)
        if self._ended is not None:
            self._ended.set(result)

    def cancel(self) -> None:
        """Raise CancelledError where it waits."""
        if self.done or self._cancelled:
            return
        self._cancelled = True
        if self._target is not None:
            self._leave_target()
            self._schedule_cancellation()

    def _leave_target(self) -> None:
        target = self._target
        if target is not None and target.callbacks and self._resume in target.callbacks:
            target.callbacks.remove(self._resume)

    def _schedule_cancellation(self) -> None:
        # At once would be simpler, but is impossible in real time.
        self._target = event = self._failed(CancelledError())
        event.callbacks.append(self._raise_cancellation)
        self._clock.agenda.schedule_at(event, self._clock.agenda._now, ARRIVAL)

    def _raise_cancellation(self, event: simpy.Event) -> None:
        event.defused = True
        if self._cancelled and not self.done:
            self._cancelled = False
            self._resume(event)

    def close(self) -> None:
        """End it for good, at once; what it awaits while it is cancelled never comes."""
        if not self.done:
            self._leave_target()
            self._cancelled = False
            self._resume(self._failed(CancelledError()))
        self._coroutine.close()

    def __await__(self) -> Generator[simpy.Event, Any, Any]:
        if self.done:
            return self.result
        if self._ended is None:
            self._ended = _SimSignal(self._clock.agenda)
        return (yield self._ended)


class SimClock(RoundedClock):
    """Virtual time: a discrete-event simulation on SimPy, which runs as fast as it computes.

    Args:
        period: How long a round lasts, in clock units; by default there are no rounds.
    """

    def __init__(self, period: float | None = None) -> None:
        super().__init__(period)
        self.agenda = _Agenda(initial_time=0.0)
        self.under_way: dict[_SimProcess, None] = {}

    now = property(attrgetter("agenda._now"), doc="The present moment, in clock units.")
    # In C, because nothing is read more often in a round.
    seconds: float | None = None
    """How long a clock unit lasts, in seconds; None, because no real time passes."""

    @types.coroutine
    def until(self, moment: float, order: Order = ARRIVAL) -> Generator[simpy.Event, Any, None]:
        """Wait until *moment*."""
        agenda = self.agenda
        moment = self.align(moment)
        if moment <= agenda._now:
            if order == ARRIVAL:
                return
            moment = agenda._now
        event = _Happening(agenda)
        if moment < inf:
            heappush(agenda._queue, (moment, order, next(agenda._eid), event))
        yield event

    def sleep(self, duration: float) -> Awaitable[None]:
        """Wait for a *duration*."""
        return self.until(self.agenda._now + check_duration(duration))

    def call_at(self, moment: float, action: Callable[[], None], order: Order = ARRIVAL) -> None:
        """Call *action* at *moment*."""
        moment = self.align(moment)
        if moment < inf:
            event = _Happening(self.agenda)
            event.callbacks.append(lambda _: action())
            self.agenda.schedule_at(event, max(moment, self.agenda._now), order)

    def held_since(self, unix: float) -> float:
        """Return 0: real time is none of its concern."""
        return 0.0

    def signal(self) -> Signal:
        """Make a signal."""
        return _SimSignal(self.agenda)

    def start(self, process: Coroutine[Any, Any, T]) -> Process[T]:
        """Start a process that runs beside this one."""
        return _SimProcess(self, process)

    def gate(self, capacity: int) -> Gate:
        """Make a gate."""
        return Gate(self, capacity)

    async def compute(
        self, function: Callable[[float], T], now: float, *, still: bool = False
    ) -> T:
        """Call *function* at once: virtual time stands still while it computes."""
        return call_with(function, now)

    def watch(self, work: Awaitable[T], who: str) -> Awaitable[T]:
        """Return *work* as it is: in virtual time nobody is held up."""
        return work

    @types.coroutine
    def follow(self, function: SimPyFunction[T]) -> Generator[simpy.Event, Any, T]:
        """Run a classic SimPy process function to its end."""
        process = self.agenda.process(function(self.agenda))
        try:
            result: T = yield process
        except CancelledError:
            if process.is_alive:
                process.defused = True
                process.interrupt("given up")
            raise
        return result

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and cancel what is still under way then.

        Args:
            main: The first process.

        Returns:
            What *main* returns.

        Raises:
            StuckError: If *main* waits, and nothing is left that could happen.
        """
        process = _SimProcess(self, main)
        step = self.agenda.step
        try:
            while not process.done:
                step()
        except BaseException as error:
            self._close()
            if not isinstance(error, EmptySchedule):
                raise
            raise StuckError(
                f"at {self.now} nothing is left to happen, yet {_name(main)} waits"
            ) from None
        if (late := self._close()) is not None:
            raise late
        return process.result  # type: ignore[no-any-return] # _SimProcess is not generic

    def _close(self) -> BaseException | None:
        """Close all that is under way, also what that starts; return the first error in it."""
        first: BaseException | None = None
        while self.under_way:
            process = next(iter(self.under_way))
            try:
                process.close()
            except BaseException as error:
                first = first or error
            self.under_way.pop(process, None)
        return first


def _name(coroutine: Coroutine[Any, Any, Any]) -> str:
    return str(getattr(coroutine, "__qualname__", coroutine))
