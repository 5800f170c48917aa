from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from time import perf_counter, sleep
from typing import Any, TypeVar

import pytest

from sparq_sim.testing import (
    WaitlessLoop,
)

T = TypeVar("T")


def in_no_time(main: Coroutine[Any, Any, T]) -> T:
    """Run on a waitless loop, and see that it takes far less than the hour it is about."""
    began = perf_counter()
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        result = runner.run(main)
    assert perf_counter() - began < 1800
    return result


def test_an_hour_of_sleep_passes_at_once() -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert in_no_time(main()) == 3600.0


def test_sleepers_wake_in_the_order_of_their_moments() -> None:
    async def main() -> list[tuple[int, float]]:
        loop = asyncio.get_running_loop()
        woken: list[tuple[int, float]] = []

        async def sleeper(hours: int) -> None:
            await asyncio.sleep(3600 * hours)
            woken.append((hours, loop.time()))

        await asyncio.gather(*(sleeper(hours) for hours in (3, 1, 2)))
        return woken

    assert in_no_time(main()) == [(1, 3600.0), (2, 7200.0), (3, 10800.0)]


def test_timers_fire_at_their_very_moment() -> None:
    moments = [0.1 * 3.1**k for k in range(14)]
    missed = [now + (then - now) != then for now, then in pairwise(moments)]
    assert any(missed)  # So that adding up what is left to wait would not do.

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        fired: list[float] = []
        for moment in moments:
            loop.call_at(moment, lambda: fired.append(loop.time()))
        await asyncio.sleep(1e6)
        return fired

    assert in_no_time(main()) == moments


def test_a_timer_that_was_cancelled_does_not_fire() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.call_at(5.0, pytest.fail, "fired").cancel()
        async with asyncio.timeout(3000):
            await asyncio.sleep(10)
        return loop.time()

    assert in_no_time(main()) == 10.0


def test_a_timeout_comes_in_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 3600)
        return asyncio.get_running_loop().time()

    assert in_no_time(main()) == 3600.0


def test_time_stands_still_while_a_thread_works() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        timer = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.sleep(0)
        await asyncio.to_thread(sleep, 0.05)
        after_work = loop.time()
        await timer
        return after_work, loop.time()

    assert in_no_time(main()) == (0.0, 3600.0)


def test_what_a_thread_skips_has_passed_for_all_when_it_ends() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WaitlessLoop)
        timer = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.sleep(0)
        await asyncio.to_thread(loop.skip, 3000.0)
        after_work = loop.time()
        await timer
        return after_work, loop.time()

    assert in_no_time(main()) == (3000.0, 3600.0)


def test_time_goes_on_when_the_last_of_several_threads_is_done() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()

        async def work(seconds: float) -> float:
            await asyncio.to_thread(sleep, seconds)
            return loop.time()

        timer = asyncio.create_task(asyncio.sleep(3600))
        times = await asyncio.gather(work(0.01), work(0.05))
        await timer
        return [*times, loop.time()]

    assert in_no_time(main()) == [0.0, 0.0, 3600.0]
