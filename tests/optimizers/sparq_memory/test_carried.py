from __future__ import annotations

from functools import cache
from itertools import product
from typing import Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparq_sim import Box
from sparq_sim.arrays import Points, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.sparq_memory.carried import Carried, Currents
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.hypothesis import Hypothesis
from sparq_sim.optimizers.sparq_memory.markov import Markov

LENGTH = 0.2
LINE = Box(0.0, 1.0).grid(101)
SQUARE = Box([0.0, 0.0], [1.0, 1.0]).grid(21)
SPEED, NOISE = 0.02, 0.05


@cache
def features_on(dimensions: int) -> SpatialFeatures:
    kernel = SquaredExponential(variance=1.0, length_scale=LENGTH * dimensions)
    return SpatialFeatures(kernel, LINE if dimensions == 1 else SQUARE)


def hill(points: Points, top: Values, width: float) -> Values:
    heights: Values = np.exp(-0.5 * (((points - top) / width) ** 2).sum(axis=1))
    return heights


@pytest.mark.parametrize(
    "distance", [[0.1], [-0.1], [0.02], [0.1, -0.06]], ids=["right", "left", "little", "2d"]
)
def test_a_shift_moves_a_smooth_function_by_its_distance(distance: list[float]) -> None:
    features = features_on(len(distance))
    far, middle = np.array(distance), np.full(len(distance), 0.5)
    width = 0.2 * len(distance)
    at_anchors = features.at(features.anchors)[:, :-1]
    weights = np.linalg.lstsq(at_anchors, hill(features.anchors, middle, width), rcond=1e-5)[0]
    shifted = Currents.of(features).shift(far) @ weights
    candidates = LINE if len(distance) == 1 else SQUARE
    inside = candidates[(np.abs(candidates - 0.5) < 0.25).all(axis=1)]
    expected = hill(inside, middle + far, width)
    moved = np.abs(expected - hill(inside, middle, width)).max()
    found = features.at(inside)[:, :-1] @ shifted
    assert_allclose(found, expected, atol=0.05 * moved)


def foretell(one: Hypothesis, seed: int) -> float:
    """Return how far off one is, 5 rounds ahead, of a hill that moves at constant speed."""
    rng = np.random.default_rng(seed)
    features = features_on(1)
    errors = []
    for t in range(30):
        top = np.array([0.2 + SPEED * t])
        one.advance(1.0)
        points = rng.uniform(size=(3, 1))
        seen = hill(points, top, LENGTH) + NOISE * rng.normal(size=3)
        one.learn(features.at(points), seen, np.full(3, NOISE**2))
        if t >= 15:
            expected = hill(LINE, top + 5 * SPEED, LENGTH)
            found = features.at(LINE) @ one.foresee(5.0, 0.0).mean
            errors.append(np.sqrt(np.mean((found - expected) ** 2)))
    return float(np.mean(errors))


def test_a_hill_that_moves_is_foretold_better_than_by_weights_of_their_own() -> None:
    rank = features_on(1).rank
    currents = Currents.of(features_on(1))

    def markov(kind: Literal["jitter", "velocity"], scale: float) -> Hypothesis:
        return Markov(rank, kind=kind, time_scale=scale, changing=0.5, local=True)

    moving = np.mean(
        [
            foretell(Carried(rank, currents, speed=0.07, steady=20.0, time_scale=100.0), seed)
            for seed in range(10)
        ]
    )
    kinds: tuple[Literal["jitter", "velocity"], ...] = ("jitter", "velocity")
    for kind, scale in product(kinds, (6.0, 15.0, 40.0)):
        other = np.mean([foretell(markov(kind, scale), seed) for seed in range(10)])
        assert moving < 0.8 * other


def test_it_learns_the_velocity() -> None:
    one = Carried(
        features_on(1).rank, Currents.of(features_on(1)), speed=0.07, steady=20.0, time_scale=100.0
    )
    foretell(one, 0)
    assert one.mean[-1] == pytest.approx(SPEED, abs=0.01)


def test_nothing_is_carried_further_than_its_lengths_allow() -> None:
    currents = Currents.of(features_on(1))
    one = Carried(features_on(1).rank, currents, speed=0.5, steady=10.0, time_scale=30.0)
    one.mean[:] = 0.1
    one.mean[-1] = 1e6
    one.advance(1.0)
    assert np.abs(one.mean[:-1]).max() < 10.0


def test_what_does_not_move_stays() -> None:
    one = Carried(
        features_on(1).rank, Currents.of(features_on(1)), speed=0.2, steady=20.0, time_scale=30.0
    )
    assert one.remember(0.0) == 1.0
    assert one.remember(1e6) == pytest.approx(0.5)
    assert one.remember(30.0) == pytest.approx(0.5 + 0.5 / np.e)
