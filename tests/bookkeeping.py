"""An expert that keeps books, for tests of what becomes of meters and accounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sparq_sim import Briefing, Channel, Estimate, Expert, Query, World
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope


class Battery(Expert):
    """Answers out of a battery that each point empties by *draw*, and keeps books of it."""

    draw: float = 1.0

    def start(self, briefing: Briefing) -> FullBattery:
        return FullBattery(self.draw)


class FullBattery:
    """A battery during one play."""

    def __init__(self, draw: float) -> None:
        self._draw = draw
        self._used: list[float] = []
        self._moments: list[float] = []

    async def answer(self, query: Query, world: World) -> Estimate:
        self._used.append(self._draw * len(query.points))
        self._moments.append(world.clock.now)
        values = world.rewards(query.points, world.clock.now)
        return Estimate(values + world.rng.normal(size=len(values)))

    def meters(self, time: float) -> dict[str, float]:
        return {"left": 100.0 - sum(self._used), "energy_used": sum(self._used)}

    def accounts(self, time: float) -> dict[str, dict[str, Any]]:
        count = len(self._used)
        return {
            "uses": {
                "time": self._moments,
                "number": np.arange(count),
                "by": ["mains" if each > 5 else "battery" for each in self._used],
                "large": np.array(self._used) > 5,
            },
            "cells": {"capacity": [np.inf, 100.0], "died_at": [np.nan, time]},
        }


def run_metered(folder: Path, **fields: Any) -> Results:
    """Run a study in which two optimizers, one of them mute, meet a battery, and return it."""
    chosen: dict[str, Any] = {
        "rounds": 6,
        "replications": 3,
        "environment": Slope(),
        "experts": {"battery": (Battery(), Channel(cost=0.1))},
        "optimizers": {"asker": Asker(), "uniform": Uniform()},
    }
    study = Study(Scenario(**{**chosen, **fields}), folder)
    study.run(InProcess())
    return study.results
