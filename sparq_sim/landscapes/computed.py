"""Computed: bases to derive an environment from that is simulated at each time on its own.

- `ComputedEnvironment` simulates each point when it is asked about, and searches for the best;
- `TabulatedEnvironment` simulates a grid of points at regular times, and interpolates.

A field in which each time follows from the one before is an `evolving.EvolvingEnvironment`.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Annotated, Any, ClassVar

from numpy.random import Generator
from numpy.typing import ArrayLike
from pydantic import Field

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError
from sparq_sim.fields import Positive
from sparq_sim.landscapes.optima import build_search
from sparq_sim.landscapes.simulated import SimulatedEnvironment, compute_values
from sparq_sim.landscapes.snapshots import (
    InterpolatedLandscape,
    Mesh,
    NodeGrid,
    SiteMesh,
    SnapshotAt,
    State,
    check_resolution,
    scale_side,
)
from sparq_sim.plugin.environment import Landscape

__all__ = [
    "ComputedEnvironment",
    "ComputedLandscape",
    "TabulatedEnvironment",
    "TabulatedLandscape",
]

_MOST_NODES = 1_000_000
"""The largest number of nodes that a grid may have."""


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

    cell_count = 1
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
        """Return the same as `rewards`, as nothing is interpolated.

        Args:
            points: Where: (n, d).
            time: When, in clock units.
        """
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
        if isinstance(domain, Box) and self.nodes**domain.dimensions > _MOST_NODES:
            raise PluginError(
                f"{type(self).__name__}: {self.nodes} nodes along each of {domain.dimensions} "
                f"sides are more than the {_MOST_NODES:,} that can be simulated; take fewer "
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
