"""A rod along which a heater goes to and fro."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field, FiniteFloat, model_validator

from sparq_environments._transport import Diffusion, Waves, bump, whole_steps
from sparq_sim.domain import Box
from sparq_sim.fields import Amount, Positive, Probability
from sparq_sim.landscapes.computed import EvolvingEnvironment
from sparq_sim.landscapes.snapshots import CellGrid, State
from sparq_sim.plugin.contract import Landscape


class Rod(EvolvingEnvironment):
    """The temperature T(x, t) of a rod above its surroundings, with a heater that moves along it.

    dT/dt = diffusion d2T/dx2 - cooling T + power N(x; s(t), width^2)
    s(t)  = length / 2 + reach sin(2 pi (t / cycle + phase) + wander w(t))

    where w is a smooth random function of unit variance. A point x is where to measure, the reward
    the temperature there.

    Finite volumes and implicit diffusion, second order in space and time, never negative.
    Between the middles of cells, and between snapshots, the field is interpolated linearly: the
    best point is exact. For: the smallest world that a simulator expert can compute coarsely, by
    `coarse(resolution)`.
    """

    level_evaluations = 5_000_000

    length: Positive = 10.0
    """The length of the rod, in length units."""
    cells: Annotated[int, Field(ge=8, le=100_000)] = 200
    """How many cells there are along the rod."""
    diffusion: FiniteFloat = 0.05
    """The thermal diffusivity, in squared length units per clock unit; above 0."""
    cooling: FiniteFloat = 0.1
    """Share of the temperature that is lost to the air in a clock unit; 0 for none."""
    ends: Literal["insulated", "cooled"] = "insulated"
    """Whether nothing leaves through the ends, or they are held at temperature 0."""
    power: Amount = 0.5
    """How much heat is given off, in degrees times length units per clock unit."""
    width: Positive = 0.3
    """Std of the heater's spread, in length units; what falls beyond the ends is lost."""
    reach: Amount = 4.0
    """How far the heater goes from the middle, in length units."""
    cycle: Positive = 80.0
    """How long the way there and back takes, in clock units."""
    wander: Amount = 1.0
    """Std of the random lead or delay, in radians of the cycle; 0 for a regular motion."""
    phase: Probability | None = None
    """Share of the cycle passed at time 0; by default drawn at random."""
    step: Positive = 0.25
    """The solver's time step, in clock units; a snapshot is a whole number of them."""
    spin_up: Amount = 40.0
    """How long is simulated before time 0, from a cold rod, in clock units; rounded up to whole
    snapshots."""

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
        whole_steps(self.step, self.snapshot)
        return self

    def domain(self) -> Box:
        """Return the rod."""
        return Box(0.0, self.length, ["x"])

    def start(self, rng: Generator) -> Landscape:
        """Draw the heater's way for all times; temperatures are computed when asked for."""
        phase = rng.random() if self.phase is None else self.phase
        heater = Heater(self.model_copy(update={"phase": phase}), Waves(self.cycle, rng))
        return self.evolve(lambda grid: RodSolver(self, heater, grid).advance)


class Heater:
    """Where the heater is."""

    def __init__(self, model: Rod, waves: Waves) -> None:
        self._model = model
        self._waves = waves

    def at(self, time: float) -> float:
        """Give the place at *time*, in length units."""
        model = self._model
        angle = 2.0 * math.pi * (time / model.cycle + (model.phase or 0.0))
        angle += model.wander * self._waves.at(time)
        return model.length / 2 + model.reach * math.sin(angle)


class RodSolver:
    """The rod on a *grid*, with a heater whose way was drawn."""

    def __init__(self, model: Rod, heater: Heater, grid: CellGrid) -> None:
        self._grid = grid
        self._model = model
        self._heater = heater
        self._steps = whole_steps(model.step, model.snapshot)
        self._remain = math.exp(-model.cooling * model.step)
        cells = grid.per_side
        link = model.diffusion * (cells / model.length) ** 2
        leaks = np.zeros(cells)
        if model.ends == "cooled":
            leaks[[0, -1]] = 2.0 * link  # The end is half a cell from the middle.
        self._diffusion = Diffusion(np.full(cells - 1, link), model.step, leaks=leaks)

    def advance(self, state: State, begin: float) -> State:
        """Give the state one snapshot after *begin*."""
        for number in range(self._steps):
            state = self.step(state, begin + number * self._model.step)
        return state

    def step(self, state: State, begin: float) -> State:
        """Give the state one step after *begin*: half the heat, transport, the other half."""
        step = self._model.step
        place = self._heater.at(begin + 0.5 * step)
        half = 0.5 * step * self._model.power * bump(self._grid, 0, place, self._model.width)
        return self._remain * self._diffusion(state + half) + half
