from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Generator, Iterator
from math import inf
from pathlib import Path
from typing import Any

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim import Channel, Estimate, Expert, Query, Rules, World, play, play_live
from sparq_sim.errors import LiveOnlyError, PluginError, StuckError
from sparq_sim.simulation.clock.blocking import BlockingWarning
from sparq_sim.simulation.clock.lent import LentClock, NotAwaitedWarning
from sparq_sim.simulation.clock.protocol import AGENT, ARRIVAL, DEADLINE, Clock
from sparq_sim.simulation.clock.realtime import LiveClock
from sparq_sim.simulation.clock.virtual import SimClock
from sparq_sim.testing import Asker, Slope, WaitlessLoop
from tests.conftest import PATIENCE, Run, on_live_clock, on_sim_clock

moments = st.floats(0, 1e6, allow_nan=False)


@given(st.lists(moments, min_size=1, max_size=8))
def test_a_moment_is_met_exactly_from_wherever_one_waits(times: list[float]) -> None:
    async def main(clock: Clock) -> list[float]:
        met = []
        for moment in sorted(times):
            await clock.until(moment)
            met.append(clock.now)
        return met

    assert on_sim_clock(main) == sorted(times)
    assert on_live_clock(main) == sorted(times)


def test_at_one_instant_arrivals_come_first_then_deadlines_then_agents(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        log: list[str] = []
        for name, order in (("agent", AGENT), ("deadline", DEADLINE), ("arrival", ARRIVAL)):
            clock.call_at(1.0, lambda name=name: log.append(name), order)  # type: ignore[misc] # bound now
        await clock.sleep(2)
        return log

    assert run(main) == ["arrival", "deadline", "agent"]


def test_equal_arrivals_keep_the_order_of_their_scheduling(run: Run) -> None:
    async def main(clock: Clock) -> list[int]:
        log: list[int] = []

        async def arrive(number: int) -> None:
            await clock.until(1.0)
            log.append(number)

        for number in range(20):
            clock.start(arrive(number))
        await clock.sleep(2)
        return log

    assert run(main) == list(range(20))


def test_an_agent_comes_after_a_whole_chain_of_its_instant(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        log: list[str] = []
        gate = clock.gate(1)

        async def link(number: int) -> None:
            await clock.until(1.0)
            async with gate:
                inner = clock.start(leaf(number))
                await inner

        async def leaf(number: int) -> None:
            signal = clock.signal()
            clock.call_at(clock.now, signal.set)
            await signal
            log.append(f"link {number}")

        async def agent() -> None:
            await clock.until(1.0, AGENT)
            log.append("agent")

        clock.start(agent())
        for number in range(5):
            clock.start(link(number))
        await clock.sleep(2)
        return log

    assert run(main) == [f"link {i}" for i in range(5)] + ["agent"]


def test_a_moment_that_has_come_is_not_waited_for(run: Run) -> None:
    async def main(clock: Clock) -> float:
        await clock.sleep(3)
        await clock.until(1)
        return clock.now

    assert run(main) == 3


@pytest.mark.parametrize("duration", [-1.0, float("nan")])
def test_a_duration_that_is_none_is_refused_with_its_value(run: Run, duration: float) -> None:
    async def main(clock: Clock) -> None:
        await clock.sleep(duration)

    with pytest.raises(ValueError, match=str(duration)):
        run(main)


@pytest.mark.parametrize("period", [0.0, -1.0, float("nan"), inf])
def test_a_period_that_is_none_is_refused_with_its_value(period: float) -> None:
    with pytest.raises(ValueError, match=str(period)):
        SimClock(period)


@pytest.mark.parametrize("period", [1.0, 0.1, 1 / 3, 1e-3, 86400.0])
def test_sums_that_mean_the_start_of_a_round_are_the_start_of_that_round(period: float) -> None:
    clock = SimClock(period)
    for start in range(1, 400):
        for rounds in range(11):
            assert clock.align(start * period + rounds * period) == (start + rounds) * period
            assert clock.align(period * start + 0.37 * period) == period * start + 0.37 * period


def test_a_gate_serves_in_the_order_of_coming(run: Run) -> None:
    async def main(clock: Clock) -> list[tuple[int, float]]:
        gate, log = clock.gate(2), []

        async def customer(number: int) -> None:
            async with gate:
                log.append((number, clock.now))
                await clock.sleep(3)

        for number in range(5):
            clock.start(customer(number))
        await clock.sleep(100)
        return log

    assert run(main) == [(0, 0.0), (1, 0.0), (2, 3.0), (3, 3.0), (4, 6.0)]


def test_a_gate_needs_a_slot(run: Run) -> None:
    async def main(clock: Clock) -> None:
        clock.gate(0)

    with pytest.raises(ValueError, match="at least 1, not 0"):
        run(main)


def test_one_who_gives_up_in_line_leaves_the_others_their_turn(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        gate, log = clock.gate(1), []

        async def customer(name: str) -> None:
            async with gate:
                log.append(name)
                await clock.sleep(3)

        clock.start(customer("first"))
        impatient = clock.start(customer("impatient"))
        clock.start(customer("last"))
        await clock.sleep(1)
        impatient.cancel()
        await clock.sleep(100)
        return log

    assert run(main) == ["first", "last"]


def test_a_slot_handed_over_at_the_instant_of_giving_up_is_passed_on(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        gate, log = clock.gate(1), []

        async def customer(name: str) -> None:
            async with gate:
                log.append(name)
                await clock.sleep(3)

        def hand_over_and_cancel() -> None:
            gate.leave()
            impatient.cancel()

        clock.start(customer("first"))
        impatient = clock.start(customer("impatient"))
        clock.start(customer("last"))
        await clock.sleep(1)
        # In line before the slot's owner leaves at 3, so that both happen in one step.
        clock.call_at(3.0, hand_over_and_cancel)
        await clock.sleep(100)
        return log

    assert run(main) == ["first", "last"]


def test_cancelling_reaches_past_except_exception_and_frees_the_slot(run: Run) -> None:
    # SimPy's own Interrupt is an Exception, and would be swallowed here.
    async def main(clock: Clock) -> list[str]:
        gate, log = clock.gate(1), []

        async def stubborn() -> None:
            async with gate:
                try:
                    await clock.sleep(inf)
                except Exception:
                    log.append("swallowed")
                    await clock.sleep(inf)

        async def next_one() -> None:
            async with gate:
                log.append("served")

        process = clock.start(stubborn())
        clock.start(next_one())
        await clock.sleep(1)
        process.cancel()
        await clock.sleep(1)
        return log

    assert run(main) == ["served"]


class FussyError(Exception):
    """Cannot be copied from its arguments, as SimPy would."""

    def __init__(self, code: int, *, why: str) -> None:
        super().__init__(f"{code}: {why}")


def test_a_crash_in_a_started_process_ends_the_run_with_that_very_error(run: Run) -> None:
    crash = FussyError(7, why="a bug")

    async def main(clock: Clock) -> None:
        async def crashes() -> None:
            await clock.sleep(1)
            raise crash

        clock.start(crashes())
        await clock.sleep(5)

    with pytest.raises(FussyError) as caught:
        run(main)
    assert caught.value is crash


def test_what_is_under_way_at_the_end_is_cancelled_not_waited_for(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        log: list[str] = []

        async def endless() -> None:
            try:
                await clock.sleep(inf)
            finally:
                log.append("cancelled")

        clock.start(endless())
        await clock.sleep(1)
        return log

    assert run(main) == ["cancelled"]


def test_a_process_gives_its_result_to_all_who_await_it(run: Run) -> None:
    async def main(clock: Clock) -> list[int | None]:
        async def work() -> int:
            await clock.sleep(2)
            return 42

        process = clock.start(work())
        results: list[int | None] = []

        async def wait() -> None:
            results.append(await process)

        clock.start(wait())
        clock.start(wait())
        await clock.sleep(3)
        results.append(await process)
        return results

    assert run(main) == [42, 42, 42]


def test_a_cancelled_process_gives_none(run: Run) -> None:
    async def main(clock: Clock) -> None:
        async def work() -> int:
            await clock.sleep(inf)
            return 42

        process = clock.start(work())
        clock.call_at(1.0, process.cancel)
        assert await process is None
        process.cancel()

    run(main)


def test_a_process_cancelled_before_it_began_never_runs(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        log: list[str] = []

        async def work() -> None:
            log.append("ran")

        process = clock.start(work())
        process.cancel()
        await process
        await clock.sleep(1)
        return log

    assert run(main) == []


# Alike under both clocks.


def test_a_signal_happens_once_and_keeps_its_first_value(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        signal = clock.signal()
        signal.set("first")
        signal.set("second")
        heard = [await signal]
        await clock.sleep(1)
        signal.set("third")
        return [*heard, await signal]

    assert run(main) == ["first", "first"]


def test_a_signal_set_twice_wakes_each_who_waits_once(run: Run) -> None:
    async def main(clock: Clock) -> list[tuple[int, str]]:
        signal, log = clock.signal(), []

        async def wait(number: int) -> None:
            log.append((number, await signal))

        for number in range(3):
            clock.start(wait(number))
        clock.call_at(1.0, lambda: signal.set("first"))
        clock.call_at(1.0, lambda: signal.set("second"))
        await clock.sleep(2)
        return log

    assert run(main) == [(0, "first"), (1, "first"), (2, "first")]


def test_who_gives_up_on_a_signal_leaves_it_to_the_others(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        signal, log = clock.signal(), []

        async def wait(name: str) -> None:
            log.append(f"{name} hears {await signal}")

        clock.start(wait("one"))
        impatient = clock.start(wait("impatient"))
        clock.start(wait("another"))
        clock.call_at(1.0, impatient.cancel)
        clock.call_at(2.0, lambda: signal.set("it"))
        await clock.sleep(3)
        return [*log, f"late hears {await signal}"]

    assert run(main) == ["one hears it", "another hears it", "late hears it"]


def test_a_process_hears_that_it_is_cancelled_after_the_caller_has_gone_on(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        log: list[str] = []

        async def work() -> None:
            try:
                await clock.sleep(inf)
            finally:
                log.append(f"cancelled at {clock.now}")

        process = clock.start(work())
        await clock.sleep(1)
        process.cancel()
        log.append("called")
        await process
        log.append("awaited")
        return log

    assert run(main) == ["called", "cancelled at 1.0", "awaited"]


def test_a_process_may_cancel_itself(run: Run) -> None:
    async def main(clock: Clock) -> list[object]:
        log: list[object] = []

        async def work() -> int:
            try:
                own.cancel()
                log.append("goes on")
                await clock.sleep(5)
                log.append("not reached")
            finally:
                log.append(clock.now)
            return 42

        own = clock.start(work())
        return [await own, *log]

    assert run(main) == [None, "goes on", 0.0]


def test_a_process_that_cancels_itself_and_returns_was_cancelled(run: Run) -> None:
    async def main(clock: Clock) -> int | None:
        async def work() -> int:
            await clock.sleep(1)
            own.cancel()
            return 42

        own = clock.start(work())
        return await own

    assert run(main) is None


def test_cancelled_twice_before_it_hears_of_it_a_process_hears_once(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        log: list[str] = []

        async def work() -> str:
            try:
                await clock.sleep(inf)
            except asyncio.CancelledError:
                log.append("heard")
                await clock.sleep(1)
            return "went on"

        process = clock.start(work())
        await clock.sleep(1)
        process.cancel()
        process.cancel()
        log.append(str(await process))
        return log

    assert run(main) == ["heard", "went on"]


def test_cancelled_again_while_it_clears_up_a_process_ends_there(run: Run) -> None:
    async def main(clock: Clock) -> list[object]:
        log: list[object] = []

        async def work() -> None:
            try:
                await clock.sleep(inf)
            finally:
                log.append("clears up")
                await clock.sleep(5)
                log.append("not reached")

        process = clock.start(work())
        clock.call_at(1.0, process.cancel)
        clock.call_at(2.0, process.cancel)
        await process
        return [clock.now, *log]

    assert run(main) == [2.0, "clears up"]


def test_a_process_that_catches_its_cancellation_goes_on_and_has_a_result(run: Run) -> None:
    async def main(clock: Clock) -> tuple[object, float]:
        async def stubborn() -> str:
            try:
                await clock.sleep(inf)
            except asyncio.CancelledError:
                await clock.sleep(3)
            return "done"

        process = clock.start(stubborn())
        clock.call_at(1.0, process.cancel)
        return await process, clock.now

    assert run(main) == ("done", 4.0)


def test_a_process_that_has_ended_keeps_its_result_when_cancelled(run: Run) -> None:
    async def main(clock: Clock) -> list[object]:
        async def work() -> int:
            return 42

        process = clock.start(work())
        before = await process
        process.cancel()
        process.cancel()
        await clock.sleep(1)
        return [before, await process]

    assert run(main) == [42, 42]


def test_who_gives_up_on_a_process_leaves_it_under_way(run: Run) -> None:
    async def main(clock: Clock) -> int | None:
        async def work() -> int:
            await clock.sleep(3)
            return 42

        process = clock.start(work())

        async def wait() -> None:
            await process

        clock.call_at(1.0, clock.start(wait()).cancel)
        return await process

    assert run(main) == 42


def test_nobody_gets_the_result_of_a_process_that_crashed(run: Run) -> None:
    seen: list[str] = []

    async def main(clock: Clock) -> None:
        async def crashes() -> None:
            await clock.sleep(1)
            raise FussyError(7, why="a bug")

        try:
            await clock.start(crashes())
        except Exception:
            seen.append("caught")

    with pytest.raises(FussyError):
        run(main)
    assert not seen


@pytest.mark.parametrize("reached", [0, 1], ids=["where it clears up", "having caught it"])
def test_who_waits_on_when_the_run_is_over_waits_for_nothing(run: Run, reached: int) -> None:
    log: list[str] = []

    async def main(clock: Clock) -> str:
        async def clears_up() -> None:
            try:
                await clock.sleep(inf)
            finally:
                log.append("clears up")
                await clock.sleep(1)
                log.append("not reached")

        async def stubborn() -> None:
            while True:
                try:
                    await clock.sleep(1)
                except asyncio.CancelledError:
                    log.append("stubborn")

        clock.start((clears_up, stubborn)[reached]())
        await clock.sleep(0.5)
        return "over"

    assert run(main) == "over"
    assert log == [("clears up", "stubborn")[reached]]


@pytest.mark.parametrize(
    ("crashes", "first"), [(True, "7: the first error"), (False, "3: in clearing up")]
)
def test_all_that_is_under_way_is_cancelled_in_order_and_the_first_error_is_raised(
    run: Run, crashes: bool, first: str
) -> None:
    log: list[int] = []

    async def main(clock: Clock) -> None:
        async def worker(number: int) -> None:
            try:
                await clock.sleep(inf)
            finally:
                log.append(number)
                if number == 3:
                    raise FussyError(3, why="in clearing up")

        for number in range(20):
            clock.start(worker(number))
        await clock.sleep(1)
        if crashes:
            raise FussyError(7, why="the first error")

    with pytest.raises(FussyError, match=first):
        run(main)
    assert log == list(range(20))


def test_a_cancelled_line_at_a_gate_leaves_its_slots_free(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        gate, log = clock.gate(1), []

        async def customer(name: str) -> None:
            async with gate:
                log.append(name)
                await clock.sleep(3)

        inside = clock.start(customer("inside"))
        waiting = [clock.start(customer(f"waiting {number}")) for number in range(3)]
        await clock.sleep(1)
        for process in (*waiting, inside):
            process.cancel()
        clock.start(customer("new"))
        await clock.sleep(1)
        return log

    assert run(main) == ["inside", "new"]


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


# Classic SimPy.


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


def test_a_simpy_process_function_is_refused_in_real_time() -> None:
    def classic(env: simpy.Environment) -> Generator[simpy.Event, Any, None]:
        yield env.timeout(1)

    async def main(clock: Clock) -> None:
        await clock.follow(classic)

    with pytest.raises(LiveOnlyError, match="virtual time only"):
        on_live_clock(main)


# Real time.


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


def test_a_function_that_raises_stop_iteration_fails_alike_under_both_clocks(run: Run) -> None:
    async def main(clock: Clock) -> str:
        try:
            await clock.compute(lambda now: next(iter([])), clock.now)
        except RuntimeError as error:
            return str(error)
        return "nothing"

    assert run(main) == "a function that was called raised StopIteration"


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


# Who blocks.


class Blocker(Expert):
    """Sleeps where all others wait for it."""

    async def answer(self, query: Query, world: World) -> Estimate:
        await world.clock.sleep(0.0)
        time.sleep(0.05)
        return Estimate(world.rewards(query.points, world.clock.now))


class Crowded(Expert):
    """Computes until it has lacked a processor for half a second."""

    async def answer(self, query: Query, world: World) -> Estimate:
        await world.clock.sleep(0.0)
        began, used = time.perf_counter(), time.thread_time()
        while time.perf_counter() - began - (time.thread_time() - used) < 0.5:
            assert time.thread_time() - used < 0.25, "there was no crowd"
        return Estimate(world.rewards(query.points, world.clock.now))


def complaints(expert: Expert) -> list[str]:
    """Play three rounds live, and give what is said of those who block."""
    experts = {"slow": expert}
    with (
        warnings.catch_warnings(record=True) as caught,
        asyncio.Runner(loop_factory=WaitlessLoop) as runner,
    ):
        warnings.simplefilter("always", BlockingWarning)
        trace = runner.run(play_live(Asker(batch=1), Slope(), Rules(rounds=3), experts=experts))
    assert len(trace) == 3
    assert set(trace.replies["fate"]) == {"answered"}
    return [str(warning.message) for warning in caught]


def test_an_expert_that_blocks_all_others_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparq_sim.simulation.clock.blocking._BLOCKING", 0.04)
    told = r"expert 'slow' \(Blocker\).answer held up all others for \d+\.\d s; expected to await"
    assert any(re.match(told, said) for said in complaints(Blocker()))


@pytest.fixture
def crowd() -> Iterator[None]:
    """Let this thread share one processor with four that are always busy."""
    allowed = os.sched_getaffinity(0)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    for pid in (0, *(process.pid for process in busy)):
        os.sched_setaffinity(pid, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)
    for process in busy:
        process.kill()
        process.wait()


@pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists(), reason="needs Linux's schedstat"
)
@pytest.mark.usefixtures("crowd")
def test_an_expert_that_gets_no_processor_is_not_said_to_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparq_sim.simulation.clock.blocking._BLOCKING", 0.3)
    assert complaints(Crowded()) == []


# What is forgotten


def test_a_lent_clock_passes_time_as_the_clock_does(run: Run) -> None:
    async def main(clock: Clock) -> list[float]:
        lent = LentClock(clock, "somebody")
        seen = []
        await lent.sleep(2)
        seen.append(lent.now)
        await lent.until(5)
        seen.append(lent.now)
        nap = lent.sleep(3)
        await lent.sleep(1)
        await nap
        seen.append(lent.now)
        await lent.start(lent.sleep(4))  # type: ignore[arg-type] # a coroutine, though none is promised
        assert lent.forgotten == 0
        return [*seen, lent.now]

    assert run(main) == [2, 5, 8, 12]


def test_a_wait_that_nobody_awaits_is_counted(run: Run) -> None:
    async def main(clock: Clock) -> tuple[float, int]:
        lent = LentClock(clock, "somebody")
        lent.sleep(3)
        lent.until(9)
        return lent.now, lent.forgotten

    assert run(main) == (0, 2)


class Forgetful(Expert):
    """Means to sleep before it answers."""

    async def answer(self, query: Query, world: World) -> Estimate:
        world.clock.sleep(3)
        return Estimate(world.rewards(query.points, world.clock.now))


FORGOTTEN = (
    r"expert 'hasty' \(Forgetful\) calls clock.sleep or clock.until without await, so that no "
    r"time passes; write `await world.clock.sleep"
)


def test_a_play_warns_once_of_an_expert_that_forgets_to_await() -> None:
    with pytest.warns(NotAwaitedWarning, match=FORGOTTEN) as warned:
        play(Asker(batch=1), Slope(), Rules(rounds=5), experts={"hasty": Forgetful()})
    assert len(warned) == 1


def test_in_real_time_too_a_play_warns_of_an_expert_that_forgets_to_await() -> None:
    live = play_live(Asker(batch=1), Slope(), Rules(rounds=5), experts={"hasty": Forgetful()})
    with (
        pytest.warns(NotAwaitedWarning, match=FORGOTTEN) as warned,
        asyncio.Runner(loop_factory=WaitlessLoop) as runner,
    ):
        runner.run(live)
    assert len(warned) == 1


class Restless(Forgetful):
    """Means to send a reading now and then."""

    async def broadcast(self, world: World) -> None:
        while True:
            world.clock.sleep(1)


@pytest.mark.filterwarnings("ignore::sparq_sim.simulation.clock.lent.NotAwaitedWarning")
def test_a_broadcast_that_forgets_to_await_does_not_go_round_for_ever() -> None:
    with pytest.raises(PluginError, match=r"expert 'hasty' \(Restless\) calls clock.sleep or"):
        play(Asker(batch=1), Slope(), Rules(rounds=5), experts={"hasty": Restless()})


class Juggler(Expert):
    """Makes a wait, awaits another thing first, and is given up meanwhile."""

    async def answer(self, query: Query, world: World) -> Estimate:
        nap = world.clock.sleep(1)
        if query.id % 2:
            await world.clock.sleep(5)
        await nap
        gc.collect()  # Now what was given up goes for good.
        return Estimate(world.rewards(query.points, world.clock.now))


def test_a_wait_that_was_to_be_awaited_later_is_not_forgotten() -> None:
    channel = Channel(patience=2)
    rules = Rules(rounds=9)
    trace = play(Asker(batch=1), Slope(), rules, experts={"juggler": (Juggler(), channel)})
    assert {"answered", "late"} <= set(trace.replies["fate"])
