"""The first plays are spread over the domain, and none is made twice without need."""

from __future__ import annotations

import numpy as np
import pytest

from sparq_sim import Box
from sparq_sim.optimizers.shared.opening import Opening

LINE = Box(-50.0, 50.0).grid(501)
SQUARE = Box([0.0, 0.0], [1.0, 200.0]).grid(41)


@pytest.mark.parametrize("seed", range(5))
def test_no_gap_is_much_wider_than_another(seed: int) -> None:
    opening = Opening(LINE, 8, np.random.default_rng(seed))
    plays = np.sort([opening.choose()[0] for _ in range(8)])
    assert np.diff(plays) == pytest.approx(100 / 8, abs=0.5)
    again = np.sort([opening.choose()[0] for _ in range(8)])
    assert not np.array_equal(again, plays)


@pytest.mark.parametrize("seed", range(5))
def test_each_quarter_of_a_square_is_played(seed: int) -> None:
    opening = Opening(SQUARE, 12, np.random.default_rng(seed))
    plays = np.array([opening.choose() for _ in range(12)]) / [1.0, 200.0]
    quarters = (plays > 0.5) @ [1, 2]
    assert set(quarters.tolist()) == {0, 1, 2, 3}


def test_within_bounds_it_spreads_there() -> None:
    opening = Opening(LINE, 4, np.random.default_rng(0))
    plays = np.sort([opening.choose(Box(10.0, 20.0))[0] for _ in range(4)])
    assert plays.min() >= 10
    assert plays.max() <= 20
    assert np.diff(plays) == pytest.approx(2.5, abs=0.5)


def test_every_candidate_is_played_before_one_is_played_again() -> None:
    sites = np.array([[0.0, 3.0], [1.0, 3.0], [7.0, 3.0]])
    opening = Opening(sites, 8, np.random.default_rng(0))
    assert {opening.choose()[0] for _ in range(3)} == {0.0, 1.0, 7.0}
    assert opening.choose()[0] in {0.0, 1.0, 7.0}
