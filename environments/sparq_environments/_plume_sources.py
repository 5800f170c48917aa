"""The sources of a plume: where they are, when they are on, and how much they give off."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Protocol, TypeAlias

import numpy as np
from numpy.random import Generator, Philox
from pydantic import Field, FiniteFloat

from sparq_sim.arrays import Point, Points
from sparq_sim.fields import Amount, Positive, Probability
from sparq_sim.plugin.contract import Model

__all__ = [
    "Always",
    "Circle",
    "Cycle",
    "Fixed",
    "Line",
    "Path",
    "Place",
    "Schedule",
    "Source",
    "Spells",
    "Switch",
]

Place: TypeAlias = tuple[FiniteFloat, FiniteFloat]
"""Two coordinates, in length units."""

# Paths of sources


class Path(Model):
    """The base of paths: where a source is at each time."""

    def draw(self, rng: Generator) -> Path:
        """Return the path with its random parts drawn.

        Args:
            rng: The generator to draw from.

        Returns:
            A path that `at` may be called on; this one, if nothing is random.
        """
        return self

    def at(self, time: float) -> Point:
        """Return the place at a time.

        Args:
            time: The time, in clock units.

        Returns:
            The coordinates, in length units, (2,).
        """
        raise NotImplementedError

    def track(self) -> Points:
        """Return places all along the path, (n, 2), to check that it lies in the rectangle."""
        raise NotImplementedError


class Fixed(Path):
    """A source that stays at one *place*."""

    kind: Literal["fixed"] = "fixed"
    place: Place = (5.0, 5.0)
    """The place, in length units."""

    def at(self, time: float) -> Point:
        return np.array(self.place)

    def track(self) -> Points:
        return np.array([self.place])


class _Cyclic(Path):
    """A path that returns to its beginning after each *cycle*."""

    cycle: Positive = 120.0
    """The time that the way and the return take together, in clock units."""
    phase: Probability | None = None
    """The share of the cycle that has passed at time 0; by default it is drawn at random."""

    def draw(self, rng: Generator) -> Path:
        return self.model_copy(update={"phase": rng.random()}) if self.phase is None else self

    def at(self, time: float) -> Point:
        return self._place(2.0 * math.pi * (time / self.cycle + (self.phase or 0.0)))

    def track(self) -> Points:
        return np.array([self._place(2.0 * math.pi * turn / 64) for turn in range(64)])

    def _place(self, angle: float) -> Point:
        raise NotImplementedError


class Line(_Cyclic):
    """A source that moves from *begin* to *end* and back as a harmonic oscillation does."""

    kind: Literal["line"] = "line"
    begin: Place = (2.0, 5.0)
    """One end of the line, in length units; the source is there at phase 0."""
    end: Place = (8.0, 5.0)
    """The other end of the line, in length units."""

    def _place(self, angle: float) -> Point:
        share = 0.5 * (1.0 - math.cos(angle))
        return (1.0 - share) * np.array(self.begin) + share * np.array(self.end)


class Circle(_Cyclic):
    """A source that moves on a circle, at constant speed."""

    kind: Literal["circle"] = "circle"
    centre: Place = (5.0, 5.0)
    """The centre of the circle, in length units."""
    radius: Positive = 3.0
    """The radius of the circle, in length units."""

    def _place(self, angle: float) -> Point:
        return np.array(self.centre) + self.radius * np.array([math.cos(angle), math.sin(angle)])


# When sources are on


class Switch(Protocol):
    """A schedule whose random parts are drawn."""

    def time_on(self, begin: float, end: float) -> float:
        """Return for how long the source is on between two times.

        Args:
            begin: The earlier time, in clock units.
            end: The later time, in clock units.

        Returns:
            A duration from 0 to ``end - begin``, in clock units.
        """


class Schedule(Model):
    """The base of schedules: when a source is on."""

    def draw(self, rng: Generator) -> Switch:
        """Return the schedule with its random parts drawn.

        Args:
            rng: The generator to draw from.

        Returns:
            What tells for how long the source is on.
        """
        raise NotImplementedError


class Always(Schedule):
    """A source that is always on."""

    kind: Literal["always"] = "always"

    def draw(self, rng: Generator) -> Switch:
        return self

    def time_on(self, begin: float, end: float) -> float:
        """Return for how long the source is on between two times.

        Args:
            begin: The earlier time, in clock units.
            end: The later time, in clock units.

        Returns:
            A duration, in clock units.
        """
        return end - begin


class Cycle(Schedule):
    """A source that is on and off in turn, each for a fixed time."""

    kind: Literal["cycle"] = "cycle"
    on: Positive = 30.0
    """How long the source is on, in clock units."""
    off: Positive = 30.0
    """How long the source is off, in clock units."""
    phase: Probability | None = None
    """The share of one turn of on and off that has passed at time 0; by default it is drawn at
    random."""

    def draw(self, rng: Generator) -> Switch:
        return self.model_copy(update={"phase": rng.random()}) if self.phase is None else self

    def time_on(self, begin: float, end: float) -> float:
        """Return for how long the source is on between two times.

        Args:
            begin: The earlier time, in clock units.
            end: The later time, in clock units.

        Returns:
            A duration, in clock units.
        """
        return self._until(end) - self._until(begin)

    def _until(self, time: float) -> float:
        turns, rest = divmod(time + (self.phase or 0.0) * (self.on + self.off), self.on + self.off)
        return turns * self.on + min(rest, self.on)


class Spells(Schedule):
    """A source that is on or off at random, drawn again at the beginning of each spell."""

    kind: Literal["spells"] = "spells"
    length: Positive = 20.0
    """How long a spell lasts, in clock units."""
    share: Probability = 0.6
    """The probability that the source is on in a spell."""

    def draw(self, rng: Generator) -> Switch:
        return _DrawnSpells(self, int(rng.integers(2**63)))


class _DrawnSpells:
    """Spells drawn in blocks of 256, each from its own stream, so that any time costs the same."""

    def __init__(self, model: Spells, key: int) -> None:
        self._model = model
        self._key = key
        self._block: int | None = None
        self._on: list[bool] = []

    def time_on(self, begin: float, end: float) -> float:
        length = self._model.length
        total = 0.0
        for spell in range(math.floor(begin / length), math.floor(end / length) + 1):
            if self._is_on(spell):
                total += max(0.0, min(end, (spell + 1) * length) - max(begin, spell * length))
        return total

    def _is_on(self, spell: int) -> bool:
        block, number = divmod(spell, 256)
        if block != self._block:
            key = np.array([self._key, block % 2**64], dtype=np.uint64)
            rng = Generator(Philox(key=key))
            self._block = block
            self._on = (rng.random(256) < self._model.share).tolist()
        return self._on[number]


# Sources


class Source(Model):
    """A source of pollutant, spread as a normal density about its place."""

    path: Annotated[Fixed | Line | Circle, Field(discriminator="kind")] = Fixed()
    """Where the source is: a table with the `kind` `fixed`, `line` or `circle`."""
    schedule: Annotated[Always | Cycle | Spells, Field(discriminator="kind")] = Always()
    """When the source is on: a table with the `kind` `always`, `cycle` or `spells`."""
    rate: Amount = 1.0
    """How much pollutant is given off per clock unit while the source is on. What would fall into
    a wall or outside the rectangle is not given off."""
    width: Positive = 0.4
    """The std of the normal density, in length units."""
