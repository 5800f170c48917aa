"""Environment: the base of environments, and what the landscape that one starts must be and may be.

A landscape must have what the protocol `Landscape` has. It may also have what
`Observing`, `WithGaps`, `Coarsening` and `WithCellCount` have, each used where it is defined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Domain
from sparq_sim.plugin.model import Model

__all__ = [
    "UNNAMED",
    "Coarsening",
    "Environment",
    "Landscape",
    "Observing",
    "Units",
    "WithCellCount",
    "WithGaps",
    "read_units",
]


@runtime_checkable
class Landscape(Protocol):
    """A started environment: the reward as a pure function of points and time.

    The same points and time always give the same reward, whatever was asked before and in
    whatever order. It may also be `Observing`, `WithGaps`, `Coarsening` or `WithCellCount`.
    """

    @property
    def domain(self) -> Domain:
        """Where points may lie: a `Box` or `Sites`; the same during the whole play."""

    def rewards(self, points: Points, time: float) -> Values:
        """Return the noise-free reward at each row of *points*.

        Args:
            points: Where: (n, d), within the domain. They must not be changed.
            time: When, in clock units from 0.

        Returns:
            One finite number a row: (n,).
        """

    def best(self, time: float) -> tuple[Point, float]:
        """Return a point of the highest reward at *time*, and that reward.

        Args:
            time: When, in clock units from 0.

        Returns:
            The point, (d,), and what `rewards` gives there.
        """


@runtime_checkable
class Observing(Protocol):
    """A landscape with noise of its own, as that of a batch of data, beside the channel's."""

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        """Return what is observed at each row of *points*.

        Args:
            points: Where: (n, d).
            time: When, in clock units.
            rng: The only source of chance: an equal one gives equal values.

        Returns:
            The observations: (n,), finite wherever there is a reading.
        """


@runtime_checkable
class WithGaps(Protocol):
    """A landscape that has no reading of some points at some times.

    Where there is none, `rewards` still gives the number that regret is computed from, but no
    agent and no expert sees it: an observation fails as unavailable, and experts read NaN.
    """

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        """Return for each row of *points* whether there is a reading of it: (n,).

        Args:
            points: Where: (n, d).
            time: When, in clock units.
        """


@runtime_checkable
class Coarsening(Protocol):
    """A landscape that can be computed more cheaply, for experts of low fidelity."""

    def coarse(self, resolution: float) -> Landscape:
        """Return the same world, with the same chance and domain, computed less finely.

        Args:
            resolution: The share of the landscape's own resolution, above 0 and at most 1.
        """


@runtime_checkable
class WithCellCount(Protocol):
    """A landscape that states how much there is to compute, on which a simulator's time depends."""

    @property
    def cell_count(self) -> int:
        """How many cells, or places, are computed in each step; at least 1."""


@dataclass(frozen=True, slots=True)
class Units:
    """What the numbers of an environment are measured in, for the labels of charts."""

    reward: str = ""
    """That of rewards, and so of regrets, such as "ppb"; empty where it has no name."""
    coordinates: tuple[str, ...] = ()
    """Those of the coordinates of points, in their order; where one is missing, it has no name."""
    time: str = ""
    """What clock units are, in the plural, such as "days"; empty for clock units."""

    def of_coordinate(self, place: int) -> str:
        """Return the unit of a coordinate; empty where it has no name.

        Args:
            place: Which coordinate, from 0.
        """
        return self.coordinates[place] if place < len(self.coordinates) else ""


UNNAMED = Units()
"""Where none has a name."""


class Environment(Model):
    """A reward that changes with time; the base to derive an environment from.

    The fields are its parameters. Define `start`, which makes the landscape of one play. Define
    `check_play` where a play may be impossible, as when data are missing.

    A landscape that holds something open, such as a file, defines `__enter__` and `__exit__`: it is
    entered before the play, and left after it. Check yours by
    `sparq_sim.testing.check_environment`.

    Example:
        A parabola whose top moves to and fro::

            class Tide(Environment):
                '''A parabola on [0, 1] whose top moves to and fro.'''

                duration: float = 12.0
                '''Clock units from one high tide to the next.'''

                def start(self, rng):
                    return TideLandscape(self.duration, phase=rng.uniform(0, 2 * np.pi))


            class TideLandscape:
                domain = Box(0.0, 1.0)

                def __init__(self, duration, phase):
                    self._duration, self._phase = duration, phase

                def rewards(self, points, time):
                    return 1 - (points[:, 0] - self._top(time)) ** 2

                def best(self, time):
                    return np.array([self._top(time)]), 1.0

                def _top(self, time):
                    return 0.5 + 0.3 * np.sin(2 * np.pi * time / self._duration + self._phase)
    """

    is_real: ClassVar[bool] = False
    """Whether it is something real, which can be reached in real time only."""

    units: ClassVar[Units] = UNNAMED
    """What its numbers are measured in; charts name it."""

    def honours_keys(self) -> bool:
        """Return whether a query that comes twice with one `World.key` is carried out once.

        If so, what is open when a live play is interrupted is sent again when it goes on.
        """
        return False

    level_evaluations: ClassVar[int] = 10_000
    """How many points reference levels may evaluate; more, where a point costs next to nothing."""

    def is_recording(self) -> bool:
        """Return whether its rewards were recorded, with all delays, noise and failures.

        If so, of its channel only costs and splitting apply; optimizers are told of all of it.
        """
        return False

    def check_play(self, until: float) -> None:
        """Raise an error if the environment cannot be played until then; by default, never.

        It is called before anything is played, and by `sparq-sim check`.

        Args:
            until: When the play ends, in clock units.

        Raises:
            SparqError: Something is missing, such as data; the message has the remedy.
        """

    def start(self, rng: Generator) -> Landscape:
        """Return the landscape of one play.

        Args:
            rng: The only source of chance, to be used here and not later: an equal one gives an
                equal landscape.

        Raises:
            Exception: Any; the play does not begin, and the error names the environment.
        """
        raise NotImplementedError(f"{type(self).__name__} must define start(self, rng)")


def read_units(environment: Environment | type[Environment]) -> Units:
    """Return the units of an environment; none where it calls something else so, as a field.

    Args:
        environment: One, or a class of them.
    """
    units = getattr(environment, "units", None)
    return units if isinstance(units, Units) else UNNAMED
