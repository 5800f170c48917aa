from __future__ import annotations

from math import inf

import pytest

from sparq_sim.simulation.clock.protocol import Clock, Process
from sparq_sim.simulation.clock.virtual import SimClock
from tests.conftest import Run


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


def test_a_function_that_raises_stop_iteration_fails_alike_under_both_clocks(run: Run) -> None:
    async def main(clock: Clock) -> str:
        try:
            await clock.compute(lambda now: next(iter([])), clock.now)
        except RuntimeError as error:
            return str(error)
        return "nothing"

    assert run(main) == "a function that was called raised StopIteration"


def test_who_is_cancelled_as_it_wakes_goes_on_and_ends_without_a_result(run: Run) -> None:
    async def main(clock: Clock) -> list[object]:
        signal = clock.signal()
        seen: list[object] = []

        async def wait(name: str, *, then: list[Process[str]]) -> str:
            seen.append(f"{name} hears {await signal}")
            for each in then:
                each.cancel()
            return name

        others: list[Process[str]] = []
        first = clock.start(wait("first", then=others))
        others.append(clock.start(wait("second", then=[])))
        await clock.sleep(1.0)
        signal.set("it")
        return [*seen, await first, await others[0], *seen]

    assert run(main) == ["first", None, "first hears it", "second hears it"]


def test_who_wakes_goes_on_before_what_was_scheduled_later_under_both_clocks(run: Run) -> None:
    async def main(clock: Clock) -> list[str]:
        seen: list[str] = []

        def take_turn(number: int) -> None:
            seen.append(f"turn {number}")
            if number < 3:
                clock.call_at(1.0, lambda: take_turn(number + 1))

        async def wake() -> None:
            await clock.until(1.0)
            seen.append("awake")

        clock.call_at(1.0, lambda: take_turn(1))
        clock.start(wake())
        await clock.until(2.0)
        return seen

    assert run(main) == ["turn 1", "awake", "turn 2", "turn 3"]
