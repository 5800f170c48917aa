"""The tables of the page on memory follow from the studies behind them."""

from __future__ import annotations

import numpy as np
import pytest

from reproduce.memory import Comparison, collect, judge
from reproduce.studies import read_results


def _compare(shift: float, seed: int = 0) -> Comparison:
    rng = np.random.default_rng(seed)
    peer = rng.normal(1.0, 0.1, 24)
    return Comparison("world", (peer + shift + rng.normal(0.0, 0.1, 24)).tolist(), peer.tolist())


def test_what_is_lower_in_nearly_every_pair_is_better_and_what_is_higher_worse() -> None:
    assert judge([_compare(-0.5), _compare(0.5), _compare(0.0)]) == ["better", "worse", "unclear"]


def test_equal_plays_are_unclear() -> None:
    same = Comparison("world", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert judge([same]) == ["unclear"]


@pytest.mark.parametrize("count", [1, 20])
def test_more_comparisons_ask_for_more_evidence(count: int) -> None:
    faint = next(
        each for each in (_compare(-0.06, seed) for seed in range(99)) if 0.01 < each.p_value < 0.04
    )
    others = [_compare(0.0, seed) for seed in range(1000, 2000)]
    clear = [each for each in others if each.p_value > 0.5][: count - 1]
    assert judge([faint, *clear])[0] == ("better" if count == 1 else "unclear")


def test_chance_alone_is_rarely_called_better_or_worse_in_any_of_ten_worlds() -> None:
    wrong = sum(
        any(each != "unclear" for each in judge([_compare(0.0, 10 * i + j) for j in range(10)]))
        for i in range(200)
    )
    assert wrong / 200 < 0.09  # 0.05, and 2.6 standard errors


def test_tables_are_those_of_the_studies() -> None:
    assert read_results("memory") == collect()
