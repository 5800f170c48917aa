"""The expert `simulator`: a coarse computation of the environment."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt

from sparq_sim.errors import PluginError
from sparq_sim.fields import Amount
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Answering, Briefing, Expert, WithCellCount, World
from sparq_sim.simulation.clock.protocol import Gate

__all__ = ["Simulator"]


class Simulator(Expert):
    """Runs the environment's own model on a coarser grid, so that its errors are realistic.

    It uses the `coarse(resolution)` of the environment. A query waits for a processor and is then
    one run, which lasts service_per_cell times the number of cells of the coarse grid. The result
    is dated with the beginning of the run: it is as old as the run was long. An environment that
    cannot be computed coarsely is refused when the play begins.
    """

    resolution: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The number of cells along a side, as a share of the environment's own; above 0, at most 1."""
    service_per_cell: Amount = 1e-4
    """How long a run takes for each cell, in clock units."""
    processors: PositiveInt = 1
    """How many runs there can be at the same time; other queries wait."""
    std: Amount = 0.0
    """The std that it claims for its error, in reward units."""

    def start(self, briefing: Briefing) -> Answering:
        return _SimulatorAtWork(self)


class _SimulatorAtWork:
    def __init__(self, model: Simulator) -> None:
        self._model = model
        self._begun: tuple[int, Gate] | None = None
        """The number of cells of the coarse model, and the processors."""

    async def broadcast(self, world: World) -> None:
        """Send nothing; set up the coarse model when the play begins, or refuse it."""
        self._begin(world)

    def _begin(self, world: World) -> tuple[int, Gate]:
        if self._begun is None:
            try:
                landscape = world.coarse(self._model.resolution)
            except ValueError as error:
                raise PluginError(f"simulator: {error}; leave it out, or ask another") from error
            if not isinstance(landscape, WithCellCount):
                raise PluginError("simulator: the coarse landscape has no `cell_count`")
            self._begun = landscape.cell_count, world.clock.gate(self._model.processors)
        return self._begun

    async def answer(self, query: Query, world: World) -> Estimate:
        model, clock = self._model, world.clock
        cells, processors = self._begin(world)
        async with processors:
            began_at = clock.now
            await clock.sleep(model.service_per_cell * cells)
        values = world.coarse(model.resolution).rewards(query.points, began_at)
        return Estimate(values, stds=model.std, measured_at=began_at)
