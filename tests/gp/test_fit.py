"""The likelihood is that of scikit-learn and of the normal law; the fit is a top of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer

from sparq_sim.arrays import Points, Values
from sparq_sim.gp.fit import fit, likelihood
from sparq_sim.gp.kernels import (
    Constant,
    Forgetting,
    Kernel,
    Matern52,
    RationalQuadratic,
    SpaceTime,
    SquaredExponential,
    stamp,
)
from sparq_sim.gp.priors import AnyPrior, Gamma, LogNormal

SEEDS = st.integers(0, 2**32 - 1)


def drawn(
    kernel: Kernel, points: Points, *, variance: float, mean: float = 0.0, seed: int = 0
) -> Values:
    covariance = kernel(points, points) + variance * np.eye(len(points))
    normal = np.random.default_rng(seed).normal(size=len(points))
    return mean + np.linalg.cholesky(covariance) @ normal


@settings(max_examples=200, deadline=None)
@given(seed=SEEDS, dimensions=st.integers(1, 6), count=st.integers(1, 25))
def test_likelihood_and_gradient_are_those_of_scikit_learn(
    seed: int, dimensions: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    points, values = rng.random((count, dimensions)), rng.normal(size=count)
    variance, noise = float(rng.uniform(0.2, 3)), float(10 ** rng.uniform(-3, 0))
    scales = rng.uniform(0.2, 2, dimensions)
    scale = tuple(scales.tolist()) if dimensions > 1 else float(scales[0])
    ours, correlation = (
        (SquaredExponential(variance=variance, length_scale=scale), peer.RBF(scale)),
        (Matern52(variance=variance, length_scale=scale), peer.Matern(scale, nu=2.5)),
    )[seed % 2]
    theirs = peer.ConstantKernel(variance) * correlation + peer.WhiteKernel(noise)
    model = GaussianProcessRegressor(theirs, alpha=0.0, optimizer=None).fit(points, values)
    value, gradient = model.log_marginal_likelihood(theirs.theta, eval_gradient=True)
    found = likelihood(ours, points, values, variances=noise, mean=0.0)
    assert found.value == pytest.approx(value, abs=1e-8, rel=1e-10)
    np.testing.assert_allclose(found.gradient, gradient[:-1], atol=1e-8, rtol=1e-8)
    assert found.by_variances.sum() == pytest.approx(gradient[-1], abs=1e-8, rel=1e-8)


@settings(max_examples=50, deadline=None)
@given(seed=SEEDS)
def test_likelihood_with_many_noises_is_the_normal_density(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, values, variances = rng.random((12, 2)), rng.normal(size=12), rng.uniform(0.01, 1, 12)
    kernel = SquaredExponential() + Matern52(length_scale=0.3)
    law = stats.multivariate_normal(np.full(12, 0.7), kernel(points, points) + np.diag(variances))
    found = likelihood(kernel, points, values, variances=variances, mean=0.7)
    assert found.value == pytest.approx(law.logpdf(values), abs=1e-8)


@pytest.mark.parametrize("mean", [None, 0.4])
@pytest.mark.parametrize(
    "kernel",
    [
        SpaceTime(space=SquaredExponential(length_scale=(0.5, 0.7)), time=Forgetting(epsilon=0.2)),
        0.5 * (RationalQuadratic(alpha=0.7) + Constant(variance=2.0)),
    ],
    ids=repr,
)
def test_gradients_are_those_of_finite_differences(kernel: Kernel, mean: float | None) -> None:
    rng = np.random.default_rng(1)
    points, values = rng.random((15, 3)), rng.normal(size=15)
    log_variances = np.log(rng.uniform(0.05, 0.5, 15))

    def value(parameters: Values, logs: Values) -> float:
        other = kernel.with_log_parameters(parameters)
        return likelihood(other, points, values, variances=np.exp(logs), mean=mean).value

    here = likelihood(kernel, points, values, variances=np.exp(log_variances), mean=mean)
    start, step = kernel.log_parameters(), 1e-5
    by_parameters = [
        (value(start + shift, log_variances) - value(start - shift, log_variances)) / (2 * step)
        for shift in step * np.eye(len(start))
    ]
    by_variances = [
        (value(start, log_variances + shift) - value(start, log_variances - shift)) / (2 * step)
        for shift in step * np.eye(15)
    ]
    np.testing.assert_allclose(here.gradient, by_parameters, atol=1e-7)
    np.testing.assert_allclose(here.by_variances, by_variances, atol=1e-7)


def test_the_mean_that_is_left_open_is_the_most_likely() -> None:
    rng = np.random.default_rng(2)
    points, values = rng.random((20, 1)), 5 + rng.normal(size=20)
    best = likelihood(SquaredExponential(), points, values, variances=0.1)
    for shift in (-0.01, 0.01):
        moved = likelihood(
            SquaredExponential(), points, values, variances=0.1, mean=best.mean + shift
        )
        assert moved.value < best.value


@pytest.mark.parametrize("variance", [1e-300, 1e-18, 1e-12])
def test_likelihood_of_duplicates_without_noise_is_finite(variance: float) -> None:
    points = np.repeat(np.linspace(0, 1, 10), 3)[:, None]
    found = likelihood(SquaredExponential(), points, np.ones(30), variances=variance)
    assert np.isfinite(found.value)
    assert np.isfinite(found.gradient).all()
    assert found.mean == pytest.approx(1.0)


def test_fit_is_better_than_the_truth_and_than_scikit_learn() -> None:
    points = np.random.default_rng(3).uniform(0, 10, (60, 1))
    truth = SquaredExponential(variance=2.0, length_scale=1.5)
    values = drawn(truth, points, variance=0.01)
    found = fit(SquaredExponential(), points, values, mean=0.0, rng=np.random.default_rng(0))
    theirs = peer.ConstantKernel(1.0) * peer.RBF(1.0) + peer.WhiteKernel(0.01)
    model = GaussianProcessRegressor(theirs, n_restarts_optimizer=3, random_state=0)
    model.fit(points, values)
    true_value = likelihood(truth, points, values, variances=0.01, mean=0.0).value
    assert found.converged
    assert found.log_likelihood >= true_value
    assert found.log_likelihood >= model.log_marginal_likelihood_value_ - 1e-4
    assert found.noise_variance == pytest.approx(0.01, rel=0.5)
    assert found.kernel.parameters()["length_scale"] == pytest.approx(1.5, rel=0.3)


def test_fit_is_a_top_of_the_likelihood() -> None:
    points = np.random.default_rng(4).uniform(0, 5, (40, 2))
    truth = Matern52(variance=1.0, length_scale=(0.8, 2.0))
    variances = np.random.default_rng(5).uniform(0.01, 0.2, 40)
    values = drawn(truth, points, variance=0.05, mean=20.0)
    start = Matern52(length_scale=(1.0, 1.0))
    found = fit(start, points, values, variances=variances, rng=np.random.default_rng(0))
    top = likelihood(found.kernel, points, values, variances=variances)
    assert found.noise_variance is None
    assert found.log_likelihood == top.value
    assert found.mean == top.mean
    np.testing.assert_allclose(top.gradient, 0, atol=1e-2)


def test_fit_does_not_mind_where_zero_is() -> None:
    points = np.random.default_rng(6).uniform(0, 10, (40, 1))
    values = drawn(SquaredExponential(length_scale=1.5), points, variance=0.05)
    here = fit(SquaredExponential(), points, values, rng=np.random.default_rng(0))
    there = fit(SquaredExponential(), points, values + 100, rng=np.random.default_rng(0))
    assert there.mean - here.mean == pytest.approx(100, abs=1e-3)
    np.testing.assert_allclose(
        there.kernel.log_parameters(), here.kernel.log_parameters(), atol=1e-2
    )


def test_fit_finds_how_fast_a_reward_is_forgotten() -> None:
    rng = np.random.default_rng(7)
    times = np.arange(150.0)
    points = stamp(rng.random((150, 1)), times)
    space = SquaredExponential(length_scale=0.2)
    values = drawn(SpaceTime(space=space, time=Forgetting(epsilon=0.1)), points, variance=0.01)
    start = SpaceTime(space=space, time=Forgetting(epsilon=0.5))
    found = fit(
        start,
        points,
        values,
        variances=0.01,
        mean=0.0,
        fixed=["space.variance", "length_scale"],
        rng=rng,
        starts=2,
    )
    after = found.kernel.parameters()
    assert after["time.epsilon"] == pytest.approx(0.1, rel=0.5)
    assert (after["space.variance"], after["space.length_scale"]) == pytest.approx((1.0, 0.2))


def test_fit_stays_within_bounds_and_fixed_parameters() -> None:
    points = np.random.default_rng(8).uniform(0, 10, (30, 1))
    values = drawn(SquaredExponential(length_scale=3.0), points, variance=0.05)
    found = fit(
        SquaredExponential(variance=2.0),
        points,
        values,
        bounds={"length_scale": (0.1, 0.5), "noise_variance": (0.2, 0.3)},
        fixed=["variance"],
        rng=np.random.default_rng(0),
    )
    after = found.kernel.parameters()
    assert after["variance"] == pytest.approx(2.0)
    assert 0.1 <= after["length_scale"] <= 0.5 * (1 + 1e-12)
    assert found.noise_variance is not None
    assert 0.2 * (1 - 1e-12) <= found.noise_variance <= 0.3


def test_fit_with_all_fixed_only_finds_the_mean() -> None:
    kernel, points = SquaredExponential(), np.arange(6.0)[:, None]
    found = fit(
        kernel,
        points,
        np.full(6, 4.0),
        variances=0.1,
        fixed=["variance", "length_scale"],
        rng=np.random.default_rng(0),
    )
    assert found.mean == pytest.approx(4.0)
    assert found.converged
    np.testing.assert_allclose(found.kernel.log_parameters(), kernel.log_parameters())


@pytest.mark.parametrize(
    "prior", [Gamma(shape=200.0, rate=50.0), LogNormal(log_mean=np.log(4), log_std=0.05)], ids=repr
)
def test_a_prior_pulls_the_length_scale(prior: AnyPrior) -> None:
    points = np.random.default_rng(9).uniform(0, 10, (15, 1))
    values = drawn(SquaredExponential(length_scale=1.0), points, variance=0.05)
    free = fit(SquaredExponential(), points, values, rng=np.random.default_rng(0))
    bound = fit(
        SquaredExponential(),
        points,
        values,
        priors={"length_scale": prior},
        rng=np.random.default_rng(0),
    )
    pulled = bound.kernel.parameters()["length_scale"]
    assert abs(pulled - 4) < abs(free.kernel.parameters()["length_scale"] - 4)
    assert pulled == pytest.approx(4, rel=0.3)
    assert bound.log_likelihood < free.log_likelihood


def test_fits_from_equal_generators_are_equal() -> None:
    points = np.random.default_rng(10).random((20, 1))
    values = drawn(SquaredExponential(length_scale=0.2), points, variance=0.05)
    one, other = (
        fit(SquaredExponential(), points, values, rng=np.random.default_rng(4)) for _ in range(2)
    )
    assert one == other


@pytest.mark.parametrize("count", [1, 2, 10])
def test_equal_observations_are_fitted_without_complaint(count: int) -> None:
    found = fit(
        SquaredExponential(),
        np.full((count, 2), 0.3),
        np.full(count, 7.0),
        rng=np.random.default_rng(0),
    )
    assert found.mean == pytest.approx(7.0)
    assert np.isfinite(found.log_likelihood)


def test_bad_requests_are_refused() -> None:
    points, values, rng = np.zeros((3, 1)), np.zeros(3), np.random.default_rng(0)
    kernel = SquaredExponential()
    with pytest.raises(ValueError, match="no parameter is called 'lengthscale'"):
        fit(kernel, points, values, rng=rng, fixed=["lengthscale"])
    with pytest.raises(ValueError, match="bounds of length_scale from 0 to 1"):
        fit(kernel, points, values, rng=rng, bounds={"length_scale": (0, 1)})
    with pytest.raises(ValueError, match="starts is 0"):
        fit(kernel, points, values, rng=rng, starts=0)
    with pytest.raises(ValueError, match="noise variance of inf"):
        fit(kernel, points, values, rng=rng, variances=np.inf)
    with pytest.raises(ValueError, match="no parameter is called 'noise_variance'"):
        fit(kernel, points, values, rng=rng, variances=0.1, fixed=["noise_variance"])
    with pytest.raises(ValueError, match="give one value for each point"):
        likelihood(kernel, points, values[:2], variances=0.1)
    with pytest.raises(ValueError, match="no observations"):
        fit(kernel, np.empty((0, 1)), np.empty(0), rng=rng)
