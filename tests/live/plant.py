"""A plant, a laboratory and an optimizer that write down what reaches them, whatever happens.

Each line is durable before anything else is done, as the effect on a real thing would be.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from sparq_sim import Answer, Box, Briefing, Estimate, Expert, Move, Optimizer, Query, World
from sparq_sim.messages import Reply
from sparq_sim.plugin.optimizer import Agent
from sparq_sim.plugin.steered import SafeMoment, Steered, SteeredEnvironment


def note(file: Path, **entry: Any) -> None:
    """Append a line to a log, and wait until it is on the disk."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, json.dumps(entry).encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_log(file: Path) -> list[dict[str, Any]]:
    """Read a log; there may be none yet."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class Plant(SteeredEnvironment):
    """A plant with one valve, best half open."""

    is_real: ClassVar[bool] = True

    log: str
    """Where it writes down what it does."""
    honours: bool = False
    """Whether it does nothing twice."""
    takes: float = 0.0
    """How many seconds it takes to measure its yield."""
    safe: str = "hold"
    """What is done to make it safe."""
    unsafe: int = 0
    """How often that fails."""
    safe_after: float = 0.0
    """How many seconds it takes, unless it is the start."""

    def honours_keys(self) -> bool:
        return self.honours

    def connect(self, rng: Generator) -> Steered:
        return PlantDriver(self)


class PlantDriver:
    """A plant that is steered."""

    domain = Box(0.0, 1.0, ["valve"])

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._unsafe = plant.unsafe

    async def __aenter__(self) -> None:
        note(Path(self._plant.log), what="enter")

    async def __aexit__(self, *_: object) -> None:
        note(Path(self._plant.log), what="exit")

    async def apply(self, query: Query, world: World) -> Estimate:
        valve = float(query.points[0, 0])
        note(Path(self._plant.log), what="apply", key=world.key, points=query.points.tolist())
        if self._plant.takes:
            await asyncio.sleep(self._plant.takes)
        return Estimate(np.array([1.0 - (valve - 0.5) ** 2]))

    async def make_safe(self, moment: SafeMoment) -> None:
        note(Path(self._plant.log), what="safe", moment=moment)
        if moment != "start" and self._plant.safe_after:
            await asyncio.sleep(self._plant.safe_after)
            note(Path(self._plant.log), what="reached")
        if self._unsafe:
            self._unsafe -= 1
            raise OSError("the valve is stuck")

    def safe_action(self, moment: SafeMoment) -> str:
        return self._plant.safe


class Lab(Expert):
    """A laboratory that measures the yield of a sample."""

    is_real: ClassVar[bool] = True

    log: str
    """Where it writes down what it is asked."""
    honours: bool = False
    """Whether it does nothing twice."""
    takes: float = 0.0
    """How many seconds an analysis takes."""

    def honours_keys(self) -> bool:
        return self.honours

    async def answer(self, query: Query, world: World) -> Estimate:
        note(Path(self.log), what="ask", key=world.key, points=query.points.tolist())
        if self.takes:
            await asyncio.sleep(self.takes)
        return Estimate(1.0 - (query.points[:, 0] - 0.5) ** 2, stds=0.1)


class Prober(Optimizer):
    """Plays at random, shifted by all that it has heard, and asks the laboratory about two points.

    So a move differs where anything before it does.
    """

    asks = "anywhere"

    mistake: float = 0.0
    """Added to each point: a change of the code."""
    fails_in: int = 0
    """The round in which it fails, if any."""
    thinks: float = 0.0
    """How many seconds the second move takes."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return ProberAgent(self, tuple(briefing.experts), rng)


class ProberAgent:
    """A prober at play."""

    def __init__(self, prober: Prober, experts: tuple[str, ...], rng: Generator) -> None:
        self._prober = prober
        self._experts = experts
        self._rng = rng
        self._sum = 0.0
        self._asks = 0

    def ask(self, now: float) -> Move:
        self._asks += 1
        prober = self._prober
        if prober.fails_in and now >= prober.fails_in:
            raise ValueError("out of ideas")
        if self._asks == 2 and prober.thinks:
            import time

            time.sleep(prober.thinks)
        point = (self._rng.random(1) + self._sum + prober.mistake) % 1.0
        queries = [
            Query(100 * self._asks + place, name, self._rng.random((2, 1)), now)
            for place, name in enumerate(self._experts)
        ]
        return Move(point, tuple(queries))

    def tell(self, reply: Reply) -> None:
        if isinstance(reply, Answer):
            self._sum += float(np.sum(reply.values))
        else:
            self._sum += 0.125
