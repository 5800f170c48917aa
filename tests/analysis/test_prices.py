from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy import stats

from sparq_sim.analysis.prices import BreakEven, break_even


def test_the_break_even_set_is_where_a_t_test_finds_no_difference() -> None:
    rng = np.random.default_rng(1)
    for mean in ((-1.0, 2.0), (-1.0, 0.3), (0.1, 0.1), (1.0, 3.0), (0.0, 0.0), (-1.0, -0.2)):
        gaps = rng.multivariate_normal(mean, [[0.5, 0.2], [0.2, 0.3]], size=7)
        ranges = break_even(gaps).ranges
        prices = np.linspace(0, 20, 401)
        tests = stats.ttest_1samp(gaps[:, :1] + gaps[:, 1:] * prices, 0.0, axis=0)
        inside = [any(low <= price <= high for low, high in ranges) for price in prices]
        np.testing.assert_array_equal(inside, tests.pvalue >= 0.05)


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([(-1.0, 2.0), (-1.0, 2.0)], BreakEven(0.5, ((0.5, 0.5),))),
        ([(1.0, 2.0), (1.0, 2.0)], BreakEven(None, ())),
        ([(-1.0, 0.0), (-1.0, 0.0)], BreakEven(None, ())),
        ([(0.0, 0.0), (0.0, 0.0)], BreakEven(None, ((0.0, inf),))),
        ([(-1.0, 2.0)], BreakEven(None, ((0.0, inf),))),
    ],
)
def test_break_even_prices_where_chance_plays_no_part(
    gaps: list[tuple[float, float]], expected: BreakEven
) -> None:
    assert break_even(np.array(gaps)) == expected
