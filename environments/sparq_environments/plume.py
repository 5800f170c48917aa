"""The environment `plume`: a pollutant that winds carry through a rectangle with walls."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, model_validator

from sparq_environments._plume_solver import PlumeSolver
from sparq_environments._plume_sources import (
    Always,
    Circle,
    Cycle,
    Fixed,
    Line,
    Place,
    Source,
    Spells,
)
from sparq_environments._plume_winds import Gusts, Rotating, Steady
from sparq_environments._transport import count_steps
from sparq_sim.arrays import Points
from sparq_sim.domain import Box
from sparq_sim.fields import Amount, Positive
from sparq_sim.landscapes.evolving import EvolvingEnvironment
from sparq_sim.plugin.contract import Landscape, Model

__all__ = [
    "Always",
    "Circle",
    "Cycle",
    "Fixed",
    "Gusts",
    "Line",
    "Plume",
    "Rotating",
    "Source",
    "Spells",
    "Steady",
    "Wall",
]


class Wall(Model):
    """A rectangular obstacle that no pollutant enters; one without width is a fence."""

    lower: Place
    """The lower left corner of the rectangle, in length units."""
    upper: Place
    """The upper right corner of the rectangle, in length units."""

    @model_validator(mode="after")
    def _in_order(self) -> Wall:
        sizes = [high - low for low, high in zip(self.lower, self.upper, strict=True)]
        if min(sizes) < 0.0 or max(sizes) == 0.0:
            raise ValueError(
                f"lower {self.lower} must lie left of and below upper {self.upper}; swap them"
            )
        return self

    def covers(self, points: Points) -> NDArray[np.bool_]:
        """Return whether the wall covers each point.

        Args:
            points: The points, in length units, (n, 2).

        Returns:
            True for each point in the wall or on its edge, (n,).
        """
        within = (points >= self.lower) & (points <= self.upper)
        return np.asarray(within.all(axis=1), dtype=bool)


class Plume(EvolvingEnvironment):
    """The concentration c(x, y, t) of a pollutant in the wind, in a closed rectangle.

        dc/dt + div(u(t) c) = diffusion laplacian(c) - decay c + sources(x, y, t)

    A point (x, y) is a place to sample, and the reward is the concentration there: the aim is to
    stay where the pollution is highest. The wind u is the same everywhere. Nothing flows through
    walls or out of the rectangle; pollutant gathers where the wind presses it against a wall.

    It is solved by finite volumes (LeVeque 2002), one direction at a time: advection by van Leer's
    limited profiles, of second order where the field is smooth; implicit diffusion, of second order
    in space and time; sources and decay by Strang splitting. The scheme is conservative and never
    negative. Between the middles of cells and between snapshots the concentration is interpolated
    linearly, so that the best point is exact. Use it for monitoring with a physical model:
    `coarse(resolution)` is the same plume on fewer cells, which the expert `simulator` runs.
    """

    sides: tuple[Positive, Positive] = (10.0, 10.0)
    """The width and the height of the rectangle, in length units; its lower left corner is
    (0, 0)."""
    cells: Annotated[int, Field(ge=8, le=2048)] = 48
    """The number of cells along each side."""
    diffusion: FiniteFloat = 0.05
    """The diffusion coefficient, in squared length units per clock unit; above 0."""
    decay: FiniteFloat = 0.12
    """The rate at which the pollutant decays, per clock unit; 0 for no decay."""
    wind: tuple[Annotated[Steady | Rotating | Gusts, Field(discriminator="kind")], ...] = (
        Rotating(),
        Gusts(),
    )
    """The winds, whose velocities are added: each a table with the `kind` `steady`, `rotating` or
    `gusts`."""
    sources: Annotated[tuple[Source, ...], Field(min_length=1)] = (
        Source(path=Circle(), rate=1.0),
        Source(path=Fixed(place=(3.0, 7.0)), schedule=Spells(), rate=1.0),
        Source(path=Line(begin=(8.0, 2.0), end=(8.0, 8.0)), schedule=Cycle(), rate=1.0),
    )
    """The sources of pollutant, each with a `path`, a `schedule`, a `rate` and a `width`."""
    walls: tuple[Wall, ...] = ()
    """The obstacles in the rectangle; the reward inside them is 0."""
    step: Positive = 0.25
    """The time step of the solver, in clock units; a snapshot is a whole number of steps."""
    spin_up: Amount = 60.0
    """How long the plume is simulated before time 0, from clean air, in clock units; rounded up to
    whole snapshots."""

    @model_validator(mode="after")
    def _is_sound(self) -> Plume:
        if self.diffusion <= 0.0:
            raise ValueError(
                f"diffusion {self.diffusion} must lie above 0: a negative one is unstable, "
                "and without any the field at walls has no width; take for instance 0.05"
            )
        if self.decay < 0.0:
            raise ValueError(f"decay {self.decay} would grow for ever; take 0 or more")
        count_steps(self.step, self.snapshot)
        fastest = sum(wind.fastest for wind in self.wind)
        if fastest * self.step > min(self.sides):
            raise ValueError(
                f"step {self.step} lets a wind of up to {fastest:.3g} cross the rectangle at once; "
                f"take a step of at most {min(self.sides) / fastest:.3g}"
            )
        return self

    @model_validator(mode="after")
    def _has_room(self) -> Plume:
        for wall in self.walls:
            if not all(
                low < side and high > 0.0
                for low, high, side in zip(wall.lower, wall.upper, self.sides, strict=True)
            ):
                raise ValueError(
                    f"the wall from {wall.lower} to {wall.upper} lies outside the rectangle, "
                    f"which reaches from (0, 0) to {self.sides}"
                )
        for number, source in enumerate(self.sources):
            track = source.path.track()
            inside = ((track >= 0.0) & (track <= self.sides)).all(axis=1)
            for wall in self.walls:
                inside &= ~wall.covers(track)
            if not inside.all():
                raise ValueError(
                    f"sources.{number} comes to {track[~inside][0].round(3).tolist()}, within a "
                    f"wall or outside the rectangle from (0, 0) to {self.sides}; move its path"
                )
        return self

    def domain(self) -> Box:
        return Box([0.0, 0.0], self.sides, ["x", "y"])

    def start(self, rng: Generator) -> Landscape:
        flows = tuple(wind.draw(rng) for wind in self.wind)
        sources = tuple(
            (source, source.path.draw(rng), source.schedule.draw(rng)) for source in self.sources
        )
        return self.evolve(lambda grid: PlumeSolver(self, flows, sources, grid).advance)
