from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from pydantic import ValidationError
from scipy.optimize import minimize

from sparq_environments.shifting import (
    _FUNCTIONS,
    Shifting,
    _ShiftingLandscape,
    ackley,
    branin,
    hartmann,
)
from sparq_sim.arrays import Point
from sparq_sim.landscapes.drift import measure_drift

KINDS = [
    Shifting(function=function, drift=drift)
    for function in ("branin", "ackley", "hartmann")
    for drift in ("line", "circle", "rotate")
]
KINDS += [Shifting(function="ackley", dimensions=1), Shifting(function="ackley", dimensions=4)]
# Surjanovic and Bingham, Virtual Library of Simulation Experiments, sfu.ca/~ssurjano.
BRANIN_OPTIMA = [[-math.pi, 12.275], [math.pi, 2.275], [9.42478, 2.475]]
HARTMANN_OPTIMUM = [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]

each_kind = pytest.mark.parametrize("environment", KINDS, ids=str)
moments = st.floats(0, 20_000)


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def started(seed: int = 0, **fields: Any) -> _ShiftingLandscape:
    return _ShiftingLandscape(Shifting(**fields), stream(seed))


@each_kind
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32), time=moments)
def test_rewards_reach_from_0_to_1_and_best_is_1_at_all_times(
    environment: Shifting, seed: int, time: float
) -> None:
    landscape = environment.start(stream(seed))
    _, value = landscape.best(time)
    assert value == pytest.approx(1.0, abs=1e-12)
    rewards = landscape.rewards(landscape.domain.sample(stream(seed + 1), 1_000), time)
    assert rewards.min() >= 0
    assert rewards.max() <= value


# The functions themselves


def test_branin_has_its_three_known_optima() -> None:
    assert branin(np.array(BRANIN_OPTIMA)) == pytest.approx([0.397887] * 3, abs=1e-6)
    assert _FUNCTIONS["branin"].lowest == pytest.approx(0.397887, abs=1e-6)
    assert _FUNCTIONS["branin"].highest == pytest.approx(308.129, abs=1e-3)


def test_ackley_is_0_at_0() -> None:
    assert ackley(np.zeros((1, 3))) == pytest.approx([0.0], abs=1e-12)


def test_hartmann_has_its_known_optimum() -> None:
    assert hartmann(np.array([HARTMANN_OPTIMUM])) == pytest.approx([-3.32237], abs=1e-5)
    assert _FUNCTIONS["hartmann"].optimum == pytest.approx(HARTMANN_OPTIMUM, abs=1e-6)
    assert _FUNCTIONS["hartmann"].lowest == pytest.approx(-3.32237, abs=1e-5)


@pytest.mark.parametrize(("name", "count"), [("branin", 2), ("ackley", 2), ("hartmann", 6)])
def test_no_search_in_its_own_box_leaves_the_stated_range(name: str, count: int) -> None:
    known = _FUNCTIONS[name]
    bounds = [(known.lower[0], known.upper[0])] * count
    if name == "branin":
        bounds = list(zip(known.lower, known.upper, strict=True))
    lower, upper = np.array(bounds).T
    reached = []
    for sign in (1.0, -1.0):

        def depth(at: Point, sign: float = sign) -> float:
            return sign * float(known.formula(np.clip(at, lower, upper)[None])[0])

        starts = stream(3).uniform(lower, upper, (40, count))
        ends = [minimize(depth, start, method="L-BFGS-B", bounds=bounds) for start in starts]
        reached.append(sign * min(float(end.fun) for end in ends))
    # Ackley's basin is rarely hit; Hartmann's function only comes near 0.
    assert known.lowest - 1e-12 <= reached[0] <= known.lowest + (3.0 if name == "ackley" else 1e-8)
    assert known.highest - 1e-2 <= reached[1] <= known.highest + 1e-12


# How they move


