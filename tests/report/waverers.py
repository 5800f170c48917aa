"""An optimizer that notes parts of wholes, and a study of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from sparq_sim.messages import Move, Reply
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Briefing, Optimizer
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from sparq_sim.testing import Slope

SCALES = ("3", "10", "30", "100", "300", "1000")


class Waverer(Optimizer):
    """Plays at random, and believes in ever longer time scales from round *begins* on."""

    begins: int = 2
    scales: tuple[str, ...] = SCALES

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return _WavererAgent(self, briefing, rng)


class _WavererAgent:
    def __init__(self, model: Waverer, briefing: Briefing, rng: Generator) -> None:
        self._model, self._briefing, self._rng = model, briefing, rng
        self._round = 0

    def ask(self, now: float) -> Move:
        self._round += 1
        point = self._briefing.domain.sample(self._rng, 1)[0]
        if self._round < self._model.begins:
            return Move(point, notes={"pace": 1.0})
        scales = self._model.scales
        centre = 0.3 * self._round + self._rng.normal()
        weights = np.exp(-((np.arange(len(scales)) - centre % len(scales)) ** 2))
        shares = (weights / weights.sum()).tolist()
        notes = {f"time_scale/{scale}": share for scale, share in zip(scales, shares, strict=True)}
        motion = 1 / self._round
        return Move(
            point, notes={"pace": 1.0, **notes, "drift/motion": motion, "drift/jitter": 1 - motion}
        )

    def tell(self, reply: Reply) -> None:
        pass


def waver(folder: Path, **fields: Any) -> Results:
    """Play a waverer and one who believes nothing, three replications each."""
    chosen: dict[str, Any] = {
        "rounds": 12,
        "replications": 3,
        "environment": Slope(),
        "optimizers": {"calm": Uniform(), "waverer": Waverer()},
    }
    study = Study(Scenario(**{**chosen, **fields}), folder)
    study.run(InProcess())
    return study.results
