"""Functions: an environment made of any Python function of points and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from numpy.random import Generator
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from sparq_sim.arrays import Point, Points, Values, freeze_array
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError
from sparq_sim.landscapes.computed import compute_values
from sparq_sim.landscapes.optima import build_search
from sparq_sim.plugin.contract import Environment, Landscape

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
        self._search = build_search(self.domain, self.rewards, cover=model.cover)

    def rewards(self, points: Points, time: float) -> Values:
        """Give the function at each point, or say what is wrong with what it gave."""
        asked = f"{self._name}(points, {time!r})"
        return compute_values(lambda view: self._model.function(view, time), points, asked=asked)

    def best(self, time: float) -> tuple[Point, float]:
        """Give the highest point as `from_function` tells."""
        if self._model.best is None:
            return self._search(time)
        if time not in self._found:
            self._found[time] = self._known(self._model.best, time)
        return self._found[time]

    def _known(self, function: BestFunction, time: float) -> tuple[Point, float]:
        name = _name(function)
        given: Any = function(time)
        try:
            point, value = freeze_array(given[0]), float(given[1])
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


def _name(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None)
    return f"{function.__module__}.{name}" if name else repr(function)
