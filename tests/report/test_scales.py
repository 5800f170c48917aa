from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.report.scales import Scale, differ_much, fit, label_levels

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(NUMBERS, st.booleans())
def test_a_linear_axis_shows_all_and_little_else(values: list[float], from_zero: bool) -> None:
    scale = fit([values], from_zero=from_zero)
    assert scale is not None
    assert all(0 <= scale.place(value) <= 1 for value in values)
    shown = max([*values, *[0.0] * from_zero]) - min([*values, *[0.0] * from_zero])
    assert scale.high - scale.low <= max(1.2 * shown, 0.2 * max(map(abs, values)), 0.2)


def test_an_axis_of_regrets_begins_at_0() -> None:
    scale = fit([[0.3, 0.4]], from_zero=True)
    assert scale is not None
    assert scale.low == 0
    assert scale.high == pytest.approx(0.42)


def test_a_logarithmic_axis_has_at_most_four_decades_and_no_0() -> None:
    scale = fit([np.array([0.0, 1e-12, 1.0, nan, inf])], from_zero=True, logarithmic=True)
    assert scale is not None
    assert 0 < scale.low == pytest.approx(1e-4, rel=0.4)
    assert scale.high == pytest.approx(1.0, rel=0.6)


def test_where_nothing_is_known_there_is_no_axis() -> None:
    assert fit([[nan], []], from_zero=True) is None
    assert fit([[0.0]], from_zero=True, logarithmic=True) is None


@pytest.mark.parametrize(
    ("ends", "much"),
    [
        ([1.0, 5.0], False),
        ([1.0, 5.1], True),
        ([0.0, 9.0], False),
        ([1.0, nan], False),
        ([], False),
    ],
)
def test_an_axis_is_logarithmic_where_means_differ_by_more_than_5_times(
    ends: list[float], much: bool
) -> None:
    assert differ_much(ends) == much


def test_levels_beyond_the_axis_are_told_at_its_end() -> None:
    labels = label_levels([("uniform", 9.0), ("fixed", 0.5), ("late", 4.0)], Scale(0, 1))
    assert [(each.names, each.beyond) for each in labels] == [
        (["fixed"], 0),
        (["late", "uniform"], 1),
    ]


def test_levels_near_each_other_share_a_label() -> None:
    levels = [("uniform", 1.0), ("fixed", 1.05), ("late", 0.01)]
    (low, high) = label_levels(levels, Scale(0.01, 10, logarithmic=True))
    assert (low.names, high.names) == (["late"], ["uniform", "fixed"])
    assert high.heights == [1.0, 1.05]
