"""The average over the grid is that of the normal law, and any few observations have one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from sparq_sim.gp.grid_fit import LENGTHS, TIME_SCALES, VARIANCES, GridFit, find_scale, fit_on_grid
from sparq_sim.gp.kernels import SquaredExponential

SEEDS = st.integers(0, 2**32 - 1)


def normal(steps: int, width: float) -> np.ndarray:
    return np.exp(-0.5 * np.linspace(-width, width, steps) ** 2)


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, dimensions=st.integers(1, 3), count=st.integers(2, 8))
@pytest.mark.parametrize("mean", [None, 0.7])
def test_weights_are_likelihood_times_prior(
    mean: float | None, seed: int, dimensions: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    reach = rng.uniform(1, 50, dimensions)
    points = rng.random((count, dimensions)) * reach
    times, values = np.sort(rng.uniform(0, 40, count)), 3 + rng.normal(size=count)
    variances = rng.uniform(0.01, 0.5, count)
    found = fit_on_grid(points, values, times=times, variances=variances, reach=reach, mean=mean)
    odds = np.ones(found.weights.shape)
    means = np.full(odds.shape, 0.0 if mean is None else mean)
    for place in np.ndindex(*odds.shape):
        scales = LENGTHS[place[0]] * np.sqrt(dimensions) * reach
        scale = tuple(scales.tolist()) if dimensions > 1 else float(scales[0])
        variance = VARIANCES[place[2]] * find_scale(values)
        kernel = SquaredExponential(variance=variance, length_scale=scale)
        kept = np.exp(-np.abs(times[:, None] - times) / TIME_SCALES[place[1]])
        covariance = kernel(points, points) * kept + np.diag(variances)
        if mean is None:
            # All means are alike: the normal law over contrasts with 1 says the rest.
            precision = np.linalg.inv(covariance)
            total = precision.sum()
            means[place] = precision.sum(axis=0) @ values / total
            odds[place] = np.sqrt(2 * np.pi / total)
        odds[place] *= multivariate_normal.pdf(
            values, np.full(count, means[place]), covariance, allow_singular=False
        )
    odds *= normal(11, 2.2)[:, None, None] * normal(17, 3.4)
    odds /= odds.sum()
    np.testing.assert_allclose(found.weights, odds, atol=1e-8)
    assert found.mean == pytest.approx((odds * means).sum())


def test_length_variance_and_mean_of_a_changing_reward_are_found() -> None:
    times, reach = np.arange(64.0), np.array([20.0])
    kernel = SquaredExponential(variance=0.5, length_scale=2.0)
    fits = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        points = rng.random((64, 1)) * reach
        covariance = kernel(points, points) * np.exp(-np.abs(times[:, None] - times) / 50)
        values = 4 + np.linalg.cholesky(covariance + 1e-4 * np.eye(64)) @ rng.normal(size=64)
        fits.append(
            fit_on_grid(points, values, times=times, variances=np.full(64, 1e-4), reach=reach)
        )
    parameters = [[*each.kernel.parameters().values()] for each in fits]
    np.testing.assert_allclose(np.exp(np.log(parameters).mean(axis=0)), [0.5, 2.0], rtol=0.25)
    assert np.mean([each.mean for each in fits]) == pytest.approx(4.0, abs=0.25)
    likely = [TIME_SCALES[each.weights.sum(axis=(0, 2)).argmax()] for each in fits]
    assert np.median(likely) == 50


HARMLESS = st.floats(-1e6, 1e6)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.0, 0.3, 1.0]), HARMLESS, st.integers(0, 3)), min_size=1
    ),
    noise=st.sampled_from([0.0, 1e-3, 1e9]),
)
def test_whatever_is_observed_something_finite_is_found(
    rows: list[tuple[float, float, int]], noise: float
) -> None:
    places, values, times = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    variances = np.maximum(np.full(len(rows), noise), 1e-6 * find_scale(values))
    found = fit_on_grid(places[:, None], values, times=times, variances=variances, reach=np.ones(1))
    check_finite(found)


@pytest.mark.parametrize("value", [0.0, 5.0, -1e-9])
def test_equal_values_have_a_kernel(value: float) -> None:
    values = np.full(8, value)
    variances = np.full(8, 1e-6 * find_scale(values))
    found = fit_on_grid(
        np.zeros((8, 2)), values, times=np.zeros(8), variances=variances, reach=np.ones(2)
    )
    check_finite(found)
    assert found.mean == pytest.approx(value)


def check_finite(found: GridFit) -> None:
    assert np.isfinite(found.weights).all()
    assert found.weights.sum() == pytest.approx(1.0)
    assert np.isfinite([found.mean, *found.kernel.parameters().values()]).all()


def test_matrices_that_divide_and_conquer_gives_up_on_are_decomposed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    points, times = rng.random((12, 2)), np.arange(12.0)
    values, noise = rng.normal(size=12), np.full(12, 0.01)

    def fit() -> GridFit:
        return fit_on_grid(points, values, times=times, variances=noise, reach=np.ones(2))

    usual = fit()

    def give_up(_: object) -> None:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", give_up)
    np.testing.assert_allclose(fit().weights, usual.weights, atol=1e-9)
    assert fit().mean == pytest.approx(usual.mean)
