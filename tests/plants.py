"""Plants: systems that can only be tried, so that nobody knows their best reward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Box
from sparq_sim.errors import Unavailable
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.expert import Expert, World
from sparq_sim.plugin.steered import SafeMoment, Steered, SteeredEnvironment
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study


class Plant(SteeredEnvironment):
    """A yield that falls on both sides of an opening; sometimes it is not measured."""

    opening: float = 0.3
    silent: float = 0.0

    def connect(self, rng: Generator) -> Steered:
        return _Driver(rng, self.opening, self.silent)


class _Driver:
    domain = Box(0.0, 1.0, ["opening"])

    def __init__(self, rng: Generator, opening: float, silent: float) -> None:
        self._rng, self._opening, self._silent = rng, opening, silent

    async def apply(self, query: Query, world: World) -> Estimate:
        noise, luck = 0.05 * self._rng.standard_normal(), self._rng.random()
        if luck < self._silent:
            raise Unavailable("the meter said nothing")
        return Estimate(_yields(query.points, self._opening) + noise, stds=0.05)

    async def make_safe(self, moment: SafeMoment) -> None:
        pass

    def safe_action(self, moment: SafeMoment) -> str:
        return "hold"


def _yields(points: Points, opening: float) -> Values:
    return np.asarray(-1.0 - (points[:, 0] - opening) ** 2)


class Hint(Expert):
    """Knows the yield as it was planned."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(_yields(query.points, 0.35), stds=0.1)


def plan(**fields: Any) -> Scenario:
    """Return a scenario in a plant, of which a report has all there is to tell."""
    kernel = {"kind": "squared-exponential", "length_scale": 0.3}
    chosen: dict[str, Any] = {
        "title": "A plant and a hint",
        "rounds": 24,
        "replications": 3,
        "environment": Plant(),
        "experts": {"hint": (Hint(), {"noise": 0.1, "cost": 0.1, "transit": 1.5})},
        "optimizers": {
            "careless": {"kind": "uniform"},
            "curious": {"kind": "sparq-gp-ucb", "kernel": kernel, "acquisition": {"grid": 21}},
        },
        "record": "full",
    }
    return Scenario(**{**chosen, **fields})


def steer(folder: Path, **fields: Any) -> Results:
    """Play in a plant, and return the results."""
    study = Study(plan(**fields), folder)
    study.run(InProcess())
    return study.results


def steer_and_simulate(folder: Path, **fields: Any) -> Results:
    """Play one optimizer in a plant and another where the best reward is known."""
    uniform = {"kind": "uniform"}
    steer(folder, optimizers={"steered": uniform}, **fields)
    known = plan(optimizers={"simulated": uniform}, environment={"kind": "synthetic"}, **fields)
    Study(known, folder, into=True).run(InProcess())
    # Which of the two scenarios the folder is of.
    (folder / "scenario.json").unlink()
    return Results.open(folder)
