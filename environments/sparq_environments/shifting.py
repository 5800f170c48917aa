"""The environment `shifting`: Branin, Ackley and Hartmann-6 with an optimum that moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import e, exp, hypot, pi
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field, PositiveFloat, model_validator

from sparq_environments._geometry import reflect
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.fields import Amount, Size
from sparq_sim.plugin.contract import Environment, Landscape

__all__ = ["Shifting", "ackley", "branin", "hartmann"]


class Shifting(Environment):
    """A well-known test function of optimisation, to be maximised, that moves in its box.

        f(x, t) = (c - g(u)) / (c - g*)

    Here g is the test function, u is x moved back by the motion and then to the nearest point of
    the box that g is usually defined on, and g* and c are the lowest and the highest value of g
    there. So rewards lie from 0 to 1, and the best is 1 at all times: the motion keeps the optimum
    in the box. The functions are

    - branin, on [-5, 10] x [0, 15]: three equal optima, of which (pi, 2.275) is the one whose
      motion is prescribed; c = 308.13, g* = 5 / (4 pi) (Dixon and Szegö 1978);
    - ackley, on [-2.5, 7.5]^d: many small hills around a steep one, which lies at 0, away from the
      centre of the box; c = 17.89, g* = 0 (Ackley 1987);
    - hartmann, on [0, 1]^6: a few hills in six dimensions; c = 0, g* = -3.32237 (Hartman 1973).

    Use it to compare optimizers on shapes that are widely known. Motions are measured in sides of
    the box, because coordinates may have different units.

    The guide to environments has a table of drifts.
    """

    level_evaluations = 5_000_000

    function: Literal["branin", "ackley", "hartmann"] = "branin"
    """The test function."""
    dimensions: Size | None = None
    """How many coordinates Ackley's function has, by default 2; Branin has 2 and Hartmann 6."""
    drift: Literal["line", "circle", "rotate"] = "circle"
    """How the optimum moves: on a `line` in a random direction, reflected at the bounds; on a
    `circle` about the centre, in the first two coordinates; or `rotate`: on a circle too, while
    the whole function turns about the centre instead of keeping its orientation."""
    speed: Amount = 0.01
    """How far the optimum moves per clock unit, in sides of the box."""
    radius: Annotated[PositiveFloat, Field(le=0.5)] = 0.3
    """The radius of the circle, in sides of the box; at most 0.5."""

    @model_validator(mode="after")
    def _fits(self) -> Shifting:
        if self.dimensions is not None and self.function != "ackley":
            raise ValueError(
                f"dimensions can be chosen for ackley only, not for {self.function}; leave it out"
            )
        if self.drift == "rotate" and self.dimensions == 1:
            raise ValueError("on a line nothing can rotate; choose the drift line or circle")
        return self

    def start(self, rng: Generator) -> Landscape:
        return _ShiftingLandscape(self, rng)


class _ShiftingLandscape:
    """The landscape of a test function that moves.

    Args:
        model: The fields of the environment.
        rng: The generator to draw the direction and the place on the circle from.
    """

    def __init__(self, model: Shifting, rng: Generator) -> None:
        given = _FUNCTIONS[model.function]
        count = model.dimensions or 2 if model.function == "ackley" else len(given.optimum)
        # What is given for one coordinate of Ackley's function holds for all.
        lower, upper, optimum = (
            np.broadcast_to(bound, count) for bound in (given.lower, given.upper, given.optimum)
        )
        self.domain = Box(lower, upper)
        self._given = given
        self._model = model
        self._width = upper - lower
        self._home = (optimum - lower) / self._width
        normal = rng.standard_normal(count)
        self._direction = normal / np.linalg.norm(normal)
        self._phase = float(rng.uniform(0.0, 2 * pi))

    def rewards(self, points: Points, time: float) -> Values:
        unit = (points - self.domain.lower) / self._width
        if self._model.drift == "rotate":
            unit = _rotate(unit, -self._angle(time))
        else:
            unit = unit - (self._optimum(time) - self._home)
        given = self._given
        values = given.formula(self.domain.lower + np.clip(unit, 0.0, 1.0) * self._width)
        return (given.highest - values) / (given.highest - given.lowest)

    def best(self, time: float) -> tuple[Point, float]:
        """Return the optimum whose motion is prescribed, with a reward of 1 to rounding (1e-12).

        No reward exceeds 1, because u lies in the function's own box, where g* is the lowest value.
        Of Branin's three optima, two stay in the box when it rotates: they lie 0.35 and 0.49 from
        the centre, and what lies within 0.5 stays in the box.
        """
        point = self.domain.lower + self._optimum(time) * self._width
        point = np.clip(point, self.domain.lower, self.domain.upper)
        return point, float(self.rewards(point[None], time)[0])

    def _optimum(self, time: float) -> Point:
        """Return the place of the optimum, in sides of the box."""
        model = self._model
        if model.drift == "line":
            return reflect(self._home + model.speed * time * self._direction, 0.0, 1.0)
        if model.drift == "rotate":
            turned: Point = _rotate(self._home[None], self._angle(time))[0]
            return turned
        angle = self._phase + model.speed * time / model.radius
        place: Point = self._home.copy()
        place[:2] = 0.5 + model.radius * np.array([np.cos(angle), np.sin(angle)])[: len(place)]
        return place

    def _angle(self, time: float) -> float:
        distance = hypot(*(self._home[:2] - 0.5))
        return self._phase + self._model.speed * time / distance


