from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from pydantic import ValidationError

from sparq_environments.function import FunctionEnvironment, RewardFunction, from_function
from sparq_environments.synthetic import Synthetic
from sparq_experts.truth import Truth
from sparq_sim import Box, PluginError, Rules, Scenario, Sites, play
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Landscape
from sparq_sim.testing import check_environment

LINE = Box(-50.0, 50.0, ["x"])
SQUARE = Box([-1.0, -1.0], [1.0, 1.0], ["east", "north"])
TOWNS = Sites([[0.0, 0.0], [0.5, -0.5], [1.0, 0.2]], ["Aa", "Bee", "Cee"], ["east", "north"])


def paper(points: Points, time: float) -> Values:
    x = points[:, 0]
    values: Values = np.exp(-0.05 * (x - 5 * np.sin(0.1 * time)) ** 2) + 0.5 * np.cos(0.2 * x) + 1.5
    return values


def bowl(points: Points, time: float) -> Values:
    values: Values = -((points - top(time)) ** 2).sum(axis=1)
    return values


def top(time: float) -> Point:
    return np.array([0.5 * math.sin(time), 0.5 * math.cos(time)])


def top_of_bowl(time: float) -> tuple[Point, float]:
    return top(time), 0.0


def rng() -> Generator:
    return Generator(Philox(key=0))


def started(function: RewardFunction, domain: Any = SQUARE, **options: Any) -> Landscape:
    return from_function(function, domain, **options).start(rng())


# What it makes


@pytest.mark.parametrize(
    "environment",
    [
        from_function(paper, LINE),
        from_function(bowl, SQUARE),
        from_function(bowl, SQUARE, best=top_of_bowl),
        from_function(bowl, TOWNS),
    ],
    ids=["line", "square", "known", "sites"],
)
def test_the_laws_of_environments_hold_and_it_can_be_played(
    environment: FunctionEnvironment,
) -> None:
    check_environment(environment)
    trace = play(Uniform(), environment, Rules(rounds=20), experts={"truth": Truth()}, seed=1)
    assert (trace.rounds["regret"] >= -1e-9).all()


def test_the_papers_function_written_down_again_is_the_papers_function() -> None:
    ours, theirs = started(paper, LINE), Synthetic().start(rng())
    points = LINE.sample(rng(), 200)
    for time in (0.0, 3.7, 500.0):
        assert ours.rewards(points, time) == pytest.approx(theirs.rewards(points, time))
        assert ours.best(time)[1] == pytest.approx(theirs.best(time)[1], abs=1e-12)


def test_a_module_level_function_survives_pickling() -> None:
    environment = from_function(bowl, SQUARE, best=top_of_bowl)
    copy = pickle.loads(pickle.dumps(environment))
    assert copy == environment
    assert copy.start(rng()).best(2.0) == (pytest.approx(top(2.0)), 0.0)


def test_the_domain_keeps_its_names() -> None:
    assert started(bowl, SQUARE).domain.names == ("east", "north")
    sites = started(bowl, TOWNS).domain
    assert isinstance(sites, Sites)
    assert (sites.names, sites.site_names) == (("east", "north"), ("Aa", "Bee", "Cee"))


def test_a_function_has_a_place_in_a_scenario() -> None:
    scenario = Scenario(
        environment=from_function(bowl, SQUARE), optimizers={"u": Uniform()}, rounds=3
    )
    assert "environment.function" in scenario.fingerprint("u")["unwritten"]


def test_numbers_of_other_types_are_made_rewards() -> None:
    given_back: list[Any] = [[1, 2], (1.0, 2.0), np.array([1, 2], dtype=np.float32)]
    landscape = started(lambda points, time: given_back[int(time)])
    for time in (0.0, 1.0, 2.0):
        rewards = landscape.rewards(np.zeros((2, 2)), time)
        assert rewards.dtype == np.float64
        assert rewards.tolist() == [1.0, 2.0]


# The best


@settings(max_examples=30, deadline=None)
@given(time=st.floats(0, 1e4))
def test_best_in_a_box_is_searched_for_or_told(time: float) -> None:
    for options in ({}, {"best": top_of_bowl}):
        point, value = started(bowl, SQUARE, **options).best(time)
        assert point == pytest.approx(top(time), abs=1e-6)
        assert value == pytest.approx(0.0, abs=1e-9)


def test_best_among_sites_is_the_highest_of_all() -> None:
    landscape = started(bowl, TOWNS)
    for time in np.linspace(0, 6, 20):
        rewards = bowl(TOWNS.points, time)
        point, value = landscape.best(time)
        assert value == rewards.max()
        assert point.tolist() == TOWNS.points[rewards.argmax()].tolist()


def test_a_finer_cover_finds_what_a_coarse_one_misses() -> None:
    def needle(points: Points, time: float) -> Values:
        values: Values = np.exp(-(((points[:, 0] - 0.1234) / 1e-4) ** 2))
        return values + 0.1 * np.cos(points[:, 0])

    assert started(needle, Box(-1.0, 1.0)).best(0.0)[1] < 0.2
    assert started(needle, Box(-1.0, 1.0), cover=20_001).best(0.0)[1] > 1.09


