"""Real time on asyncio.

`LiveClock` is long because it has all that the protocol asks for; each method is short.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import copy_context
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf, isfinite, nextafter
from time import time
from typing import Any, TypeVar

from sparq_sim.errors import LiveOnlyError
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.simulation.clock.base import RoundedClock, call_with, check_duration
from sparq_sim.simulation.clock.blocking import watch_steps
from sparq_sim.simulation.clock.protocol import (
    ARRIVAL,
    Gate,
    Order,
    Process,
    Signal,
    SimPyFunction,
)

__all__ = ["LiveClock", "SlowStartWarning"]

T = TypeVar("T")


class SlowStartWarning(UserWarning):
    """The first move took longer than a round; the clock of a live play stood still meanwhile."""


class _LiveSignal:
    """Something that happens in the order of its clock's agenda, and that tasks await."""

    def __init__(self, clock: LiveClock) -> None:
        self._clock = clock
        self._is_set = self._has_happened = False
        self._value: Any = None
        # One for each who waits: one future would be cancelled for all with any of them.
        self._waiting: dict[asyncio.Future[None], None] = {}

    def set(self, value: Any = None) -> None:
        """Make it happen now, after all that is to happen in this instant already."""
        if not self._is_set:
            self._is_set, self._value = True, value
            self._clock.call_soon(self.happen)

    def happen(self) -> None:
        """Wake all who wait for it."""
        self._has_happened = True
        for waiting in self._waiting:
            if not waiting.done():  # By a cancellation from outside the clock.
                waiting.set_result(None)

    def __await__(self) -> Generator[Any, Any, Any]:
        if not self._has_happened:
            self._clock.refuse_if_over()
            waiting = asyncio.get_running_loop().create_future()
            self._waiting[waiting] = None
            if (process := self._clock.find_process()) is not None:
                process.come_to_wait(partial(self._waiting.pop, waiting, None))
            try:
                yield from waiting
            finally:
                self._waiting.pop(waiting, None)
        return self._value


