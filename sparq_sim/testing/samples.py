"""Samples: a small environment, a small expert and a small optimizer, for tests."""

from __future__ import annotations

from itertools import count
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.random import Generator
from pydantic import PositiveInt

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.messages import Estimate, Move, Query, Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.expert import Expert, World
from sparq_sim.plugin.optimizer import Agent, Asks, Optimizer

__all__ = ["Asker", "Place", "Slope", "Teller"]

Place: TypeAlias = Literal["line", "square", "sites"]
"""Where a `Slope` lies."""


class Slope(Environment):
    """A small environment for tests: a parabola whose top moves along a diagonal."""

    place: Place = "line"
    """Where points may lie: on a line, in a square, or at nine sites of the square."""

    def start(self, rng: Generator) -> Landscape:
        """Return the parabola; nothing is left to chance."""
        square = Box([0.0, 0.0], [1.0, 1.0])
        places: dict[str, Domain] = {
            "line": Box(0.0, 1.0),
            "square": square,
            "sites": Sites(square.grid(3)),
        }
        return _SlopeLandscape(places[self.place])


class _SlopeLandscape:
    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def rewards(self, points: Points, time: float) -> Values:
        """Return 1 minus the squared distance from the top."""
        squares: Values = ((points - self._top(time)) ** 2).sum(axis=1)
        return 1.0 - squares

    def best(self, time: float) -> tuple[Point, float]:
        """Return the top, or the nearest site, and its reward."""
        if isinstance(self.domain, Sites):
            rewards = self.rewards(self.domain.points, time)
            return self.domain.points[rewards.argmax()], float(rewards.max())
        return np.full(self.domain.dimensions, self._top(time)), 1.0

    def _top(self, time: float) -> float:
        return 0.5 + 0.4 * float(np.sin(0.3 * time))


class Teller(Expert):
    """A small expert for tests, which knows the reward as it is."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Return the reward of now."""
        return Estimate(world.rewards(query.points, world.clock.now))


class Asker(Optimizer):
    """A small optimizer for tests, which plays at random and asks all experts about past points."""

    asks: ClassVar[Asks | None] = "past"
    batch: PositiveInt = 2
    """How many points, the latest, each query is about."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Return an agent that learns nothing."""
        return _AskerAgent(self, briefing, rng)


class _AskerAgent:
    def __init__(self, model: Asker, briefing: Briefing, rng: Generator) -> None:
        self._batch = model.batch
        self._briefing = briefing
        self._rng = rng
        self._past: list[Point] = []
        self._ids = count(1)

    def ask(self, now: float) -> Move:
        """Play a random point, and ask about the latest ones."""
        self._past.append(self._briefing.domain.sample(self._rng, 1)[0])
        points = np.array(self._past[-self._batch :])
        experts = self._briefing.experts
        return Move(
            self._past[-1], tuple(Query(next(self._ids), name, points, now) for name in experts)
        )

    def tell(self, reply: Reply) -> None:
        """Ignore the reply."""
