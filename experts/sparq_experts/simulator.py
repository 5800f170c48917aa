"""The expert who computes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt

from sparq_sim.clock import Gate
from sparq_sim.draws import Amount
from sparq_sim.messages import Estimate, Query
from sparq_sim.models import Answering, Expert, Landscape, Setting, World


class Simulator(Expert):
    """Runs a coarse model of the environment: its errors are those of real discretisation.

    It uses the environment's own `coarse(resolution)`. A query waits for a processor, then is one
    run that lasts service_per_cell times the cells of the coarse grid, and tells of the moment
    when the run began: what comes out is as old as the run was long.
    """

    resolution: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Cells a side, as a share of the environment's own."""
    service_per_cell: Amount = 1e-4
    """How long a run lasts for each cell, in clock units."""
    processors: PositiveInt = 1
    """How many runs there can be at a time; the others wait."""
    std: Amount = 0.0
    """What it claims its error to be, in reward units."""

    def start(self, setting: Setting) -> Answering:
        """Begin with idle processors."""
        return _SimulatorAtWork(self)


class _SimulatorAtWork:
    def __init__(self, model: Simulator) -> None:
        self._model = model
        self._landscape: Landscape | None = None
        self._processors: Gate | None = None

    async def answer(self, query: Query, world: World) -> Estimate:
        """Wait for a processor, and run."""
        model, clock = self._model, world.clock
        if self._landscape is None or self._processors is None:
            self._landscape = world.coarse(model.resolution)
            self._processors = clock.gate(model.processors)
        landscape = self._landscape
        cells = getattr(landscape, "cells", None)
        if cells is None:
            raise ValueError(
                f"{type(landscape).__name__} does not say how many `cells` it computes"
            )
        async with self._processors:
            began_at = clock.now
            await clock.sleep(model.service_per_cell * cells)
        values = landscape.rewards(query.points, began_at)
        return Estimate(values, stds=model.std, measured_at=began_at)
