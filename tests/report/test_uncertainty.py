from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from sparq_sim.analysis.curves import Band
from sparq_sim.analysis.summary import spread
from sparq_sim.report.uncertainty import find_band, find_interval

NUMBERS = [0.1, 0.1, 0.2, 0.1, 1.5]


def test_fewer_than_five_plays_have_no_interval() -> None:
    assert all(map(isnan, find_interval(spread(NUMBERS[:4]), positive=True)))


def test_the_interval_of_a_regret_is_above_0() -> None:
    found = spread(NUMBERS)
    low, high = find_interval(found, positive=True)
    assert found.low < 0 < low < found.mean < high


def test_the_interval_of_what_may_be_negative_is_that_of_the_tables() -> None:
    found = spread(NUMBERS)
    assert find_interval(found, positive=False) == (found.low, found.high)


def test_a_band_has_gaps_where_fewer_than_five_plays_lasted() -> None:
    mean = np.array([2.0, 1.0])
    band = Band("o", {}, np.array([1, 2]), mean, mean - 3, mean + 3, np.array([5, 4]))
    low, high = find_band(band, positive=True)
    assert (low[0], high[0]) == pytest.approx((2 * np.exp(-1.5), 2 * np.exp(1.5)))
    assert isnan(low[1])
    assert isnan(high[1])
