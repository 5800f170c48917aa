from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from numpy.random import Generator

from sparq_sim import Environment
from sparq_sim.analysis.levels import Levels, compute_levels, note_estimates
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.plugin.contract import Landscape
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.references import compute_references
from sparq_sim.testing import Slope
from tests.study.plays import scenario


class Dear(Slope):
    """A world that says how much it may be asked; *started* times so far."""

    level_evaluations = 1_000

    def start(self, rng: Generator) -> Landscape:
        STARTED.append(self)
        return super().start(rng)


STARTED: list[Dear] = []


def test_reference_levels_keep_to_the_budget_of_the_environment() -> None:
    ((_, level),) = compute_levels(scenario(environment=Dear(), rounds=500))
    assert level.estimated_from == "3 of 500 rounds at 268 points"
    assert note_estimates([level, level]) == [
        "reference levels are estimated from 3 of 500 rounds at 268 points"
    ]
    assert note_estimates([Levels(0.0, 0.0, 0.0)]) == []


def test_levels_that_are_not_wanted_are_not_computed() -> None:
    STARTED.clear()
    assert compute_levels(scenario(environment=Dear(), levels=False)) == []
    assert not STARTED


def test_levels_that_are_known_are_not_computed_again() -> None:
    STARTED.clear()
    known: dict[str, Levels] = {}
    first, again = (compute_levels(scenario(environment=Dear()), known=known) for _ in range(2))
    assert first == again
    assert len(STARTED) == 1


# Worlds of replications

PEAKS = {"kind": "moving-peaks"}


def test_levels_are_means_over_the_worlds_of_the_replications() -> None:
    played = scenario(environment=PEAKS, rounds=20, replications=3)
    ((_, level),) = compute_levels(played)
    each = []
    for number in range(3):
        with open_landscape(played.environment, played.seed, number) as landscape:
            each.append(compute_references(landscape, np.arange(1.0, 21)))
    for name in ("uniform", "fixed", "late"):
        own = [getattr(found, name) for found in each]
        assert len(set(own)) == 3
        assert getattr(level, name) == pytest.approx(np.mean(own))
        assert getattr(level, f"{name}_std") == pytest.approx(np.std(own, ddof=1))
    assert (level.worlds, level.different_worlds, level.estimated_from) == (3, 3, "")


def test_only_the_replications_that_are_named_count() -> None:
    played = scenario(environment=PEAKS, rounds=20, replications=3)
    ((_, level),) = compute_levels(played, replications=[2])
    with open_landscape(played.environment, played.seed, 2) as landscape:
        assert level.fixed == compute_references(landscape, np.arange(1.0, 21)).fixed


def test_a_world_that_all_replications_share_is_looked_at_once() -> None:
    ((_, level),) = compute_levels(scenario(replications=40))
    assert (level.worlds, level.different_worlds, level.fixed_std) == (1, 1, 0.0)


class _Steep:
    """A slope, times *steepness*."""

    def __init__(self, steepness: float) -> None:
        self._slope = Slope().start(np.random.default_rng(0))
        self._steepness = steepness
        self.domain = self._slope.domain

    def rewards(self, points: Points, time: float) -> Values:
        return self._steepness * self._slope.rewards(points, time)

    def best(self, time: float) -> tuple[Point, float]:
        point, reward = self._slope.best(time)
        return point, self._steepness * reward


class Steep(Environment):
    """A slope as steep as chance decides, in a budget for few rounds."""

    level_evaluations = 10_000

    def start(self, rng: Generator) -> Landscape:
        return _Steep(rng.uniform(1, 2))


def test_different_worlds_share_the_budget_and_their_number_is_told() -> None:
    ((_, level),) = compute_levels(scenario(environment=Steep(), rounds=500, replications=40))
    assert (level.worlds, level.different_worlds) == (3, 40)
    assert level.fixed_std > 0
    assert note_estimates([level]) == [
        "reference levels are estimated from 12 of 500 rounds at 212 points in 3 of 40 worlds"
    ]
    ((_, whole),) = compute_levels(
        scenario(environment=Steep(), rounds=30, replications=4), whole=True
    )
    assert (whole.worlds, whole.estimated_from) == (4, "")


class Sly(Environment):
    """Draws from a copy of the generator, so that nobody sees it."""

    def start(self, rng: Generator) -> Landscape:
        return _Steep(deepcopy(rng).uniform(1, 2))


def test_worlds_that_differ_by_unseen_chance_are_not_taken_for_one() -> None:
    ((_, level),) = compute_levels(scenario(environment=Sly(), replications=3))
    assert level.different_worlds == 3
