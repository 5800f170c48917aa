from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparq_sim.arrays import Matrix, Values
from sparq_sim.optimizers.sparq_memory.bank import Bank
from sparq_sim.optimizers.sparq_memory.markov import Markov

RANK, NOISE = 3, 0.01
SCALES = (3.0, 15.0, 75.0)
ROWS: Matrix = np.eye(RANK)
EVEN: Values = np.full(RANK, NOISE)
VAGUE: Values = np.full(RANK, 1.0)
"""Noise variances under which no hypothesis is refuted soon."""


def jitter(time_scale: float, changing: float = 0.9) -> Markov:
    return Markov(RANK, kind="jitter", time_scale=time_scale, changing=changing, local=False)


def bank() -> Bank:
    """Return a bank of three time scales, and one in which next to nothing changes."""
    return Bank([*(jitter(scale) for scale in SCALES), jitter(1000.0, 0.01)])


def tell(told: Bank, values: Values, noise: Values = EVEN) -> None:
    """Let a round pass, and tell a value of each weight."""
    told.advance(told.time + 1.0)
    told.learn(ROWS, values, noise)


def walk(told: Bank, time_scale: float, rounds: int, seed: int) -> None:
    """Tell values of weights that jitter within *time_scale*."""
    rng = np.random.default_rng(seed)
    kept = exp(-1 / time_scale)
    weights = rng.normal(size=RANK)
    for _ in range(rounds):
        tell(told, weights + sqrt(NOISE) * rng.normal(size=RANK))
        weights = kept * weights + sqrt(1 - kept**2) * rng.normal(size=RANK)


