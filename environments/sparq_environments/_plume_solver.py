"""The solver of a plume: advection, diffusion, decay and emission on a grid of cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sparq_environments._plume_sources import Path, Source, Switch
from sparq_environments._plume_winds import Flow
from sparq_environments._transport import Diffusion, advect, average_normal, count_steps
from sparq_sim.arrays import Values
from sparq_sim.landscapes.snapshots import CellGrid, State

if TYPE_CHECKING:  # The model starts the solver, and so imports it.
    from sparq_environments.plume import Plume, Wall

__all__ = ["PlumeSolver"]


class PlumeSolver:
    """Computes the concentration of a plume on a grid, step by step.

    Each step is half of the emission, advection and diffusion along one coordinate and then along
    the other, decay, and the other half of the emission.

    Args:
        model: The fields of the plume.
        flows: Its winds, drawn.
        sources: Its sources, each with its path and its schedule, drawn.
        grid: The cells to compute on.
    """

    def __init__(
        self,
        model: Plume,
        flows: tuple[Flow, ...],
        sources: tuple[tuple[Source, Path, Switch], ...],
        grid: CellGrid,
    ) -> None:
        self.grid = grid
        self._flows = flows
        self._sources = sources
        self._step = model.step
        self._steps = count_steps(model.step, model.snapshot)
        self._remain = math.exp(-model.decay * model.step)
        self._free, self._links = _find_passages(self.grid, model.walls)
        self._diffusions = [
            Diffusion(_join_lines(links) * (model.diffusion / spacing**2), model.step)
            for links, spacing in zip(self._links, self.grid.spacings, strict=True)
        ]

    def advance(self, state: State, begin: float) -> State:
        """Return the state one snapshot later.

        Args:
            state: The concentration in each cell at *begin*, (cells, cells).
            begin: The time of *state*, in clock units.

        Returns:
            The concentration one snapshot after *begin*.
        """
        for number in range(self._steps):
            state = self.step(state, begin + number * self._step)
        return state

    def step(self, state: State, begin: float) -> State:
        """Return the state one step of the solver later.

        Args:
            state: The concentration in each cell at *begin*, (cells, cells).
            begin: The time of *state*, in clock units.

        Returns:
            The concentration one step after *begin*.
        """
        end = begin + self._step
        half = self._emission(begin, end)
        half *= 0.5
        travels = [flow.travel(begin, end) for flow in self._flows]
        state = state + half
        for axis in (0, 1):
            travel = sum(each[axis] for each in travels) / float(self.grid.spacings[axis])
            # Transport is along the first axis; each .T swaps the two axes.
            carried = advect(state, travel, self._links[axis]).T
            state = self._diffusions[axis](carried.ravel()).reshape(carried.shape)
        state *= self._remain
        state += half
        return state

    def _emission(self, begin: float, end: float) -> State:
        """Return what the sources give off between two times, in each cell."""
        along, across = [], []
        for source, path, switch in self._sources:
            if duration := switch.time_on(begin, end):
                x, y = path.at(0.5 * (begin + end))
                along.append(source.rate * duration * average_normal(self.grid, 0, x, source.width))
                across.append(average_normal(self.grid, 1, y, source.width))
        if not along:
            return np.zeros_like(self._free)
        emission: State = np.array(along).T @ np.array(across)
        emission *= self._free
        return emission


def _find_passages(grid: CellGrid, walls: tuple[Wall, ...]) -> tuple[State, tuple[State, State]]:
    """Return 1 for each free cell, and 1 for each pair of neighbours that are joined.

    A cell is free unless its middle lies in a wall. Two neighbours are joined unless the line
    between their middles meets a wall; the axis along which they are neighbours comes first.
    """
    free = np.ones(grid.shape)
    joined = np.ones((2, grid.per_side - 1, grid.per_side))
    for wall in walls:
        within = [
            (middles >= low) & (middles <= high)
            for middles, low, high in zip(grid.axes, wall.lower, wall.upper, strict=True)
        ]
        met = [
            (middles[1:] >= low) & (middles[:-1] <= high)
            for middles, low, high in zip(grid.axes, wall.lower, wall.upper, strict=True)
        ]
        free[np.ix_(*within)] = 0.0
        joined[0][np.ix_(met[0], within[1])] = 0.0
        joined[1][np.ix_(met[1], within[0])] = 0.0
    return free, (joined[0], joined[1])


def _join_lines(links: State) -> Values:
    """Join all lines along the first axis into one line, with walls between them."""
    return np.pad(links, ((0, 1), (0, 0))).T.ravel()[:-1]