@pytest.mark.parametrize("drift", ["line", "circle", "rotate"])
@pytest.mark.parametrize("function", ["branin", "ackley", "hartmann"])
def test_the_optimum_travels_at_its_speed(function: str, drift: str) -> None:
    landscape = started(function=function, drift=drift, speed=0.02)
    width = landscape.domain.upper - landscape.domain.lower
    times = np.arange(0.0, 100.0, 0.05)
    path = np.array([landscape.best(time)[0] / width for time in times])
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    # A reflection within a step shortens it.
    assert (lengths <= 0.02 * 0.05 * (1 + 1e-9)).all()
    assert np.median(lengths) == pytest.approx(0.02 * 0.05, rel=1e-5)


def test_what_stands_still_is_the_function_itself_turned_over() -> None:
    landscape = started(drift="line", speed=0.0)
    points = landscape.domain.sample(stream(1), 100)
    scaled = (308.12909601160663 - branin(points)) / (308.12909601160663 - 0.39788735772973816)
    assert landscape.rewards(points, 7.0) == pytest.approx(scaled, abs=1e-12)


def test_what_is_moved_is_the_function_at_the_place_it_was_moved_from() -> None:
    landscape = started(drift="circle")
    (x, y), _ = landscape.best(40.0)
    near = np.array([[x + 0.3, y - 0.2], [x - 1.0, y + 1.1]])
    there = branin(np.array([[math.pi + 0.3, 2.275 - 0.2], [math.pi - 1.0, 2.275 + 1.1]]))
    scaled = (308.12909601160663 - there) / (308.12909601160663 - 0.39788735772973816)
    assert landscape.rewards(near, 40.0) == pytest.approx(scaled, abs=1e-12)


def test_rotation_carries_the_optima_of_branin_about_the_centre_and_one_out_of_the_box() -> None:
    landscape = started(drift="rotate")
    centre = np.array([2.5, 7.5])
    followed = np.array([math.pi, 2.275])
    inside = []
    for time in np.linspace(0, 400, 60):
        (x, y), _ = landscape.best(time)
        # The angle, from where the followed optimum is seen.
        angle = math.atan2(y - 7.5, x - 2.5) - math.atan2(*(followed - centre)[::-1])
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        optima = centre + (np.array(BRANIN_OPTIMA) - centre) @ turn.T
        within = landscape.domain.contains(optima)
        assert landscape.rewards(optima[within], time) == pytest.approx(1.0, abs=1e-9)
        inside.append(within)
    assert np.mean(inside, axis=0)[:2].tolist() == [1.0, 1.0]
    assert 0 < np.mean(inside, axis=0)[2] < 1


@pytest.mark.parametrize(
    ("function", "mean", "largest"),
    [("branin", 0.028, 0.054), ("ackley", 0.048, 0.051), ("hartmann", 0.020, 0.033)],
)
def test_on_the_circle_it_drifts_as_stated(function: str, mean: float, largest: float) -> None:
    around = np.linspace(0.0, 2 * math.pi * 0.3 / 0.01, 189)  # Once, by steps of about 1.
    found = measure_drift(started(function=function), around)
    assert found.mean == pytest.approx(mean, rel=0.05)
    assert found.largest == pytest.approx(largest, rel=0.05)


def test_where_it_sets_out_is_left_to_chance() -> None:
    for motion in ("line", "circle", "rotate"):
        paths = {tuple(started(seed, drift=motion).best(5.0)[0]) for seed in range(5)}
        assert len(paths) == 5


# What is refused


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"dimensions": 3}, "can be chosen for ackley only, not for branin"),
        ({"function": "ackley", "dimensions": 1, "drift": "rotate"}, "nothing can rotate"),
        ({"radius": 0.6}, "less than or equal to 0.5"),
        ({"speed": -1.0}, "greater than or equal to 0"),
        ({"function": "rosenbrock"}, "'branin', 'ackley' or 'hartmann'"),
    ],
)
def test_motions_that_cannot_be_are_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Shifting(**fields)
