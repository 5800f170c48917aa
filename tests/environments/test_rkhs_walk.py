from __future__ import annotations

import math
import tracemalloc
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from pydantic import ValidationError

from sparq_environments.rkhs_walk import RKHSLandscape, RKHSWalk
from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.gp.kernels import Matern32, Matern52, RationalQuadratic, SquaredExponential

ROUNDS = 10_000
WORLDS = [
    RKHSWalk(drift="walk"),
    RKHSWalk(drift="periodic"),
    RKHSWalk(drift="abrupt", interval=7.5),
    RKHSWalk(drift="seasonal"),
    RKHSWalk(drift="walk", dimensions=3, kernel=Matern52(length_scale=0.4, variance=4.0)),
    RKHSWalk(drift="periodic", cycle=1.7, change=math.inf),
    RKHSWalk(drift="abrupt", interval=1.0, jump=math.inf, dimensions=2, centres=50),
    RKHSWalk(drift="seasonal", cycles=(7.0, 365.0), change=5.0, kernel=Matern32(variance=0.25)),
    RKHSWalk(lower=-50.0, upper=50.0, kernel=RationalQuadratic(length_scale=8.0), norm=0.5),
    RKHSWalk(kernel=SquaredExponential(length_scale=20.0)),
    RKHSWalk(change=0.0),
    RKHSWalk(centres=1),
]
ROUNDING = 1e-12
"""By how much of the norm a bound may be exceeded."""

each_world = pytest.mark.parametrize("world", WORLDS, ids=range(len(WORLDS)))
moments = st.floats(0, 2_000)


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def started(world: RKHSWalk, seed: int = 0) -> RKHSLandscape:
    return RKHSLandscape(world, stream(seed))


@lru_cache
def known(world: RKHSWalk) -> RKHSLandscape:
    """Return the landscape that many tests ask, in no order."""
    return started(world)


@lru_cache
def walked(world: RKHSWalk) -> Matrix:
    """Return the coefficients of rounds 1 to 10,001."""
    return path(known(world))


def own_kernel(world: RKHSWalk, a: Points, b: Points) -> Matrix:
    """The kernels' formulas, written anew."""
    kernel = world.kernel
    r = np.linalg.norm(a[:, None] - b[None], axis=2) / float(np.asarray(kernel.length_scale))
    match kernel.kind:
        case "squared-exponential":
            shape = np.exp(-(r**2) / 2)
        case "matern-3/2":
            shape = (1 + math.sqrt(3) * r) * np.exp(-math.sqrt(3) * r)
        case "matern-5/2":
            shape = (1 + math.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-math.sqrt(5) * r)
        case "rational-quadratic":
            shape = 1 / (1 + r**2 / 2)
    matrix: Matrix = np.multiply(kernel.variance, shape)
    return matrix


def lengths(coefficients: Matrix, gram: Matrix) -> Values:
    """The norm of each row, ||f||^2 = a' K a."""
    squares: Values = np.einsum("ti,ij,tj->t", coefficients, gram, coefficients)
    return np.sqrt(np.maximum(squares, 0.0))


def bound(world: RKHSWalk) -> float:
    """What the norm of the change in a unit of time may be."""
    return world.largest_change / math.sqrt(world.kernel.variance) + ROUNDING * world.norm


def path(landscape: RKHSLandscape, rounds: int = ROUNDS) -> Matrix:
    return np.array([landscape.coefficients(float(t)) for t in range(1, rounds + 2)])


# Assumptions 1 and 2


@each_world
def test_norm_and_change_keep_their_bounds_in_each_of_10_000_rounds(world: RKHSWalk) -> None:
    landscape, coefficients = known(world), walked(world)
    gram = own_kernel(world, landscape.centres, landscape.centres)
    assert lengths(coefficients, gram).max() <= world.norm * (1 + ROUNDING)
    changes = lengths(np.diff(coefficients, axis=0), gram)
    assert len(changes) == ROUNDS
    assert changes.max() <= bound(world)


@each_world
def test_no_reward_changes_by_more_than_the_bound_in_any_of_10_000_rounds(world: RKHSWalk) -> None:
    landscape = known(world)
    points = landscape.domain.cover(400)
    features = own_kernel(world, points, landscape.centres)
    changes = np.abs(np.diff(walked(world), axis=0) @ features.T)
    assert changes.shape == (ROUNDS, 400)
    assert changes.max() <= bound(world) * math.sqrt(world.kernel.variance)


@each_world
@settings(max_examples=50)
@given(time=moments, later=st.floats(0, 1))
def test_the_bounds_hold_between_rounds_too(world: RKHSWalk, time: float, later: float) -> None:
    landscape = known(world)
    gram = own_kernel(world, landscape.centres, landscape.centres)
    before, after = landscape.coefficients(time), landscape.coefficients(time + later)
    norm, change = lengths(np.array([before, after - before]), gram)
    assert norm <= world.norm * (1 + ROUNDING)
    assert change <= bound(world)