class _LiveProcess:
    """A coroutine in a task, which begins, ends and is cancelled in the order of the agenda."""

    def __init__(self, clock: LiveClock, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._clock = clock
        self._coroutine = coroutine
        self._turn, self._ended = _LiveSignal(clock), _LiveSignal(clock)
        self._done = False
        self.result: Any = None
        """What it has returned; None as long as it has not, and where it was cancelled."""
        self._is_cancelled = False  # Whether it is, and CancelledError has yet to be raised in it.
        self._by_itself = False
        self._cancellations = 0
        self._leave: Callable[[], object] = lambda: None
        self._turn.set()
        self.task = clock.begin(self._run(), self)
        # Or Python warns if it never began.
        self.task.add_done_callback(lambda _: coroutine.close())

    async def _run(self) -> None:
        try:
            await self._turn
            if self._is_cancelled:  # And never begins.
                await _wait_for_ever()
            result = await self._coroutine
            self.result = None if self._is_cancelled else result
        except asyncio.CancelledError:
            self.result = None
        # Not after an error: with it the run ends, and so does who waits.
        self._done = True
        self._ended.set()

    def cancel(self) -> None:
        """Raise CancelledError where it waits."""
        if self._done or self._is_cancelled:
            return
        self._is_cancelled = True
        self._by_itself = self._clock.find_process() is self
        self._leave()
        self._schedule_cancellation()

    def come_to_wait(self, leave: Callable[[], object]) -> None:
        """Note that it waits from now on; if it has cancelled itself, it hears of it now.

        Args:
            leave: Called when it is cancelled: what it waits for does not wake it any more.
        """
        self._leave = leave
        if self._is_cancelled:
            leave()
        if self._by_itself:
            self._by_itself = False
            self._schedule_cancellation()

    def _schedule_cancellation(self) -> None:
        self._cancellations += 1
        self._clock.call_soon(partial(self._raise_cancellation, self._cancellations))

    def _raise_cancellation(self, number: int) -> None:
        if number == self._cancellations and not self._done:
            self._is_cancelled = False
            self.task.cancel()

    def __await__(self) -> Generator[Any, Any, Any]:
        if not self._done:
            yield from self._ended.__await__()
        return self.result


async def _wait_for_ever() -> None:
    await asyncio.get_running_loop().create_future()


class _Threads(concurrent.futures.Executor):
    """A thread for each call: in a pool, a long computation would hold up the others."""

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


class _Stopwatch:
    """The time of an event loop in clock units of some *seconds* each; it can stand still."""

    def __init__(self, seconds: float, begins_at: float = 0.0) -> None:
        self.seconds = seconds
        self._begins_at = begins_at
        self._epoch = 0.0
        self._still_at: float | None = begins_at  # Until it begins.
        self._still_since = 0.0

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count from now on."""
        self._loop = loop
        self._epoch = loop.time() - self._begins_at * self.seconds
        self._still_at = None

    @property
    def now(self) -> float:
        if self._still_at is not None:
            return self._still_at
        return (self._loop.time() - self._epoch) / self.seconds

    @property
    def stands_still(self) -> bool:
        return self._still_at is not None

    def stop(self) -> None:
        """Stand still from now on."""
        self._still_since, self._still_at = self._loop.time(), self.now

    def go_on(self) -> float:
        """Go on from the moment of the stop; return for how many seconds time stood still."""
        held, moment, self._still_at = self._loop.time() - self._still_since, self._still_at, None
        assert moment is not None
        if held:
            self._epoch += held
            while self.now < moment:  # By rounding.
                self._epoch = nextafter(self._epoch, -inf)
        return held

    def due(self, moment: float) -> float:
        """Return the time of the loop at which *moment* has come, also by the sum of `now`."""
        due = self._epoch + moment * self.seconds
        # A loop whose time stands still until the next timer would wait for ever otherwise.
        while (due - self._epoch) / self.seconds < moment:
            due = nextafter(due, inf)
        return due


class LiveClock(RoundedClock):
    """Real time on asyncio.

    asyncio fires equal timers in no order, so the clock keeps an agenda of its own. An instant is
    over after some turns of the loop in which no process has done anything.

    Args:
        period: How long a round lasts, in clock units; by default there are no rounds.
        seconds: How long a clock unit lasts.
        begins_at: The moment at which it begins, in clock units: later than 0 where a play goes on
            that was interrupted.
    """

    # After so many turns of the loop without a stir, an instant is over.
    _QUIET_TURNS = 8
    # Seconds after which what comes last in an instant does not wait for the others any more.
    _PATIENCE = 0.05

    def __init__(
        self, period: float | None = None, *, seconds: float = 1.0, begins_at: float = 0.0
    ) -> None:
        super().__init__(period)
        if not (seconds > 0 and isfinite(seconds)):
            raise ValueError(f"a clock unit must last some seconds, not {seconds!r}")
        self._time = _Stopwatch(seconds, begins_at)
        self._agenda: list[tuple[float, int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._tasks: dict[asyncio.Task[Any], _LiveProcess | None] = {}
        self._instant = begins_at
        self._changed, self._ended = asyncio.Event(), asyncio.Event()
        self._crash: BaseException | None = None
        self._over = False
        self._held_from = time()
        self._holds: list[tuple[float, float]] = []
        self.has_begun = False
        """Whether time has begun to count."""
        self._stirs = 0  # How often a process has waited for a moment that had passed.

    @property
    def now(self) -> float:
        """The present moment."""
        return self._time.now

    @property
    def seconds(self) -> float:
        """How long a clock unit lasts, in seconds."""
        return self._time.seconds

    async def until(self, moment: float, order: Order = ARRIVAL) -> None:
        """Wait until *moment*."""
        self._stirs += 1
        if order == ARRIVAL and self.align(moment) <= self.now:
            return
        signal = _LiveSignal(self)
        self.call_at(moment, signal.happen, order)
        await signal

    def sleep(self, duration: float) -> Awaitable[None]:
        """Wait for a *duration*."""
        return self.until(self.now + check_duration(duration))

    def call_at(self, moment: float, action: Callable[[], None], order: Order = ARRIVAL) -> None:
        """Call *action* at *moment*."""
        moment = self.align(moment)
        if moment < inf:
            self._schedule(moment if moment > self.now else self._find_instant(), order, action)

    def call_soon(self, action: Callable[[], None]) -> None:
        """Call *action* within this instant, after what is to happen in it already.

        Args:
            action: The function.
        """
        self._schedule(self._find_instant(), ARRIVAL, action)

    def _schedule(self, moment: float, order: Order, action: Callable[[], None]) -> None:
        heappush(self._agenda, (moment, order, next(self._numbers), action))
        self._changed.set()

    def _find_instant(self) -> float:
        """Return the moment that all who act now share: real time has gone on meanwhile.

        An instant that takes long is over, so that those who never rest do not keep others waiting.
        """
        now = self.now
        return self._instant if (now - self._instant) * self.seconds <= self._PATIENCE else now

    def signal(self) -> Signal:
        """Make a signal."""
        return _LiveSignal(self)

    def start(self, process: Coroutine[Any, Any, T]) -> Process[T]:
        """Start a process that runs beside this one."""
        return _LiveProcess(self, process)

    def find_process(self) -> _LiveProcess | None:
        """Return the process that runs, or None where a task does that the clock has not begun."""
        task = asyncio.current_task()
        return self._tasks.get(task) if task is not None else None

    def begin(
        self, work: Coroutine[Any, Any, T], process: _LiveProcess | None = None
    ) -> asyncio.Task[T]:
        """Begin a task; an error in it ends the run.

        Args:
            work: What it runs.
            process: What it is the task of, if it is one's.

        Returns:
            The task.
        """
        task = self._loop.create_task(self._guard(work))
        self._tasks[task] = process
        task.add_done_callback(lambda _: work.close())
        task.add_done_callback(self._end)
        return task

    async def _guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work that cannot end the event loop; an error in it ends the run."""
        try:
            with refuse_exits():
                return await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # A process that goes on to wait when the run is over ends by GeneratorExit.
            if not (self._over and isinstance(error, GeneratorExit)):
                self._crash = self._crash or error
                self._ended.set()
            raise

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled():
            task.exception()  # Or asyncio logs that nobody has looked at it.

    def refuse_if_over(self) -> None:
        """Raise GeneratorExit, as in a coroutine that is closed, if the run is over.

        Raises:
            GeneratorExit: If so, since what is awaited then never comes.
        """
        if self._over:
            raise GeneratorExit

    def gate(self, capacity: int) -> Gate:
        """Make a gate."""
        return Gate(self, capacity)

    def _in_thread(self, function: Callable[[float], T], now: float) -> Awaitable[T]:
        call = partial(copy_context().run, call_with, function, now)
        return self._loop.run_in_executor(_Threads(), call)

    async def compute(
        self, function: Callable[[float], T], now: float, *, still: bool = False
    ) -> T:
        """Call *function* in a thread, so that it holds up no reply."""
        if not still:
            return await self._in_thread(function, now)
        self.hold()
        result = await self._in_thread(function, now)  # Should it fail, the run is over.
        held = self.go_on()
        if self._period is not None and held > (lasts := self._period * self._time.seconds):
            _warn_of_slow_start(held, lasts)
        return result

    def hold(self) -> None:
        """Let time stand still, until `go_on` is called."""
        self._held_from = time()
        self._time.stop()

    def go_on(self) -> float:
        """Let time go on from where it stood still; return for how many seconds it did."""
        held = self._time.go_on()
        self.add_hold(self._held_from, time())
        self._changed.set()
        return held

    def add_hold(self, begun: float, ended: float) -> None:
        """Note that the clock stood still, as before a play was taken up again.

        Args:
            begun: Since when, in seconds since 1970.
            ended: Until when.
        """
        self._holds.append((begun, ended))

    def held_since(self, unix: float) -> float:
        """Return for how many seconds the clock stood still since *unix*."""
        holds = [*self._holds]
        if self._time.stands_still:
            holds.append((self._held_from, time()))
        return sum(max(0.0, ended - max(begun, unix)) for begun, ended in holds)

    async def follow(self, function: SimPyFunction[T]) -> T:
        """Raise LiveOnlyError: SimPy's events happen in virtual time only."""
        raise LiveOnlyError(
            "a SimPy process function runs in virtual time only; "
            "make it an `async def` that awaits the clock to play it live"
        )

    def watch(self, work: Awaitable[T], who: str) -> Awaitable[T]:
        """Do the *work*, and warn of each step that holds up all others."""
        return watch_steps(work, who)

    async def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and cancel what is still under way then.

        Args:
            main: The first process.

        Returns:
            What *main* returns.
        """
        self._loop = asyncio.get_running_loop()
        self._time.begin(self._loop)
        self.has_begun = True
        self._changed, self._ended = asyncio.Event(), asyncio.Event()
        self._crash, self._over = None, False
        self.begin(self._pace())
        process = _LiveProcess(self, main)
        process.task.add_done_callback(lambda _: self._ended.set())
        try:
            await self._ended.wait()
        finally:
            await self._close()
        if self._crash is not None:
            raise self._crash
        return process.result  # type: ignore[no-any-return] # _LiveProcess is not generic

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
        """Call the actions of the agenda as their moments come."""
        while True:
            self._changed.clear()
            if not self._agenda:
                await self._changed.wait()
                continue
            moment, order, _, action = self._agenda[0]
            if self._time.stands_still and (moment > self.now or order != ARRIVAL):
                await self._changed.wait()
            elif moment > self.now:
                timer = self._loop.call_at(self._time.due(moment), self._changed.set)
                await self._changed.wait()
                timer.cancel()
            elif order == ARRIVAL or self._is_overdue(moment) or await self._quiet():
                heappop(self._agenda)
                self._instant = moment
                action()
                # Whom it wakes goes on before the next action of this instant, as in virtual time.
                await asyncio.sleep(0)
                if self._crash is not None:
                    return

    def _is_overdue(self, moment: float) -> bool:
        """Return whether somebody stirs without end, so that an instant would never be over."""
        return (self.now - moment) * self.seconds > self._PATIENCE

    async def _quiet(self) -> bool:
        """Turn the loop until somebody stirs, or so often that the instant must be over."""
        stirs, changes = self._stirs, len(self._agenda)
        for _ in range(self._QUIET_TURNS):
            await asyncio.sleep(0)
            if (stirs, changes) != (self._stirs, len(self._agenda)):
                return False
        return True


def _warn_of_slow_start(held: float, lasts: float) -> None:
    warnings.warn(
        f"the agent's first move took {held:.3g} s, and a round lasts {lasts:.3g} s; the clock "
        "stood still meanwhile, but it will not for later moves: one that takes longer than a "
        "round misses rounds",
        SlowStartWarning,
        stacklevel=2,
    )
