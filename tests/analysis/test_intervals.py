from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.analysis.intervals import bound_positive, reach

REGRETS = st.lists(st.floats(0, 1e6), min_size=5, max_size=40)


@given(REGRETS)
def test_the_interval_of_what_cannot_be_negative_is_not_either(numbers: list[float]) -> None:
    half = reach(np.array([np.std(numbers, ddof=1)]), np.array([len(numbers)]))
    mean = np.array([np.mean(numbers)])
    low, high = bound_positive(mean, half)
    assert 0 <= low <= mean <= high < np.inf


def test_a_narrow_one_is_that_of_student() -> None:
    low, high = bound_positive(np.array([2.0]), np.array([0.02]))
    assert (low[0], high[0]) == pytest.approx((1.98, 2.02), rel=1e-4)


def test_its_ends_are_equally_many_times_the_mean_away() -> None:
    low, high = bound_positive(np.array([2.0]), np.array([2.0]))
    assert (low[0], high[0]) == pytest.approx((2 / np.e, 2 * np.e))


def test_a_mean_that_is_impossible_keeps_the_interval_of_student() -> None:
    low, high = bound_positive(np.array([-1.0, 0.0]), np.array([0.5, 0.0]))
    assert [*low, *high] == [-1.5, 0.0, -0.5, 0.0]