def _rotate(unit: Points, angle: float) -> Points:
    """Rotate *unit* by *angle* about the centre, in the plane of the first two coordinates."""
    x, y = unit[:, 0] - 0.5, unit[:, 1] - 0.5
    cosine, sine = np.cos(angle), np.sin(angle)
    turned = unit.copy()
    turned[:, 0] = 0.5 + cosine * x - sine * y
    turned[:, 1] = 0.5 + sine * x + cosine * y
    return turned


@dataclass(frozen=True)
class _ReferenceFunction:
    """A function to be minimised, on its box; bounds of one number hold for all coordinates."""

    formula: Callable[[Points], Values]
    """Computes the function at each point, from (n, d) to (n,)."""
    lower: tuple[float, ...]
    """The lower bounds of the box."""
    upper: tuple[float, ...]
    """The upper bounds of the box."""
    optimum: tuple[float, ...]
    """The minimum whose motion is prescribed."""
    lowest: float
    """The lowest value in the box."""
    highest: float
    """The highest value in the box."""


def branin(points: Points) -> Values:
    """Compute Branin's function.

        (y - 5.1 x^2 / (4 pi^2) + 5 x / pi - 6)^2 + 10 (1 - 1 / (8 pi)) cos x + 10

    Args:
        points: The points (x, y), (n, 2).

    Returns:
        The values, (n,).
    """
    x, y = points.T
    valley = y - 5.1 / (4 * pi**2) * x**2 + 5 / pi * x - 6
    values: Values = valley**2 + 10 * (1 - 1 / (8 * pi)) * np.cos(x) + 10
    return values


def ackley(points: Points) -> Values:
    """Compute Ackley's function.

        20 + e - 20 exp(-0.2 sqrt(mean x_i^2)) - exp(mean cos(2 pi x_i))

    Args:
        points: The points, (n, d).

    Returns:
        The values, (n,).
    """
    far = np.sqrt((points**2).mean(axis=1))
    values: Values = 20 + e - 20 * np.exp(-0.2 * far) - np.exp(np.cos(2 * pi * points).mean(axis=1))
    return values


def hartmann(points: Points) -> Values:
    """Compute Hartmann's function in six dimensions.

        - sum_i a_i exp(- sum_j A_ij (x_j - P_ij)^2)

    Args:
        points: The points, (n, 6).

    Returns:
        The values, (n,).
    """
    squares = (points[:, None, :] - _CENTRES) ** 2
    values: Values = -np.exp(-(squares * _STEEPNESS).sum(axis=2)) @ _HEIGHTS
    return values


_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_STEEPNESS = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)

_FUNCTIONS: Mapping[str, _ReferenceFunction] = {
    "branin": _ReferenceFunction(
        branin,
        lower=(-5.0, 0.0),
        upper=(10.0, 15.0),
        optimum=(pi, 2.275),
        lowest=5 / (4 * pi),
        highest=float(branin(np.array([[-5.0, 0.0]]))[0]),
    ),
    "ackley": _ReferenceFunction(
        ackley,
        lower=(-2.5,),
        upper=(7.5,),
        optimum=(0.0,),
        lowest=0.0,
        # In the far corner both terms are at their highest: cos(15 pi) = -1.
        highest=20 + e - 20 * exp(-1.5) - exp(-1.0),
    ),
    "hartmann": _ReferenceFunction(
        hartmann,
        lower=(0.0,) * 6,
        upper=(1.0,) * 6,
        # The known optimum (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573), to all
        # digits that a float has, by Newton's method.
        optimum=(
            0.201689511006705424,
            0.150010691823457969,
            0.47687397422189699,
            0.275332430494056068,
            0.311651616600113242,
            0.657300534065620306,
        ),
        lowest=-3.3223680114155148,
        highest=0.0,
    ),
}
