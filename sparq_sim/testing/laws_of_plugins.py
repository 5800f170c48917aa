"""Laws: what every plug-in obeys, each with a name, so that the one that is broken is named."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol
from weakref import finalize

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.errors import PluginError
from sparq_sim.landscapes.computed import ComputedLandscape, TabulatedLandscape
from sparq_sim.plugin.environment import Coarsening, Environment, Landscape, Observing, WithGaps
from sparq_sim.plugin.hooks import (
    LANDSCAPE_HOOKS,
    Hook,
    describe_near_miss,
    find_mismatch,
    find_near_misses,
    has_hook,
)
from sparq_sim.plugin.model import Model
from sparq_sim.simulation.lifetime import Resources, run_at_once

POINTS = 9
"""At so many points a landscape is looked at."""
COARSE = 0.5
"""The resolution at which a coarse landscape is looked at."""

Wrong = Callable[[], object]
"""Returns what was seen that breaks a law; None if it holds."""


class LawError(AssertionError):
    """A plug-in broke a law."""


class UncheckedError(Exception):
    """A law cannot be checked: another that it rests on is broken, or its hook is not there."""


@dataclass(eq=False)
class Law:
    """One law that a plug-in obeys: its *name* says what holds, `check` finds whether it does."""

    name: str
    test: Callable[[], None] = field(repr=False)
    rests_on: tuple[Law, ...] = field(default=(), repr=False)
    """Laws without which this one means nothing."""
    _holds: bool | None = field(default=None, init=False, repr=False)

    def check(self) -> None:
        """Raise a LawError, or what the plug-in itself raised, if the law is broken.

        Raises:
            UncheckedError: If a law that it rests on is broken, or its hook is not there.
        """
        __tracebackhide__ = True  # pytest shows where a test failed, not how it was called.
        self._holds = False
        for basis in self.rests_on:
            if not basis.holds:
                raise UncheckedError(f"rests on a law that is broken: {basis.name}")
        self.test()
        self._holds = True

    @property
    def holds(self) -> bool:
        """Whether it holds; checked once."""
        if self._holds is None:
            with suppress(Exception):
                self.check()
        return bool(self._holds)


def check_each(laws: Iterator[Law]) -> None:
    """Check one law after the other; the first that is broken raises."""
    __tracebackhide__ = True
    for law in laws:
        with suppress(UncheckedError):
            law.check()


def law(
    model: Model, name: str, wrong: Wrong, *bases: Law, remedy: str | Callable[[], str] = ""
) -> Law:
    """Return the law of a *model* that holds unless *wrong* returns what was seen.

    Args:
        model: Whose law it is, which an error names.
        name: What holds.
        wrong: Returns what breaks the law, or None.
        bases: The laws that it rests on.
        remedy: How to obey it, told when it is broken; a function where that depends on how.
    """

    def test() -> None:
        __tracebackhide__ = True
        if (seen := wrong()) is not None:
            cure = remedy if isinstance(remedy, str) else remedy()
            told = f"{name}: {cure}" if cure else name
            raise LawError(f"{name_of(model)}: {told}; seen: {seen!s:.300}")

    return Law(name, test, bases)


def name_of(model: Model) -> str:
    """Return the module and the class of a *model*."""
    return f"{type(model).__module__}.{type(model).__name__}"


def stream(seed: int) -> Generator:
    """Return a generator of this *seed*."""
    return Generator(Philox(key=seed))


class Keeper(Protocol):
    """Whoever keeps what was started for laws to look at."""

    holds: bool
    """Whether what was started is a context manager."""


def entered(keeper: Keeper, who: str, started: Any, *, may_await: bool = False) -> Any:
    """Return what was *started*, entered if it holds something, and left when *keeper* is gone."""
    resources = Resources()
    inside = run_at_once(resources.enter(who, started, may_await=may_await))
    if resources.holds:
        keeper.holds = True
        finalize(keeper, _close, resources)
    return inside


def _close(resources: Resources) -> None:
    with suppress(Exception):  # A law tells, which leaves it for itself.
        run_at_once(resources.close())


def life_laws(
    model: Model,
    keeper: Keeper,
    start: Callable[[], object],
    basis: Law,
    *,
    may_await: bool = False,
) -> Iterator[Law]:
    """Yield the law that what was started can be entered and left, if it is a context manager.

    Args:
        model: Whose law it is.
        keeper: Who has entered what was started, if that could be done.
        start: Starts it anew.
        basis: The law that it starts at all.
        may_await: Whether it may be an asynchronous context manager.
    """

    def unleft() -> object:
        resources = Resources()
        try:
            run_at_once(resources.enter(name_of(model), start(), may_await=may_await))
            run_at_once(resources.close())
        except PluginError as error:
            return error
        return None

    if keeper.holds:
        yield law(model, "can be entered and left", unleft, basis)


# Models


def model_laws(model: Model) -> Iterator[Law]:
    """Yield the laws of models: each is its parameters, equal to its copy, hashable, documented."""

    def copied() -> Model:
        copy: Model = pickle.loads(pickle.dumps(model))
        return copy

    def uncopied() -> object:
        try:
            hash(copied())
            hash(model)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    yield (basis := law(model, "can be pickled and hashed", uncopied))
    equal = "equals its pickled self"
    yield law(model, equal, lambda: None if copied() == model else copied(), basis)
    hashed = "hashes as its pickled self does"
    yield law(model, hashed, lambda: None if hash(copied()) == hash(model) else copied(), basis)
    yield law(model, "has a docstring", lambda: None if type(model).__doc__ else "none")


# Hooks


def call_laws(
    model: Model, start: Callable[[], object], hooks: Sequence[Hook], basis: Law
) -> dict[str, Law]:
    """Return the laws of how a started plug-in is called: each hook that is there, and how.

    Args:
        model: Whose laws they are.
        start: Returns what the model starts.
        hooks: By which that is used.
        basis: The law that it starts at all.

    Returns:
        Laws by the name of the hook; the last, under "spelling", is that no other name is nearly
        one of these.
    """

    def fault_of(hook: Hook) -> Wrong:
        def wrong() -> object:
            started = start()
            if hook.optional and not has_hook(started, hook):
                raise UncheckedError(f"there is no {hook.name}")
            return find_mismatch(started, hook)

        return wrong

    def misspellings() -> object:
        found = [describe_near_miss(*pair) for pair in find_near_misses(start(), hooks)]
        return "; ".join(found) or None

    laws = {
        hook.name: law(model, _called(hook), fault_of(hook), basis)
        for hook in _listed(start, hooks)
    }
    return {
        **laws,
        "spelling": law(model, "no name is that of a hook misspelt", misspellings, basis),
    }


def _called(hook: Hook) -> str:
    if hook.arguments is None:
        return f"{hook.name} is a whole number above 0"
    how = "can be awaited" if hook.is_async else "can be called"
    return f"{hook.name} {how} with ({', '.join(hook.arguments)})"


def _listed(start: Callable[[], object], hooks: Sequence[Hook]) -> list[Hook]:
    """Return the hooks that have a law: methods that must be there, and what else is there.

    Where that is not known before laws are checked, it is all.
    """
    lawful = [hook for hook in hooks if hook.optional or hook.arguments is not None]
    try:
        started = start()
    except Exception:  # Whatever it is, the law that it starts will tell.
        return lawful
    return [hook for hook in lawful if not hook.optional or has_hook(started, hook)]


def usable(model: Model, start: Callable[[], object], hooks: Sequence[Hook], *bases: Law) -> Law:
    """Return the law that all hooks that are there can be used, for those of a play to rest on."""

    def faults() -> object:
        return next(filter(None, (find_mismatch(start(), hook) for hook in hooks)), None)

    return law(model, "can be called as a play does", faults, *bases)


# Environments


def environment_laws(environment: Environment, *, horizon: float = 20.0) -> Iterator[Law]:
    """Yield the laws of environments: a landscape is a pure function of points and time.

    Args:
        environment: Whose laws they are.
        horizon: Until when its landscape is looked at, in clock units.
    """
    yield from model_laws(environment)
    survey = _Survey(environment, _begin, horizon=horizon)
    yield (starts := survey.law("start gives a Landscape", survey.no_landscape))
    calls = call_laws(environment, lambda: survey.landscape, LANDSCAPE_HOOKS, starts)
    yield from calls.values()
    yield from life_laws(environment, survey, lambda: environment.start(stream(1)), starts)
    yield from survey.laws(calls["rewards"], calls["best"])
    if "available" in calls:
        yield from survey.gap_laws(calls["available"])
    if "observe" in calls:
        yield from survey.observation_laws(calls["observe"])
    if "coarse" in calls:
        yield from _coarse_laws(survey, calls["coarse"])


def _begin(survey: _Survey) -> Landscape:
    environment = survey.environment
    who = f"environment {type(environment).__name__}"
    landscape: Landscape = entered(survey, who, environment.start(stream(1)))
    return landscape


def _coarse_laws(survey: _Survey, basis: Law) -> Iterator[Law]:
    """Yield the laws of a coarse landscape: it is one, of the same domain."""

    def start(coarse: _Survey) -> Landscape:
        fine = _begin(coarse)
        assert isinstance(fine, Coarsening)  # As its law says.
        return fine.coarse(COARSE)

    coarse = _Survey(survey.environment, start, horizon=survey.horizon, prefix="coarse: ")

    def other_domain() -> object:
        own, other = (each.landscape.domain for each in (survey, coarse))
        same = own.names == other.names and np.array_equal(own.cover(50), other.cover(50))
        return None if same else other

    yield (starts := coarse.law("is a Landscape", coarse.no_landscape, basis))
    yield (domain := coarse.law("has the domain of the landscape", other_domain, starts))
    yield from coarse.laws(domain)


@dataclass
class _Survey:
    """A landscape that is asked at some points, forth and back in time."""

    environment: Environment
    start: Callable[[_Survey], Landscape]
    """Starts a landscape that may be used as long as the survey is there."""
    horizon: float
    prefix: str = ""
    """Of the names of its laws."""
    holds: bool = False
    """Whether the landscape is a context manager."""
    meddles: bool = False
    """Whether it has changed points that it was asked about."""

    def law(self, name: str, wrong: Wrong, *bases: Law) -> Law:
        """Return a law of the landscape."""
        return law(self.environment, f"{self.prefix}{name}", wrong, *bases)

    def laws(self, *bases: Law) -> Iterator[Law]:
        """Yield the laws that all landscapes obey."""
        shape = f"rewards of {POINTS} points have shape ({POINTS},)"
        yield (shaped := self.law(shape, self._misshapen, *bases))
        yield self.law("rewards are finite", self._infinite, shaped)
        yield self.law("leaves the points as they were", self._meddling, shaped)
        past = "rewards do not depend on what was asked before"
        yield self.law(past, self._forgetful, shaped)
        yield self.law("equal rng, equal landscape", self._unequal, shaped)
        alone = "a point has the same reward alone and among others"
        yield self.law(alone, self._sociable, shaped)
        yield (best := self.law("best lies in the domain", self._outside, shaped))
        yield self.law("best's reward is its value", self._boasting, best)
        yield self.law("no point beats best", self._modest, best)
        if (simulated := self._simulated) is not None:
            kept = f"rewards are those simulated anew, to its tolerance of {simulated.tolerance:g}"
            remedy = "state a larger one, or take more nodes and snapshots"
            wrong = partial(self._intolerable, simulated)
            yield law(self.environment, f"{self.prefix}{kept}", wrong, shaped, remedy=remedy)

    def gap_laws(self, basis: Law) -> Iterator[Law]:
        """Yield the laws of `available`."""
        bools = f"available gives {POINTS} bools for {POINTS} points"
        yield (sound := self.law(bools, self._not_bools, basis))
        past = "available does not depend on what was asked before"
        yield self.law(past, self._changing, sound)
        alone = "a point is available alone as among others"
        yield self.law(alone, self._available_otherwise, sound)

    def observation_laws(self, basis: Law) -> Iterator[Law]:
        """Yield the laws of `observe`."""
        shape = f"observations of {POINTS} points have shape ({POINTS},)"
        yield (shaped := self.law(shape, self._not_observed, basis))
        yield self.law("observations are finite", self._unobserved, shaped)
        yield self.law("equal rng, equal observations", self._observed_otherwise, shaped)

    # What is asked

    @cached_property
    def landscape(self) -> Landscape:
        """The landscape, started once."""
        return self.start(self)

    @cached_property
    def points(self) -> Points:
        """Where it is asked."""
        return self.landscape.domain.sample(stream(2), POINTS)

    @cached_property
    def times(self) -> list[float]:
        """When it is asked."""
        return [0.0, self.horizon / 3, self.horizon / 2, self.horizon]

    def _rewards(self, points: Points, time: float, landscape: Landscape | None = None) -> Values:
        given = points.copy()
        rewards = (self.landscape if landscape is None else landscape).rewards(given, time)
        self.meddles |= not np.array_equal(given, points)
        return rewards

    @cached_property
    def _forth(self) -> list[Values]:
        return [self._rewards(self.points, time) for time in self.times]

    @cached_property
    def _best(self) -> list[tuple[Point, float]]:
        return [self.landscape.best(time) for time in self.times]

    def _available(self, points: Points, time: float) -> NDArray[np.bool_]:
        landscape = self.landscape
        if not isinstance(landscape, WithGaps):
            return np.ones(len(points), dtype=bool)
        return landscape.available(points.copy(), time)

    @cached_property
    def _first_observed(self) -> list[Values]:
        return self._observed()

    def _observed(self) -> list[Values]:
        landscape = self.landscape
        assert isinstance(landscape, Observing)  # As its law says.
        return [landscape.observe(self.points.copy(), time, stream(3)) for time in self.times]

    # What is found

    def no_landscape(self) -> object:
        """Return what was started, if it is no landscape."""
        return None if isinstance(self.landscape, Landscape) else self.landscape

    def _misshapen(self) -> object:
        return next(filter(None, map(_no_column, self._forth)), None)

    def _infinite(self) -> object:
        return next((found for found in self._forth if not np.isfinite(found).all()), None)

    def _meddling(self) -> object:
        asked = self._forth
        return f"points changed while {len(asked)} times were asked for" if self.meddles else None

    def _forgetful(self) -> object:
        back = [self._rewards(self.points, time) for time in reversed(self.times)]
        return self._unlike(self._forth, back[::-1])

    def _unequal(self) -> object:
        again = self.start(self)
        return self._unlike(
            self._forth, [self._rewards(self.points, time, again) for time in self.times]
        )

    def _sociable(self) -> object:
        for time, among in zip(self.times, self._forth, strict=True):
            alone = np.concatenate([self._rewards(row[None], time) for row in self.points])
            if not np.allclose(among, alone, rtol=1e-12, atol=1e-12, equal_nan=True):
                return among, alone
        return None

    def _outside(self) -> object:
        for point, _ in self._best:
            what = f"{name_of(self.environment)}: best point"
            self.landscape.domain.check(np.asarray(point)[None], what)
        return None

    def _boasting(self) -> object:
        for time, (point, value) in zip(self.times, self._best, strict=True):
            reward = self._rewards(np.asarray(point)[None], time)[0]
            if not abs(reward - value) <= _slack(value):
                return f"at time {time} reward {reward}, value {value}"
        return None

    def _modest(self) -> object:
        cover = self.landscape.domain.cover(500)
        for time, (_, value) in zip(self.times, self._best, strict=True):
            highest = self._rewards(cover, time).max()
            tolerance = 0.0 if self._simulated is None else self._simulated.tolerance
            if highest > value + max(_slack(value), tolerance):
                return highest, value
        return None

    @cached_property
    def _simulated(self) -> ComputedLandscape | TabulatedLandscape | None:
        """The landscape, if it is simulated to a tolerance that it states."""
        with suppress(Exception):  # The law that it starts tells.
            if isinstance(self.landscape, ComputedLandscape | TabulatedLandscape):
                return self.landscape
        return None

    def _intolerable(self, landscape: ComputedLandscape | TabulatedLandscape) -> object:
        points = landscape.domain.cover(200)
        for time in self.times:
            errors = abs(landscape.simulate(points, time) - self._rewards(points, time))
            if not errors.max() <= landscape.tolerance:
                return f"at time {time:g} an error of {errors.max():g}"
        return None

    def _not_bools(self) -> object:
        for time in self.times:
            found = self._available(self.points, time)
            if (wrong := _no_column(found, dtypes="b")) is not None:
                return wrong
        return None

    def _changing(self) -> object:
        forth = [self._available(self.points, time) for time in self.times]
        back = [self._available(self.points, time) for time in reversed(self.times)]
        return self._unlike(forth, back[::-1])

    def _available_otherwise(self) -> object:
        for time in self.times:
            among = self._available(self.points, time)
            alone = np.concatenate([self._available(row[None], time) for row in self.points])
            if not np.array_equal(among, alone):
                return among, alone
        return None

    def _not_observed(self) -> object:
        return next(filter(None, map(_no_column, self._first_observed)), None)

    def _unobserved(self) -> object:
        for time, found in zip(self.times, self._first_observed, strict=True):
            if not np.isfinite(found[self._available(self.points, time)]).all():
                return found
        return None

    def _observed_otherwise(self) -> object:
        return self._unlike(self._first_observed, self._observed())

    def _unlike(self, one: Sequence[NDArray[Any]], other: Sequence[NDArray[Any]]) -> object:
        """Return the first time at which two findings differ, and both."""
        for time, first, second in zip(self.times, one, other, strict=True):
            if not np.array_equal(first, second, equal_nan=True):
                return f"at time {time}: {first}, {second}"
        return None


def _no_column(found: object, dtypes: str = "iuf") -> str | None:
    """Return what was found, unless it is an array of one number, or bool, for each point."""
    if not isinstance(found, np.ndarray):
        return f"{type(found).__name__} {found!r:.80}"
    if found.shape != (POINTS,) or found.dtype.kind not in dtypes:
        return f"an array of shape {found.shape} and type {found.dtype}"
    return None


def _slack(value: float) -> float:
    return 1e-6 * max(1.0, abs(value))
