from __future__ import annotations

import asyncio
from collections.abc import Generator
from math import inf
from typing import Any

import pytest
import simpy

from sparq_sim.errors import LiveOnlyError, StuckError
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.clock.virtual import SimClock
from tests.conftest import on_sim_clock
from tests.simulation.clock.test_protocol import FussyError


def test_waiting_for_what_never_comes_is_an_error_in_virtual_time() -> None:
    async def main(clock: Clock) -> None:
        await clock.sleep(4)
        await clock.signal()

    with pytest.raises(StuckError, match=r"at 4\.0 nothing is left"):
        on_sim_clock(main)


def test_who_is_stuck_with_another_is_cancelled_too() -> None:
    log: list[str] = []

    async def main(clock: Clock) -> None:
        async def other() -> None:
            try:
                await clock.sleep(inf)
            finally:
                log.append("cancelled")

        clock.start(other())
        await clock.signal()

    with pytest.raises(StuckError):
        on_sim_clock(main)
    assert log == ["cancelled"]


def test_a_real_await_under_virtual_time_says_so() -> None:
    async def main(clock: Clock) -> None:
        await asyncio.sleep(0)

    with pytest.raises(LiveOnlyError, match="real time only"):
        on_sim_clock(main)


@pytest.mark.asyncio
async def test_a_real_await_under_virtual_time_says_so_within_a_running_loop_too() -> None:
    async def main(clock: Clock) -> None:
        await asyncio.sleep(1)

    with pytest.raises(LiveOnlyError, match=r"real time only.*world\.clock\.sleep"):
        on_sim_clock(main)


def test_a_simpy_process_function_runs_on_the_virtual_clock() -> None:
    def classic(env: simpy.Environment) -> Generator[simpy.Event, Any, str]:
        yield env.timeout(2.5)
        return f"done at {env.now}"

    async def main(clock: Clock) -> str:
        await clock.sleep(1)
        return await clock.follow(classic)

    assert on_sim_clock(main) == "done at 3.5"


def test_an_error_in_a_simpy_process_arrives_as_itself_not_as_a_copy() -> None:
    crash = FussyError(7, why="a bug")

    def classic(env: simpy.Environment) -> Generator[simpy.Event, Any, str]:
        yield env.timeout(1)
        raise crash

    async def main(clock: Clock) -> None:
        with pytest.raises(FussyError) as caught:
            await clock.follow(classic)
        assert caught.value is crash

    on_sim_clock(main)


def test_giving_up_on_a_simpy_process_interrupts_it() -> None:
    log: list[object] = []

    def classic(env: simpy.Environment) -> Generator[simpy.Event, Any, None]:
        try:
            yield env.timeout(100)
        except simpy.Interrupt as interrupt:
            log.append(interrupt.cause)
            raise

    async def main(clock: Clock) -> None:
        async def follower() -> None:
            await clock.follow(classic)

        process = clock.start(follower())
        await clock.sleep(1)
        process.cancel()
        await clock.sleep(1)

    on_sim_clock(main)
    assert log == ["given up"]


def test_virtual_time_never_stands_still_while_real_time_goes_on() -> None:
    assert SimClock().held_since(0.0) == 0.0
