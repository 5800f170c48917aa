"""Plug-ins that would end the program, in one place and by one way."""

from __future__ import annotations

import os
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.random import Generator

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.messages import Estimate, Move, Query, Reply
from sparq_sim.plugin.contract import (
    Agent,
    Answering,
    Briefing,
    Environment,
    Expert,
    Landscape,
    Optimizer,
    World,
)
from sparq_sim.testing import Asker

Way: TypeAlias = Literal["exits", "interrupts", "ends", "stops"]
WAYS: dict[Way, str] = {
    "exits": "SystemExit: 0",
    "interrupts": "KeyboardInterrupt: ",
    "ends": r"SystemExit: os._exit\(0\)",
    "stops": "GeneratorExit: ",
}
"""Each way to end the program, and how it is told of."""


def go(way: Way) -> None:
    """End the program as if all were well."""
    match way:
        case "exits":
            raise SystemExit(0)
        case "interrupts":
            raise KeyboardInterrupt
        case "stops":
            raise GeneratorExit
    os._exit(0)


class Leaver(Asker):
    """Goes in the place where it is told to."""

    where: str = "nowhere"
    way: Way = "exits"

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        if self.where == "start":
            go(self.way)
        return _LeaverAgent(self, super().start(briefing, rng))


class _LeaverAgent:
    def __init__(self, model: Leaver, inner: Agent) -> None:
        self._model, self._inner = model, inner

    def ask(self, now: float) -> Move:
        if self._model.where == "ask":
            go(self._model.way)
        return self._inner.ask(now)

    def tell(self, reply: Reply) -> None:
        if self._model.where == "tell":
            go(self._model.way)
        self._inner.tell(reply)

    def __enter__(self) -> None:
        if self._model.where == "enter":
            go(self._model.way)

    def __exit__(self, *_: object) -> None:
        if self._model.where == "exit":
            go(self._model.way)


class Deserter(Expert):
    """Goes in the place where it is told to."""

    where: str = "nowhere"
    way: Way = "exits"

    def start(self, briefing: Briefing) -> Answering:
        if self.where == "start":
            go(self.way)
        return _Deserter(self)


class _Deserter:
    def __init__(self, model: Deserter) -> None:
        self._model = model

    def _pass(self, place: str) -> None:
        if self._model.where == place:
            go(self._model.way)

    async def answer(self, query: Query, world: World) -> Estimate:
        self._pass("answer")
        return Estimate(world.rewards(query.points, world.clock.now))

    async def broadcast(self, world: World) -> None:
        self._pass("broadcast")

    def meters(self, time: float) -> dict[str, float]:
        self._pass("meters")
        return {}

    def accounts(self, time: float) -> dict[str, dict[str, Any]]:
        self._pass("accounts")
        return {}


class Void(Environment):
    """Goes in the place where it is told to."""

    where: str = "nowhere"
    way: Way = "exits"

    def start(self, rng: Generator) -> Landscape:
        if self.where == "start":
            go(self.way)
        return _Void(self)


class _Void:
    domain = Box(0.0, 1.0)

    def __init__(self, model: Void) -> None:
        self._model = model

    def rewards(self, points: Points, time: float) -> Values:
        if self._model.where == "rewards":
            go(self._model.way)
        return -points[:, 0]

    def best(self, time: float) -> tuple[Point, float]:
        if self._model.where == "best":
            go(self._model.way)
        return np.zeros(1), 0.0

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        if self._model.where == "observe":
            go(self._model.way)
        return self.rewards(points, time)


PLACES: list[Optimizer | Expert | Environment] = [
    *(Leaver(where=where) for where in ("start", "enter", "ask", "tell", "exit")),
    *(Deserter(where=where) for where in ("start", "answer", "broadcast", "meters", "accounts")),
    *(Void(where=where) for where in ("start", "rewards", "best", "observe")),
]
"""A plug-in for each place."""
