"""The time and the chance of questions that a served expert answers, several at once.

Each question brings its own time: the moment of the asker's play at which it was put. Whoever
answers it reads that moment off the clock, whenever that is, and draws numbers that depend on the
name of the question alone. So the answer is that of a simulation, however late the question came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

import numpy as np

from sparq_sim.errors import LiveOnlyError, PluginError
from sparq_sim.simulation.clock.base import call_with, check_duration
from sparq_sim.simulation.clock.protocol import (
    ARRIVAL,
    Gate,
    Order,
    Process,
    Signal,
    SimPyFunction,
)
from sparq_sim.simulation.delivery.draws import QueryDraws, SourceDraws
from sparq_sim.simulation.randomness import Streams

__all__ = ["AskClock", "AskDraws", "AskStreams", "Asking"]

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Asking:
    """One question that is being answered."""

    id: str
    """What names it in all the world; empty while an expert begins."""
    now: float
    """The present moment of whoever answers it, in clock units of the asker's play."""
    unit: float = 1.0
    """How long a clock unit lasts, in seconds."""
    may_wait: bool = True
    """Whether time may pass; not while an expert begins."""
    outcome: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Done when the question is, or when something breaks that should have answered it."""
    draws: dict[tuple[str, str], QueryDraws] = field(default_factory=dict)
    """The draws for this question, by the source and by whom it is asked."""
    _asked_at: float = 0.0
    _began: float = 0.0

    def __post_init__(self) -> None:
        self._asked_at, self._began = self.now, asyncio.get_running_loop().time()

    def begin(self) -> None:
        """Make it what this task and those that it starts are about."""
        _current.set(self)

    def seconds_until(self, moment: float) -> float:
        """Return how many seconds are left until a moment.

        Args:
            moment: In clock units.
        """
        due = self._began + (moment - self._asked_at) * self.unit
        return due - asyncio.get_running_loop().time()

    def catch_up(self) -> None:
        """Move on to the moment that has come in real time, after a wait for somebody else."""
        passed = asyncio.get_running_loop().time() - self._began
        self.now = max(self.now, self._asked_at + passed / self.unit)


_current: ContextVar[Asking] = ContextVar("asking")


class _Signal:
    """An event with a value; whoever has waited for it has the time of now."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._value: Any = None

    def set(self, value: Any = None) -> None:
        """Make it happen now."""
        if not self._event.is_set():
            self._value = value
            self._event.set()

    def __await__(self) -> Generator[Any, Any, Any]:
        if not self._event.is_set():
            yield from self._event.wait().__await__()
            _current.get().catch_up()
        return self._value


class _Process:
    """A task that belongs to a question."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task

    def cancel(self) -> None:
        """Raise CancelledError where it waits."""
        self._task.cancel()

    def __await__(self) -> Generator[Any, Any, Any]:
        if not self._task.done():
            yield from asyncio.wait([self._task]).__await__()
            _current.get().catch_up()
        return None if self._task.cancelled() else self._task.result()


class AskClock:
    """The clock of a served expert: to each question, the time of the play that asks it.

    Time stands still while an expert computes, as in a simulation, and passes while it waits: a
    clock unit lasts as long as in the asker's play.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def now(self) -> float:
        """The present moment of the question at hand."""
        return _current.get().now

    @property
    def seconds(self) -> float:
        """How long a clock unit lasts, in seconds."""
        return _current.get().unit

    def held_since(self, unix: float) -> float:
        """Return 0: what the asker's clock does is not known here."""
        return 0.0

    async def until(self, moment: float, order: Order = ARRIVAL) -> None:
        """Wait until *moment*."""
        asking = _current.get()
        if moment <= asking.now:
            if order != ARRIVAL:
                await asyncio.sleep(0)
            return
        if not asking.may_wait:
            raise PluginError(
                "waits for the clock before anybody has asked, as only a play can have it; "
                "such an expert cannot be served"
            )
        if moment == inf:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(asking.seconds_until(moment))
        # Exactly, so that waits add up as they do in a simulation.
        asking.now = max(asking.now, moment)

    def sleep(self, duration: float) -> Awaitable[None]:
        """Wait for a *duration*."""
        return self.until(self.now + check_duration(duration))

    def call_at(self, moment: float, action: Callable[[], None], order: Order = ARRIVAL) -> None:
        """Call *action* at *moment*."""

        async def call() -> None:
            await self.until(moment, order)
            action()

        if moment < inf:
            self.start(call())

    def signal(self) -> Signal:
        """Make a signal."""
        return _Signal()

    def start(self, process: Coroutine[Any, Any, T]) -> Process[T]:
        """Start a process that runs beside this one, for the same question."""
        asking = _current.get()
        task = asyncio.get_running_loop().create_task(process)
        self._tasks.add(task)

        def end(task: asyncio.Task[Any]) -> None:
            self._tasks.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None and not asking.outcome.done():
                asking.outcome.set_exception(error)

        task.add_done_callback(end)
        return _Process(task)

    def gate(self, capacity: int) -> Gate:
        """Make a gate."""
        return Gate(self, capacity)

    async def compute(
        self, function: Callable[[float], T], now: float, *, still: bool = False
    ) -> T:
        """Call *function* in a thread, so that it holds up no other question."""
        return await asyncio.to_thread(call_with, function, now)

    async def follow(self, function: SimPyFunction[T]) -> T:
        """Raise LiveOnlyError: SimPy's events happen in virtual time only."""
        raise LiveOnlyError("a SimPy process function runs in virtual time only; it is not served")

    def watch(self, work: Awaitable[T], who: str) -> Awaitable[T]:
        """Do the *work*."""
        return work

    async def close(self) -> None:
        """Cancel all that is under way, and wait for its end."""
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await asyncio.sleep(0)


class AskStreams(Streams):
    """Randomness that depends on the seed, the replication and the question at hand alone.

    Where there is no question, as when a landscape starts, it is that of a play.
    """

    def key(self, name: str) -> np.ndarray[Any, np.dtype[np.uint64]]:
        asking = _current.get(None)
        return super().key(f"{name} for {asking.id}" if asking is not None and asking.id else name)


class AskDraws(SourceDraws):
    """The draws at one source, new for each question, so that no other question shifts them."""

    def __getitem__(self, path: str) -> QueryDraws:
        own, place = _current.get().draws, (self._name, path)
        draws = own.get(place)
        if draws is None:
            draws = own[place] = self.__missing__(path)
        return draws
