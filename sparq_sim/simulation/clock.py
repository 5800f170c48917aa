"""Clocks: virtual time on SimPy and real time on asyncio, behind one protocol.

No other module imports either. A process is a coroutine and runs unchanged under both clocks.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import types
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf, isfinite, nextafter, ulp
from time import perf_counter
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import simpy
from simpy.core import EmptySchedule
from simpy.events import EventPriority as Order

from sparq_sim.errors import LiveOnlyError, PluginError, StuckError

__all__ = [
    "BlockingWarning",
    "Clock",
    "Gate",
    "LiveClock",
    "NotAwaitedWarning",
    "Process",
    "Signal",
    "SimClock",
    "SimPyFunction",
    "SlowStartWarning",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SimPyFunction: TypeAlias = Callable[[simpy.Environment], Generator[simpy.Event, Any, T]]
"""A classic process function of SimPy, waiting for its environment."""

# The order of what happens at one instant. SimPy's own events have order 1.
ARRIVAL = Order(1)
DEADLINE = Order(2)
AGENT = Order(3)

BLOCKING = 1.0
"""Seconds: who does not wait for so long holds up all others in real time."""

MOST_FORGOTTEN = 1000
"""So many waits that nobody awaits, and a source is refused more: it may go round for ever."""


class BlockingWarning(UserWarning):
    """Somebody computes or sleeps where nobody else can go on meanwhile."""


def _starved() -> float:
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


class NotAwaitedWarning(UserWarning):
    """Somebody made a wait, and did not wait for it."""


class SlowStartWarning(UserWarning):
    """The first move took longer than a round; the clock of a live play stood still meanwhile."""


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


class LentClock:
    """A clock as it is lent to a source, called *who*: waits that it does not await are noticed.

    A call of `sleep` without `await` does nothing at all, in virtual time without any sign of it.
    """

    __slots__ = ("_clock", "_who", "forgotten")

    def __init__(self, clock: Clock, who: str) -> None:
        self._clock = clock
        self._who = who
        self.forgotten = 0
        """How many waits nobody has awaited."""

    @property
    def now(self) -> float:
        """The present moment."""
        return self._clock.now

    def until(self, moment: float, order: Order = ARRIVAL) -> Awaitable[None]:
        """Wait until *moment*."""
        if self.forgotten > MOST_FORGOTTEN:
            raise PluginError(self._reproach)
        return _Wait(self, self._clock, moment, order)

    def sleep(self, duration: float) -> Awaitable[None]:
        """Wait for a *duration*."""
        return self.until(self._clock.now + _duration(duration))

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

    def watched(self, work: Awaitable[T], who: str) -> Awaitable[T]:
        """Do the *work* of somebody."""
        return self._clock.watched(work, who)

    def warn_of_forgotten(self) -> None:
        """Warn of waits that nobody awaits."""
        warnings.warn(self._reproach, NotAwaitedWarning, stacklevel=2)

    @property
    def _reproach(self) -> str:
        return (
            f"{self._who} calls clock.sleep or clock.until without await, so that no time passes; "
            "write `await world.clock.sleep(...)`"
        )


class _Wait(Coroutine[Any, Any, None]):
    """A wait that counts as forgotten if it goes without having been awaited."""

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


class Aligned:
    """Moments that know the rounds: one within a billionth of a round's start is that start.

    A transit of exactly three periods of 0.1 must arrive with the third round from now, though
    0.1 + 0.3 is not 0.4 in binary.
    """

    def __init__(self, period: float | None = None) -> None:
        if period is not None and not (period > 0 and isfinite(period)):
            raise ValueError(f"a period must be positive and finite, not {period!r}")
        self._period = period

    def align(self, moment: float) -> float:
        """Give *moment*, or the start of the round that it was meant to be."""
        period = self._period
        if period is None or not moment < 2**52 * period:  # Beyond, rounds have no digits left.
            return moment
        start = round(moment / period) * period
        return start if abs(moment - start) <= max(1e-9 * period, 4 * ulp(moment)) else moment


def _duration(duration: float) -> float:
    if not duration >= 0:
        raise ValueError(f"a duration must be a number from 0 on, not {duration!r}")
    return duration


def _called(function: Callable[[float], T], now: float) -> T:
    """Call *function*; a StopIteration, which no future takes, becomes a RuntimeError."""
    try:
        return function(now)
    except StopIteration as error:
        told = RuntimeError("a function that was called raised StopIteration")
        raise told.with_traceback(error.__traceback__) from error  # Which names its place.


def _name(coroutine: Coroutine[Any, Any, Any]) -> str:
    return str(getattr(coroutine, "__qualname__", coroutine))


# ----------------------------------------------------------------------- virtual time


class _Agenda(simpy.Environment):
    """SimPy's environment, able to schedule at a moment: now + (m - now) misses m at times."""

    def schedule_at(self, event: simpy.Event, moment: float, order: Order) -> None:
        """Let a triggered *event* be processed at *moment*."""
        heappush(self._queue, (moment, order, next(self._eid), event))


