"""A clock that is a plain sorted list: what the real clocks must do, in as few lines as can be."""

from __future__ import annotations

from asyncio import CancelledError
from bisect import insort
from collections.abc import Callable, Coroutine, Generator
from math import inf
from typing import Any

from sparq_sim.simulation.clock.protocol import ARRIVAL, Gate, Order


class PlainSignal:
    """Something that happens once; those who wait go on in the order in which they came."""

    def __init__(self, clock: PlainClock) -> None:
        self.clock = clock
        self.waiting: list[PlainProcess] = []
        self.is_set = self.has_happened = False
        self.value: Any = None

    def set(self, value: Any = None) -> None:
        if not self.is_set:
            self.is_set, self.value = True, value
            self.clock.call_at(self.clock.now, self.happen)

    def happen(self) -> None:
        self.has_happened = True
        going_on, self.waiting = self.waiting, []
        for process in going_on:
            process.go_on()

    def __await__(self) -> Generator[PlainSignal, None, Any]:
        if not self.has_happened:
            yield self
        return self.value


class PlainProcess:
    """A coroutine, and what it waits for: first, for its turn to begin."""

    def __init__(self, clock: PlainClock, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.clock, self.coroutine = clock, coroutine
        self.is_done = self.is_cancelled = False
        self.ended = PlainSignal(clock)
        self.awaited: PlainSignal | None = PlainSignal(clock)
        self.awaited.waiting.append(self)
        clock.call_at(clock.now, self.awaited.happen)

    def go_on(self, error: BaseException | None = None) -> None:
        self.awaited = None
        try:
            send, throw = self.coroutine.send, self.coroutine.throw
            self.awaited = send(None) if error is None else throw(error)
        except StopIteration as end:
            self.end(None if self.is_cancelled else end.value)
        except CancelledError:
            self.end(None)
        except BaseException:
            self.is_done = True
            raise
        else:
            assert self.awaited is not None
            if self.is_cancelled:  # By itself.
                self.clock.call_at(self.clock.now, self.hear)
            else:
                self.awaited.waiting.append(self)

    def end(self, result: Any) -> None:
        self.is_done = True
        self.ended.set(result)

    def cancel(self) -> None:
        if self.is_done or self.is_cancelled:
            return
        self.is_cancelled = True
        if self.awaited is not None:
            if self in self.awaited.waiting:
                self.awaited.waiting.remove(self)
            self.clock.call_at(self.clock.now, self.hear)

    def hear(self) -> None:
        if self.is_cancelled and not self.is_done:
            self.is_cancelled = False
            self.go_on(CancelledError())

    def __await__(self) -> Generator[PlainSignal, None, Any]:
        if not self.is_done:
            return (yield from self.ended.__await__())
        return self.ended.value


class PlainClock:
    """A sorted list of what will happen: the moment, the order within it, and which came first."""

    def __init__(self) -> None:
        self.now = 0.0
        self.agenda: list[tuple[float, Order, int, Callable[[], object]]] = []
        self.count = 0
        self.processes: list[PlainProcess] = []

    def call_at(self, moment: float, action: Callable[[], object], order: Order = ARRIVAL) -> None:
        self.count += 1
        insort(self.agenda, (max(moment, self.now), order, self.count, action))

    async def until(self, moment: float, order: Order = ARRIVAL) -> None:
        if moment > self.now or order > ARRIVAL:
            signal = self.signal()
            self.call_at(moment, signal.happen, order)
            await signal

    async def sleep(self, duration: float) -> None:
        await self.until(self.now + duration)

    def signal(self) -> PlainSignal:
        return PlainSignal(self)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> PlainProcess:
        self.processes.append(PlainProcess(self, coroutine))
        return self.processes[-1]

    def gate(self, capacity: int) -> Gate:
        return Gate(self, capacity)  # type: ignore[arg-type] # as much of a clock as gates need

    def run(self, main: Coroutine[Any, Any, Any]) -> Any:
        process = self.start(main)
        errors: list[BaseException] = []
        try:
            while not process.is_done:
                self.now, *_, action = self.agenda.pop(0)
                assert self.now < inf
                action()
        except Exception as error:
            errors.append(error)
        for each in self.processes:
            try:
                each.is_cancelled = True
                each.hear()
            except Exception as error:
                errors.append(error)
            each.coroutine.close()
        if errors:
            raise errors[0]
        return process.ended.value
