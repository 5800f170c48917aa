"""Posteriors that fade or drift are the dense ones, at a cost that does not grow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparq_sim.gp.kernels import Forgetting, SpaceTime, SquaredExponential, Wiener, stamp
from sparq_sim.gp.posterior import (
    CholeskyPosterior,
    FeaturePosterior,
    Features,
    KalmanPosterior,
)
from sparq_sim.gp.posterior.drifting import _FADES, FadingPosterior

CANDIDATES = np.random.default_rng(0).random((40, 2))
SPACE = SquaredExponential(variance=1.5, length_scale=0.4)
FEATURES = Features.of(SPACE, CANDIDATES)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0.001, 0.9),
    wandering=st.booleans(),
    gaps=st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=1, max_size=25),
)
def test_drift_is_the_dense_space_time_posterior(
    seed: int, share: float, wandering: bool, gaps: list[float]
) -> None:
    rng = np.random.default_rng(seed)
    time = Wiener(rate=share) if wandering else Forgetting(epsilon=share)
    dense = CholeskyPosterior(SpaceTime(space=SPACE, time=time), mean=0.5)
    kalman = KalmanPosterior(FEATURES, mean=0.5)
    now = 0.0
    for gap in gaps:
        places = rng.integers(0, 40, 2)
        values, variances = rng.normal(size=2), rng.uniform(0.01, 0.5, 2)
        dense.add(stamp(CANDIDATES[places], now), values, variances=variances)
        kalman.add(CANDIDATES[places], values, variances=variances)
        now += gap
        if wandering:
            kalman.drift(1.0, share * gap)
        else:
            kalman.drift((1 - share) ** (gap / 2), 1 - (1 - share) ** gap)
    here = stamp(CANDIDATES, now)
    np.testing.assert_allclose(kalman.mean(), dense.mean(here), atol=1e-10)
    np.testing.assert_allclose(kalman.std(), dense.std(here), atol=1e-10)
    assert kalman.log_determinant == pytest.approx(dense.log_determinant, abs=1e-10)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    weight=st.floats(0.3, 1.0),
    ages=st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.0]), min_size=1, max_size=25),
)
def test_fading_is_the_dense_posterior_with_grown_variances(
    seed: int, weight: float, ages: list[float]
) -> None:
    rng = np.random.default_rng(seed)
    fading = FadingPosterior(FEATURES, mean=0.5)
    places, values = rng.integers(0, 40, (len(ages), 2)), rng.normal(size=(len(ages), 2))
    variances = rng.uniform(0.01, 0.5, (len(ages), 2))
    # What comes late has faded by then; each round all fade once more.
    for number, age in enumerate(ages):
        fading.fade(weight)
        where = CANDIDATES[places[number]]
        assert fading.accepts(where, variances[number])
        fading.add(where, values[number], variances=variances[number], share=weight**age)
    shares = np.repeat(weight ** (np.arange(len(ages))[::-1] + np.array(ages)), 2)
    once, twice = (CholeskyPosterior(SPACE, mean=0.5) for _ in range(2))
    for dense, power in ((once, 1), (twice, 2)):
        noise = variances.ravel() / shares**power
        dense.add(CANDIDATES[places.ravel()], values.ravel(), variances=noise)
    np.testing.assert_allclose(fading.mean(), once.mean(CANDIDATES), atol=1e-10)
    np.testing.assert_allclose(fading.std(), once.std(CANDIDATES), atol=1e-10)
    assert fading.log_determinant == pytest.approx(twice.log_determinant, abs=1e-10)


def test_fading_takes_neither_other_points_nor_what_is_too_precise() -> None:
    fading, here = FadingPosterior(FEATURES), CANDIDATES[:1]
    assert not fading.accepts(here + 1, np.array([0.1]))
    assert not fading.accepts(here, np.array([0.5 * SPACE.variance / _FADES]))
    assert fading.accepts(here, np.array([2 * SPACE.variance / _FADES]))


def test_without_drift_it_is_the_static_posterior() -> None:
    rng = np.random.default_rng(1)
    static, kalman = FeaturePosterior(FEATURES), KalmanPosterior(FEATURES)
    points, values = CANDIDATES[rng.integers(0, 40, 30)], rng.normal(size=30)
    for gp in (static, kalman):
        gp.add(points, values, variances=0.1)
    np.testing.assert_allclose(kalman.mean(), static.mean(), atol=1e-10)
    np.testing.assert_allclose(kalman.std(), static.std(), atol=1e-10)


def test_a_reward_that_keeps_nothing_returns_to_the_prior() -> None:
    gp = KalmanPosterior(FEATURES, mean=2.0)
    gp.add(CANDIDATES[3], 5.0, variances=0.1)
    gp.drift(0.0, 1.0)
    np.testing.assert_allclose(gp.mean(), np.full(40, 2.0))
    np.testing.assert_allclose(gp.std(), np.sqrt(SPACE.diagonal(CANDIDATES)))


def test_thousands_of_rounds_leave_no_trace_of_rounding() -> None:
    rng = np.random.default_rng(2)
    gp = KalmanPosterior(FEATURES)
    for _ in range(3000):
        gp.add(CANDIDATES[rng.integers(40)], rng.normal(), variances=0.01)
        gp.drift(np.sqrt(0.9), 0.1)
    for _ in range(400):
        gp.drift(np.sqrt(0.9), 0.1)
    np.testing.assert_allclose(gp.mean(), np.zeros(40), atol=1e-8)
    np.testing.assert_allclose(gp.std(), np.sqrt(SPACE.diagonal(CANDIDATES)), atol=1e-12)


@pytest.mark.parametrize("variance", [1e-300, 1e-16, 1e-10])
def test_nearly_exact_observations_break_nothing(variance: float) -> None:
    gp = KalmanPosterior(FEATURES)
    for _ in range(20):
        gp.add(CANDIDATES[[4, 4, 5]], [1.0, 1.0, 1.0], variances=variance)
        gp.drift(1.0, 0.0)
    assert gp.mean()[4] == pytest.approx(1.0, abs=1e-3)
    assert np.isfinite(gp.mean()).all()
    assert np.isfinite(gp.std()).all()
    assert np.isfinite(gp.log_determinant)


@pytest.mark.parametrize(
    ("keep", "inject"),
    [(1.1, 0.0), (-0.1, 0.0), (np.nan, 0.0), (1.0, -1.0), (1.0, np.inf), (1.0, np.nan)],
)
def test_impossible_drifts_are_refused(keep: float, inject: float) -> None:
    with pytest.raises(ValueError, match=f"keep={keep}, inject={inject}"):
        KalmanPosterior(FEATURES).drift(keep, inject)


def test_bad_observations_are_refused() -> None:
    gp = KalmanPosterior(FEATURES)
    with pytest.raises(ValueError, match="noise variance of inf"):
        gp.add(CANDIDATES[0], 1.0, variances=np.inf)
    with pytest.raises(ValueError, match="is not among the 40 candidates"):
        gp.add([7.0, 7.0], 1.0, variances=0.1)
    with pytest.raises(ValueError, match="a value of nan"):
        gp.add(CANDIDATES[0], np.nan, variances=0.1)
