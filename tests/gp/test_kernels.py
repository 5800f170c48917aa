"""Kernels agree with scikit-learn, with finite differences and with what they say in TOML."""

import pickle
import tomllib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from sklearn.gaussian_process import kernels as peer

from sparq_sim.gp.kernels import (
    AnyKernel,
    Constant,
    Forgetting,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Product,
    RationalQuadratic,
    SpaceTime,
    SquaredExponential,
    Sum,
    Wiener,
    lowest_eigenvalue,
    stamp,
)

ANY: TypeAdapter[AnyKernel] = TypeAdapter(AnyKernel)
STATIONARY: tuple[Kernel, ...] = (
    SquaredExponential(variance=0.7, length_scale=1.3),
    SquaredExponential(variance=0.7, length_scale=(0.5, 2.0, 1.1)),
    Matern12(variance=2.0, length_scale=(0.5, 2.0, 1.1)),
    Matern32(variance=2.0, length_scale=0.8),
    Matern52(variance=0.2, length_scale=(0.5, 2.0, 1.1)),
    RationalQuadratic(variance=1.4, length_scale=0.6, alpha=0.8),
    RationalQuadratic(variance=1.4, length_scale=(0.5, 2.0, 1.1), alpha=2.5),
)
SPACE = SquaredExponential(length_scale=(0.5, 2.0))
COMPOSED: tuple[Kernel, ...] = (
    SquaredExponential(length_scale=0.9) + 0.3 * Matern32(),
    SquaredExponential() * Matern52(length_scale=2.0) * RationalQuadratic(alpha=0.5),
    2.0 * (Matern52() + Constant(variance=0.4)) * SquaredExponential(),
    SpaceTime(space=SPACE, time=SquaredExponential(length_scale=0.7)),
    SpaceTime(space=SPACE, time=Matern32()),
    SpaceTime(space=SPACE, time=Matern12(kind="ornstein-uhlenbeck", length_scale=2.0)),
    SpaceTime(space=SPACE, time=Forgetting(epsilon=0.2)),
    SpaceTime(space=SPACE, time=Wiener(rate=0.3)),
)
EVERY = pytest.mark.parametrize("kernel", STATIONARY + COMPOSED, ids=repr)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    dimensions=st.integers(1, 6),
    each=st.booleans(),
    log_scale=st.floats(-2, 2),
)
def test_kernels_are_those_of_scikit_learn(
    seed: int, dimensions: int, each: bool, log_scale: float
) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(7, dimensions)), rng.normal(size=(5, dimensions))
    scales = np.exp(log_scale + rng.normal(size=dimensions))
    scale = tuple(scales.tolist()) if each else float(scales[0])
    single = float(scales[0])
    for ours, theirs in (
        (SquaredExponential(length_scale=scale), peer.RBF(scale)),
        (Matern12(length_scale=scale), peer.Matern(scale, nu=0.5)),
        (Matern32(length_scale=scale), peer.Matern(scale, nu=1.5)),
        (Matern52(length_scale=scale), peer.Matern(scale, nu=2.5)),
        (
            RationalQuadratic(length_scale=single, alpha=0.7),
            peer.RationalQuadratic(length_scale=single, alpha=0.7),
        ),
    ):
        np.testing.assert_allclose(ours(a, b), theirs(a, b), rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose((3.0 * ours).diagonal(a), np.diagonal(3 * theirs(a, a)))


@EVERY
def test_diagonal_is_that_of_the_matrix(kernel: Kernel) -> None:
    points = np.random.default_rng(1).random((6, 3))
    np.testing.assert_allclose(kernel.diagonal(points), np.diagonal(kernel(points, points)))


@EVERY
def test_matrix_is_symmetric_and_positive(kernel: Kernel) -> None:
    points = np.random.default_rng(2).random((20, 3))
    matrix = kernel(points, points)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > -1e-12


@EVERY
def test_gradient_is_that_of_finite_differences(kernel: Kernel) -> None:
    rng = np.random.default_rng(3)
    point, points = rng.random(3), rng.random((8, 3))
    step = 1e-5
    for axis, shift in enumerate(step * np.eye(3)):
        difference = kernel((point + shift)[None], points) - kernel((point - shift)[None], points)
        gradient = kernel.gradient(point, points)[:, axis]
        np.testing.assert_allclose(gradient, difference[0] / (2 * step), atol=1e-8)


@EVERY
def test_derivatives_are_those_of_finite_differences(kernel: Kernel) -> None:
    points = np.random.default_rng(4).random((8, 3))
    start, step = kernel.log_parameters(), 1e-5
    derivatives = kernel.derivatives(points)
    assert len(derivatives) == len(start)
    for derivative, shift in zip(derivatives, step * np.eye(len(start)), strict=True):
        above = kernel.with_log_parameters(start + shift)(points, points)
        below = kernel.with_log_parameters(start - shift)(points, points)
        np.testing.assert_allclose(derivative, (above - below) / (2 * step), atol=1e-8)


def test_gradient_at_the_point_itself_is_half_that_of_the_prior_variance() -> None:
    kernel = SpaceTime(space=Matern12(), time=Wiener(rate=0.3))
    point = np.array([0.2, 5.0])
    np.testing.assert_allclose(kernel.gradient(point, point[None]), [[0.0, 0.15]])


def test_sums_products_and_factors_are_those_of_matrices() -> None:
    points = np.random.default_rng(5).random((4, 2))
    a, b = SquaredExponential(), Matern32(variance=0.5)
    np.testing.assert_allclose((a + b)(points, points), a(points, points) + b(points, points))
    np.testing.assert_allclose((a * b)(points, points), a(points, points) * b(points, points))
    for scaled in (2.0 * (a + b), (a + b) * 2.0):
        np.testing.assert_allclose(scaled(points, points), 2 * (a + b)(points, points))


def test_factor_joins_the_variance_and_long_sums_stay_flat() -> None:
    a = SquaredExponential(variance=3.0)
    assert 2.0 * a == SquaredExponential(variance=6.0)
    assert 2.0 * Constant() == Constant(variance=2.0)
    assert a + a + a == Sum(parts=(a, a, a))
    assert a * (a * a) == Product(parts=(a, a, a))


def test_forgetting_is_an_ornstein_uhlenbeck_process() -> None:
    times = np.arange(5.0)[:, None]
    same = Matern12(kind="ornstein-uhlenbeck", length_scale=-2 / np.log(1 - 0.1))
    np.testing.assert_allclose(Forgetting(epsilon=0.1)(times, times), same(times, times))


def test_wiener_is_that_of_uncertainty_injection() -> None:
    times = np.arange(5.0)[:, None]
    start = -1 / 0.03  # c0 of Brunzema et al. 2022
    expected = 0.03 * (np.minimum.outer(times[:, 0], times[:, 0]) - start)
    np.testing.assert_allclose(Wiener(rate=0.03)(times, times), expected)


def test_space_and_time_multiply() -> None:
    rng = np.random.default_rng(6)
    points, times = rng.random((4, 2)), rng.random(4)
    kernel = SpaceTime(space=SPACE, time=Forgetting(epsilon=0.2))
    expected = SPACE(points, points) * Forgetting(epsilon=0.2)(times[:, None], np.full((4, 1), 2.0))
    np.testing.assert_allclose(kernel(stamp(points, times), stamp(points, 2.0)), expected)


def test_kernel_is_written_in_toml() -> None:
    text = """
    kind = "space-time"
    time = { kind = "forgetting", epsilon = 0.03 }
    [space]
    kind = "sum"
    parts = [
        { kind = "squared-exponential", variance = 2, length_scale = [1, 0.5] },
        { kind = "matern-5/2" },
    ]
    """
    space = SquaredExponential(variance=2.0, length_scale=(1.0, 0.5)) + Matern52()
    assert ANY.validate_python(tomllib.loads(text)) == SpaceTime(
        space=space, time=Forgetting(epsilon=0.03)
    )


@EVERY
def test_kernel_survives_writing_pickling_and_hashing(kernel: Kernel) -> None:
    assert ANY.validate_json(kernel.model_dump_json()) == kernel
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel
    assert hash(again) == hash(kernel)


@EVERY
def test_log_parameters_give_the_kernel_back(kernel: Kernel) -> None:
    again = kernel.with_log_parameters(kernel.log_parameters())
    np.testing.assert_allclose(
        list(again.parameters().values()), list(kernel.parameters().values())
    )
    assert list(again.parameters()) == list(kernel.parameters())


def test_parameters_go_by_their_path() -> None:
    kernel = SpaceTime(space=SPACE, time=Forgetting(epsilon=0.2)) + Constant(variance=3.0)
    assert kernel.parameters() == {
        "parts.0.space.variance": 1.0,
        "parts.0.space.length_scale.0": 0.5,
        "parts.0.space.length_scale.1": 2.0,
        "parts.0.time.epsilon": 0.2,
        "parts.1.variance": 3.0,
    }


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_parameters_are_positive_and_finite(bad: float) -> None:
    with pytest.raises(ValidationError, match="variance"):
        SquaredExponential(variance=bad)
    with pytest.raises(ValidationError, match="length_scale"):
        SquaredExponential(length_scale=(1.0, bad))
    with pytest.raises(ValidationError, match="epsilon"):
        Forgetting(epsilon=bad)


def test_bad_kernels_and_points_are_refused() -> None:
    points = np.zeros((2, 3))
    with pytest.raises(ValidationError, match="cubic"):
        ANY.validate_python({"kind": "cubic"})
    with pytest.raises(ValidationError, match="lengthscale"):
        ANY.validate_python({"kind": "matern-3/2", "lengthscale": 2.0})
    with pytest.raises(ValueError, match="2 entries and the points have 3 coordinates"):
        SPACE(points, points)
    with pytest.raises(ValueError, match="use it as the time of a SpaceTime"):
        Forgetting(epsilon=0.1)(points, points)
    with pytest.raises(ValueError, match=r"-1\.0: count times from the start"):
        Wiener(rate=0.1).diagonal(np.array([[-1.0]]))
    with pytest.raises(ValueError, match="1 log-parameters for a kernel with 2"):
        SquaredExponential().with_log_parameters(np.zeros(1))


def test_a_lowest_eigenvalue_that_is_rounding_is_none() -> None:
    assert lowest_eigenvalue(np.array([[1.0, 1.0], [1.0, 1.0 - 1e-12]])) == 0.0
    assert lowest_eigenvalue(np.array([[1.0, 1.0], [1.0, 1.0 - 1e-6]])) < 0.0
    assert lowest_eigenvalue(np.array([[1.0, 1.0], [1.0, 2.0]])) > 0.0
