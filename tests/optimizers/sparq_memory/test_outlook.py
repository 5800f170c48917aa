from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparq_sim import Box
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.sparq_memory.bank import Bank
from sparq_sim.optimizers.sparq_memory.carried import Currents
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.members import MEMBERS
from sparq_sim.optimizers.sparq_memory.outlook import Coverage, Hope, Outlook, Places

CANDIDATES = Box([0.0, 0.0], [1.0, 1.0]).grid(11)
KERNEL = SquaredExponential(variance=0.5, length_scale=0.4)
FEATURES = SpatialFeatures(KERNEL, CANDIDATES)
PLACES = Places(FEATURES, CANDIDATES)
MEAN, NOISE = 2.0, 0.01
SEEN = np.array([[0.2, 0.3], [0.7, 0.6], [0.9, 0.1]])
POINTS = [np.array([0.31, 0.47]), np.array([0.72, 0.58]), np.array([0.05, 0.93])]


def outlook(*, seen: bool = True) -> Outlook:
    """Return what is believed after three values, or none."""
    currents = Currents.of(FEATURES)
    bank = Bank([each.start(FEATURES, currents) for each in MEMBERS])
    if seen:
        bank.learn(FEATURES.at(SEEN), np.array([0.5, -0.3, 0.8]), np.full(3, NOISE))
    return Outlook(bank.foresee(measured=0.0, used=0.0), PLACES, MEAN)


def covered() -> Coverage:
    coverage = Coverage(PLACES, NOISE)
    for point in SEEN:
        coverage.add(point)
    return coverage


def slope(function: Callable[[Points], Values], point: Point) -> Point:
    """Return the derivatives of a function at a point, by differences."""
    steps = 1e-6 * np.eye(len(point))
    derivatives: Point = (function(point + steps) - function(point - steps)) / 2e-6
    return derivatives


def test_before_any_value_the_prior_is_believed() -> None:
    prior = outlook(seen=False)
    assert_allclose(prior.mean(), MEAN)
    # The kernel's variance, and a quarter of it for the level.
    assert_allclose(prior.std() ** 2, 1.25 * 0.5, rtol=1e-6)
    assert prior.log_determinant == pytest.approx(0.0, abs=1e-9)


def test_candidates_are_predicted_as_any_other_points() -> None:
    one = outlook()
    assert_allclose(one.mean(), one.mean(CANDIDATES), atol=1e-12)
    assert_allclose(one.std(), one.std(CANDIDATES), atol=1e-12)


def test_what_was_seen_is_believed() -> None:
    one = outlook()
    assert_allclose(one.mean(SEEN) - MEAN, [0.5, -0.3, 0.8], atol=0.05)
    assert (one.std(SEEN) < 0.12).all()
    assert one.log_determinant > 1.0


@pytest.mark.parametrize("point", POINTS)
def test_gradients_of_an_outlook_are_derivatives(point: Point) -> None:
    one = outlook()
    assert_allclose(one.mean_gradient(point), slope(one.mean, point), atol=1e-6)
    assert_allclose(one.std_gradient(point), slope(one.std, point), atol=1e-6)


@pytest.mark.parametrize("asked", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("point", POINTS)
def test_gradients_of_a_hope_are_derivatives(point: Point, asked: float) -> None:
    hope = Hope(outlook(), covered(), new=0.9, asked=asked)
    assert_allclose(hope.mean_gradient(point), slope(hope.mean, point), atol=1e-6)
    assert_allclose(hope.std_gradient(point), slope(hope.std, point), atol=1e-6)


@pytest.mark.parametrize("point", POINTS)
def test_the_gradient_of_a_share_is_its_derivative(point: Point) -> None:
    coverage = covered()
    assert_allclose(coverage.gradient(point), slope(coverage.share, point), atol=1e-6)


def test_without_points_nothing_is_covered() -> None:
    assert_allclose(Coverage(PLACES, NOISE).share(), 1.0)


def test_where_it_may_be_asked_nearly_all_is_covered() -> None:
    coverage = covered()
    shares = coverage.share(SEEN)
    # Of a variance v, an answer leaves v n / (v + n) at most.
    size = np.square(FEATURES.at(SEEN)).sum(axis=1)
    assert (shares <= NOISE / (size + NOISE) + 1e-9).all()
    assert (shares > 0).all()


def test_a_share_is_what_regression_on_the_covered_points_leaves() -> None:
    at, seen = FEATURES.at(CANDIDATES), FEATURES.at(SEEN)
    block = np.linalg.inv(seen @ seen.T + NOISE * np.eye(3))
    size = np.square(at).sum(axis=1)
    left = size - np.einsum("ij,jk,ik->i", at @ seen.T, block, at @ seen.T)
    assert_allclose(covered().share(), left / size, atol=1e-9)


def test_a_further_point_covers_more() -> None:
    coverage = covered()
    before = coverage.share().copy()
    coverage.add(np.array([0.1, 0.9]))
    after = coverage.share()
    assert (after <= before + 1e-12).all()
    assert before.max() - after[CANDIDATES.tolist().index([0.1, 0.9])] > 0.5


def test_what_can_be_asked_is_worth_less_exploring() -> None:
    one = outlook(seen=False)
    share = covered().share()
    factor = Hope(one, covered(), new=1.0, asked=0.2).std() / one.std()
    assert_allclose(factor, np.sqrt(share) + 0.2 * np.sqrt(1 - share))
    # Where all can be asked, about a fifth counts; elsewhere all.
    assert factor.min() < 0.4
    assert factor.max() > 0.9


def test_where_nothing_can_be_asked_a_hope_is_the_outlook() -> None:
    one = outlook()
    hope = Hope(one, Coverage(PLACES, NOISE), new=1.0, asked=0.2)
    assert_allclose(hope.std(), one.std())
    assert_allclose(hope.mean(), one.mean())
    assert hope.log_determinant == one.log_determinant


def test_before_any_point_can_be_asked_nothing_but_chance_decides_between_equals() -> None:
    assert (Coverage(PLACES, NOISE).share() == 1.0).all()