def stand(told: Bank, rounds: int, seed: int) -> None:
    """Tell values of weights that stand still."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=RANK)
    for _ in range(rounds):
        tell(told, weights + sqrt(NOISE) * rng.normal(size=RANK))


def awake(told: Bank) -> list[bool]:
    return [each.awake for each in told._members]


@pytest.mark.parametrize("seed", range(3))
def test_weights_sum_to_1(seed: int) -> None:
    one = bank()
    assert_allclose(one.weights, 0.25)
    for _ in range(10):
        walk(one, 10.0, 3, seed)
        assert one.weights.sum() == pytest.approx(1.0)
        assert (one.weights > 0).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("number", range(len(SCALES)))
def test_the_right_time_scale_wins(number: int, seed: int) -> None:
    one = bank()
    walk(one, SCALES[number], 150, seed)
    assert one.weights.argmax() == number
    assert one.weights[number] > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_where_the_reward_stands_still_that_wins(seed: int) -> None:
    one = bank()
    stand(one, 60, seed)
    assert one.weights[-1] > 0.95


def test_weights_are_the_evidence_of_all_rounds_of_which_old_ones_fade() -> None:
    one, alone = bank(), [*(jitter(scale) for scale in SCALES), jitter(1000.0, 0.01)]
    rng = np.random.default_rng(4)
    evidence = np.zeros(4)
    for _ in range(3):
        values = rng.normal(size=RANK)
        tell(one, values, VAGUE)
        evidence *= 0.99
        for row, each in enumerate(alone):
            each.advance(1.0)
            evidence[row] += each.learn(ROWS, values, VAGUE).log_likelihood
        evidence -= evidence.max()
    assert all(awake(one))
    assert_allclose(one.weights, np.exp(evidence) / np.exp(evidence).sum(), rtol=1e-9)


def refuted() -> Bank:
    """Return a bank of two, in which it has just been refuted that next to nothing changes."""
    one = Bank([jitter(3.0), jitter(1000.0, 0.01)])
    tell(one, np.ones(RANK))
    tell(one, np.zeros(RANK))
    return one


def test_an_unlikely_hypothesis_falls_asleep_and_learns_nothing() -> None:
    one = refuted()
    assert awake(one) == [True, False]
    assert one.weights[1] / one.weights[0] == pytest.approx(1e-4)
    sleeping = one._members[1].hypothesis
    before = sleeping.covariance.copy()
    walk(one, 3.0, 20, 2)
    assert awake(one) == [True, False]
    assert_array_equal(sleeping.covariance, before)


def test_a_sleeping_hypothesis_wakes_up_and_goes_on_from_the_most_likely() -> None:
    one = refuted()
    # The weight rises from 1e-4 to 1e-2, that of the most likely being 1, as evidence halves.
    rounds = log(0.5) / log(0.99)
    one.advance(one.time + rounds - 0.5)
    assert awake(one) == [True, False]
    one.advance(one.time + 1.0)
    assert awake(one) == [True, True]
    likely, woken = (each.hypothesis for each in one._members)
    assert_allclose(woken.mean, likely.mean)
    assert_allclose(woken.covariance, likely.covariance)
    walk(one, 3.0, 1, 0)
    assert np.abs(woken.mean - likely.mean).max() > 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_a_reward_that_begins_to_change_is_noticed_within_100_rounds(seed: int) -> None:
    one = bank()
    stand(one, 100, seed)
    assert one.weights.argmax() == 3
    walk(one, 3.0, 100, seed)
    assert one.weights.argmax() == 0


def test_a_restart_forgets_the_reward_and_half_of_how_it_changes() -> None:
    one = bank()
    walk(one, 3.0, 60, 1)
    evidence = np.log(one.weights)
    one.restart()
    assert one.restarts == 1
    assert all(awake(one))
    foresight = one.foresee(measured=one.time, used=one.time)
    assert_array_equal(foresight.mean, 0.0)
    assert_allclose(foresight.covariance, np.eye(RANK), atol=1e-9)
    after = np.log(one.weights)
    assert_allclose(after - after[0], (evidence - evidence[0]) / 2)


def test_what_is_foreseen_has_the_moments_of_the_mixture() -> None:
    one = bank()
    rng = np.random.default_rng(2)
    for _ in range(3):
        tell(one, rng.normal(size=RANK), VAGUE)
    assert (one.weights > 1e-2).all()
    found = one.foresee(measured=one.time + 1.0, used=one.time + 4.0)
    # Moments of the pair (later, earlier), of each member and then of all.
    mean, square = np.zeros(2 * RANK), np.zeros((2 * RANK, 2 * RANK))
    for weight, each in zip(one.weights, one._members, strict=True):
        alone = each.hypothesis.foresee(1.0, 3.0)
        pair = np.concatenate([alone.mean, alone.first_mean])
        covariance = np.block(
            [[alone.covariance, alone.cross], [alone.cross.T, alone.first_covariance]]
        )
        mean += weight * pair
        square += weight * (covariance + np.outer(pair, pair))
    covariance = square - np.outer(mean, mean)
    assert_allclose(found.mean, mean[:RANK], atol=1e-12)
    assert_allclose(found.first_mean, mean[RANK:], atol=1e-12)
    assert_allclose(found.covariance, covariance[:RANK, :RANK], atol=1e-12)
    assert_allclose(found.first_covariance, covariance[RANK:, RANK:], atol=1e-12)
    assert_allclose(found.cross, covariance[:RANK, RANK:], atol=1e-12)


def test_residuals_are_those_of_the_mixture() -> None:
    one = bank()
    rng = np.random.default_rng(3)
    for _ in range(3):
        tell(one, rng.normal(size=RANK), VAGUE)
    one.advance(one.time + 1.0)
    foresight = one.foresee(measured=one.time, used=one.time)
    values = rng.normal(size=RANK)
    found = one.learn(ROWS, values, EVEN)
    assert_allclose(found.misses, values - foresight.mean, atol=1e-12)
    assert_allclose(found.variances, np.diagonal(foresight.covariance), atol=1e-12)


def test_what_is_remembered_is_averaged_by_weight() -> None:
    one = bank()
    assert one.remember(0.0) == pytest.approx(1.0)
    expected = np.mean([0.1 + 0.9 * exp(-5 / scale) for scale in SCALES] + [1.0 - 0.01 * 0.005])
    assert one.remember(5.0) == pytest.approx(expected, abs=1e-5)


def test_a_copy_learns_on_its_own() -> None:
    one = bank()
    walk(one, 3.0, 60, 1)  # Some of its members sleep.
    before = one.foresee(measured=one.time, used=one.time)
    weights, time = one.weights, one.time
    other = one.copy()
    assert_allclose(other.foresee(measured=time, used=time).mean, before.mean)
    other.advance(time + 80.0)
    walk(other, 75.0, 60, 2)
    other.restart()
    after = one.foresee(measured=time, used=time)
    assert (one.time, one.restarts) == (time, 0)
    assert_array_equal(one.weights, weights)
    assert_array_equal(after.mean, before.mean)
    assert_array_equal(after.covariance, before.covariance)


def test_time_does_not_go_back() -> None:
    one = bank()
    stand(one, 3, 0)
    before = one.foresee(measured=3.0, used=3.0)
    one.advance(1.0)
    assert one.time == 3.0
    assert_array_equal(one.foresee(measured=3.0, used=3.0).mean, before.mean)


def test_the_sentinel_never_sleeps_and_tells_what_it_believes_alone() -> None:
    told = Bank([jitter(3.0), jitter(1000.0, 0.01)], sentinel=0)
    stand(told, 60, seed=1)
    assert told.weights[0] == pytest.approx(1e-4, rel=0.1)
    alone = told.foresee_widely(measured=told.time, used=told.time + 5.0)
    together = told.foresee(measured=told.time, used=told.time + 5.0)
    assert np.trace(alone.covariance) > 10 * np.trace(together.covariance)
    before = np.trace(told.foresee_widely(measured=told.time, used=told.time).covariance)
    told.learn(ROWS, np.zeros(RANK), EVEN)
    after = np.trace(told.foresee_widely(measured=told.time, used=told.time).covariance)
    assert after < before
