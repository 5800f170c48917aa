from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from sparq_sim import Box
from sparq_sim.arrays import Matrix, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.sparq_memory.carried import Carried, Currents
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.hypothesis import Hypothesis
from sparq_sim.optimizers.sparq_memory.markov import Markov

GRID = Box(0.0, 1.0).grid(51)
FEATURES = SpatialFeatures(SquaredExponential(length_scale=0.3), GRID)
RANK = FEATURES.rank


def jitter() -> Hypothesis:
    return Markov(RANK, kind="jitter", time_scale=5.0, changing=0.5, local=True)


def velocity() -> Hypothesis:
    return Markov(RANK, kind="velocity", time_scale=9.0, changing=0.5, local=False)


def carried() -> Hypothesis:
    return Carried(RANK, Currents.of(FEATURES), speed=0.1, steady=20.0, time_scale=50.0)


EACH = pytest.mark.parametrize("make", [jitter, velocity, carried])
Make = Callable[[], Hypothesis]


def values(count: int, seed: int = 0) -> tuple[Matrix, Values, Values]:
    """Return features, values and noise variances that surprise nobody."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(count, 1))
    return FEATURES.at(points), 0.3 * rng.normal(size=count), rng.uniform(0.05, 0.2, size=count)


def grown(make: Make) -> Hypothesis:
    """Return a hypothesis in the middle of a play."""
    one = make()
    for t in range(4):
        one.advance(1.0)
        one.learn(*values(2, seed=t))
    one.advance(1.5)
    return one


@EACH
def test_values_are_as_likely_as_under_the_normal_distribution_foretold(make: Make) -> None:
    one = grown(make)
    features, seen, noise = values(5, seed=9)
    foretold = one.foresee(0.0, 0.0)
    covariance = features @ foretold.covariance @ features.T
    means = features @ foretold.mean
    got = one.learn(features, seen, noise)
    expected = multivariate_normal(means, covariance + np.diag(noise)).logpdf(seen)
    assert got.log_likelihood == pytest.approx(expected, abs=1e-9)
    assert_allclose(got.means, means, atol=1e-12)
    assert_allclose(got.variances, np.diagonal(covariance), atol=1e-12)


@EACH
def test_an_outlier_is_no_stronger_evidence_than_4_stds(make: Make) -> None:
    features, _, noise = values(1)
    one = grown(make)
    foretold = one.foresee(0.0, 0.0)
    spread = float(features[0] @ foretold.covariance @ features[0] + noise[0]) ** 0.5
    middle = float(features[0] @ foretold.mean)
    at = [
        one.copy().learn(features, np.array([middle + far * spread]), noise).log_likelihood
        for far in (0.0, 3.9, 4.0, 50.0)
    ]
    assert at[0] - at[1] == pytest.approx(3.9**2 / 2)
    assert at[3] == pytest.approx(at[2])


@EACH
def test_values_are_learnt_together_as_one_after_the_other(make: Make) -> None:
    together, single = grown(make), grown(make)
    features, seen, noise = values(6, seed=4)
    all_at_once = together.learn(features, seen, noise).log_likelihood
    one_by_one = sum(
        single.learn(features[[row]], seen[[row]], noise[[row]]).log_likelihood for row in range(6)
    )
    assert_allclose(together.mean, single.mean, atol=1e-9)
    assert_allclose(together.covariance, single.covariance, atol=1e-9)
    assert all_at_once == pytest.approx(one_by_one, abs=1e-9)


@EACH
def test_one_that_has_gone_astray_begins_anew_and_learns(make: Make) -> None:
    astray, fresh = make(), make()
    astray.mean[:] = 1.0
    astray.covariance *= -1.0
    given = values(3)
    assert np.isfinite(astray.learn(*given).log_likelihood)
    fresh.learn(*given)
    assert_allclose(astray.mean, fresh.mean)
    assert_allclose(astray.covariance, fresh.covariance)


@EACH
def test_to_reset_is_to_begin_anew(make: Make) -> None:
    one = make()
    one.learn(*values(3))
    one.reset()
    assert_array_equal(one.mean, make().mean)
    assert_array_equal(one.covariance, make().covariance)


@EACH
def test_a_copy_learns_on_its_own(make: Make) -> None:
    one = grown(make)
    mean, covariance = one.mean.copy(), one.covariance.copy()
    other = one.copy()
    other.advance(2.0)
    other.learn(*values(3, seed=7))
    assert_array_equal(one.mean, mean)
    assert_array_equal(one.covariance, covariance)
    assert np.abs(other.mean - mean).max() > 0.01


@EACH
@pytest.mark.parametrize("teller", [jitter, velocity, carried])
def test_a_seeded_one_believes_of_the_reward_what_the_other_believes(
    make: Make, teller: Make
) -> None:
    one = grown(make)
    told = grown(teller)
    told.learn(*values(3, seed=8))
    one.seed(told)
    expected, got = told.foresee(0.0, 0.0), one.foresee(0.0, 0.0)
    assert_allclose(got.mean, expected.mean)
    assert_allclose(got.covariance, expected.covariance)
    # What follows the weights is as before any observation, and cut off from them.
    rest = slice(2 * RANK, None)
    assert_array_equal(one.mean[rest], 0.0)
    assert_array_equal(one.covariance[rest, : 2 * RANK], 0.0)
    assert_allclose(one.covariance[rest, rest], make().covariance[rest, rest])


@EACH
def test_over_a_long_time_the_covariance_remains_one(make: Make) -> None:
    one = make()
    rng = np.random.default_rng(5)
    for t in range(300):
        one.advance(1.0)
        features, _, _ = values(3, seed=t)
        one.learn(features, 0.3 * rng.normal(size=3), np.full(3, 1e-4))
    lowest = np.linalg.eigvalsh((one.covariance + one.covariance.T) / 2).min()
    assert lowest > -1e-9
    assert_allclose(one.covariance, one.covariance.T, atol=1e-9)
