"""Computed: bases to derive an environment from that is simulated, by an ODE or a PDE.

- `ComputedEnvironment` simulates each point when it is asked about, and searches for the best;
- `TabulatedEnvironment` simulates a grid of points at even times, and interpolates;
- `EvolvingEnvironment` advances a field on a grid from one time to the next, and interpolates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from pydantic import Field

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError
from sparq_sim.fields import Amount, Positive
from sparq_sim.landscapes.optima import build_search
from sparq_sim.landscapes.snapshots import (
    CellGrid,
    InterpolatedLandscape,
    Mesh,
    NodeGrid,
    SiteMesh,
    SnapshotAt,
    Snapshots,
    State,
    check_resolution,
    scale_side,
)
from sparq_sim.plugin.environment import Environment, Landscape

__all__ = [
    "MOST_NODES",
    "Advance",
    "ComputedEnvironment",
    "ComputedLandscape",
    "EvolvingEnvironment",
    "SimulatedEnvironment",
    "TabulatedEnvironment",
    "TabulatedLandscape",
    "compute_values",
]

Advance: TypeAlias = Callable[[State, float], State]
"""Returns the state one snapshot after a time, of the state at that time and the time."""

MOST_NODES = 1_000_000
"""The largest number of nodes that a grid may have."""

# Checks of what a method of a plug-in returned


def compute_values(compute: Callable[[Points], ArrayLike], points: Points, *, asked: str) -> Values:
    """Return what a function computes for each row of *points*: (n,).

    Args:
        compute: Takes the points, as an array that it cannot change.
        points: Where: (n, d).
        asked: How errors name the call, such as "f(points, 2.0)".

    Raises:
        PluginError: It does not return one finite number for each row.
    """
    view = points.view()
    view.setflags(write=False)
    try:
        given: Any = compute(view)
    except Exception as error:
        error.add_note(f"in {asked}, points of shape {points.shape}")
        raise
    expected = f"expected {len(points)} finite numbers, one for each row of points"
    values = _numbers(given, (len(points),), asked=asked, expected=expected)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise PluginError(
            f"{asked} gives {values[wrong[0]]} at {points[wrong[0]].tolist()}; {expected}"
        )
    return values


def _numbers(given: Any, shape: tuple[int, ...], *, asked: str, expected: str) -> State:
    """Return a copy of what is *given*, which its author may use again, or raise an error."""
    try:
        array = np.asarray(given)
    except ValueError as error:  # Rows of several lengths.
        raise PluginError(f"{asked} gives {given!r:.200}; {expected}") from error
    if array.dtype.kind not in "fiu":
        raise PluginError(f"{asked} gives {given!r:.200}; {expected}")
    if array.shape != shape:
        raise PluginError(f"{asked} gives an array of shape {array.shape}; {expected}")
    return array.astype(np.float64)


class SimulatedEnvironment(Environment):
    """The base of the bases: a domain, and parameters that may be left to chance."""

    def domain(self) -> Domain:
        """Return where points may lie; it may depend on the fields, but not on chance."""
        raise NotImplementedError(f"{type(self).__name__} must define domain(self)")

    def settle(self, rng: Generator) -> Self:
        """Return a copy of the model in which all that is left to chance is drawn.

        By default nothing is left to chance. For instance
        `return self.model_copy(update={"phase": rng.random()})`. The other methods are called on
        what this returns.

        Args:
            rng: The only source of chance.
        """
        return self

    def _settle_checked(self, rng: Generator) -> Self:
        settled: Any = self.settle(rng)
        if not isinstance(settled, type(self)):
            raise PluginError(
                f"{type(self).__name__}.settle(rng) gives {settled!r:.200}; expected the model, or "
                "a copy as `self.model_copy(update={...})` makes it"
            )
        return settled

    def _place(self, *kinds: type[Domain]) -> Any:
        """Return the domain, if it is of one of these *kinds*."""
        name, names = type(self).__name__, " or ".join(kind.__name__ for kind in kinds)
        given: Any = self.domain
        if not callable(given):
            raise PluginError(
                f"{name}.domain is {given!r:.200}; expected a method that returns a {names}, as in "
                "`def domain(self): return Box(0.0, 1.0)`"
            )
        domain = given()
        if not isinstance(domain, kinds):
            raise PluginError(f"{name}.domain() gives {domain!r:.200}; expected a {names}")
        return domain


# Each time on its own: systems


class ComputedEnvironment(SimulatedEnvironment):
    """An environment whose reward is simulated at each point that is asked about, at that time.

    Define `domain` and `simulate`; the best point is found by `landscapes.optima.OptimumSearch`,
    which simulates 1,000 to 2,000 points for each time (all sites, where there are sites). For
    simulations that are cheap, and for more coordinates than a grid can fill.
    """

    tolerance: ClassVar[float] = 1e-6
    """By how much the reward of any point, simulated anew, may lie above that of `best`, and by how
    much it may differ from `rewards`; in reward units. `check_environment` holds it to that."""

    def check_play(self, until: float) -> None:
        """Refuse a domain, or a grid in it, that cannot be computed."""
        self._place(Box, Sites)

    def simulate(self, points: Points, time: float, resolution: float) -> ArrayLike:
        """Return the reward at each row of *points*, as it is at *time*: (n,).

        It must depend on nothing else, and, unless it is tabulated, not on which points are asked
        about together, as the steps of many solvers do.

        Args:
            points: Where: (n, d).
            time: When, in clock units from 0.
            resolution: 1 for the environment itself; less for `coarse(resolution)`, a cheaper
                version, which may take larger steps.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define simulate(self, points, time, resolution)"
        )

    def start(self, rng: Generator) -> Landscape:
        """Draw what is left to chance; rewards are computed when they are asked for."""
        return ComputedLandscape(self._settle_checked(rng), self._place(Box, Sites))

    def simulate_checked(self, points: Points, time: float, resolution: float = 1.0) -> Values:
        """Return what `simulate` computes, after checking it: (n,).

        Args:
            points: Where: (n, d).
            time: When, in clock units.
            resolution: The share of the full resolution.

        Raises:
            PluginError: It is not one finite number for each point.
        """
        name = f"{type(self).__name__}.simulate(points, {time!r}, {resolution!r})"
        return compute_values(
            lambda view: self.simulate(view, time, resolution), points, asked=name
        )


