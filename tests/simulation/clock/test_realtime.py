from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Generator
from typing import Any
from unittest.mock import Mock

import pytest
import simpy

from sparq_sim.errors import LiveOnlyError
from sparq_sim.simulation.clock.protocol import AGENT, ARRIVAL, Clock
from sparq_sim.simulation.clock.realtime import LiveClock, _Stopwatch
from sparq_sim.testing import WaitlessLoop
from tests.conftest import PATIENCE, on_live_clock


def test_a_simpy_process_function_is_refused_in_real_time() -> None:
    def classic(env: simpy.Environment) -> Generator[simpy.Event, Any, None]:
        yield env.timeout(1)

    async def main(clock: Clock) -> None:
        await clock.follow(classic)

    with pytest.raises(LiveOnlyError, match="virtual time only"):
        on_live_clock(main)


@pytest.mark.parametrize("seconds", [0.1, 0.3, 1 / 7])
def test_every_moment_comes_however_long_a_unit_lasts(seconds: float) -> None:
    clock = LiveClock(seconds=seconds)
    moments = [k / 10 for k in range(200)]
    # By rounding, some come a little early in the time of the loop.
    assert any(moment * seconds / seconds < moment for moment in moments)

    async def main() -> list[float]:
        met = []
        for moment in moments:
            await clock.until(moment)
            met.append(clock.now)
        return met

    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        met = runner.run(clock.run(main()))
    assert all(now >= moment for now, moment in zip(met, moments, strict=True))
    assert met == pytest.approx(moments)


def test_time_that_stood_still_never_goes_back() -> None:
    rounded_down = 0
    for k in range(1, 200):
        began, stopped, resumed = 0.1 * k, 0.1 * k + k / 7, 0.1 * k + k / 7 + k / 3
        stopwatch, loop = _Stopwatch(0.3), Mock()
        loop.time.return_value = began
        stopwatch.begin(loop)
        loop.time.return_value = stopped
        stopwatch.stop()
        moment = stopwatch.now
        loop.time.return_value = resumed
        assert stopwatch.now == moment
        assert stopwatch.go_on() == resumed - stopped
        assert moment <= stopwatch.now == pytest.approx(moment)
        rounded_down += (resumed - (began + (resumed - stopped))) / 0.3 < moment
    assert rounded_down


@pytest.mark.asyncio
async def test_real_time_passes_at_the_rate_of_seconds_a_unit() -> None:
    clock = LiveClock(seconds=0.01)

    async def main() -> float:
        await clock.sleep(10)
        return clock.now

    began = time.perf_counter()
    now = await clock.run(main())
    assert time.perf_counter() - began >= 0.099
    assert now >= 10


def test_real_awaits_and_clock_awaits_mix_in_real_time() -> None:
    async def main(clock: Clock) -> list[str]:
        log: list[str] = []

        async def real() -> None:
            await asyncio.sleep(2)
            log.append("real")

        async def ours() -> None:
            await clock.sleep(4)
            log.append("ours")

        first, second = clock.start(real()), clock.start(ours())
        await first
        await second
        return log

    assert on_live_clock(main) == ["real", "ours"]


@pytest.mark.asyncio
async def test_thinking_in_real_time_holds_up_nobody() -> None:
    clock = LiveClock(seconds=0.01)
    arrived = threading.Event()

    async def main() -> bool:
        async def arrival() -> None:
            await clock.sleep(1)
            arrived.set()

        clock.start(arrival())
        return await clock.compute(lambda now: arrived.wait(PATIENCE), clock.now)

    assert await clock.run(main())


@pytest.mark.asyncio
async def test_many_who_compute_in_real_time_do_not_wait_for_one_another() -> None:
    clock = LiveClock(seconds=0.01)
    together = threading.Barrier(2 * ((os.cpu_count() or 1) + 4))  # More than a pool would have.

    async def main() -> None:
        under_way = [
            clock.start(clock.compute(lambda _: together.wait(PATIENCE), 0.0))
            for _ in range(together.parties)
        ]
        for each in under_way:
            await each

    await clock.run(main())
    assert not together.broken


@pytest.mark.asyncio
async def test_agents_come_after_arrivals_in_real_time_too() -> None:
    clock = LiveClock(seconds=0.001)

    async def main(lead: float) -> tuple[list[str], bool]:
        log: list[str] = []
        moment = clock.now + lead

        async def one(name: str, order: Any) -> None:
            await clock.until(moment, order)
            log.append(name)

        for name, order in (("agent", AGENT), ("arrival", ARRIVAL), ("another", ARRIVAL)):
            clock.start(one(name, order))
        await asyncio.sleep(0)
        all_wait = clock.now < moment
        await clock.until(moment + 20)
        return log, all_wait

    # A busy machine needs more time to bring all three to wait for one moment.
    for lead in (20.0, 200.0, 2_000.0, 20_000.0):
        log, all_wait = await clock.run(main(lead))
        if all_wait:
            break
    assert all_wait
    assert log == ["arrival", "another", "agent"]


def test_holds_are_counted_by_the_clock_on_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("sparq_sim.simulation.clock.realtime.time", lambda: now[0])
    clock = LiveClock()
    clock.add_hold(900.0, 920.0)

    async def main() -> list[float]:
        clock.hold()
        now[0] = 1010.0
        within = clock.held_since(1004.0)
        clock.go_on()
        now[0] = 1050.0
        return [within, *(clock.held_since(unix) for unix in (0.0, 910.0, 950.0, 1004.0, 1020.0))]

    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        assert runner.run(clock.run(main())) == [6.0, 30.0, 20.0, 10.0, 6.0, 0.0]


@pytest.mark.asyncio
async def test_those_who_stir_without_end_do_not_keep_the_agent_waiting() -> None:
    clock = LiveClock(seconds=0.01)

    async def flood() -> None:
        while True:
            await clock.until(clock.now)
            await asyncio.sleep(0)

    async def main() -> float:
        clock.start(flood())
        await clock.until(1.0, AGENT)
        return clock.now

    assert await asyncio.wait_for(clock.run(main()), PATIENCE) >= 1.0
