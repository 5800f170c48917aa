"""Waitless loop: an event loop of asyncio whose time is virtual."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context
from heapq import heappop, heappush
from typing import Any, TypeVar, TypeVarTuple, Unpack

__all__ = ["WaitlessLoop"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class WaitlessLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is virtual: instead of waiting, it jumps to the next timer.

    Time stands still while a thread computes. With it, a play under `LiveClock` takes no longer
    than under `SimClock` and gives the same trace; sockets are not waited for.
    """

    def __init__(self) -> None:
        self._moment = 0.0
        self._timers: list[float] = []
        self._threads = 0
        super().__init__(_WaitlessSelector(self))

    def time(self) -> float:
        """Return the virtual time, in seconds from 0."""
        return self._moment

    def skip(self, seconds: float) -> None:
        """Pass time at once, as while a slow thread computes; a thread may call it.

        Args:
            seconds: How much, in virtual time.
        """
        self._moment += seconds

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a callback as usual, and remember the moment exactly."""
        heappush(self._timers, when)
        return super().call_at(when, callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in a thread as usual, and stop the time meanwhile."""
        self._threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _: object) -> None:
        self._threads -= 1

    def pass_time(self, timeout: float | None) -> float | None:
        """Jump to the next timer, if the loop would wait for one.

        Args:
            timeout: How long the loop would wait, in seconds; None without end.

        Returns:
            How long it is to wait still, in the same way.
        """
        if not timeout or self._threads:
            return timeout if timeout == 0 else None
        # Not by adding the timeout: now + (m - now) is not always m.
        while self._timers and self._timers[0] <= self._moment:
            heappop(self._timers)
        if self._timers:
            self._moment = heappop(self._timers)
        return 0.0


class _WaitlessSelector(selectors.DefaultSelector):
    def __init__(self, loop: WaitlessLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        return super().select(self._loop.pass_time(timeout))
