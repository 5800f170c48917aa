from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox

from sparq_environments.synthetic import Synthetic
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.plugin.environment import Landscape
from sparq_sim.simulation.references import References, compute_references, count_worlds
from sparq_sim.testing import Slope


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


class Table:
    """A landscape of sites with a row of rewards for each time."""

    def __init__(self, rewards: Mapping[float, Sequence[float]]) -> None:
        self._rewards = {time: np.array(row, dtype=float) for time, row in rewards.items()}
        count = len(next(iter(self._rewards.values())))
        self.domain = Sites(np.arange(float(count))[:, None])

    def rewards(self, points: Points, time: float) -> Values:
        return self._rewards[time][self.domain.index(points)]

    def best(self, time: float) -> tuple[Point, float]:
        row = self._rewards[time]
        return self.domain.points[row.argmax()], float(row.max())


class Bowl:
    """The reward -|x - centre|^2 in the unit cube, where the centre moves with time."""

    def __init__(self, centres: Mapping[float, Sequence[float]]) -> None:
        self._centres = {time: np.array(centre) for time, centre in centres.items()}
        dimensions = len(next(iter(self._centres.values())))
        self.domain = Box(np.zeros(dimensions), np.ones(dimensions))

    def rewards(self, points: Points, time: float) -> Values:
        values: Values = -((points - self._centres[time]) ** 2).sum(axis=1)
        return values

    def best(self, time: float) -> tuple[Point, float]:
        return self._centres[time], 0.0


def test_reference_levels_of_the_synthetic_reward() -> None:
    levels = compute_references(Synthetic().start(stream()), np.arange(1.0, 501.0))
    assert levels.uniform == pytest.approx(1.347, abs=0.001)
    assert levels.fixed == pytest.approx(0.313, abs=0.0005)
    assert levels.late == pytest.approx(0.0051, abs=0.0001)


def test_reference_levels_of_sites_with_ties_are_those_found_by_hand() -> None:
    table = Table({0.0: [1, 1, 0], 1.0: [0, 2, 2], 2.0: [3, 1, 0]})
    levels = compute_references(table, [0.0, 1.0, 2.0])
    # Best 1, 2, 3; means over the sites 2/3, 4/3, 4/3.
    assert levels.uniform == pytest.approx(8 / 9)
    # The first two sites get 4 in all, of 6.
    assert levels.fixed == pytest.approx(2 / 3)
    # Round 2 plays site 0 or 1, for 0 or 2 of 2; round 3 plays site 1 or 2, for 1 or 0 of 3.
    assert levels.late == pytest.approx((1 + 2.5) / 2)


@pytest.mark.parametrize(("gap", "late"), [(0.0, 1.0), (1e-10, 1.0), (1e-8, 2.0)])
def test_rewards_within_a_billionth_are_as_good_as_each_other(gap: float, late: float) -> None:
    table = Table({0.0: [1.0, 1.0 - gap], 1.0: [0.0, 2.0]})
    assert compute_references(table, [0.0, 1.0]).late == pytest.approx(late)


def test_ties_between_large_rewards_are_relative() -> None:
    table = Table({0.0: [-1e6, -1e6 - 1e-4], 1.0: [0.0, 2.0]})
    assert compute_references(table, [0.0, 1.0]).late == pytest.approx(1.0)


def test_one_round_has_no_round_before() -> None:
    levels = compute_references(Table({0.0: [1.0, 0.0]}), [0.0])
    assert (levels.uniform, levels.fixed) == (0.5, 0.0)
    assert math.isnan(levels.late)


def test_nothing_is_regretted_where_nothing_differs() -> None:
    table = Table({0.0: [1.0, 1.0], 1.0: [5.0, 5.0]})
    assert compute_references(table, [0.0, 1.0]) == References(uniform=0.0, fixed=0.0, late=0.0)


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=2, max_size=6))
def test_no_reference_beats_the_best_and_chance_does_not_beat_the_best_fixed_site(
    rows: list[list[int]],
) -> None:
    table = Table({float(time): row for time, row in enumerate(rows)})
    levels = compute_references(table, np.arange(float(len(rows))))
    assert levels.late >= 0
    assert -1e-12 <= levels.fixed <= levels.uniform + 1e-12


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_reference_levels_of_a_moving_bowl_are_those_in_closed_form(dimensions: int) -> None:
    centres = stream(6).uniform(0.2, 0.8, size=(20, dimensions))
    bowl = Bowl({float(time): centre for time, centre in enumerate(centres.tolist())})
    levels = compute_references(bowl, np.arange(20.0))
    # Over the unit interval the mean of (x - c)^2 is 1/12 + (1/2 - c)^2.
    uniform = (1 / 12 + (0.5 - centres) ** 2).sum(axis=1).mean()
    assert levels.uniform == pytest.approx(uniform, abs=2e-3)
    assert levels.fixed == pytest.approx(centres.var(axis=0).sum(), abs=1e-3)
    assert levels.late == pytest.approx((np.diff(centres, axis=0) ** 2).sum(axis=1).mean())