@each_world
@settings(max_examples=20)
@given(time=moments)
def test_coefficients_and_gram_are_those_of_the_rewards(world: RKHSWalk, time: float) -> None:
    landscape = known(world)
    points = landscape.domain.sample(stream(1), 50)
    coefficients = landscape.coefficients(time)
    expected = own_kernel(world, points, landscape.centres) @ coefficients
    np.testing.assert_allclose(landscape.rewards(points, time), expected, rtol=0, atol=1e-12)
    gram = own_kernel(world, landscape.centres, landscape.centres)
    np.testing.assert_allclose(landscape.gram, gram, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("world", "least"),
    [(WORLDS[0], 0.999), (WORLDS[4], 0.999), (WORLDS[1], 0.5), (WORLDS[3], 0.5)],
    ids=["walk", "walk in space", "periodic", "seasonal"],
)
def test_the_bounds_are_not_idle(world: RKHSWalk, least: float) -> None:
    landscape = started(world)
    coefficients = path(landscape, 1_000)
    assert lengths(coefficients, landscape.gram).max() >= least * world.norm
    assert lengths(np.diff(coefficients, axis=0), landscape.gram).max() >= least * bound(world)


def test_delta_of_the_paper_is_the_jump_where_drift_is_abrupt() -> None:
    assert RKHSWalk(change=0.3).largest_change == 0.3
    assert RKHSWalk(drift="abrupt", change=0.3, jump=0.7).largest_change == 0.7
    assert RKHSWalk(drift="abrupt", jump=math.inf, norm=3.0).largest_change == 6.0


# Drifts


def test_a_walk_is_at_its_norm_in_every_round_and_takes_steps_of_one_length() -> None:
    landscape = started(RKHSWalk(norm=3.0, change=0.2))
    coefficients = path(landscape, 600)
    np.testing.assert_allclose(lengths(coefficients, landscape.gram), 3.0, rtol=ROUNDING)
    steps = lengths(np.diff(coefficients, axis=0), landscape.gram)
    assert np.median(steps) == pytest.approx(0.2, rel=1e-9)


def test_a_walk_leaves_its_beginning() -> None:
    landscape = started(WORLDS[0])
    far = landscape.coefficients(5_000.0) - landscape.coefficients(0.0)
    assert lengths(far[None], landscape.gram)[0] > 1.0


def test_an_abrupt_drift_stands_still_between_its_jumps() -> None:
    landscape = started(RKHSWalk(drift="abrupt", interval=10.0))
    points = landscape.domain.grid(20)
    rewards = [landscape.rewards(points, time).tolist() for time in (10.0, 13.7, 19.999, 20.0)]
    assert rewards[0] == rewards[1] == rewards[2] != rewards[3]
    assert landscape.best(10.0) is landscape.best(19.0)


def test_jumps_without_bound_lead_to_functions_that_have_nothing_in_common() -> None:
    # In a kernel's space the mean of <f, g> / (|f| |g|) over independent draws is 0.
    landscape = started(RKHSWalk(drift="abrupt", interval=1.0, jump=math.inf, norm=1.0))
    functions = path(landscape, 2_000)
    products = np.einsum("ti,ij,tj->t", functions[1:], landscape.gram, functions[:-1])
    assert abs(products.mean()) < 4 * products.std() / math.sqrt(len(products))


@settings(max_examples=20)
@given(time=st.floats(0, 1_000), turns=st.integers(1, 50))
def test_a_periodic_drift_returns_after_each_cycle(time: float, turns: int) -> None:
    landscape = started(RKHSWalk(drift="periodic", cycle=12.5))
    later = landscape.coefficients(time + 12.5 * turns)
    np.testing.assert_allclose(later, landscape.coefficients(time), atol=1e-10)


def test_a_seasonal_drift_returns_when_all_its_cycles_do_and_not_before() -> None:
    landscape = started(RKHSWalk(drift="seasonal", cycles=(4.0, 6.0)))
    begin = landscape.coefficients(1.0)
    np.testing.assert_allclose(landscape.coefficients(13.0), begin, atol=1e-12)
    for cycle in (4.0, 6.0):
        assert not np.allclose(landscape.coefficients(1.0 + cycle), begin, atol=1e-3)


def test_no_change_is_allowed_and_then_there_is_none() -> None:
    landscape = started(RKHSWalk(change=0.0))
    np.testing.assert_allclose(
        landscape.coefficients(3_000.5), landscape.coefficients(0.0), rtol=1e-12
    )


# Long lives


def test_a_late_time_may_be_asked_first() -> None:
    late, early = started(WORLDS[0]), started(WORLDS[0])
    times = [20_000.0, 3.25]
    asked = [late.coefficients(time).tolist() for time in times]
    assert asked == [early.coefficients(time).tolist() for time in times[::-1]][::-1]


def test_a_long_walk_fits_in_little_memory() -> None:
    landscape = started(WORLDS[0])
    tracemalloc.start()
    for time in range(0, 20_000, 50):
        landscape.coefficients(float(time))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1e6


# What is refused


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"norm": 0.0}, "greater than 0"),
        ({"change": -0.1}, "greater than or equal to 0"),
        ({"change": math.nan}, "greater than or equal to 0"),
        ({"jump": -1.0}, "greater than or equal to 0"),
        ({"interval": 0.5}, "greater than or equal to 1"),
        ({"cycle": math.inf}, "finite"),
        ({"cycles": ()}, "at least 1"),
        ({"centres": 0}, "greater than or equal to 1"),
        ({"drift": "sudden"}, "'walk', 'periodic', 'abrupt' or 'seasonal'"),
        ({"kernel": {"kind": "matern-1/2"}}, "does not match any of the expected tags"),
        ({"lower": 1.0, "upper": 0.0}, r"lower 1.0 must lie below upper 0.0; swap"),
        (
            {"kernel": {"kind": "matern-3/2", "length_scale": (1.0, 2.0)}},
            "2 entries for 1 dimensions; give one number",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        RKHSWalk(**fields)