def test_a_best_that_is_told_is_asked_for_once_a_time() -> None:
    asked = []

    def best(time: float) -> tuple[Point, float]:
        asked.append(time)
        return top_of_bowl(time)

    landscape = started(bowl, best=best)
    assert landscape.best(1.0) is landscape.best(1.0)
    landscape.best(2.0)
    assert asked == [1.0, 2.0]


# What is refused, by name


def nan_on_the_left(points: Points, time: float) -> Values:
    return np.where(points[:, 0] < 0, np.nan, 1.0)


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (
            nan_on_the_left,
            r"nan_on_the_left\(points, 2.5\) gives nan at \[-0.5, 0.25\]; expected 2",
        ),
        (lambda points, time: points[:, 0] / 0.0, r"gives inf at \[0.5, 0.25\]"),
        (lambda points, time: points, r"gives an array of shape \(2, 2\); expected 2 finite numb"),
        (lambda points, time: points[:1, 0], r"gives an array of shape \(1,\); expected 2"),
        (lambda points, time: 1.0, r"gives an array of shape \(\); expected 2"),
        (lambda points, time: None, r"<lambda>\(points, 2.5\) gives None; expected 2"),
        (lambda points, time: "high", "gives 'high'; expected 2"),
        (lambda points, time: [[1.0], [1.0, 2.0]], r"gives \[\[1.0\], \[1.0, 2.0\]\]; expected 2"),
        (lambda points, time: points[:, 0] * 1j, "expected 2 finite numbers, one for each row"),
    ],
    ids=["nan", "inf", "matrix", "too few", "one", "none", "text", "ragged", "complex"],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_is_no_reward_is_refused_with_function_time_and_point(
    function: RewardFunction, complaint: str
) -> None:
    points = np.array([[0.5, 0.25], [-0.5, 0.25]])
    with pytest.raises(PluginError, match=complaint):
        started(function).rewards(points, 2.5)


def test_a_play_of_a_broken_function_ends_with_its_name() -> None:
    with pytest.raises(PluginError, match=r"nan_on_the_left\(points, .*\) gives nan at"):
        play(Uniform(), from_function(nan_on_the_left, SQUARE), Rules(rounds=20), seed=1)


def test_an_error_in_the_function_is_its_own_and_says_where() -> None:
    def broken(points: Points, time: float) -> Values:
        raise KeyError("salinity")

    with pytest.raises(KeyError, match="salinity") as caught:
        started(broken).rewards(np.zeros((3, 2)), 4.0)
    (note,) = caught.value.__notes__
    assert note.endswith("broken(points, 4.0), points of shape (3, 2)")


def test_a_function_cannot_change_the_points_it_is_given() -> None:
    def greedy(points: Points, time: float) -> Values:
        points += 1.0
        return points[:, 0]

    points = np.zeros((3, 2))
    with pytest.raises(ValueError, match="read-only"):
        started(greedy).rewards(points, 0.0)
    assert not points.any()


def test_a_function_that_returns_its_own_array_does_not_share_it() -> None:
    own = np.zeros(2)
    landscape = started(lambda points, time: own)
    rewards = landscape.rewards(np.zeros((2, 2)), 0.0)
    own[:] = 1.0
    assert not rewards.any()


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ((np.array([3.0, 0.0]), 0.0), r"\[3.0, 0.0\] lies outside the domain"),
        ((np.zeros(2), 0.5), r"gives the reward 0.5 at \[0.0, 0.0\], where .*bowl gives -0.25"),
        ((np.zeros(2), math.nan), "gives the reward nan"),
        ((np.zeros(3), 0.0), r"expected \(n, 2\)"),
        (0.5, "gives 0.5; expected a point of the domain and its reward"),
        (None, "gives None; expected a point of the domain and its reward"),
    ],
    ids=["outside", "wrong", "nan", "shape", "number", "none"],
)
def test_a_best_that_cannot_be_is_refused(told: Any, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        started(bowl, best=lambda time: told).best(0.0)


def test_a_domain_that_is_none_is_refused() -> None:
    with pytest.raises(PluginError, match=r"is a Box or Sites, not \[0, 1\]"):
        from_function(bowl, [0, 1])  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="one number for each coordinate"):
        FunctionEnvironment(function=bowl)
    with pytest.raises(ValidationError, match="callable"):
        from_function("bowl", SQUARE)  # type: ignore[arg-type]


@pytest.mark.parametrize("domain", [LINE, SQUARE])
def test_a_cover_of_one_point_is_refused_and_one_of_two_serves(domain: Box) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 2"):
        from_function(bowl, domain, cover=1)

    def hill(points: Points, time: float) -> Values:
        values: Values = -((points - 0.25) ** 2).sum(axis=1)
        return values

    assert started(hill, domain, cover=2).best(0.0)[1] == pytest.approx(0.0, abs=1e-6)
