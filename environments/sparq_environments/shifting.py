"""Shifting test functions: Branin, Ackley and Hartmann-6 with an optimum that travels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import e, exp, hypot, pi
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from sparq_environments.moving_peaks import reflected
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.fields import Amount
from sparq_sim.plugin.contract import Environment, Landscape


class Shifting(Environment):
    """A test function of optimisation, turned over to be maximised, that moves in its box.

    f(x, t) = (c - g(u)) / (c - g*),  where u is x brought back by the motion, and then to the
    nearest point of the box that g is usually given on; g* is the lowest and c the highest value
    there. So rewards lie from 0 to 1, and 1 is the best at all times: the motion keeps the
    optimum in the box.

    - branin, on [-5, 10] x [0, 15]: three equal optima, of which (pi, 2.275) is the one that is
      followed; c = 308.13, g* = 5 / (4 pi) (Dixon and Szegö 1978);
    - ackley, on [-2.5, 7.5]^d: many small hills about a steep one, which lies at 0, away from the
      centre of the box; c = 17.89, g* = 0 (Ackley 1987);
    - hartmann, on [0, 1]^6: a few hills in six dimensions; c = 0, g* = -3.32237 (Hartman 1973).

    For comparing optimisers on shapes that everybody knows. Motions are measured in sides of the
    box, whose coordinates may have units of their own.

    How fast each drifts: the table of drifts in the guide to environments.
    """

    level_evaluations = 5_000_000

    function: Literal["branin", "ackley", "hartmann"] = "branin"
    """Which test function it is."""
    dimensions: PositiveInt | None = None
    """How many coordinates Ackley's function has, 2 by default; the others have 2 and 6."""
    drift: Literal["line", "circle", "rotate"] = "circle"
    """How the optimum travels: straight in a direction that is drawn, and reflected by the
    bounds; on a circle about the centre, in the first two coordinates; or likewise, with the
    whole function turning about the centre instead of keeping its orientation."""
    speed: Amount = 0.01
    """How far the optimum travels in a unit of time, in sides of the box."""
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
        """Draw the direction in which the optimum sets out, or where on its circle it begins."""
        return ShiftingLandscape(self, rng)


class ShiftingLandscape:
    """The started function."""

    def __init__(self, model: Shifting, rng: Generator) -> None:
        given = FUNCTIONS[model.function]
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
        """Give f at each point."""
        unit = (points - self.domain.lower) / self._width
        if self._model.drift == "rotate":
            unit = _turned(unit, -self._angle(time))
        else:
            unit = unit - (self._optimum(time) - self._home)
        given = self._given
        values = given.formula(self.domain.lower + np.clip(unit, 0.0, 1.0) * self._width)
        return (given.highest - values) / (given.highest - given.lowest)

    def best(self, time: float) -> tuple[Point, float]:
        """Give the optimum that is followed, where the reward is 1 but for rounding (1e-12).

        No reward exceeds 1, since u lies in the function's own box, where g* is the lowest value.
        Of Branin's three optima, two stay in the box when it rotates: they lie 0.35 and 0.49
        from the centre, and what lies within 0.5 never leaves.
        """
        point = self.domain.lower + self._optimum(time) * self._width
        point = np.clip(point, self.domain.lower, self.domain.upper)
        return point, float(self.rewards(point[None], time)[0])

    def _optimum(self, time: float) -> Point:
        """Give where the optimum is, in sides of the box."""
        model = self._model
        if model.drift == "line":
            return reflected(self._home + model.speed * time * self._direction, 0.0, 1.0)
        if model.drift == "rotate":
            turned: Point = _turned(self._home[None], self._angle(time))[0]
            return turned
        angle = self._phase + model.speed * time / model.radius
        place: Point = self._home.copy()
        place[:2] = 0.5 + model.radius * np.array([np.cos(angle), np.sin(angle)])[: len(place)]
        return place

    def _angle(self, time: float) -> float:
        distance = hypot(*(self._home[:2] - 0.5))
        return self._phase + self._model.speed * time / distance


def _turned(unit: Points, angle: float) -> Points:
    """Turn *unit* by *angle* about the centre, in the plane of the first two coordinates."""
    x, y = unit[:, 0] - 0.5, unit[:, 1] - 0.5
    cosine, sine = np.cos(angle), np.sin(angle)
    turned = unit.copy()
    turned[:, 0] = 0.5 + cosine * x - sine * y
    turned[:, 1] = 0.5 + sine * x + cosine * y
    return turned


@dataclass(frozen=True)
class Benchmark:
    """A function to be minimised, on its box; bounds of one number hold for all coordinates."""

    formula: Callable[[Points], Values]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    optimum: tuple[float, ...]
    """The one that is followed."""
    lowest: float
    highest: float


def branin(points: Points) -> Values:
    """(y - 5.1 x^2 / (4 pi^2) + 5 x / pi - 6)^2 + 10 (1 - 1 / (8 pi)) cos x + 10."""
    x, y = points.T
    valley = y - 5.1 / (4 * pi**2) * x**2 + 5 / pi * x - 6
    values: Values = valley**2 + 10 * (1 - 1 / (8 * pi)) * np.cos(x) + 10
    return values


def ackley(points: Points) -> Values:
    """20 + e - 20 exp(-0.2 sqrt(mean x_i^2)) - exp(mean cos(2 pi x_i))."""
    far = np.sqrt((points**2).mean(axis=1))
    values: Values = 20 + e - 20 * np.exp(-0.2 * far) - np.exp(np.cos(2 * pi * points).mean(axis=1))
    return values


def hartmann(points: Points) -> Values:
    """- sum_i a_i exp(- sum_j A_ij (x_j - P_ij)^2), in six dimensions."""
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

FUNCTIONS = {
    "branin": Benchmark(
        branin,
        lower=(-5.0, 0.0),
        upper=(10.0, 15.0),
        optimum=(pi, 2.275),
        lowest=5 / (4 * pi),
        highest=float(branin(np.array([[-5.0, 0.0]]))[0]),
    ),
    "ackley": Benchmark(
        ackley,
        lower=(-2.5,),
        upper=(7.5,),
        optimum=(0.0,),
        lowest=0.0,
        # In the far corner both terms are at their highest: cos(15 pi) = -1.
        highest=20 + e - 20 * exp(-1.5) - exp(-1.0),
    ),
    "hartmann": Benchmark(
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
