from __future__ import annotations

import asyncio
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.simulation.clock.protocol import AGENT, ARRIVAL, DEADLINE, Clock, Order
from tests.conftest import Run, on_live_clock, on_sim_clock

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


@pytest.mark.parametrize(
    ("order", "log"), [(ARRIVAL, ["waits", "stirs"]), (AGENT, ["stirs", "waits"])]
)
def test_to_wait_for_now_lets_others_go_first_only_by_a_later_order(
    run: Run, order: Order, log: list[str]
) -> None:
    async def main(clock: Clock) -> list[str]:
        seen: list[str] = []

        async def stir() -> None:
            seen.append("stirs")

        await clock.sleep(1)
        clock.start(stir())
        await clock.until(1, order)
        seen.append("waits")
        await clock.sleep(1)
        return seen

    assert run(main) == log


@pytest.mark.parametrize("duration", [-1.0, float("nan")])
def test_a_duration_that_is_none_is_refused_with_its_value(run: Run, duration: float) -> None:
    async def main(clock: Clock) -> None:
        await clock.sleep(duration)

    with pytest.raises(ValueError, match=str(duration)):
        run(main)


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

        await gate.enter()
        impatient = clock.start(customer("impatient"))
        clock.start(customer("last"))
        await clock.sleep(1)
        gate.leave()  # To the impatient one, which gives up before it can take the slot.
        impatient.cancel()
        await clock.sleep(100)
        return log

    assert run(main) == ["last"]


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


def test_cancelled_just_before_the_end_of_the_run_a_process_hears_once(run: Run) -> None:
    log = []

    async def main(clock: Clock) -> str:
        async def wait() -> None:
            try:
                await clock.sleep(9)
            except asyncio.CancelledError:
                log.append("cancelled")
                raise

        process = clock.start(wait())
        await clock.sleep(1)
        process.cancel()
        return "done"

    assert run(main) == "done"
    assert log == ["cancelled"]


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


def test_who_awaits_one_that_could_not_go_on_when_the_run_was_over_keeps_it_no_longer(
    run: Run,
) -> None:
    log: list[str] = []

    async def main(clock: Clock) -> str:
        async def clears_up() -> None:
            try:
                await clock.sleep(inf)
            finally:
                await clock.sleep(1)

        async def stubborn() -> None:
            try:
                await clock.sleep(inf)
            except asyncio.CancelledError:
                log.append("goes on")
                await first
                log.append("not reached")

        first = clock.start(clears_up())
        clock.start(stubborn())
        await clock.sleep(1)
        return "over"

    assert run(main) == "over"
    assert log == ["goes on"]


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
