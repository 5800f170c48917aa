"""Functions: an environment made of any Python function of points and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError
from sparq_sim.messages import Point, Points, Values, frozen_array
from sparq_sim.models import Environment, Landscape
from sparq_sim.summits import Summits

RewardFunction = Callable[[Points, float], ArrayLike]
"""`def reward(points, time)`, which gives one number for each row of points (n, d)."""
BestFunction = Callable[[float], tuple[ArrayLike, float]]
"""`def best(time)`, which gives the point of the highest reward, and that reward."""


def from_function(
    function: RewardFunction,
    domain: Domain,
    *,
    best: BestFunction | None = None,
    cover: int | None = None,
) -> Environment:
    """Make an environment of `f(points, time)` on *domain*, a Box or Sites.

    The *function* must depend on nothing else. Where *best* does not tell the highest point, all
    sites are compared; in a box it is searched for from an even cover of *cover* points (513 on
    a line, 1,024 beyond by default), and right to about 1e-9 of the reward's range where the
    function is smooth on that scale.
    """
    if isinstance(domain, Sites):
        return FunctionWorld(
            function=function,
            sites=tuple(tuple(point) for point in domain.points.tolist()),
            site_names=domain.site_names,
            names=domain.names,
            best=best,
            cover=cover,
        )
    if isinstance(domain, Box):
        return FunctionWorld(
            function=function,
            lower=tuple(domain.lower.tolist()),
            upper=tuple(domain.upper.tolist()),
            names=domain.names,
            best=best,
            cover=cover,
        )
    raise PluginError(f"the domain of a function is a Box or Sites, not {domain!r:.200}")


class FunctionWorld(Environment):
    """f(x, t) = function(x, t), on a box or on sites; made by `from_function`.

    It can be pickled, and so be played by several processes, if the function is one of a module.
    """

    function: RewardFunction
    """Gives the reward at each row of points (n, d), at a time: (n,)."""
    lower: tuple[float, ...] = ()
    """Where the box begins; empty where there are sites."""
    upper: tuple[float, ...] = ()
    """Where it ends."""
    sites: tuple[tuple[float, ...], ...] = ()
    """The places, where there is no box."""
    site_names: tuple[str, ...] = ()
    """What the sites are called."""
    names: tuple[str, ...] = ()
    """What the coordinates are called."""
    best: BestFunction | None = None
    """Gives the highest point at a time and its reward, where it is known."""
    cover: Annotated[int, Field(ge=2)] | None = None
    """From how many points the highest is searched for, at least two."""

    @model_validator(mode="after")
    def _has_a_place(self) -> FunctionWorld:
        self.domain()
        return self

    def domain(self) -> Domain:
        """Give where points may lie."""
        if self.sites:
            return Sites(self.sites, self.site_names, self.names)
        return Box(self.lower, self.upper, self.names)

    def start(self, rng: Generator) -> Landscape:
        """Give the function as a landscape; nothing is left to chance."""
        return FunctionLandscape(self)


class FunctionLandscape:
    """The started function, whose every result is examined."""

    def __init__(self, model: FunctionWorld) -> None:
        self.domain = model.domain()
        self._model = model
        self._name = _name(model.function)
        self._found: dict[float, tuple[Point, float]] = {}
        self._summits = (
            Summits(self.domain, self.rewards, cover=model.cover)
            if isinstance(self.domain, Box)
            else None
        )

    def rewards(self, points: Points, time: float) -> Values:
        """Give the function at each point, or say what is wrong with what it gave."""
        # The function may not change its points, which are others' as well.
        view = points.view()
        view.setflags(write=False)
        try:
            given: Any = self._model.function(view, time)
        except Exception as error:
            error.add_note(f"in {self._name}(points, {time!r}), points of shape {points.shape}")
            raise
        return self._examined(given, points, time)

    def best(self, time: float) -> tuple[Point, float]:
        """Give the highest point as `from_function` tells."""
        if self._summits is not None and self._model.best is None:
            return self._summits.best(time)
        if time not in self._found:
            self._found[time] = self._known(time)
        return self._found[time]

    def _known(self, time: float) -> tuple[Point, float]:
        if self._model.best is None:
            sites = self.domain.cover(0)
            rewards = self.rewards(sites, time)
            return sites[rewards.argmax()], float(rewards.max())
        name = _name(self._model.best)
        given: Any = self._model.best(time)
        try:
            point, value = frozen_array(given[0]), float(given[1])
            self.domain.check(point[None], f"{name}({time!r})")
        except (TypeError, ValueError, IndexError) as error:
            raise PluginError(
                f"{name}({time!r}) gives {given!r:.200}; expected a point of the domain and its "
                f"reward: {error}"
            ) from error
        reward = float(self.rewards(point[None], time)[0])
        if not abs(value - reward) <= 1e-6 * max(1.0, abs(reward)):
            raise PluginError(
                f"{name}({time!r}) gives the reward {value} at {point.tolist()}, "
                f"where {self._name} gives {reward}"
            )
        return point, reward

    def _examined(self, given: Any, points: Points, time: float) -> Values:
        expected = f"expected {len(points)} finite numbers, one for each row of points"
        asked = f"{self._name}(points, {time!r})"
        try:
            array = np.asarray(given)
        except ValueError as error:  # Rows of several lengths.
            raise PluginError(f"{asked} gives {given!r:.200}; {expected}") from error
        if array.dtype.kind not in "fiu":
            raise PluginError(f"{asked} gives {given!r:.200}; {expected}")
        if array.shape != (len(points),):
            raise PluginError(f"{asked} gives an array of shape {array.shape}; {expected}")
        values: Values = array.astype(np.float64)  # A copy: the function may reuse its own.
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            raise PluginError(
                f"{asked} gives {values[wrong[0]]} at {points[wrong[0]].tolist()}; {expected}"
            )
        return values


def _name(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None)
    return f"{function.__module__}.{name}" if name else repr(function)
