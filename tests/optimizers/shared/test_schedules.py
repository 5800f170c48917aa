"""How many points are asked about in a round."""

from math import log

import pytest
from pydantic import TypeAdapter, ValidationError

from sparq_sim.optimizers.shared.schedules import (
    ConstantSchedule,
    EverySchedule,
    GuaranteedSchedule,
    LogarithmicPowerSchedule,
    LogarithmicSchedule,
    QuerySchedule,
    Schedule,
    WindowedSchedule,
)

schedules: TypeAdapter[Schedule] = TypeAdapter(QuerySchedule)


def test_six_log_t_is_the_papers() -> None:
    schedule = LogarithmicSchedule()
    assert schedule.asked(10) == pytest.approx(13.8, abs=0.05)
    assert schedule.asked(500) == pytest.approx(37.3, abs=0.05)
    assert [schedule(1), schedule(10), schedule(500)] == [0, 14, 38]


def test_power_of_the_logarithm_is_the_logarithm_in_one_dimension() -> None:
    assert LogarithmicPowerSchedule(factor=2, dimensions=1)(77) == LogarithmicSchedule(factor=2)(77)
    assert LogarithmicPowerSchedule(factor=2, dimensions=3).asked(77) == pytest.approx(
        2 * log(77) ** 3
    )


def test_constant_is_constant() -> None:
    assert {ConstantSchedule(count=7)(t) for t in range(1, 50)} == {7}


def test_every_third_round_asks_and_the_others_do_not() -> None:
    schedule = EverySchedule(rounds=3, schedule=ConstantSchedule(count=5))
    assert [schedule(t) for t in range(1, 8)] == [0, 0, 5, 0, 0, 5, 0]


def test_windows_begin_where_the_one_before_ends_and_grow() -> None:
    schedule = WindowedSchedule(factor=2.0, power=0.5, schedule=ConstantSchedule(count=5))
    # From 1 for 2 rounds, from 3 for ceil(3.5), from 7 for ceil(5.3), from 13 for ceil(7.2).
    assert [t for t in range(1, 25) if schedule(t)] == [1, 3, 7, 13, 21]
    assert {schedule(t) for t in (1, 3, 7, 13, 21)} == {5}
    assert [schedule(t) for t in (21, 13, 12, 1)] == [5, 5, 0, 5]  # In any order.


def test_the_average_number_of_queries_of_windows_falls_to_nothing() -> None:
    schedule = WindowedSchedule()
    totals, total = {}, 0
    for t in range(1, 100_001):
        total += schedule(t)
        totals[t] = total / t
    averages = [totals[t] for t in (100, 1000, 10_000, 100_000)]
    assert averages == sorted(averages, reverse=True)
    # T^(2/3) 3/2 windows of up to 6 log T points each.
    assert averages[-1] < 1.5 * 100_000 ** (-1 / 3) * 6 * log(100_000)
    assert averages[-1] < 0.5 * averages[1]


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_windows_that_do_not_grow_or_grow_too_fast_are_refused(power: float) -> None:
    with pytest.raises(ValidationError, match="power"):
        WindowedSchedule(power=power)


def test_guaranteed_meets_the_inequality_it_is_made_for() -> None:
    schedule = GuaranteedSchedule(
        divergence=0.1, decay=0.5, scale=3.0, noise_variance=0.01, dimensions=2
    )
    for t in (1_000_000, 10_000_000):
        asked = schedule(t)
        assert asked < t
        tail = 3.0 * t * asked * (asked + 1) * 2.718281828459045 ** (-0.5 * asked**0.5)
        assert tail / 0.01 <= 0.05
        assert 2 * t * schedule.epsilon(t) / 0.01 == pytest.approx(0.05)


def test_guaranteed_asks_at_least_where_its_bound_begins_to_hold() -> None:
    schedule = GuaranteedSchedule(
        divergence=1e3, decay=0.5, scale=1e-9, noise_variance=1.0, dimensions=2
    )
    assert schedule(1) == 2**2 / 0.5 + 2 - 1


GUARANTEED = {"divergence": 1e-200, "decay": 1e-3, "scale": 1e300, "noise_variance": 1e-200}


@pytest.mark.parametrize(
    "schedule",
    [
        GuaranteedSchedule(**GUARANTEED, dimensions=90_000),
        LogarithmicPowerSchedule(dimensions=90_000),
    ],
    ids=lambda schedule: str(schedule.kind),
)
def test_more_points_than_have_a_number_are_more_than_there_are(schedule: Schedule) -> None:
    assert schedule(9) == 10**15


def test_windows_of_any_factor_have_an_end() -> None:
    schedule = WindowedSchedule(factor=1e308, power=0.9, schedule=ConstantSchedule(count=5))
    assert [schedule(t) for t in (1, 2, 10**6)] == [5, 0, 0]


def test_guaranteed_of_the_smallest_numbers_has_a_number() -> None:
    assert 0 < GuaranteedSchedule(**GUARANTEED)(5) < 10**8


def test_schedules_are_read_by_their_kind() -> None:
    table = {"kind": "every", "rounds": 2, "schedule": {"kind": "logarithmic", "factor": 3.0}}
    schedule = schedules.validate_python(table)
    assert schedule == EverySchedule(rounds=2, schedule=LogarithmicSchedule(factor=3))
    assert schedules.validate_json(schedules.dump_json(schedule)) == schedule
    assert hash(schedule) == hash(EverySchedule(rounds=2, schedule=LogarithmicSchedule(factor=3)))


@pytest.mark.parametrize(
    "table",
    [
        {"kind": "logarithmic", "factor": 0},
        {"kind": "logarithmic", "factor": float("inf")},
        {"kind": "logarithmic", "factr": 6},
        {"kind": "constant", "count": -1},
        {"kind": "every", "rounds": 0, "schedule": {"kind": "constant", "count": 1}},
        {"kind": "sometimes"},
    ],
)
def test_bad_tables_are_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        schedules.validate_python(table)


def test_rounds_begin_at_one() -> None:
    with pytest.raises(ValueError, match="round_number is 0"):
        LogarithmicSchedule()(0)
