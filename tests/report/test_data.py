from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.analysis.curves import Series
from sparq_sim.report.data import describe_series, pareto_front, series_order

NUMBERS = st.floats(0, 10)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30))
def test_the_front_is_what_nobody_beats(points: list[tuple[float, float]]) -> None:
    front = {points[i] for i in pareto_front(points)}
    unbeaten = {
        point
        for point in points
        if not any(
            other != point and other[0] <= point[0] and other[1] <= point[1] for other in points
        )
    }
    assert front == unbeaten


def test_a_meter_is_called_by_its_expert_and_its_name() -> None:
    words = describe_series("meter buoy_energy_left")
    assert (words.title, words.label) == ("Buoy energy left", "buoy energy left")
    assert "A meter of an expert" in words.caption


def test_meters_take_no_places_of_notes() -> None:
    names = [*(f"meter net_{i:02}" for i in range(15)), "spent", *(f"note {i}" for i in range(3))]
    series = [Series(name, "uniform", {}, np.ones(1), np.ones(1)) for name in names]
    kept = [each.name for each in series_order(series)]
    assert kept[:4] == ["spent", "note 0", "note 1", "note 2"]
    assert kept[4:] == [f"meter net_{i:02}" for i in range(12)]