def test_the_best_fixed_point_may_lie_on_the_bounds() -> None:
    bowl = Bowl({0.0: [0.0, 1.0], 1.0: [0.0, 1.0]})
    assert compute_references(bowl, [0.0, 1.0]).fixed == pytest.approx(0.0, abs=1e-3)


# Within a budget


class Counted:
    """A landscape that counts the points that it evaluates."""

    def __init__(self, landscape: Landscape) -> None:
        self._landscape = landscape
        self.domain = landscape.domain
        self.points = 0
        self.bests: list[float] = []

    def rewards(self, points: Points, time: float) -> Values:
        self.points += len(points)
        return self._landscape.rewards(points, time)

    def best(self, time: float) -> tuple[Point, float]:
        self.bests.append(time)
        return self._landscape.best(time)


WORLDS: dict[str, Callable[[], Landscape]] = {
    "line": lambda: Slope(place="line").start(stream()),
    "square": lambda: Slope(place="square").start(stream()),
    "sites": lambda: Slope(place="sites").start(stream()),
    "many sites": lambda: Table({float(t): stream(t).random(3_000).tolist() for t in range(501)}),
}


@pytest.mark.parametrize("budget", [1_000, 10_000, 100_000])
@pytest.mark.parametrize("rounds", [1, 42, 500])
@pytest.mark.parametrize("world", WORLDS)
def test_reference_levels_stay_within_a_budget(world: str, rounds: int, budget: int) -> None:
    counted = Counted(WORLDS[world]())
    compute_references(counted, np.arange(1.0, rounds + 1), budget=budget)
    assert 0 < counted.points <= budget


@pytest.mark.parametrize("world", WORLDS)
def test_the_best_of_a_time_is_found_once_for_all_reference_levels(world: str) -> None:
    counted = Counted(WORLDS[world]())
    compute_references(counted, np.arange(1.0, 43.0))
    assert len(counted.bests) == len(set(counted.bests)) == 42


def test_all_sites_are_evaluated_once_for_each_time() -> None:
    counted = Counted(WORLDS["sites"]())
    compute_references(counted, np.arange(1.0, 43.0))
    assert counted.points == 42 * 9


def test_a_budget_that_suffices_changes_nothing() -> None:
    landscape, times = WORLDS["line"](), np.arange(1.0, 51.0)
    assert compute_references(landscape, times, budget=10**6) == compute_references(
        landscape, times
    )


@pytest.mark.parametrize("world", ["line", "square", "sites"])
def test_levels_within_a_budget_say_so_and_are_near_the_others(world: str) -> None:
    landscape, times = WORLDS[world](), np.arange(1.0, 1_001.0)
    budget = 1_800 if world == "sites" else 20_000
    whole, part = (
        compute_references(landscape, times),
        compute_references(landscape, times, budget=budget),
    )
    assert whole.estimated_from == ""
    assert re.fullmatch(r"\d+ of 1000 rounds at \d+ points", part.estimated_from)
    for name in ("uniform", "fixed", "late"):
        assert getattr(part, name) == pytest.approx(getattr(whole, name), rel=0.15), name


def test_fewer_points_are_compared_before_fewer_rounds() -> None:
    levels = compute_references(WORLDS["line"](), np.arange(1.0, 43.0), budget=20_000)
    assert levels.estimated_from == "42 of 42 rounds at 411 points"


def test_rounds_that_are_left_out_do_not_hide_a_day_of_the_week() -> None:
    days = np.arange(700)
    reward = np.where(days % 7 == 0, 10.0, 1.0)
    table = Table({float(day): [value, 0.0] for day, value in zip(days, reward, strict=True)})
    # One in seven: at even distances it would be always that day, or never.
    levels = compute_references(table, days.astype(float), budget=400)
    assert levels.estimated_from == "100 of 700 rounds at 2 points"
    assert levels.uniform == pytest.approx(reward.mean() / 2, rel=0.15)


def test_who_watches_hears_how_far_it_is() -> None:
    heard: list[tuple[int, int]] = []
    compute_references(WORLDS["line"](), [1.0, 2.0], watch=lambda *told: heard.append(told))
    done = [done for done, _ in heard]
    assert done == sorted(done)
    assert {total for _, total in heard} == {2 * (2000 + 64 + 1)}
    assert done[-1] == pytest.approx(heard[-1][1], rel=0.01)


@pytest.mark.parametrize(
    ("domain", "rounds", "points"),
    [
        (Sites([[float(place)] for place in range(30)]), 5, 5 * 2 * 30),
        (Sites([[float(place)] for place in range(30)]), 90, 10 * 2 * 30),
        (Box(0.0, 1.0), 5, 5 * (200 + 4 * 16 + 1)),
        (Box([0.0, 0.0], [1.0, 1.0]), 90, 10 * (200 + 4 * 16 * 2 + 1)),
    ],
)
def test_a_budget_is_shared_among_worlds_that_get_enough(
    domain: Domain, rounds: int, points: int
) -> None:
    assert count_worlds(domain, rounds, 7 * points) == 7
    assert count_worlds(domain, rounds, 7 * points - 1) == 6
    assert count_worlds(domain, rounds, 1) == 1
