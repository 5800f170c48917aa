"""The winds that carry a plume: the same everywhere, and changing with time."""

from __future__ import annotations

import math
from typing import Literal, Protocol

from numpy.random import Generator
from pydantic import FiniteFloat

from sparq_environments._transport import Waves
from sparq_sim.fields import Amount, Positive, Probability
from sparq_sim.plugin.contract import Model

__all__ = ["Flow", "Gusts", "Rotating", "Steady", "Wind"]


class Flow(Protocol):
    """A wind whose random parts are drawn."""

    def travel(self, begin: float, end: float) -> tuple[float, float]:
        """Return how far the air moves between two times.

        Args:
            begin: The earlier time, in clock units.
            end: The later time, in clock units.

        Returns:
            The distance along each coordinate, in length units.
        """


class Wind(Model):
    """The base of winds: a velocity that is the same everywhere and depends on time."""

    @property
    def fastest(self) -> float:
        """An upper bound on the speed, in length units per clock unit."""
        raise NotImplementedError

    def draw(self, rng: Generator) -> Flow:
        """Return the wind with its random parts drawn.

        Args:
            rng: The generator to draw from.

        Returns:
            What tells how far the air moves.
        """
        raise NotImplementedError


class Steady(Wind):
    """A wind with a constant *velocity*."""

    kind: Literal["steady"] = "steady"
    velocity: tuple[FiniteFloat, FiniteFloat] = (0.2, 0.0)
    """The velocity in each coordinate, in length units per clock unit."""

    @property
    def fastest(self) -> float:
        return math.hypot(*self.velocity)

    def draw(self, rng: Generator) -> Flow:
        return self

    def travel(self, begin: float, end: float) -> tuple[float, float]:
        """Return how far the air moves between two times.

        Args:
            begin: The earlier time, in clock units.
            end: The later time, in clock units.

        Returns:
            The distance along each coordinate, in length units.
        """
        return self.velocity[0] * (end - begin), self.velocity[1] * (end - begin)


class Rotating(Wind):
    """A wind of constant *speed* whose direction turns at a constant rate."""

    kind: Literal["rotating"] = "rotating"
    speed: Amount = 0.2
    """The speed of the wind, in length units per clock unit."""
    cycle: Positive = 80.0
    """The time of a full turn, counterclockwise, in clock units."""
    phase: Probability | None = None
    """The share of the turn that has passed at time 0; by default it is drawn at random."""

    @property
    def fastest(self) -> float:
        return self.speed

    def draw(self, rng: Generator) -> Flow:
        return self.model_copy(update={"phase": rng.random()}) if self.phase is None else self

    def travel(self, begin: float, end: float) -> tuple[float, float]:
        """Return how far the air moves between two times.

        Args:
            begin: The earlier time, in clock units.
            end: The later time, in clock units.

        Returns:
            The distance along each coordinate, in length units.
        """
        # The integral of the velocity is a chord of the circle that the air moves on.
        radius = self.speed * self.cycle / (2.0 * math.pi)
        first, last = (
            2.0 * math.pi * (time / self.cycle + (self.phase or 0.0)) for time in (begin, end)
        )
        return (
            radius * (math.sin(last) - math.sin(first)),
            radius * (math.cos(first) - math.cos(last)),
        )


class Gusts(Wind):
    """A smooth random wind of mean 0; add a steady wind for another mean."""

    kind: Literal["gusts"] = "gusts"
    std: Amount = 0.08
    """The std of each coordinate of the velocity, in length units per clock unit."""
    cycle: Positive = 15.0
    """The typical time from one gust to the next, in clock units."""

    @property
    def fastest(self) -> float:
        return math.sqrt(2.0) * Waves.BOUND * self.std

    def draw(self, rng: Generator) -> Flow:
        return _DrawnGusts(self.std, (Waves(self.cycle, rng), Waves(self.cycle, rng)))


class _DrawnGusts:
    def __init__(self, std: float, waves: tuple[Waves, Waves]) -> None:
        self._std = std
        self._waves = waves

    def travel(self, begin: float, end: float) -> tuple[float, float]:
        along, across = (self._std * wave.integral(begin, end) for wave in self._waves)
        return along, across
