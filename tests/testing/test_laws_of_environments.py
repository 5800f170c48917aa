from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from math import nan

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_environments.synthetic import Synthetic
from sparq_sim import (
    Box,
    Environment,
)
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.plugin.contract import Landscape
from sparq_sim.testing import (
    LawError,
    Slope,
    UncheckedError,
    check_environment,
    environment_laws,
)
from tests.ground import Ground, Grounded
from tests.testing import broken


@pytest.mark.parametrize(
    "environment",
    [Slope(), Slope(place="square"), Slope(place="sites"), Synthetic()],
    ids=str,
)
def test_sound_environments_pass(environment: Environment) -> None:
    check_environment(environment)


# Environments that break one law.


class Fatiguing(Ground):
    """Gives a little less each time that it is asked."""

    def __init__(self) -> None:
        self._calls = count()

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time) - 1e-6 * next(self._calls)


class Marching(Ground):
    """Steps forward in time, and never back."""

    def __init__(self) -> None:
        self._reached = 0.0

    def rewards(self, points: Points, time: float) -> Values:
        self._reached = max(self._reached, time)
        return super().rewards(points, self._reached)


class Sociable(Ground):
    """Gives more to points in company."""

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time) - 1e-3 / len(points)


class Upright(Ground):
    """Gives a column."""

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time)[:, None]


class Listing(Ground):
    """Gives a list."""

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time).tolist()  # type: ignore[no-any-return] # on purpose


class Holed(Ground):
    """Does not know what is where time is late."""

    def rewards(self, points: Points, time: float) -> Values:
        return np.where(points[:, 0] > 0.5, nan if time > 5 else 1.0, super().rewards(points, time))


class Meddling(Ground):
    """Rounds the points that it is given."""

    def rewards(self, points: Points, time: float) -> Values:
        values = super().rewards(points, time)
        points[:] = np.round(points, 2)
        return values


class Modest(Ground):
    """Calls a point best that is not."""

    def best(self, time: float) -> tuple[Point, float]:
        point = np.array([0.1])
        return point, float(self.rewards(point[None], time)[0])


class Boasting(Ground):
    """Promises more than its best point gives."""

    def best(self, time: float) -> tuple[Point, float]:
        point, value = super().best(time)
        return point, value + 0.1


class Elsewhere(Ground):
    """Has its best point beyond the fence."""

    def best(self, time: float) -> tuple[Point, float]:
        return np.array([1.5]), 1.0


class Moody(Ground):
    """Comes out otherwise each time that it is made."""

    _made = count()

    def __init__(self) -> None:
        self._mood = 1e-6 * next(self._made)

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time) - self._mood


def test_the_ground_of_the_offenders_is_sound() -> None:
    check_environment(Grounded(ground=Ground))


@pytest.mark.parametrize(
    ("ground", "law"),
    [
        (Fatiguing, "rewards do not depend on what was asked before"),
        (Marching, "rewards do not depend on what was asked before"),
        (Moody, "equal rng, equal landscape"),
        (Sociable, "a point has the same reward alone and among others"),
        (Upright, r"rewards of 9 points have shape \(9,\)"),
        (Listing, r"rewards of 9 points have shape \(9,\)"),
        (Holed, "rewards are finite"),
        (Meddling, "leaves the points as they were"),
        (Modest, "no point beats best"),
        (Boasting, "best's reward is its value"),
        (dict, "start gives a Landscape"),
    ],
)
def test_an_environment_that_breaks_a_law_is_told_which(
    ground: Callable[[], object], law: str
) -> None:
    with pytest.raises(LawError, match=rf"tests\.ground\.Grounded: {law}; seen: "):
        check_environment(Grounded(ground=ground))


# Hooks of landscapes that break one law.


class Hooked(Ground):
    """Has every hook, and each is sound."""

    cell_count = 8

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return self.rewards(points, time) + rng.normal(size=len(points))

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        there: NDArray[np.bool_] = points[:, 0] > 0.1 * time % 1
        return there

    def coarse(self, resolution: float) -> Landscape:
        return Ground()


class ColumnOfObservations(Hooked):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return super().observe(points, time, rng)[:, None]


class ListOfObservations(Hooked):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return super().observe(points, time, rng).tolist()  # type: ignore[no-any-return] # on purpose


class BlindObservations(Hooked):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return np.full(len(points), nan)


class OwnNoise(Hooked):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return super().observe(points, time, np.random.default_rng())


class NumbersForBools(Hooked):
    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return super().available(points, time).astype(float)


class OneForAll(Hooked):
    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.array([True])


class Flickering(Hooked):
    def __init__(self) -> None:
        self._calls = count()

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.full(len(points), next(self._calls) % 7 > 0)


