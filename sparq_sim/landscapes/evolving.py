"""Evolving: a base to derive an environment from that advances a field in time, as a PDE does."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from pydantic import Field

from sparq_sim.domain import Box
from sparq_sim.errors import PluginError
from sparq_sim.fields import Amount, Positive
from sparq_sim.landscapes.simulated import SimulatedEnvironment, check_array
from sparq_sim.landscapes.snapshots import (
    CellGrid,
    InterpolatedLandscape,
    Mesh,
    SnapshotAt,
    Snapshots,
    State,
    scale_side,
)
from sparq_sim.plugin.environment import Landscape

__all__ = ["Advance", "EvolvingEnvironment"]

Advance: TypeAlias = Callable[[State, float], State]
"""Returns the state one snapshot after a time, of the state at that time and the time."""


class EvolvingEnvironment(SimulatedEnvironment):
    """An environment with a field on a grid of cells, each snapshot computed from the one before.

    Define `domain`, a Box, and `advance`; also `first` unless the field begins at 0 everywhere, and
    `read` where the state is more than the reward. Rewards are interpolated linearly between the
    middles of cells and between snapshots. The best point is the middle of the highest cell,
    exactly. `coarse(resolution)` has fewer cells.
    """

    level_evaluations = 500_000

    cells: Annotated[int, Field(ge=4)] = 48
    """Cells along each side."""
    snapshot: Positive = 1.0
    """Clock units from one snapshot to the next."""
    spin_up: Amount = 0.0
    """Clock units simulated before time 0; rounded up to whole snapshots."""

    def check_play(self, until: float) -> None:
        """Refuse a domain that is no box."""
        self._place(Box)

    def first(self, grid: CellGrid) -> ArrayLike:
        """Return the state when the simulation begins, `spin_up` before time 0; by default 0.

        Args:
            grid: The cells, as for `advance`.

        Returns:
            Numbers of any shape; `advance` returns the same shape.
        """
        return np.zeros(grid.shape)

    def advance(self, state: State, grid: CellGrid, begin: float, end: float) -> ArrayLike:
        """Return the state at *end*, which is `snapshot` after *begin*, as a new array.

        Args:
            state: As `first` or this method returned it; it cannot be written to.
            grid: With `points` (n, d), the middles of the cells in the order of the flat state,
                `spacings` (d,), `axes` and `shape`.
            begin: The time of *state*, in clock units.
            end: The time of the state to return.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define advance(self, state, grid, begin, end)"
        )

    def read(self, state: State, grid: CellGrid) -> ArrayLike:
        """Return the reward in each cell; by default the state itself.

        Args:
            state: As `first` or `advance` returned it; it cannot be written to.
            grid: The cells, as for `advance`.

        Returns:
            Numbers of the shape of the grid.
        """
        return state

    def start(self, rng: Generator) -> Landscape:
        """Draw what is left to chance; states are computed when they are asked for."""
        settled = self._settle_checked(rng)
        return settled.evolve(lambda grid: partial(settled._advanced, grid))

    def evolve(self, solver: Callable[[CellGrid], Advance]) -> InterpolatedLandscape:
        """Return the landscape that a solver computes.

        For a `start` that prepares more than `advance` can, such as a factorised matrix.

        Args:
            solver: Returns, for a grid, what advances a state on it by one snapshot.
        """
        domain, name = self._place(Box), type(self).__name__
        lead = math.ceil(self.spin_up / self.snapshot)

        def evolved(resolution: float) -> tuple[Mesh, SnapshotAt]:
            grid = CellGrid(domain, scale_side(self.cells, resolution))
            advance = solver(grid)
            snapshots = Snapshots(
                _check_state(self.first(grid), f"{name}.first(grid)"),
                lambda state, number: advance(state, (number - lead) * self.snapshot),
            )
            return grid, lambda number: self._field(snapshots[number + lead], grid)

        return InterpolatedLandscape(evolved, interval=self.snapshot)

    def _advanced(self, grid: CellGrid, state: State, begin: float) -> State:
        end = begin + self.snapshot
        asked = f"{type(self).__name__}.advance(state, grid, {begin!r}, {end!r})"
        try:
            given = self.advance(state, grid, begin, end)
        except Exception as error:
            error.add_note(f"in {asked}, a state of shape {state.shape}")
            raise
        return _check_state(given, asked, state.shape)

    def _field(self, state: State, grid: CellGrid) -> State:
        field = self.read(state, grid)
        if field is state and state.shape == grid.shape:
            return state
        return _check_state(field, f"{type(self).__name__}.read(state, grid)", grid.shape)


def _check_state(given: ArrayLike, asked: str, shape: tuple[int, ...] | None = None) -> State:
    """Return a state that a method returned, after checking its *shape* and that it is finite."""
    shape = np.shape(given) if shape is None else shape
    state = check_array(given, shape, asked=asked, expected=f"expected numbers of shape {shape}")
    wrong = np.flatnonzero(~np.isfinite(state))
    if wrong.size:
        raise PluginError(
            f"{asked} gives {state.flat[wrong[0]]}, in {wrong.size} of {state.size} numbers; a "
            "scheme that is not stable needs smaller steps within a snapshot, or fewer cells"
        )
    return state