class ComputedLandscape:
    """A started `ComputedEnvironment`.

    Args:
        model: The environment, with all that is left to chance drawn.
        domain: Where points may lie.
        resolution: The share of the full resolution, above 0 and at most 1.
    """

    cells = 1
    """How much there is to compute for a point: one simulation."""

    def __init__(
        self, model: ComputedEnvironment, domain: Domain, *, resolution: float = 1.0
    ) -> None:
        self.domain = domain
        self.tolerance = model.tolerance
        self._model = model
        self._resolution = resolution
        self._search = build_search(domain, self.rewards)
        self._coarse = lru_cache(maxsize=8)(partial(ComputedLandscape, model, domain))

    def rewards(self, points: Points, time: float) -> Values:
        """Return the simulated reward at each point."""
        return self._model.simulate_checked(points, time, self._resolution)

    def simulate(self, points: Points, time: float) -> Values:
        """Return the same as `rewards`, as nothing is interpolated."""
        return self.rewards(points, time)

    def best(self, time: float) -> tuple[Point, float]:
        """Return the highest point that the search finds at *time*, and its reward."""
        return self._search(time)

    def coarse(self, resolution: float) -> ComputedLandscape:
        """Return the same landscape, simulated at another resolution.

        Args:
            resolution: The share of the full resolution, above 0 and at most 1.

        Raises:
            ValueError: It is no such share.
        """
        check_resolution(resolution)
        return self if resolution == 1.0 else self._coarse(resolution=resolution)


