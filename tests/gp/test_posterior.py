"""Posteriors agree with scikit-learn and the closed form, whatever was added or removed."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer

from sparq_sim.arrays import Points
from sparq_sim.gp.kernels import (
    Kernel,
    Matern12,
    Matern52,
    RationalQuadratic,
    SpaceTime,
    SquaredExponential,
    Wiener,
)
from sparq_sim.gp.posterior import (
    CholeskyPosterior,
    FeaturePosterior,
    Posterior,
    make_posterior,
)
from tests.gp.posterior.reference import MEAN, assert_exact, by_cholesky, by_features

Make = Callable[[Kernel, Points], Posterior]


BOTH = pytest.mark.parametrize("make", [by_cholesky, by_features])
SEEDS = st.integers(0, 2**32 - 1)


@BOTH
@settings(max_examples=200, deadline=None)
@given(seed=SEEDS, dimensions=st.integers(1, 6), count=st.integers(1, 40))
def test_predictions_are_those_of_scikit_learn(
    make: Make, seed: int, dimensions: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    candidates = rng.random((50, dimensions))
    scale = float(rng.uniform(0.3, 2.0))
    kernel, theirs = (
        (SquaredExponential(length_scale=scale), peer.RBF(scale)),
        (Matern52(length_scale=scale), peer.Matern(scale, nu=2.5)),
        (Matern12(length_scale=scale), peer.Matern(scale, nu=0.5)),
        (RationalQuadratic(length_scale=scale), peer.RationalQuadratic(scale, 1.0)),
    )[seed % 4]
    points = candidates[rng.integers(0, 50, count)]
    values = rng.normal(size=count)
    variances = 10 ** rng.uniform(-2, 0, count)
    gp = make(kernel, candidates)
    gp.add(points, values, variances=variances)
    model = GaussianProcessRegressor(theirs, alpha=variances, optimizer=None)
    mean, std = model.fit(points, values - MEAN).predict(candidates, return_std=True)
    np.testing.assert_allclose(gp.mean(), mean + MEAN, atol=1e-8)
    np.testing.assert_allclose(gp.std(), std, atol=1e-8)


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS, dimensions=st.integers(1, 6), changes=st.lists(st.integers(0, 6), max_size=25))
def test_changes_leave_what_remains_exact(seed: int, dimensions: int, changes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    candidates = rng.random((30, dimensions))
    kernel = SquaredExponential(variance=0.8, length_scale=0.6)
    pair = [by_cholesky(kernel, candidates), by_features(kernel, candidates)]
    for change in changes:
        count = len(pair[0])
        position = int(rng.integers(0, max(count, 1)))
        several = rng.permutation(count)[:3]
        size = int(rng.choice([1, 1, 2, 20]))
        points = candidates[rng.integers(0, 30, size)]
        values, variances = rng.normal(size=size), 10 ** rng.uniform(-2, 0, size)
        ageing = 1 + rng.random(count)
        for gp in pair:
            match change:
                case 0 | 1 | 2:
                    gp.add(points, values, variances=variances)
                case 3 if count:
                    gp.replace(position, values[0], variance=variances[0])
                case 4 if count:
                    gp.remove(several)
                case 5:
                    gp.set_variances(gp.observations.variances * ageing)
                case _:
                    gp.mean()
    cholesky, features = pair
    for gp in pair:
        assert_exact(gp, rng.random((5, dimensions)))
    np.testing.assert_allclose(features.mean(), cholesky.mean(), atol=1e-9)
    np.testing.assert_allclose(features.std(), cholesky.std(), atol=1e-9)
    assert features.log_determinant == pytest.approx(cholesky.log_determinant, abs=1e-9)


def test_cholesky_takes_points_that_are_no_candidates() -> None:
    rng = np.random.default_rng(1)
    gp = by_cholesky(Matern52(length_scale=0.4), rng.random((20, 2)))
    for _ in range(30):
        gp.add(rng.random(2), rng.normal(), variances=0.1)
        gp.mean()
    gp.add(rng.random((40, 2)), rng.normal(size=40), variances=0.2)
    assert_exact(gp, rng.random((5, 2)))


@BOTH
@pytest.mark.parametrize("kernel", [SquaredExponential(length_scale=0.4), Matern52()], ids=repr)
def test_gradients_are_those_of_finite_differences(make: Make, kernel: Kernel) -> None:
    rng = np.random.default_rng(2)
    candidates = rng.random((20, 3))
    gp = make(kernel, candidates)
    point, step = rng.random(3), 1e-5
    for _ in range(2):
        mean_gradient, std_gradient = gp.mean_gradient(point), gp.std_gradient(point)
        for axis, shift in enumerate(step * np.eye(3)):
            around = np.array([point + shift, point - shift])
            rise, widening = gp.mean(around), gp.std(around)
            assert mean_gradient[axis] == pytest.approx((rise[0] - rise[1]) / (2 * step), abs=1e-8)
            slope = (widening[0] - widening[1]) / (2 * step)
            assert std_gradient[axis] == pytest.approx(slope, abs=1e-8)
        gp.add(candidates[:10], rng.normal(size=10), variances=0.05)


def test_gradient_of_std_counts_a_prior_that_widens() -> None:
    gp = CholeskyPosterior(SpaceTime(space=SquaredExponential(), time=Wiener(rate=0.2)))
    gp.add([[0.0, 1.0], [0.5, 2.0]], [1.0, 2.0], variances=0.1)
    point, step = np.array([0.3, 3.0]), 1e-6
    later, sooner = gp.std([[0.3, 3.0 + step], [0.3, 3.0 - step]])
    assert gp.std_gradient(point)[1] == pytest.approx((later - sooner) / (2 * step), abs=1e-7)


@BOTH
def test_many_rounds_with_one_noise_stay_exact(make: Make) -> None:
    rng = np.random.default_rng(3)
    candidates = np.linspace(-50, 50, 200)[:, None]
    gp = make(SquaredExponential(length_scale=3.16), candidates)
    for round_ in range(1, 601):
        place = int(np.argmax(gp.mean() + np.sqrt(0.8 * np.log(4 * round_)) * gp.std()))
        gp.add(
            candidates[place],
            np.cos(0.2 * candidates[place, 0]) + rng.normal(0, 0.1),
            variances=0.01,
        )
    assert_exact(gp, np.array([[0.05], [17.3]]), tolerance=1e-10)


@BOTH
def test_ageing_every_round_stays_exact(make: Make) -> None:
    rng = np.random.default_rng(4)
    candidates = np.linspace(-50, 50, 150)[:, None]
    gp = make(SquaredExponential(length_scale=3.16), candidates)
    for round_ in range(120):
        gp.add(candidates[rng.integers(150)], rng.normal(), variances=0.01)
        gp.set_variances(0.01 * (1.0 + np.arange(round_ + 1)[::-1] ** 2))
        gp.mean()
    assert_exact(gp, np.array([[0.05]]), tolerance=1e-10)


@BOTH
@pytest.mark.parametrize("window", [5, 11, 60])
@pytest.mark.parametrize("variance", [0.5, 0.01])
def test_a_window_that_moves_on_stays_exact(make: Make, window: int, variance: float) -> None:
    rng = np.random.default_rng(5)
    candidates = np.linspace(-50, 50, 150)[:, None]
    gp = make(SquaredExponential(length_scale=3.16), candidates)
    for _ in range(300):
        # Now here, now there, so that neighbours are taken out too.
        place = rng.integers(150) if rng.random() < 0.5 else rng.integers(70, 75)
        gp.add(candidates[place], rng.normal(), variances=variance)
        if len(gp) > window:
            gp.remove(0)
        gp.mean()
    assert_exact(gp, np.array([[0.05]]), tolerance=1e-9)


@BOTH
@pytest.mark.parametrize("variance", [0.01, 1e-4])
def test_a_window_that_leaves_one_place_stays_exact(make: Make, variance: float) -> None:
    rng = np.random.default_rng(7)
    candidates = np.linspace(-50, 50, 150)[:, None]
    gp = make(SquaredExponential(length_scale=3.16), candidates)
    for round_ in range(300):
        place = 70 + rng.integers(2) if round_ < 150 else rng.integers(150)
        gp.add(candidates[place], rng.normal(), variances=variance)
        if len(gp) > 150:
            gp.remove(0)
        gp.mean()
    assert_exact(gp, np.array([[0.05]]), tolerance=1e-9)


@BOTH
@pytest.mark.parametrize("gone", [[2, 2], [2, -19], [], [0, 1], -1, [True] + [False] * 20])
@pytest.mark.parametrize("pending", [False, True])
def test_whatever_is_taken_out_the_rest_is_exact(
    make: Make, gone: int | list[int], pending: bool
) -> None:
    rng = np.random.default_rng(8)
    candidates = np.linspace(-50, 50, 150)[:, None]
    gp = make(SquaredExponential(length_scale=3.16), candidates)
    gp.add(candidates[rng.integers(150, size=20)], rng.normal(size=20), variances=0.1)
    gp.mean()
    gp.add(candidates[3], 0.7, variances=0.1)
    if not pending:
        gp.mean()
        gp.mean(candidates[:1] + 0.1)  # Known anywhere, too.
    gp.remove(gone)
    assert_exact(gp, np.array([[0.05]]), tolerance=1e-10)


@BOTH
def test_the_same_places_with_other_values_are_told_apart(make: Make) -> None:
    rng = np.random.default_rng(6)
    candidates = np.linspace(-50, 50, 150)[:, None]
    gp = make(SquaredExponential(length_scale=3.16), candidates)
    places = rng.permutation(150)
    asked, elsewhere = candidates[places[:20]], candidates[places[20:40]]
    for variance in (0.01, 0.01, 0.02, 0.01, 0.01):
        if len(gp):
            gp.remove(slice(None))
        gp.add(asked, rng.normal(size=20), variances=variance)
        own = candidates[rng.integers(150, size=2)]
        gp.add(own, rng.normal(size=2), variances=0.01)
        assert_exact(gp, np.array([[0.05]]), tolerance=1e-10)
    gp.remove(slice(None))
    gp.add(elsewhere, rng.normal(size=20), variances=0.01)
    assert_exact(gp, np.array([[0.05]]), tolerance=1e-10)


@BOTH
def test_changing_the_newest_observations_keeps_the_rest(make: Make) -> None:
    rng = np.random.default_rng(5)
    candidates = rng.random((40, 1))
    gp = make(SquaredExponential(length_scale=0.2), candidates)
    gp.add(candidates[:30], rng.normal(size=30), variances=0.1)
    gp.mean()
    gp.replace(-1, 3.0, variance=0.5)
    gp.add(candidates[30], 1.0, variances=0.2)
    assert gp.observations.values[-2] == 3.0
    assert_exact(gp, candidates[:3])
    gp.remove(slice(25, None))
    assert len(gp) == 25
    assert_exact(gp, candidates[:3])


@BOTH
def test_without_observations_the_prior_remains(make: Make) -> None:
    candidates = np.random.default_rng(6).random((10, 2))
    gp = make(SquaredExponential(variance=4.0), candidates)
    gp.set_variances([])
    for _ in range(2):
        assert_exact(gp, candidates[:2] + 1)
        np.testing.assert_array_equal(gp.mean_gradient(candidates[0]), [0, 0])
        np.testing.assert_array_equal(gp.std_gradient(candidates[0]), [0, 0])
        gp.add(candidates[0], 1.0, variances=0.1)
        gp.remove(0)


@BOTH
@pytest.mark.parametrize("variance", [1e-300, 1e-30, 1e-16, 1e-12, 1e-8, 1.0, 1e300])
def test_the_same_observation_many_times_breaks_nothing(make: Make, variance: float) -> None:
    candidates = np.linspace(0, 1, 50)[:, None]
    gp = make(SquaredExponential(length_scale=0.3), candidates)
    for _ in range(5):
        gp.add(candidates[7], 2.0, variances=variance)
        gp.mean()
    gp.add(np.repeat(candidates[[7, 8]], 10, axis=0), np.full(20, 2.0), variances=variance)
    assert np.isfinite(gp.mean()).all()
    assert np.isfinite(gp.log_determinant)
    assert (gp.std() >= 0).all()
    assert (gp.std() <= 1 + 1e-12).all()
    assert np.isfinite(gp.std_gradient(candidates[7])).all()
    if variance < 1:
        assert gp.mean()[7] == pytest.approx(2.0, abs=1e-6)
        assert gp.std()[7] == pytest.approx(0.0, abs=1e-4)


@BOTH
@pytest.mark.parametrize("variance", [1e-300, 1e-14, 1e-10])
def test_nearly_exact_observations_are_interpolated(make: Make, variance: float) -> None:
    candidates = np.linspace(0, 10, 400)[:, None]
    gp = make(SquaredExponential(), candidates)
    gp.add(candidates[::2], np.sin(candidates[::2, 0]), variances=variance)
    np.testing.assert_allclose(gp.mean(), np.sin(candidates[:, 0]), atol=1e-4)
    assert gp.std().max() < 1e-3


def test_predictions_are_copies() -> None:
    candidates = np.linspace(0, 1, 20)[:, None]
    for gp in (
        by_cholesky(SquaredExponential(), candidates),
        by_features(SquaredExponential(), candidates),
    ):
        gp.mean()[:] = 7
        gp.std()[:] = 7
        np.testing.assert_array_equal(gp.mean(), np.full(20, MEAN))
        np.testing.assert_array_equal(gp.std(), np.ones(20))


def test_the_cheaper_way_is_chosen() -> None:
    grid = np.linspace(-50, 50, 600)[:, None]
    assert isinstance(make_posterior(SquaredExponential()), CholeskyPosterior)
    assert isinstance(make_posterior(SquaredExponential(), candidates=grid), FeaturePosterior)
    assert isinstance(make_posterior(Matern12(), candidates=grid), CholeskyPosterior)
    assert isinstance(make_posterior(Matern12(), candidates=grid[:100]), FeaturePosterior)


@BOTH
@pytest.mark.parametrize("count", [20, 80])
@pytest.mark.parametrize("variance", [0.1, 1e-5])
def test_one_observation_follows_a_batch(make: Make, count: int, variance: float) -> None:
    rng = np.random.default_rng(7)
    candidates = np.linspace(0, 10, 100)[:, None]
    gp = make(SquaredExponential(length_scale=0.8), candidates)  # of rank 40
    places = rng.permutation(100)[:count]
    gp.add(candidates[places], np.sin(candidates[places, 0]), variances=variance)
    gp.mean()
    gp.add(candidates[0], 0.1, variances=0.05)
    assert_exact(gp, np.array([[0.05], [7.0]]))


@BOTH
@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_a_bad_variance_is_named_with_the_remedy(make: Make, bad: float) -> None:
    candidates = np.linspace(0, 1, 5)[:, None]
    gp = make(SquaredExponential(), candidates)
    gp.add(candidates, np.zeros(5), variances=0.1)
    before = gp.mean()
    with pytest.raises(ValueError, match=rf"noise variance of {bad}: .*Leave an observation"):
        gp.add(candidates[:2], [1.0, 1.0], variances=[0.1, bad])
    with pytest.raises(ValueError, match=f"noise variance of {bad}"):
        gp.replace(0, 1.0, variance=bad)
    with pytest.raises(ValueError, match=f"noise variance of {bad}"):
        gp.set_variances(bad)
    np.testing.assert_array_equal(gp.mean(), before)


@BOTH
def test_bad_observations_are_refused(make: Make) -> None:
    candidates = np.linspace(0, 1, 5)[:, None]
    gp = make(SquaredExponential(), candidates)
    with pytest.raises(ValueError, match="a value of nan: leave the observation out"):
        gp.add(candidates[0], np.nan, variances=0.1)
    with pytest.raises(ValueError, match="a point is not finite"):
        gp.add([[np.inf]], [0.0], variances=0.1)
    with pytest.raises(ValueError, match=r"give \(n, d\)"):
        gp.add(np.zeros((1, 1, 1)), [0.0], variances=0.1)
    with pytest.raises(ValueError, match=r"values of shape \(2,\) for 1 points"):
        gp.add(candidates[0], [0.0, 1.0], variances=0.1)
    with pytest.raises(ValueError, match=r"variances of shape \(2,\) for 1 observations"):
        gp.add(candidates[0], 0.0, variances=[0.1, 0.1])
    with pytest.raises(ValueError, match="points of 2 coordinates, but the candidates have 1"):
        gp.add([[0.0, 0.0]], [0.0], variances=0.1)
    with pytest.raises(IndexError):
        gp.remove(0)
    with pytest.raises(IndexError):
        gp.replace(0, 1.0, variance=0.1)
    assert len(gp) == 0


def test_no_candidates_and_no_mean_are_refused() -> None:
    for empty in (np.empty((0, 1)), np.empty(0)):
        with pytest.raises(ValueError, match="there are no candidates"):
            make_posterior(SquaredExponential(), candidates=empty)
    with pytest.raises(ValueError, match="a prior mean of nan"):
        make_posterior(SquaredExponential(), mean=np.nan)


@BOTH
def test_adding_nothing_changes_nothing(make: Make) -> None:
    gp = make(SquaredExponential(), np.zeros((1, 2)))
    gp.add(np.empty((0, 2)), [], variances=[])
    gp.remove([])
    assert len(gp) == 0
    assert gp.mean() == MEAN
