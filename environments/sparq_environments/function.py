"""An environment made of any Python function of points and time: `from_function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from numpy.random import Generator
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from sparq_sim.arrays import Point, Points, Values, freeze_array
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError
from sparq_sim.landscapes.optima import build_search
from sparq_sim.landscapes.simulated import compute_values
from sparq_sim.plugin.contract import Environment, Landscape

__all__ = ["BestFunction", "FunctionEnvironment", "RewardFunction", "from_function"]

RewardFunction = Callable[[Points, float], ArrayLike]
"""`def reward(points, time)`, which returns one number for each row of points (n, d)."""
BestFunction = Callable[[float], tuple[ArrayLike, float]]
"""`def best(time)`, which returns the point of the highest reward, and that reward."""


def from_function(
    function: RewardFunction,
    domain: Domain,
    *,
    best: BestFunction | None = None,
    cover: int | None = None,
) -> Environment:
    """Make an environment of a Python function.

    Args:
        function: Returns the reward at each row of points (n, d) at a time, (n,). It must depend
            on nothing but its arguments.
        domain: Where points may lie, a Box or Sites.
        best: Returns the highest point and its reward at a time, if you know it. By default all
            sites are compared; in a box the best point is searched for, to about 1e-9 of the
            reward's range where the function is smooth on the scale of *cover*.
        cover: The number of evenly spread points from which the search begins; by default 513 on
            a line and 1,024 in more dimensions.

    Returns:
        The environment. Several processes can play it if the function is one of a module, so that
        it can be pickled.

    Raises:
        PluginError: The domain is neither a Box nor Sites.
    """
    if isinstance(domain, Sites):
        return FunctionEnvironment(
            function=function,
            sites=tuple(tuple(point) for point in domain.points.tolist()),
            site_names=domain.site_names,
            names=domain.names,
            best=best,
            cover=cover,
        )
    if isinstance(domain, Box):
        return FunctionEnvironment(
            function=function,
            lower=tuple(domain.lower.tolist()),
            upper=tuple(domain.upper.tolist()),
            names=domain.names,
            best=best,
            cover=cover,
        )
    raise PluginError(f"the domain of a function is a Box or Sites, not {domain!r:.200}")


class FunctionEnvironment(Environment):
    """The reward is a Python function, f(x, t) = function(x, t); made by `from_function`.

    It can be pickled, and so be played by several processes, if the function is one of a module.
    """

    function: RewardFunction
    """Returns the reward at each row of points (n, d) at a time, (n,)."""
    lower: tuple[float, ...] = ()
    """The lower bounds of the box; empty if there are sites."""
    upper: tuple[float, ...] = ()
    """The upper bounds of the box; empty if there are sites."""
    sites: tuple[tuple[float, ...], ...] = ()
    """The coordinates of the sites; empty if there is a box."""
    site_names: tuple[str, ...] = ()
    """The names of the sites."""
    names: tuple[str, ...] = ()
    """The names of the coordinates."""
    best: BestFunction | None = None
    """Returns the highest point at a time and its reward; None if it must be searched for."""
    cover: Annotated[int, Field(ge=2)] | None = None
    """The number of points from which the search begins, at least 2; None for the default."""

    @model_validator(mode="after")
    def _has_a_place(self) -> FunctionEnvironment:
        self.domain()
        return self

    def domain(self) -> Domain:
        """Return where points may lie."""
        if self.sites:
            return Sites(self.sites, self.site_names, self.names)
        return Box(self.lower, self.upper, self.names)

    def start(self, rng: Generator) -> Landscape:
        return _FunctionLandscape(self)


class _FunctionLandscape:
    """The landscape of a function, which checks every result of it."""

    def __init__(self, model: FunctionEnvironment) -> None:
        self.domain = model.domain()
        self._model = model
        self._name = _name(model.function)
        self._found: dict[float, tuple[Point, float]] = {}
        self._search = build_search(self.domain, self.rewards, cover=model.cover)

    def rewards(self, points: Points, time: float) -> Values:
        asked = f"{self._name}(points, {time!r})"
        return compute_values(lambda view: self._model.function(view, time), points, asked=asked)

    def best(self, time: float) -> tuple[Point, float]:
        if self._model.best is None:
            return self._search(time)
        if time not in self._found:
            self._found[time] = self._call_best(self._model.best, time)
        return self._found[time]

    def _call_best(self, function: BestFunction, time: float) -> tuple[Point, float]:
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
