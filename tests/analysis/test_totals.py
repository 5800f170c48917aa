from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparq_sim.analysis.contrasts import compare_at_price
from sparq_sim.analysis.criteria import REGRET
from sparq_sim.analysis.totals import total_along, total_at_prices
from tests.analysis.results import make_plays

NOISE = [0.0, 0.02, -0.01, 0.01, -0.02, 0.0]
"""Of six plays, about their mean; spending is for ten rounds."""
NOBODY = make_plays("nobody", [0.3 + x for x in NOISE])
ASKS = make_plays("asks", [0.1 - x for x in NOISE], spent=40.0)
SOME = make_plays("some", [0.15 + x / 2 for x in NOISE], spent=10.0)


def test_the_break_even_price_is_that_of_the_comparison_at_a_price() -> None:
    (change,) = total_at_prices({"nobody": NOBODY, "asks": ASKS}, REGRET).changes
    (compared,) = compare_at_price([*NOBODY, *ASKS], 0.0, against="nobody")
    assert (change.before, change.after) == ("asks", "nobody")
    assert change.price == pytest.approx(compared.break_even.price) == pytest.approx(0.05)
    assert np.ravel(change.ranges) == pytest.approx(np.ravel(compared.break_even.ranges))


@example([(0.0, 1e-7), (1.0, 0.0)])
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
def test_between_changes_the_one_that_is_told_is_the_lowest(
    rows: list[tuple[float, float]],
) -> None:
    plays = {f"{k}": make_plays(f"{k}", [y], spent=10 * z) for k, (y, z) in enumerate(rows)}
    totals = total_at_prices(plays, REGRET)
    prices = [0.0, *(change.price for change in totals.changes)]
    prices.append(2 * prices[-1] + 1e3)
    for place, change in enumerate(totals.changes):
        for name, (low, high) in {
            change.before: (prices[place], prices[place + 1]),
            change.after: (prices[place + 1], prices[place + 2]),
        }.items():
            price = low / 2 + high / 2
            lowest = min(totals.find_height(other, price) for other in plays)
            assert totals.find_height(name, price) == pytest.approx(lowest, abs=1e-9)
    assert prices[:-1] == sorted(prices[:-1])


def test_three_ways_to_ask_have_two_break_even_prices() -> None:
    rows = {"nobody": NOBODY, "asks": ASKS, "some": SOME}
    changes = total_at_prices(rows, REGRET).changes
    assert [each.after for each in changes] == ["some", "nobody"]


def test_along_swept_prices_it_breaks_even_between_those_played() -> None:
    asks = [make_plays("asks", [0.1 - x for x in NOISE], spent=40 * p) for p in (0.0, 0.04, 0.08)]
    totals = total_along([0.0, 0.04, 0.08], {"nobody": [NOBODY] * 3, "asks": asks}, REGRET)
    (change,) = totals.changes
    (known,) = total_at_prices({"nobody": NOBODY, "asks": ASKS}, REGRET).changes
    assert change.price == pytest.approx(known.price)
    assert np.ravel(change.ranges) == pytest.approx(np.ravel(known.ranges))


def test_few_plays_exclude_no_price_and_none_have_no_line() -> None:
    (change,) = total_at_prices({"nobody": NOBODY[:1], "asks": ASKS[:1]}, REGRET).changes
    assert change.ranges == ((0.0, inf),)
    unknown = make_plays("unknown", [None])
    assert not total_at_prices({"unknown": unknown}, REGRET).lines
