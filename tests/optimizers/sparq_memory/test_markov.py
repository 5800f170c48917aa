from __future__ import annotations

from collections.abc import Callable
from math import exp, sqrt
from typing import Literal, TypeAlias

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Values
from sparq_sim.optimizers.sparq_memory.markov import Markov

Kind: TypeAlias = Literal["jitter", "velocity"]

KINDS: tuple[Kind, ...] = ("jitter", "velocity")
RANK, TIME_SCALE, CHANGING, NOISE = 4, 6.0, 0.7, 0.04
LEAK = 1e-6
"""The share of its variance by which what stays walks in a round."""


def hypothesis(kind: Kind, *, local: bool = False) -> Markov:
    return Markov(RANK, kind=kind, time_scale=TIME_SCALE, changing=CHANGING, local=local)


def temporal(kind: Kind) -> Callable[[Values, Values], Matrix]:
    """Return the covariance in time of one weight: static, and OU or Matern 3/2."""

    def covariance(one: Values, other: Values) -> NDArray[np.float64]:
        apart = np.abs(one[:, None] - other[None, :])
        run = sqrt(3) * apart / TIME_SCALE
        alike = np.exp(-apart / TIME_SCALE) if kind == "jitter" else (1 + run) * np.exp(-run)
        walked = 1 + LEAK * np.minimum(one[:, None], other[None, :])
        matrix: NDArray[np.float64] = (1 - CHANGING) * walked + CHANGING * alike
        return matrix

    return covariance


class Dense:
    """Regression with the kernel of weights in time, without any filter."""

    def __init__(self, kind: Kind, times: Values, features: Matrix, values: Values) -> None:
        self._alike = temporal(kind)
        self._times, self._features = times, features
        matrix = self._alike(times, times) * (features @ features.T)
        self._inverse = np.linalg.inv(matrix + NOISE * np.eye(len(times)))
        self._values = values

    def _reach(self, time: float) -> Matrix:
        alike = self._alike(np.array([time]), self._times)[0]
        reach: Matrix = (self._features * alike[:, None]).T
        return reach

    def mean(self, time: float) -> Values:
        mean: Values = self._reach(time) @ self._inverse @ self._values
        return mean

    def covariance(self, time: float, other: float) -> Matrix:
        prior = self._alike(np.array([time]), np.array([other]))[0, 0] * np.eye(RANK)
        rest: Matrix = prior - self._reach(time) @ self._inverse @ self._reach(other).T
        return rest


def learnt(kind: Kind) -> tuple[Markov, Dense]:
    """Return a filter and the regression that have seen the same values, up to time 9.5."""
    rng = np.random.default_rng(1)
    times = np.array([1.0, 1.0, 2.0, 3.5, 4.0, 4.0, 4.0, 7.0, 9.5])
    features = rng.normal(size=(len(times), RANK))
    values = rng.normal(size=len(times))
    filtered = hypothesis(kind)
    now = 0.0
    for time in np.unique(times):
        filtered.advance(time - now)
        now = time
        rows = times == time
        filtered.learn(features[rows], values[rows], np.full(rows.sum(), NOISE))
    return filtered, Dense(kind, times, features, values)


@pytest.mark.parametrize("ahead", [0.0, 0.4, 3.0, 25.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_filter_is_regression_with_the_kernel_in_space_and_time(
    kind: Kind, ahead: float
) -> None:
    filtered, dense = learnt(kind)
    found = filtered.foresee(ahead, 0.0)
    time = 9.5 + ahead
    assert_allclose(found.mean, dense.mean(time), atol=1e-8)
    assert_allclose(found.covariance, dense.covariance(time, time), atol=1e-8)


@pytest.mark.parametrize("later", [1.0, 2.7, 12.0])
@pytest.mark.parametrize("kind", KINDS)
def test_two_moments_to_come_are_foreseen_together(kind: Kind, later: float) -> None:
    filtered, dense = learnt(kind)
    found = filtered.foresee(1.5, later)
    first, second = 11.0, 11.0 + later
    assert_allclose(found.first_mean, dense.mean(first), atol=1e-8)
    assert_allclose(found.first_covariance, dense.covariance(first, first), atol=1e-8)
    assert_allclose(found.mean, dense.mean(second), atol=1e-8)
    assert_allclose(found.cross, dense.covariance(second, first), atol=1e-8)
    # The walk of what stays is there against rounding, and does not count between the two.
    assert_allclose(
        found.covariance,
        dense.covariance(second, second),
        atol=1e-8 + LEAK * (1 - CHANGING) * later,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_to_look_ahead_changes_nothing(kind: Kind) -> None:
    filtered, _ = learnt(kind)
    mean, covariance = filtered.mean.copy(), filtered.covariance.copy()
    filtered.foresee(3.0, 2.0)
    assert_allclose(filtered.mean, mean, atol=0)
    assert_allclose(filtered.covariance, covariance, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_without_values_the_prior_stays_as_it_is(kind: Kind) -> None:
    filtered = hypothesis(kind)
    filtered.advance(40.0)
    assert_allclose(filtered.foresee(0.0, 0.0).covariance, np.eye(RANK), atol=41 * LEAK)


@pytest.mark.parametrize("kind", KINDS)
def test_it_knows_how_alike_the_reward_remains(kind: Kind) -> None:
    filtered = hypothesis(kind)
    for rounds in (0.0, 1.0, 6.0, 100.0):
        alike = temporal(kind)(np.array([0.0]), np.array([rounds]))[0, 0]
        assert filtered.remember(rounds) == pytest.approx(alike, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_changes_are_large_where_the_reward_moves_and_small_where_it_stands_still(
    kind: Kind,
) -> None:
    rng = np.random.default_rng(3)
    filtered = hypothesis(kind, local=True)
    value, kept = 0.0, exp(-1 / TIME_SCALE)
    for _ in range(150):
        value = kept * value + sqrt(1 - kept**2) * 2.0 * rng.normal()
        filtered.advance(1.0)
        seen = np.array([value, 0.5]) + 0.1 * rng.normal(size=2)
        filtered.learn(np.eye(RANK)[:2], seen, np.full(2, 0.01))
    moving, still, *unseen = filtered.sizes
    assert moving > 1.5
    assert still < 0.3
    assert_allclose(unseen, 1.0, atol=1e-3)


def test_a_copy_learns_sizes_on_its_own() -> None:
    one = hypothesis("jitter", local=True)
    other = one.copy()
    for _ in range(20):
        other.advance(1.0)
        other.learn(np.eye(RANK)[:1], np.zeros(1), np.full(1, 0.01))
    assert other.sizes[0] < 0.8
    assert_allclose(one.sizes, 1.0)
    assert_allclose(one.covariance, hypothesis("jitter").covariance)