class _Happening(simpy.Event):
    """An event that is triggered from the beginning; only its moment is to come."""

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
    """Drives a coroutine from one SimPy event to the next.

    simpy.Process would do, but it copies exceptions by their arguments, and interrupts with an
    Exception, which a careless `except Exception` in an expert would swallow.
    """

    __slots__ = ("_cancelled", "_clock", "_coroutine", "_ended", "_target", "done", "result")

    def __init__(self, clock: SimClock, coroutine: Coroutine[Any, Any, Any]) -> None:
        agenda = clock.agenda
        self._clock = clock
        self._coroutine = coroutine
        self._ended: _SimSignal | None = None
        self._cancelled = False  # And has yet to hear of it.
        self.done = False
        self.result: Any = None
        # What it waits for; None while it runs.
        self._target: simpy.Event | None = _Happening(agenda)
        self._target.callbacks.append(self._resume)
        agenda.schedule_at(self._target, agenda._now, ARRIVAL)
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
            except asyncio.CancelledError:
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
        """Have CancelledError raised where it waits."""
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
        self._target = event = self._failed(asyncio.CancelledError())
        event.callbacks.append(self._hear_of_cancellation)
        self._clock.agenda.schedule_at(event, self._clock.agenda._now, ARRIVAL)

    def _hear_of_cancellation(self, event: simpy.Event) -> None:
        event.defused = True
        if not self.done:
            self._cancelled = False
            self._resume(event)

    def close(self) -> None:
        """End it for good, at once; what it awaits while it is cancelled never comes."""
        if not self.done:
            self._leave_target()
            self._cancelled = False
            self._resume(self._failed(asyncio.CancelledError()))
        self._coroutine.close()

    def __await__(self) -> Generator[simpy.Event, Any, Any]:
        if self.done:
            return self.result
        if self._ended is None:
            self._ended = _SimSignal(self._clock.agenda)
        return (yield self._ended)


class SimClock(Aligned):
    """Virtual time: a discrete-event simulation on SimPy, with rounds of one *period* if given."""

    def __init__(self, period: float | None = None) -> None:
        super().__init__(period)
        self.agenda = _Agenda(initial_time=0.0)
        self.under_way: dict[_SimProcess, None] = {}

    @property
    def now(self) -> float:
        """The present moment."""
        return self.agenda._now

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
        return self.until(self.agenda._now + _duration(duration))

    def call_at(self, moment: float, action: Callable[[], None], order: Order = ARRIVAL) -> None:
        """Call *action* at *moment*."""
        moment = self.align(moment)
        if moment < inf:
            event = _Happening(self.agenda)
            event.callbacks.append(lambda _: action())
            self.agenda.schedule_at(event, max(moment, self.agenda._now), order)

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
        """Call *function* on the spot: virtual time stands still while it thinks."""
        return _called(function, now)

    def watched(self, work: Awaitable[T], who: str) -> Awaitable[T]:
        """Do the work: in virtual time nobody is held up."""
        return work

    @types.coroutine
    def follow(self, function: SimPyFunction[T]) -> Generator[simpy.Event, Any, T]:
        """Run a classic SimPy process function to its end."""
        process = self.agenda.process(function(self.agenda))
        try:
            result: T = yield process
        except asyncio.CancelledError:
            if process.is_alive:
                process.defused = True
                process.interrupt("given up")
            raise
        return result

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run *main* to its end; what is then still under way is cancelled."""
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


# -------------------------------------------------------------------------- real time


class _LiveSignal:
    """An asyncio event with a value, that stirs its clock."""

    def __init__(self, clock: LiveClock) -> None:
        self._clock = clock
        # Not a future, which would be cancelled for all with any one who awaits it.
        self._event = asyncio.Event()
        self._value: Any = None

    def set(self, value: Any = None) -> None:
        """Make it happen now."""
        self._clock.stirs += 1
        if not self._event.is_set():
            self._value = value
            self._event.set()

    def __await__(self) -> Generator[Any, Any, Any]:
        if not self._event.is_set():
            self._clock.refuse_if_over()
            yield from self._event.wait().__await__()
        return self._value


class _LiveProcess:
    """A task of the clock's."""

    def __init__(self, clock: LiveClock, task: asyncio.Task[Any]) -> None:
        self._clock = clock
        self._task = task

    def cancel(self) -> None:
        """Have CancelledError raised where it waits."""
        self._task.cancel()

    def __await__(self) -> Generator[Any, Any, Any]:
        if not self._task.done():
            self._clock.refuse_if_over()
            yield from asyncio.wait([self._task]).__await__()
        if self._task.cancelled():
            return None
        if self._task.exception() is not None:  # The run ends with it, and so does who waits.
            yield from asyncio.get_running_loop().create_future()
        return self._task.result()


