"""Laws of environments: a landscape is a pure function of points and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.landscapes.computed import ComputedLandscape, TabulatedLandscape
from sparq_sim.plugin.environment import Coarsening, Environment, Landscape, Observing, WithGaps
from sparq_sim.plugin.hooks import LANDSCAPE_HOOKS
from sparq_sim.testing.law import FindViolation, Law, full_name, make_law, make_rng
from sparq_sim.testing.laws_of_plugins import enter, hook_laws, model_laws, resource_laws

__all__ = ["environment_laws"]

_POINTS = 9
"""At so many points a landscape is looked at."""
_COARSE = 0.5
"""The resolution at which a coarse landscape is looked at."""


def environment_laws(environment: Environment, *, horizon: float = 20.0) -> Iterator[Law]:
    """Yield the laws of environments, and of the hooks that the landscape has.

    Args:
        environment: Whose laws they are.
        horizon: Until when its landscape is looked at, in clock units.

    Yields:
        Laws in an order in which each comes after those that it rests on.
    """
    yield from model_laws(environment)
    survey = _Survey(environment, _start, horizon=horizon)
    yield (starts := survey.law("start gives a Landscape", survey.find_no_landscape))
    hooks = hook_laws(environment, lambda: survey.landscape, LANDSCAPE_HOOKS, starts)
    yield from hooks.values()
    yield from resource_laws(environment, survey, lambda: environment.start(make_rng(1)), starts)
    yield from _reward_laws(survey, hooks["rewards"], hooks["best"])
    if "available" in hooks:
        yield from _gap_laws(survey, hooks["available"])
    if "observe" in hooks:
        yield from _observation_laws(survey, hooks["observe"])
    if "coarse" in hooks:
        yield from _coarse_laws(survey, hooks["coarse"])


def _start(survey: _Survey) -> Landscape:
    environment = survey.environment
    who = f"environment {type(environment).__name__}"
    landscape: Landscape = enter(survey, who, environment.start(make_rng(1)))
    return landscape


@dataclass
class _Survey:
    """A landscape that is started once, and asked at some points and times."""

    environment: Environment
    start: Callable[[_Survey], Landscape]
    """Starts a landscape that may be used as long as the survey is there."""
    horizon: float
    prefix: str = ""
    """Of the names of its laws."""
    holds: bool = False
    """Whether the landscape is a context manager."""
    changes_points: bool = False
    """Whether it has changed points that it was asked about."""

    def law(self, name: str, find_violation: FindViolation, *bases: Law, remedy: str = "") -> Law:
        """Return a law of the landscape."""
        return make_law(
            self.environment, f"{self.prefix}{name}", find_violation, *bases, remedy=remedy
        )

    @cached_property
    def landscape(self) -> Landscape:
        """The landscape, started once."""
        return self.start(self)

    @cached_property
    def points(self) -> Points:
        """Where it is asked."""
        return self.landscape.domain.sample(make_rng(2), _POINTS)

    @cached_property
    def times(self) -> list[float]:
        """When it is asked."""
        return [0.0, self.horizon / 3, self.horizon / 2, self.horizon]

    def ask_rewards(
        self, points: Points, time: float, landscape: Landscape | None = None
    ) -> Values:
        """Return rewards, of the landscape or of another, and note whether points were changed."""
        given = points.copy()
        rewards = (self.landscape if landscape is None else landscape).rewards(given, time)
        self.changes_points |= not np.array_equal(given, points)
        return rewards

    @cached_property
    def rewards(self) -> list[Values]:
        """The rewards of all points, at each time in turn."""
        return [self.ask_rewards(self.points, time) for time in self.times]

    @cached_property
    def best(self) -> list[tuple[Point, float]]:
        """The best point and its value, at each time."""
        return [self.landscape.best(time) for time in self.times]

    def ask_available(self, points: Points, time: float) -> NDArray[np.bool_]:
        """Return for each point whether there is a reading."""
        landscape = self.landscape
        if not isinstance(landscape, WithGaps):
            return np.ones(len(points), dtype=bool)
        return landscape.available(points.copy(), time)

    @cached_property
    def observations(self) -> list[Values]:
        """What is observed at all points, at each time."""
        return self.ask_observations()

    def ask_observations(self) -> list[Values]:
        """Observe all points at each time, with the same chance whenever this is called."""
        landscape = self.landscape
        assert isinstance(landscape, Observing)  # As its law says.
        return [landscape.observe(self.points.copy(), time, make_rng(3)) for time in self.times]

    @cached_property
    def simulated(self) -> ComputedLandscape | TabulatedLandscape | None:
        """The landscape, if it is simulated to a tolerance that it states."""
        with suppress(Exception):  # The law that it starts shows the error.
            if isinstance(self.landscape, ComputedLandscape | TabulatedLandscape):
                return self.landscape
        return None

    def find_no_landscape(self) -> object:
        """Return what was started, if it is no landscape."""
        return None if isinstance(self.landscape, Landscape) else self.landscape

    def find_difference(
        self, one: Sequence[NDArray[Any]], other: Sequence[NDArray[Any]]
    ) -> str | None:
        """Return the first time at which two lists of arrays differ, and both arrays."""
        for time, first, second in zip(self.times, one, other, strict=True):
            if not np.array_equal(first, second, equal_nan=True):
                return f"at time {time}: {first}, {second}"
        return None


# Rewards and the best point


def _reward_laws(survey: _Survey, *bases: Law) -> Iterator[Law]:
    """Yield the laws that all landscapes obey."""

    def by(find: Callable[[_Survey], object]) -> FindViolation:
        return partial(find, survey)

    shape = f"rewards of {_POINTS} points have shape ({_POINTS},)"
    yield (shaped := survey.law(shape, by(_find_wrong_shape), *bases))
    yield survey.law("rewards are finite", by(_find_infinite_reward), shaped)
    yield survey.law("leaves the points as they were", by(_find_changed_points), shaped)
    past = "rewards do not depend on what was asked before"
    yield survey.law(past, by(_find_dependence_on_order), shaped)
    yield survey.law("equal rng, equal landscape", by(_find_unequal_landscape), shaped)
    alone = "a point has the same reward alone and among others"
    yield survey.law(alone, by(_find_dependence_on_company), shaped)
    yield (best := survey.law("best lies in the domain", by(_check_best_in_domain), shaped))
    yield survey.law("best's reward is its value", by(_find_wrong_best_value), best)
    yield survey.law("no point beats best", by(_find_better_than_best), best)
    if (simulated := survey.simulated) is not None:
        kept = f"rewards are those simulated anew, to its tolerance of {simulated.tolerance:g}"
        remedy = "state a larger one, or take more nodes and snapshots"
        find = partial(_find_error_above_tolerance, survey, simulated)
        yield survey.law(kept, find, shaped, remedy=remedy)


def _find_wrong_shape(survey: _Survey) -> object:
    return next(filter(None, map(_describe_wrong_array, survey.rewards)), None)


def _find_infinite_reward(survey: _Survey) -> object:
    return next((each for each in survey.rewards if not np.isfinite(each).all()), None)


def _find_changed_points(survey: _Survey) -> object:
    asked = len(survey.rewards)
    return f"points changed while {asked} times were asked for" if survey.changes_points else None


def _find_dependence_on_order(survey: _Survey) -> object:
    back = [survey.ask_rewards(survey.points, time) for time in reversed(survey.times)]
    return survey.find_difference(survey.rewards, back[::-1])


def _find_unequal_landscape(survey: _Survey) -> object:
    again = survey.start(survey)
    rewards = [survey.ask_rewards(survey.points, time, again) for time in survey.times]
    return survey.find_difference(survey.rewards, rewards)


def _find_dependence_on_company(survey: _Survey) -> object:
    for time, among in zip(survey.times, survey.rewards, strict=True):
        alone = np.concatenate([survey.ask_rewards(row[None], time) for row in survey.points])
        if not np.allclose(among, alone, rtol=1e-12, atol=1e-12, equal_nan=True):
            return among, alone
    return None


def _check_best_in_domain(survey: _Survey) -> object:
    for point, _ in survey.best:
        what = f"{full_name(survey.environment)}: best point"
        survey.landscape.domain.check(np.asarray(point)[None], what)
    return None


def _find_wrong_best_value(survey: _Survey) -> object:
    for time, (point, value) in zip(survey.times, survey.best, strict=True):
        reward = survey.ask_rewards(np.asarray(point)[None], time)[0]
        if not abs(reward - value) <= _slack(value):
            return f"at time {time} reward {reward}, value {value}"
    return None


def _find_better_than_best(survey: _Survey) -> object:
    cover = survey.landscape.domain.cover(500)
    for time, (_, value) in zip(survey.times, survey.best, strict=True):
        highest = survey.ask_rewards(cover, time).max()
        tolerance = 0.0 if survey.simulated is None else survey.simulated.tolerance
        if highest > value + max(_slack(value), tolerance):
            return highest, value
    return None


def _find_error_above_tolerance(
    survey: _Survey, landscape: ComputedLandscape | TabulatedLandscape
) -> object:
    points = landscape.domain.cover(200)
    for time in survey.times:
        errors = abs(landscape.simulate(points, time) - survey.ask_rewards(points, time))
        if not errors.max() <= landscape.tolerance:
            return f"at time {time:g} an error of {errors.max():g}"
    return None


# Hooks that a landscape may have


def _gap_laws(survey: _Survey, basis: Law) -> Iterator[Law]:
    """Yield the laws of `available`."""

    def find_no_bools() -> object:
        for time in survey.times:
            found = survey.ask_available(survey.points, time)
            if (wrong := _describe_wrong_array(found, dtypes="b")) is not None:
                return wrong
        return None

    def find_dependence_on_order() -> object:
        forth = [survey.ask_available(survey.points, time) for time in survey.times]
        back = [survey.ask_available(survey.points, time) for time in reversed(survey.times)]
        return survey.find_difference(forth, back[::-1])

    def find_dependence_on_company() -> object:
        for time in survey.times:
            among = survey.ask_available(survey.points, time)
            alone = np.concatenate([survey.ask_available(row[None], time) for row in survey.points])
            if not np.array_equal(among, alone):
                return among, alone
        return None

    bools = f"available gives {_POINTS} bools for {_POINTS} points"
    yield (sound := survey.law(bools, find_no_bools, basis))
    past = "available does not depend on what was asked before"
    yield survey.law(past, find_dependence_on_order, sound)
    yield survey.law(
        "a point is available alone as among others", find_dependence_on_company, sound
    )


def _observation_laws(survey: _Survey, basis: Law) -> Iterator[Law]:
    """Yield the laws of `observe`."""

    def find_wrong_shape() -> object:
        return next(filter(None, map(_describe_wrong_array, survey.observations)), None)

    def find_infinite() -> object:
        for time, found in zip(survey.times, survey.observations, strict=True):
            if not np.isfinite(found[survey.ask_available(survey.points, time)]).all():
                return found
        return None

    def find_unequal() -> object:
        return survey.find_difference(survey.observations, survey.ask_observations())

    shape = f"observations of {_POINTS} points have shape ({_POINTS},)"
    yield (shaped := survey.law(shape, find_wrong_shape, basis))
    yield survey.law("observations are finite", find_infinite, shaped)
    yield survey.law("equal rng, equal observations", find_unequal, shaped)


def _coarse_laws(survey: _Survey, basis: Law) -> Iterator[Law]:
    """Yield the laws of a coarse landscape: it is one, of the same domain."""

    def start(coarse: _Survey) -> Landscape:
        fine = _start(coarse)
        assert isinstance(fine, Coarsening)  # As its law says.
        return fine.coarse(_COARSE)

    coarse = _Survey(survey.environment, start, horizon=survey.horizon, prefix="coarse: ")

    def find_other_domain() -> object:
        own, other = (each.landscape.domain for each in (survey, coarse))
        same = own.names == other.names and np.array_equal(own.cover(50), other.cover(50))
        return None if same else other

    yield (starts := coarse.law("is a Landscape", coarse.find_no_landscape, basis))
    yield (domain := coarse.law("has the domain of the landscape", find_other_domain, starts))
    yield from _reward_laws(coarse, domain)


def _describe_wrong_array(found: object, dtypes: str = "iuf") -> str | None:
    """Describe what was found, unless it is an array of one number, or bool, for each point."""
    if not isinstance(found, np.ndarray):
        return f"{type(found).__name__} {found!r:.80}"
    if found.shape != (_POINTS,) or found.dtype.kind not in dtypes:
        return f"an array of shape {found.shape} and type {found.dtype}"
    return None


def _slack(value: float) -> float:
    return 1e-6 * max(1.0, abs(value))
