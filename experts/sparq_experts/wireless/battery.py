"""Batteries: the energy of a node, by what it was used for, and what is harvested meanwhile."""

from __future__ import annotations

from copy import copy
from math import inf, nan
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field

from sparq_sim.fields import Amount, Positive, Quantity
from sparq_sim.plugin.model import Model

__all__ = [
    "CAUSES",
    "AnyHarvest",
    "Battery",
    "Cause",
    "ConstantHarvest",
    "Daylight",
    "Draws",
    "Period",
]

Cause: TypeAlias = Literal["measure", "send", "receive", "listen", "sleep", "compute"]
"""What energy is used for."""
CAUSES: tuple[Cause, ...] = get_args(Cause)
"""All causes, in the order of tables and pictures."""
Period: TypeAlias = Annotated[float, Field(ge=0.001, allow_inf_nan=False)]
"""A time that comes again and again, of a millisecond at least."""
Draws: TypeAlias = tuple[tuple[Cause, float], ...]
"""What is drawn at the same time: watts, by cause."""


class ConstantHarvest(Model):
    """Harvests the same power at all times, as from a heat source."""

    kind: Literal["constant"] = "constant"
    """The name of this kind."""
    power: Annotated[Positive, Quantity("W")]
    """In watts."""

    def piece(self, time: float) -> tuple[float, float]:
        """Return the power harvested at a time, and until when it stays the same.

        Args:
            time: In seconds.

        Returns:
            Watts, and the end of the piece of time in seconds.
        """
        return self.power, inf


class Daylight(Model):
    """Harvests by day and nothing at night, as a small solar panel does."""

    kind: Literal["daylight"] = "daylight"
    """The name of this kind."""
    power: Annotated[Positive, Quantity("W")]
    """By day, in watts."""
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The share of a day during which there is light."""
    sunrise: Annotated[Amount, Quantity("s")] = 21_600.0
    """When the light begins, in seconds after each midnight; a play begins at midnight."""
    day: Annotated[Period, Quantity("s")] = 86_400.0
    """How long a day lasts, in seconds."""

    def piece(self, time: float) -> tuple[float, float]:
        """Return the power harvested at a time, and until when it stays the same.

        Args:
            time: In seconds.

        Returns:
            Watts, and the end of the piece of time in seconds.
        """
        begun = (time - self.sunrise) // self.day * self.day + self.sunrise
        # By rounding, the end of a piece may not lie after its beginning: the next piece then.
        for end, power in (
            (begun + self.share * self.day, self.power),
            (begun + self.day, 0.0),
            (begun + (1 + self.share) * self.day, self.power),
        ):
            if end > time:
                return power, end
        raise AssertionError(f"a day of {self.day} s is too short at {time} s")


AnyHarvest: TypeAlias = Annotated[ConstantHarvest | Daylight, Field(discriminator="kind")]
"""How a node harvests energy."""


class Battery:
    """The battery of one node, drawn from over time until it is empty.

    At all times capacity + harvested - wasted - all that was used = left, but for rounding. An
    empty battery stays empty, whatever could be harvested later.

    Args:
        capacity: What it holds at the beginning and at most, in joules; infinity for mains.
        harvest: What is harvested; by default nothing.
    """

    __slots__ = (
        "_harvest",
        "capacity",
        "died_at",
        "empty",
        "harvested",
        "left",
        "time",
        "used",
        "wasted",
    )

    def __init__(self, capacity: float, harvest: AnyHarvest | None = None) -> None:
        # Mains need no harvest: with an infinite capacity nothing could be told apart.
        self._harvest = None if capacity == inf else harvest
        self.capacity = capacity
        """In joules."""
        self.left = capacity
        """In joules."""
        self.used = dict.fromkeys(CAUSES, 0.0)
        """In joules, by cause."""
        self.harvested = 0.0
        """In joules, with what was wasted."""
        self.wasted = 0.0
        """What was harvested while the battery was full, in joules."""
        self.time = 0.0
        """Up to when all is accounted for, in seconds."""
        self.died_at = nan
        """When it was empty, in seconds; NaN while it is not."""
        self.empty = False
        """Whether nothing is left."""

    def draw(self, until: float, draws: Draws) -> None:
        """Draw power from the time that is accounted for up to another.

        Args:
            until: In seconds; if the battery is empty before, nothing more is drawn.
            draws: What is drawn all this time.
        """
        if self._harvest is None:
            if until > self.time and not self.empty:
                self._draw_piece(until, draws, 0.0)
            return
        while self.time < until and not self.empty:
            power, end = self._harvest.piece(self.time)
            self._draw_piece(min(end, until), draws, power)

    def _draw_piece(self, end: float, draws: Draws, income: float) -> None:
        """Draw power up to *end*, while *income* watts are harvested all the time."""
        lasted = end - self.time
        net = income
        for _, power in draws:
            net -= power
        left = self.left + net * lasted
        if left <= 0:
            lasted = min(lasted, self.left / -net)
            left, end = 0.0, self.time + lasted
            self.died_at, self.empty = end, True
        elif left > self.capacity:
            self.wasted += left - self.capacity
            left = self.capacity
        for cause, power in draws:
            self.used[cause] += power * lasted
        if income:
            self.harvested += income * lasted
        self.left, self.time = left, end

    def find_death(self, until: float, draws: Draws) -> float:
        """Return when it would be empty; infinity if not before another time.

        Args:
            until: In seconds.
            draws: What is drawn from the time that is accounted for on.
        """
        drawn = 0.0
        for _, power in draws:
            drawn += power
        if self.left > (until - self.time) * drawn:
            return inf
        trial = copy(self)
        trial.used = dict(self.used)
        trial.draw(until, draws)
        return trial.died_at if trial.empty else inf

    def spend(self, cause: Cause, energy: float) -> None:
        """Use energy at once.

        Args:
            cause: What for.
            energy: In joules; if less is left, all of that is used, and the battery is empty.
        """
        if self.empty:
            return
        if energy >= self.left:
            energy, self.died_at, self.empty = self.left, self.time, True
        self.used[cause] += energy
        self.left -= energy