class _Threads(concurrent.futures.Executor):
    """A thread for each call: in a pool, who computes for long would hold up the others."""

    def submit(
        self, function: Callable[..., T], /, *arguments: Any, **named: Any
    ) -> concurrent.futures.Future[T]:
        """Call *function* in a thread of its own."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = function(*arguments, **named)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=call, name="sparq-sim").start()
        return future


class LiveClock(Aligned):
    """Real time on asyncio: one clock unit lasts *seconds*.

    asyncio fires equal timers in no order, so the clock keeps an agenda of its own.
    """

    # So many turns of the loop without a stir, and an instant is over.
    _QUIET_TURNS = 8

    def __init__(self, period: float | None = None, *, seconds: float = 1.0) -> None:
        super().__init__(period)
        if not (seconds > 0 and isfinite(seconds)):
            raise ValueError(f"a clock unit must last some seconds, not {seconds!r}")
        self._seconds = seconds
        self._agenda: list[tuple[float, int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._epoch = 0.0
        self._still_at: float | None = None  # Since when time stands still, if it does.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._crash: BaseException | None = None
        self._over = False
        self.stirs = 0

    @property
    def now(self) -> float:
        """The present moment."""
        if self._still_at is not None:
            return self._still_at
        return (self._loop.time() - self._epoch) / self._seconds

    async def until(self, moment: float, order: Order = ARRIVAL) -> None:
        """Wait until *moment*."""
        self.stirs += 1
        if order == ARRIVAL and self.align(moment) <= self.now:
            return
        signal = self.signal()
        self.call_at(moment, signal.set, order)
        await signal

    def sleep(self, duration: float) -> Awaitable[None]:
        """Wait for a *duration*."""
        return self.until(self.now + _duration(duration))

    def call_at(self, moment: float, action: Callable[[], None], order: Order = ARRIVAL) -> None:
        """Call *action* at *moment*."""
        moment = max(self.align(moment), self.now)
        if moment < inf:
            heappush(self._agenda, (moment, order, next(self._numbers), action))
            self._changed.set()

    def signal(self) -> Signal:
        """Make a signal."""
        return _LiveSignal(self)

    def start(self, process: Coroutine[Any, Any, T]) -> Process[T]:
        """Start a process that runs beside this one."""
        self.stirs += 1
        return _LiveProcess(self, self._begin(process))

    def _begin(self, process: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self._loop.create_task(process)
        self._tasks[task] = None
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[Any]) -> None:
        self.stirs += 1
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        # Who goes on to wait when the run is over leaves by GeneratorExit.
        if not (error is None or (self._over and isinstance(error, GeneratorExit))):
            self._crash = self._crash or error
            self._ended.set()

    def refuse_if_over(self) -> None:
        """Raise GeneratorExit, as in a coroutine that is closed, where no moment comes any more."""
        if self._over:
            raise GeneratorExit

    def gate(self, capacity: int) -> Gate:
        """Make a gate."""
        return Gate(self, capacity)

    def _in_thread(self, function: Callable[[float], T], now: float) -> Awaitable[T]:
        call = partial(copy_context().run, _called, function, now)
        return self._loop.run_in_executor(_Threads(), call)

    async def compute(
        self, function: Callable[[float], T], now: float, *, still: bool = False
    ) -> T:
        """Call *function* in a thread, so that thinking holds up no reply."""
        if not still:
            return await self._in_thread(function, now)
        began, self._still_at = self._loop.time(), self.now
        result = await self._in_thread(function, now)  # Should it fail, the run is over.
        held, moment, self._still_at = self._loop.time() - began, self._still_at, None
        if held:
            self._epoch += held
            while self.now < moment:  # By rounding.
                self._epoch = nextafter(self._epoch, -inf)
        self._changed.set()
        self._warn_of_slow_start(held)
        return result

    def _warn_of_slow_start(self, held: float) -> None:
        if self._period is not None and held > (lasts := self._period * self._seconds):
            warnings.warn(
                f"the agent's first move took {held:.3g} s, and a round lasts {lasts:.3g} s; the "
                "clock stood still meanwhile, but it will not for later moves: one that takes "
                "longer than a round misses rounds",
                SlowStartWarning,
                stacklevel=2,
            )

    async def follow(self, function: SimPyFunction[T]) -> T:
        """Refuse: SimPy's events happen in virtual time only."""
        raise LiveOnlyError(
            "a SimPy process function runs in virtual time only; "
            "make it an `async def` that awaits the clock to play it live"
        )

    @types.coroutine
    def watched(self, work: Awaitable[T], who: str) -> Generator[Any, Any, T]:
        """Do the work, step by step, and warn of a step that blocks the loop."""
        steps = work.__await__()
        step: Callable[[Any], Any] = steps.send
        given: Any = None
        while True:
            began, starved = perf_counter(), _starved()
            try:
                happening = step(given)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                held = perf_counter() - began
                # A busy machine is nobody's fault; asked for last, since it is seldom needed.
                if held > BLOCKING and (held := held - _starved() + starved) > BLOCKING:
                    _warn_of_blocking(who, held)
            try:
                given, step = (yield happening), steps.send
            except BaseException as error:
                given, step = error, steps.throw

    async def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run *main* to its end; what is then still under way is cancelled."""
        self._loop = asyncio.get_running_loop()
        self._epoch = self._loop.time()
        self._changed, self._ended = asyncio.Event(), asyncio.Event()
        self._crash, self._over = None, False
        self._begin(self._pace())
        task = self._begin(main)
        task.add_done_callback(lambda _: self._ended.set())
        try:
            await self._ended.wait()
        finally:
            await self._close()
        if self._crash is not None:
            raise self._crash
        # None as of any process, where main was cancelled, which it can be by itself only.
        return None if task.cancelled() else task.result()  # type: ignore[return-value]

    async def _close(self) -> None:
        """Cancel all that is under way, also what that starts, and wait for its end."""
        self._over = True
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await asyncio.sleep(0)  # For what is called when they are done.

    async def _pace(self) -> None:
        while True:
            self._changed.clear()
            if not self._agenda or self._still_at is not None:
                await self._changed.wait()
                continue
            moment, order, _, action = self._agenda[0]
            if moment > self.now:
                timer = self._loop.call_at(self._due(moment), self._changed.set)
                await self._changed.wait()
                timer.cancel()
            elif order == ARRIVAL or await self._quiet():
                heappop(self._agenda)
                action()

    def _due(self, moment: float) -> float:
        """Return the time of the loop at which *moment* has come, also by the clock's own sums."""
        due = self._epoch + moment * self._seconds
        # A loop whose time stands still until the next timer would wait for ever otherwise.
        while (due - self._epoch) / self._seconds < moment:
            due = nextafter(due, inf)
        return due

    async def _quiet(self) -> bool:
        """Turn the loop until somebody stirs, or so often that the instant must be over."""
        stirs, changes = self.stirs, len(self._agenda)
        for _ in range(self._QUIET_TURNS):
            await asyncio.sleep(0)
            if (stirs, changes) != (self.stirs, len(self._agenda)):
                return False
        return True