class Together(Hooked):
    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.full(len(points), len(points) > 1)


class NoCoarse(Hooked):
    def coarse(self, resolution: float) -> Landscape:
        return 3  # type: ignore[return-value] # on purpose


class Wider(Ground):
    domain = Box(0.0, 2.0)


class CoarseElsewhere(Hooked):
    def coarse(self, resolution: float) -> Landscape:
        return Wider()


class CoarseUpright(Hooked):
    def coarse(self, resolution: float) -> Landscape:
        return Upright()


class CoarseModest(Hooked):
    def coarse(self, resolution: float) -> Landscape:
        return Modest()


class NoCells(Hooked):
    cell_count = 0


class Curt(Hooked):
    def observe(self, points: Points, time: float) -> Values:  # type: ignore[override] # on purpose
        return self.rewards(points, time)


class Availible(Ground):
    def availible(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.ones(len(points), dtype=bool)


def test_sound_hooks_pass() -> None:
    check_environment(Grounded(ground=Hooked))


@pytest.mark.parametrize(
    ("ground", "law"),
    [
        (ColumnOfObservations, r"observations of 9 points have shape \(9,\); seen: .*\(9, 1\)"),
        (ListOfObservations, r"observations of 9 points have shape \(9,\); seen: list \["),
        (BlindObservations, "observations are finite; seen: "),
        (OwnNoise, "equal rng, equal observations; seen: at time 0.0: "),
        (NumbersForBools, "available gives 9 bools for 9 points; seen: .* type float64"),
        (OneForAll, r"available gives 9 bools for 9 points; seen: an array of shape \(1,\)"),
        (Flickering, "available does not depend on what was asked before; seen: at time"),
        (Together, "a point is available alone as among others; seen: "),
        (NoCoarse, "coarse: is a Landscape; seen: 3"),
        (CoarseElsewhere, "coarse: has the domain of the landscape; seen: Box"),
        (CoarseUpright, r"coarse: rewards of 9 points have shape \(9,\); seen: "),
        (CoarseModest, "coarse: no point beats best; seen: "),
        (NoCells, "cell_count is a whole number above 0; seen: cell_count must be .*, not 0"),
        (Curt, r"observe can be called with \(points, time, rng\); seen: observe must be callable"),
        (Availible, r"no name is a misspelt name of a hook; .* did you mean 'available'\?"),
    ],
)
def test_a_landscape_whose_hook_breaks_a_law_is_told_which(
    ground: Callable[[], object], law: str
) -> None:
    with pytest.raises(LawError, match=rf"^tests\.ground\.Grounded: {law}"):
        check_environment(Grounded(ground=ground))


class ThreeBroken(Hooked):
    """One hook is of the wrong shape, one of the wrong signature, one of the wrong type."""

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return super().observe(points, time, rng)[:, None]

    def available(self, points: Points) -> NDArray[np.bool_]:  # type: ignore[override] # on purpose
        return np.ones(len(points), dtype=bool)

    cell_count = "many"  # type: ignore[assignment] # on purpose


def test_of_three_broken_hooks_each_is_named_and_all_else_is_sound() -> None:
    assert broken(environment_laws(Grounded(ground=ThreeBroken))) == [
        "available can be called with (points, time)",
        "cell_count is a whole number above 0",
        "observations of 9 points have shape (9,)",
    ]


def test_hooks_that_are_not_there_have_no_laws() -> None:
    names = {law.name for law in environment_laws(Grounded(ground=Ground))}
    more = {law.name for law in environment_laws(Grounded(ground=Hooked))} - names
    assert all(re.search("available|observ|coarse|cell_count", name) for name in more)
    assert not any(re.search("available|observ|coarse|cell_count", name) for name in names)


def test_a_landscape_that_starts_later_has_the_laws_of_its_hooks_all_the_same() -> None:
    class Late:
        made: Callable[[], object] = staticmethod(lambda: 1 / 0)

        def __call__(self) -> object:
            return self.made()

    late = Late()
    listed = list(environment_laws(Grounded(ground=late)))
    late.made = ColumnOfObservations
    named = [name for name in broken(listed) if "pickled" not in name]
    assert named == ["observations of 9 points have shape (9,)"]


def test_a_law_that_rests_on_a_broken_one_is_not_checked() -> None:
    found = {law.name: law for law in environment_laws(Grounded(ground=Upright))}
    with pytest.raises(UncheckedError, match=r"rests on .* broken: rewards of 9 points have shape"):
        found["rewards are finite"].check()


def test_a_best_point_outside_the_domain_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"Grounded: best point: \[1\.5\] lies outside the domain"):
        check_environment(Grounded(ground=Elsewhere))
