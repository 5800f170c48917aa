from __future__ import annotations

from math import inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_experts.wireless.battery import (
    CAUSES,
    AnyHarvest,
    Battery,
    Cause,
    ConstantHarvest,
    Daylight,
)


def balance(battery: Battery) -> float:
    """What should be left, by what went in and out."""
    return battery.capacity + battery.harvested - battery.wasted - sum(battery.used.values())


def test_a_constant_draw_empties_a_battery_at_the_time_of_the_quotient() -> None:
    battery = Battery(100.0)
    battery.draw(1000.0, (("sleep", 0.25),))
    assert battery.died_at == pytest.approx(400.0)
    assert battery.left == 0.0
    assert battery.used["sleep"] == pytest.approx(100.0)


def test_an_empty_battery_pays_for_nothing_more() -> None:
    battery = Battery(1.0)
    battery.draw(10.0, (("send", 1.0),))
    battery.draw(20.0, (("send", 1.0),))
    battery.spend("measure", 5.0)
    assert battery.used == dict.fromkeys(CAUSES, 0.0) | {"send": 1.0}
    assert battery.died_at == 1.0


def test_what_costs_more_than_is_left_takes_what_is_left() -> None:
    battery = Battery(1.0)
    battery.spend("measure", 3.0)
    assert battery.used["measure"] == 1.0
    assert battery.empty


def test_mains_never_end_but_are_counted() -> None:
    battery = Battery(inf, ConstantHarvest(power=1.0))
    battery.draw(1e9, (("listen", 2.0),))
    assert not battery.empty
    assert battery.used["listen"] == 2e9


def test_a_full_battery_wastes_what_is_harvested() -> None:
    battery = Battery(10.0, ConstantHarvest(power=3.0))
    battery.draw(100.0, (("sleep", 1.0),))
    assert battery.left == 10.0
    assert battery.wasted == pytest.approx(200.0)


def test_daylight_gives_power_for_its_share_of_each_day() -> None:
    sun = Daylight(power=2.0, share=0.25, sunrise=6.0, day=24.0)
    battery = Battery(10_000.0, sun)
    battery.draw(24.0 * 10, (("sleep", 5.0),))
    assert battery.harvested == pytest.approx(10 * 6.0 * 2.0)


def test_night_comes_before_the_first_sunrise() -> None:
    sun = Daylight(power=2.0, sunrise=6.0, share=0.5, day=24.0)
    assert sun.piece(0.0) == (0.0, 6.0)
    assert sun.piece(6.0) == (2.0, 18.0)
    assert sun.piece(18.0) == (0.0, 30.0)


def test_a_node_that_dies_at_night_stays_dead_by_day() -> None:
    sun = Daylight(power=10.0, sunrise=50.0, share=0.5, day=100.0)
    battery = Battery(10.0, sun)
    battery.draw(1000.0, (("sleep", 1.0),))
    assert battery.died_at == pytest.approx(10.0)
    assert battery.harvested == 0.0


powers = st.floats(0.0, 10.0)
harvests: st.SearchStrategy[AnyHarvest | None] = st.one_of(
    st.none(),
    st.builds(ConstantHarvest, power=st.floats(1e-6, 5.0)),
    st.builds(
        Daylight,
        power=st.floats(1e-6, 5.0),
        share=st.floats(0.05, 0.95),
        sunrise=st.floats(0.0, 200.0),
        day=st.floats(1.0, 300.0),
    ),
)
steps = st.lists(
    st.tuples(st.sampled_from(CAUSES), powers, st.floats(0.0, 50.0), st.floats(0.0, 3.0)),
    max_size=30,
)


@given(st.floats(1e-3, 1e4), harvests, steps)
def test_energy_is_conserved(
    capacity: float, harvest: AnyHarvest | None, steps: list[tuple[Cause, float, float, float]]
) -> None:
    battery, now = Battery(capacity, harvest), 0.0
    for cause, power, lasting, energy in steps:
        now += lasting
        battery.draw(now, ((cause, power), ("sleep", 1e-3)))
        battery.spend(cause, energy)
        scale = capacity + battery.harvested + sum(battery.used.values())
        assert battery.left == pytest.approx(balance(battery), abs=1e-9 * scale)
        assert 0.0 <= battery.left <= capacity
        assert isnan(battery.died_at) or battery.died_at <= now


def test_a_day_below_a_millisecond_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"day\n.*greater than or equal to 0\.001"):
        Daylight(power=1.0, day=1e-11)
