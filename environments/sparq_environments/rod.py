"""The environment `rod`: the temperature of a rod that a moving heater warms."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field, FiniteFloat, model_validator

from sparq_environments._transport import Diffusion, Waves, average_normal, count_steps
from sparq_sim.domain import Box
from sparq_sim.fields import Amount, Positive, Probability
from sparq_sim.landscapes.evolving import EvolvingEnvironment
from sparq_sim.landscapes.snapshots import CellGrid, State
from sparq_sim.plugin.contract import Landscape, Units

__all__ = ["Rod"]


class Rod(EvolvingEnvironment):
    """The temperature T(x, t) of a rod above its surroundings, with a heater that moves along it.

        dT/dt = diffusion d2T/dx2 - cooling T + power N(x; s(t), width^2)
        s(t)  = length / 2 + reach sin(2 pi (t / cycle + phase) + wander w(t))

    Here s is the place of the heater and w a smooth random function of variance 1. A point x is a
    place to measure, and the reward is the temperature there: the aim is to follow the heater.

    It is solved by finite volumes with implicit diffusion, of second order in space and time, and
    never negative. Between the middles of cells and between snapshots the field is interpolated
    linearly, so that the best point is exact. This is the smallest environment that the expert
    `simulator` can compute on fewer cells, by `coarse(resolution)`.
    """

    level_evaluations = 5_000_000
    units = Units(reward="degrees")

    length: Positive = 10.0
    """The length of the rod, in length units."""
    cells: Annotated[int, Field(ge=8, le=100_000)] = 200
    """The number of cells along the rod."""
    diffusion: FiniteFloat = 0.05
    """The thermal diffusivity, in squared length units per clock unit; above 0."""
    cooling: FiniteFloat = 0.1
    """The rate at which heat is lost to the air, per clock unit; 0 for none."""
    ends: Literal["insulated", "cooled"] = "insulated"
    """What happens at the ends: `insulated`, nothing flows out; `cooled`, they are held at 0."""
    power: Amount = 0.5
    """The power of the heater, in degrees times length units per clock unit."""
    width: Positive = 0.3
    """The std of the heat's normal density about the heater, in length units; heat beyond the ends
    is lost."""
    reach: Amount = 4.0
    """How far the heater moves from the middle of the rod, in length units."""
    cycle: Positive = 80.0
    """The time that the heater's way and return take together, in clock units."""
    wander: Amount = 1.0
    """The std of the heater's random lead or delay, in radians of the cycle; 0 for a regular
    motion."""
    phase: Probability | None = None
    """The share of the cycle that has passed at time 0; by default it is drawn at random."""
    step: Positive = 0.25
    """The time step of the solver, in clock units; a snapshot is a whole number of steps."""
    spin_up: Amount = 40.0
    """How long the rod is simulated before time 0, from a cold rod, in clock units; rounded up to
    whole snapshots."""

    @model_validator(mode="after")
    def _is_sound(self) -> Rod:
        if self.diffusion <= 0.0:
            raise ValueError(
                f"diffusion {self.diffusion} must lie above 0: a negative one is unstable; "
                "take for instance 0.05"
            )
        if self.cooling < 0.0:
            raise ValueError(f"cooling {self.cooling} would heat for ever; take 0 or more")
        if self.reach > self.length / 2:
            raise ValueError(
                f"reach {self.reach} takes the heater beyond the rod; "
                f"take at most half its length, {self.length / 2}"
            )
        count_steps(self.step, self.snapshot)
        return self

    def domain(self) -> Box:
        return Box(0.0, self.length, ["x"])

    def start(self, rng: Generator) -> Landscape:
        phase = rng.random() if self.phase is None else self.phase
        heater = _Heater(self.model_copy(update={"phase": phase}), Waves(self.cycle, rng))
        return self.evolve(lambda grid: _RodSolver(self, heater, grid).advance)


class _Heater:
    """The place of the heater at each time.

    Args:
        model: The fields of the rod, its phase included.
        waves: The random lead or delay.
    """

    def __init__(self, model: Rod, waves: Waves) -> None:
        self._model = model
        self._waves = waves

    def at(self, time: float) -> float:
        """Return the place at *time* (clock units), in length units."""
        model = self._model
        angle = 2.0 * math.pi * (time / model.cycle + (model.phase or 0.0))
        angle += model.wander * self._waves.at(time)
        return model.length / 2 + model.reach * math.sin(angle)


class _RodSolver:
    """Computes the temperature of the rod on a grid, step by step.

    Args:
        model: The fields of the rod.
        heater: Where the heater is at each time.
        grid: The cells to compute on.
    """

    def __init__(self, model: Rod, heater: _Heater, grid: CellGrid) -> None:
        self._grid = grid
        self._model = model
        self._heater = heater
        self._steps = count_steps(model.step, model.snapshot)
        self._remain = math.exp(-model.cooling * model.step)
        cells = grid.per_side
        link = model.diffusion * (cells / model.length) ** 2
        leaks = np.zeros(cells)
        if model.ends == "cooled":
            leaks[[0, -1]] = 2.0 * link  # The end is half a cell from the middle.
        self._diffusion = Diffusion(np.full(cells - 1, link), model.step, leaks=leaks)

    def advance(self, state: State, begin: float) -> State:
        """Return the state one snapshot later.

        Args:
            state: The temperature of each cell at *begin*, (cells,).
            begin: The time of *state*, in clock units.

        Returns:
            The temperature one snapshot after *begin*.
        """
        for number in range(self._steps):
            state = self.step(state, begin + number * self._model.step)
        return state

    def step(self, state: State, begin: float) -> State:
        """Return the state one step of the solver later: half the heat, transport, half the heat.

        Args:
            state: The temperature of each cell at *begin*, (cells,).
            begin: The time of *state*, in clock units.

        Returns:
            The temperature one step after *begin*.
        """
        step = self._model.step
        place = self._heater.at(begin + 0.5 * step)
        half = (
            0.5 * step * self._model.power * average_normal(self._grid, 0, place, self._model.width)
        )
        return self._remain * self._diffusion(state + half) + half
