from __future__ import annotations

import pytest
from pydantic import ValidationError

from sparq_sim import Rules


@pytest.mark.parametrize(
    ("rules", "rounds", "ends_at"),
    [
        (Rules(rounds=3), 3, 4.0),
        (Rules(rounds=3, period=0.5), 3, 2.0),
        (Rules(horizon=3.0), 2, 3.0),
        (Rules(horizon=3.1, period=0.5), 6, 3.1),
        (Rules(rounds=2, horizon=3.0, period=0.5), 2, 1.5),
        (Rules(rounds=9, horizon=3.0), 2, 3.0),
    ],
)
def test_a_play_ends_with_its_last_round_or_at_the_horizon(
    rules: Rules, rounds: int, ends_at: float
) -> None:
    assert (rules.most_rounds, rules.ends_at) == (rounds, ends_at)


def test_a_play_without_an_end_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs rounds or a horizon"):
        Rules()


def test_a_design_of_more_points_than_a_prior_can_be_fitted_to_is_refused() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 10000"):
        Rules(rounds=3, design=10_001)


@pytest.mark.parametrize(("horizon", "period"), [(1e300, 1.0), (10.0, 1e-300), (1e308, 1e-308)])
def test_a_play_of_more_rounds_than_memory_holds_is_refused(horizon: float, period: float) -> None:
    with pytest.raises(ValueError, match="rounds, and at most 10,000,000"):
        Rules(horizon=horizon, period=period)
    assert Rules(horizon=horizon, period=period, rounds=3).most_rounds == 3