class TabulatedEnvironment(ComputedEnvironment):
    """An environment that is simulated on a grid at regular times, and interpolated linearly.

    Define `domain` and `simulate`, which is called for all nodes of the grid at once, so that one
    call of a solver can serve them all, and choose its steps for all. Snapshots are kept by time
    and resolution. The best point is the highest node, exactly; state as *tolerance* how far what
    is simulated anew may lie from what is interpolated. `coarse(resolution)` has fewer nodes, and
    calls `simulate` with its resolution. On `Sites` every site is a node.
    """

    level_evaluations = 500_000

    memory: ClassVar[int] = 2**26
    """Bytes of snapshots that are kept for each resolution; the least recently used is dropped."""

    nodes: Annotated[int, Field(ge=2)] = 33
    """Nodes along each side of the domain, bounds included."""
    snapshot: Positive = 1.0
    """Clock units from one snapshot to the next."""

    def start(self, rng: Generator) -> Landscape:
        """Draw what is left to chance; snapshots are computed when they are asked for."""
        return TabulatedLandscape(self._settle_checked(rng), self._place(Box, Sites))

    def _place(self, *kinds: type[Domain]) -> Any:
        domain = super()._place(*kinds)
        if isinstance(domain, Box) and self.nodes**domain.dimensions > MOST_NODES:
            raise PluginError(
                f"{type(self).__name__}: {self.nodes} nodes along each of {domain.dimensions} "
                f"sides are more than the {MOST_NODES:,} that can be simulated; take fewer "
                "`nodes`, or derive from ComputedEnvironment, which simulates where it is asked"
            )
        return domain


class TabulatedLandscape(InterpolatedLandscape):
    """A started `TabulatedEnvironment`.

    Args:
        model: The environment, with all that is left to chance drawn.
        domain: Where points may lie.
    """

    def __init__(self, model: TabulatedEnvironment, domain: Domain) -> None:
        self.domain = domain
        self.tolerance = model.tolerance
        self._model = model
        super().__init__(self._tabulate, interval=model.snapshot)

    def simulate(self, points: Points, time: float) -> Values:
        """Return the reward simulated anew at each point, to compare with what is interpolated.

        Args:
            points: Where: (n, d).
            time: When, in clock units.
        """
        return self._model.simulate_checked(points, time)

    def _tabulate(self, resolution: float) -> tuple[Mesh, SnapshotAt]:
        model, domain = self._model, self.domain
        mesh: Mesh = (
            SiteMesh(domain)
            if isinstance(domain, Sites)
            else NodeGrid(domain, scale_side(model.nodes, resolution))
        )

        def frame(number: int) -> State:
            values = model.simulate_checked(mesh.points, number * model.snapshot, resolution)
            return values.reshape(mesh.shape)

        # Two are needed to interpolate between them.
        return mesh, lru_cache(maxsize=max(2, model.memory // (8 * len(mesh.points))))(frame)


# Each time from the one before: fields


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
                _state(self.first(grid), f"{name}.first(grid)"),
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
        return _state(given, asked, state.shape)

    def _field(self, state: State, grid: CellGrid) -> State:
        field = self.read(state, grid)
        if field is state and state.shape == grid.shape:
            return state
        return _state(field, f"{type(self).__name__}.read(state, grid)", grid.shape)


def _state(given: ArrayLike, asked: str, shape: tuple[int, ...] | None = None) -> State:
    """Return a state that a method returned, after checking its *shape* and that it is finite."""
    shape = np.shape(given) if shape is None else shape
    state = _numbers(given, shape, asked=asked, expected=f"expected numbers of shape {shape}")
    wrong = np.flatnonzero(~np.isfinite(state))
    if wrong.size:
        raise PluginError(
            f"{asked} gives {state.flat[wrong[0]]}, in {wrong.size} of {state.size} numbers; a "
            "scheme that is not stable needs smaller steps within a snapshot, or fewer cells"
        )
    return state
