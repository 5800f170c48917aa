from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparq_sim import Box
from sparq_sim.arrays import Matrix, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.hypothesis import Foresight
from sparq_sim.optimizers.sparq_memory.knowledge import Prospect
from sparq_sim.optimizers.sparq_memory.markov import Markov

CANDIDATES = Box(0.0, 1.0).grid(31)
FEATURES = SpatialFeatures(SquaredExponential(length_scale=0.2), CANDIDATES)
AT: Matrix = FEATURES.at(CANDIDATES)
ASKED = AT[[3, 9, 15, 24, 28]]
NOISE: Values = np.array([0.01, 0.3, 0.01, 0.1, 2.0])


@cache
def foresight() -> Foresight:
    """Return what is believed of the next round and of one that is 3 rounds later."""
    one = Markov(FEATURES.rank, kind="jitter", time_scale=5.0, changing=0.6, local=False)
    one.learn(AT[[5, 20]], np.array([0.6, -0.2]), np.full(2, 0.01))
    return one.foresee(1.0, 3.0)


def sample_gain(feature: Values, variance: float) -> float:
    """Return the expected rise of the highest mean by an answer, from joint draws of the weights.

    Each answer is learnt by regression of the weights at the later moment on it.
    """
    believed = foresight()
    rng = np.random.default_rng(1)
    root = np.linalg.cholesky(believed.first_covariance + 1e-12 * np.eye(FEATURES.rank))
    weights = believed.first_mean + rng.normal(size=(40_000, FEATURES.rank)) @ root.T
    answers = weights @ feature + variance**0.5 * rng.normal(size=len(weights))
    total = feature @ believed.first_covariance @ feature + variance
    gain = believed.cross @ feature / total
    means = believed.mean + (answers - feature @ believed.first_mean)[:, None] * gain
    before = (AT @ believed.mean).max()
    return float((means @ AT.T).max(axis=1).mean() - before)


def test_gains_are_those_of_drawn_answers() -> None:
    found = Prospect(foresight(), AT).gains(ASKED, NOISE)
    expected = [sample_gain(*each) for each in zip(ASKED, NOISE.tolist(), strict=True)]
    assert max(expected) > 0.02
    assert_allclose(found, expected, atol=0.15 * max(expected))
    assert found.argmax() == np.argmax(expected)


def test_a_counted_answer_lowers_further_gains_at_its_point() -> None:
    prospect = Prospect(foresight(), AT)
    before = prospect.gains(ASKED, NOISE)
    row = int(before.argmax())
    prospect.count(ASKED[row], NOISE[row])
    assert prospect.gains(ASKED, NOISE)[row] < 0.2 * before[row]


def test_to_count_an_answer_is_to_learn_it_but_for_its_value() -> None:
    one = Markov(FEATURES.rank, kind="jitter", time_scale=5.0, changing=0.6, local=False)
    told = one.copy()
    # A value that is as expected moves no mean.
    told.learn(ASKED[:1], np.zeros(1), NOISE[:1])
    prospect = Prospect(one.foresee(0.0, 2.0), AT)
    prospect.count(ASKED[0], NOISE[0])
    expected = Prospect(told.foresee(0.0, 2.0), AT).gains(ASKED, NOISE)
    assert_allclose(prospect.gains(ASKED, NOISE), expected, atol=1e-9)


def test_an_answer_that_is_late_is_worth_less() -> None:
    one = Markov(FEATURES.rank, kind="jitter", time_scale=5.0, changing=0.9, local=False)
    one.learn(AT[[5, 20]], np.array([0.6, -0.2]), np.full(2, 0.01))
    gains = [
        Prospect(one.foresee(0.0, later), AT).gains(ASKED, NOISE).max()
        for later in (0.0, 3.0, 10.0)
    ]
    assert gains[0] > gains[1] > gains[2] > 0


def test_an_answer_that_cannot_change_the_decision_is_worth_nothing() -> None:
    believed = foresight()
    best = AT[[int((AT @ believed.mean).argmax())]]
    assert_allclose(Prospect(believed, best).gains(ASKED, NOISE), 0.0, atol=1e-12)


def test_the_more_exact_an_answer_the_more_it_is_worth() -> None:
    same = np.repeat(ASKED[:1], 4, axis=0)
    gains = Prospect(foresight(), AT).gains(same, np.array([0.01, 0.1, 1.0, 10.0]))
    assert (np.diff(gains) < 0).all()


@pytest.mark.parametrize("count", [24, 25, 31])
def test_of_many_points_the_best_is_found(count: int) -> None:
    prospect = Prospect(foresight(), AT)
    many = prospect.gains(AT[:count], np.full(count, 0.01))
    one_by_one = [prospect.gains(each[None], np.array([0.01]))[0] for each in AT[:count]]
    assert many.max() == pytest.approx(max(one_by_one))
    assert many.argmax() == np.argmax(one_by_one)
    assert np.count_nonzero(many) <= 24
