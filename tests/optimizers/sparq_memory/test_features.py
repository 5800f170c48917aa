from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparq_sim import Box
from sparq_sim.arrays import Points, Values
from sparq_sim.gp.kernels import Kernel, Matern52, SquaredExponential
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures

LINE = Box(0.0, 1.0).grid(101)
SQUARE = Box([0.0, 0.0], [1.0, 2.0]).grid(15)
SMOOTH = SquaredExponential(variance=0.6, length_scale=0.2)
WIDE = SquaredExponential(variance=3.0, length_scale=(0.4, 0.8))
CASES = [(SMOOTH, LINE), (Matern52(variance=2.0, length_scale=0.5), LINE), (WIDE, SQUARE)]
SHARED = 0.25
"""The prior variance of the level, as a share of the kernel's."""
LEFT = 1e-3
"""The share of the variance that may be left unexplained."""


def weights_of(features: SpatialFeatures, values: Values) -> Values:
    """Return the weights, without that of the level, of the function with values at the anchors."""
    at_anchors = features.at(features.anchors)[:, :-1]
    weights: Values = np.linalg.pinv(at_anchors, rcond=1e-5) @ values
    return weights


@pytest.mark.parametrize(("kernel", "candidates"), CASES)
def test_products_of_features_are_the_kernel_and_a_level(
    kernel: Kernel, candidates: Points
) -> None:
    features = SpatialFeatures(kernel, candidates)
    variance = float(kernel.diagonal(candidates[:1])[0])
    at = features.at(candidates)
    assert at.shape == (len(candidates), features.rank)
    # What is left is a covariance itself, so that no element is larger than on the diagonal.
    assert_allclose(
        at @ at.T, kernel(candidates, candidates) + SHARED * variance, atol=1.01 * LEFT * variance
    )


@pytest.mark.parametrize(("kernel", "candidates"), CASES)
def test_what_features_leave_is_what_regression_on_the_anchors_leaves(
    kernel: Kernel, candidates: Points
) -> None:
    features = SpatialFeatures(kernel, candidates)
    off = (candidates[:-1] + candidates[1:]) / 2
    cross = kernel(off, features.anchors)
    block = kernel(features.anchors, features.anchors)
    explained = np.einsum("ij,ji->i", cross, np.linalg.solve(block, cross.T))
    left = features.unexplained(off, features.at(off))
    assert_allclose(left, kernel.diagonal(off) - explained, atol=1e-6)
    assert (left >= 0).all()


def test_a_rough_reward_has_many_features_but_not_more_than_81() -> None:
    rough = SpatialFeatures(SquaredExponential(length_scale=0.002), Box(0.0, 1.0).grid(501))
    assert rough.rank == 81
    assert SpatialFeatures(SMOOTH, LINE).rank < 15


@pytest.mark.parametrize(("kernel", "candidates"), CASES)
def test_slopes_are_the_derivatives_of_the_features(kernel: Kernel, candidates: Points) -> None:
    features = SpatialFeatures(kernel, candidates)
    for point in candidates[7::31] + 0.003:
        steps = 1e-6 * np.eye(len(point))
        numeric = (features.at(point + steps) - features.at(point - steps)) / 2e-6
        assert_allclose(features.slope(point), numeric, atol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "candidates"), [(SMOOTH, LINE), (WIDE, SQUARE)], ids=["line", "square"]
)
def test_the_weights_of_a_derivative_give_the_derivative(
    kernel: Kernel, candidates: Points
) -> None:
    features = SpatialFeatures(kernel, candidates)
    middle = candidates.mean(axis=0)
    scales = np.broadcast_to(kernel.length_scale, middle.shape)  # type: ignore[attr-defined] # both have one
    reach = np.ptp(candidates, axis=0)

    def hill(points: Points) -> Values:
        heights: Values = np.exp(-0.5 * (((points - middle) / scales) ** 2).sum(axis=1))
        return heights

    weights = weights_of(features, hill(features.anchors))
    inside = candidates[(np.abs(candidates - middle) < 0.3 * reach).all(axis=1)]
    for axis, derivative in enumerate(features.derivatives()):
        step = np.zeros(len(middle))
        step[axis] = 1e-5
        slope = (hill(inside + step) - hill(inside - step)) / 2e-5
        found = features.at(inside)[:, :-1] @ (derivative @ weights)
        assert_allclose(found, slope, atol=0.05 * np.abs(slope).max())


def test_a_reward_changes_over_its_length_scale() -> None:
    wide = Box([0.0, 0.0], [10.0, 10.0]).grid(41)
    kernel = SquaredExponential(length_scale=(2.0, 3.0))
    assert_allclose(SpatialFeatures(kernel, wide).lengths(), [2.0, 3.0], rtol=0.1)
    assert_allclose(SpatialFeatures(SMOOTH, LINE).lengths(), 0.2, rtol=0.1)


def test_the_level_is_the_same_everywhere() -> None:
    features = SpatialFeatures(SMOOTH, LINE)
    assert_allclose(features.at(LINE)[:, -1], sqrt(SHARED * 0.6))
    assert_allclose(features.slope(np.array([0.3]))[:, -1], 0.0)
