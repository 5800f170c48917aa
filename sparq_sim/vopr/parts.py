"""Plug-ins of several tempers, to be played in random scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import nan

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.messages import Answer, Estimate, Move, Query, Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.expert import Expert, World
from sparq_sim.plugin.optimizer import Agent, Optimizer

__all__ = [
    "SAID",
    "Beacon",
    "Charger",
    "Dicer",
    "Gappy",
    "Inquirer",
    "Lagged",
    "Patchy",
    "Relay",
    "Stammerer",
]

SAID = "said_at"
"""The note in which an expert repeats the time that it said its values are about."""


class Inquirer(Optimizer):
    """Asks each of *sources* a query of each of *sizes*, mostly about points already played.

    Its every move depends on all that it has heard. Who is asked and is not there is left out.
    """

    sources: tuple[str, ...]
    """Whom it asks."""
    ignores: tuple[str, ...] = ()
    """Whom it asks too, though their replies change nothing."""
    sizes: tuple[int, ...] = (2,)
    """How many points each query of a round is about."""
    waits: bool = False
    """Whether it plays when a reply has come, or two periods later."""
    stray: bool = False
    """Whether it also asks about a point that was never played."""
    skipped: int = 0
    """Draws at the beginning, which make another optimizer of it."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return _InquirerAgent(self, briefing, rng)


class _InquirerAgent:
    def __init__(self, model: Inquirer, briefing: Briefing, rng: Generator) -> None:
        self._model = model
        self._briefing = briefing
        self._rng = rng
        self._rng.random(model.skipped)
        self._past: list[Point] = []
        # Whom it ignores has other numbers, so that nobody else's numbers shift.
        self._ids, self._ignored_ids = count(1), count(10**6)
        self._latest = 0.0
        self._asked_at: float | None = None
        self._stirred = False

    def ask(self, now: float) -> Move:
        if self._model.waits and self._past:
            if self._asked_at is None:
                self._asked_at, self._stirred = now, False
                return Move(None, tuple(self._queries(now)))
            if not self._stirred and now < self._asked_at + 2 * self._briefing.period:
                return Move(None)
            self._asked_at = None
        drawn = self._briefing.domain.sample(self._rng, 4)
        self._past.append(drawn[int(1e6 * abs(self._latest)) % 4])
        queries = () if self._model.waits else tuple(self._queries(now))
        return Move(self._past[-1], queries, {"latest": self._latest})

    def tell(self, reply: Reply) -> None:
        if reply.query.source not in self._model.ignores:
            self._stirred = True
            values = reply.values if isinstance(reply, Answer) else np.ones(1)
            heard = float(values.sum()) / (1 + abs(float(values.sum()))) + reply.arrived_at
            self._latest = 0.5 * self._latest + heard

    def _queries(self, now: float) -> Iterator[Query]:
        there, past = self._briefing.experts, self._past[::-1]
        for names, ids in (
            (self._model.sources, self._ids),
            (self._model.ignores, self._ignored_ids),
        ):
            for name in names:
                if name not in there:
                    continue
                for size in self._model.sizes:
                    points = np.array([past[i % len(past)] for i in range(size)])
                    yield Query(next(ids), name, points, now)
                if self._model.stray:
                    elsewhere = self._briefing.domain.cover(5)[-1]
                    yield Query(next(ids), name, np.array([elsewhere, past[-1]]), now)


def _place(points: Points) -> Values:
    """Return a number from 0 to 1 for each point, which stays the same."""
    return np.abs(np.sin(1e3 * points[:, 0]))


class Patchy(Expert):
    """Knows nothing of some points, and raises an error when asked first about some others."""

    async def answer(self, query: Query, world: World) -> Estimate:
        place = _place(query.points)
        if place[0] < 0.1:
            raise RuntimeError("too low")
        known = world.rewards(query.points, world.clock.now)
        return Estimate(np.where(place <= 0.7, known, nan))


class Stammerer(Expert):
    """Answers twice, the second time after a pause."""

    pause: float
    """How long it pauses, in clock units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        said = Estimate(world.rewards(query.points, world.clock.now))
        world.send(query, said)
        await world.clock.sleep(self.pause)
        return said


class Lagged(Expert):
    """Knows the reward as it was some time ago, and guesses a little."""

    lag: float
    """How long ago, in clock units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        then = max(0.0, world.clock.now - self.lag)
        guess = 0.01 * world.rng.random(len(query.points))
        values = world.rewards(query.points, then) + guess
        return Estimate(values, measured_at=then, notes={SAID: then})


class Dicer(Expert):
    """Knows the reward as it is, and notes a throw of its dice."""

    async def answer(self, query: Query, world: World) -> Estimate:
        now = world.clock.now
        notes = {"dice": world.rng.random(), SAID: now}
        return Estimate(world.rewards(query.points, now), notes=notes)


class Beacon(Expert):
    """Knows the reward as it is, and now and then begins a reading of its own accord."""

    pause: float
    """How long it pauses between two readings, in clock units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.rewards(query.points, world.clock.now))

    async def broadcast(self, world: World) -> None:
        """Send readings until the play ends.

        Args:
            world: What it may use.
        """
        while True:
            await world.clock.sleep(self.pause)
            query = world.open(world.domain.cover(1)[:1])
            await world.clock.sleep(self.pause / 2)
            world.send(query, await self.answer(query, world))


class Relay(Expert):
    """Asks another expert, and passes on what it hears."""

    other: str
    """Whom it asks."""

    async def answer(self, query: Query, world: World) -> Estimate:
        values: Values = np.full(len(query.points), nan)
        for reply in await world.ask(self.other, query.points):
            if isinstance(reply, Answer):
                values[reply.rows] = reply.values
        return Estimate(values, absent="nothing heard")


class Charger(Expert):
    """Knows the reward as it is, and charges for each point itself, before and after a pause."""

    price: float
    """What a point costs each time."""
    pause: float
    """How long it pauses, in clock units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        world.charge(self.price * len(query.points))
        await world.clock.sleep(self.pause)
        world.charge(self.price * len(query.points))
        return Estimate(world.rewards(query.points, world.clock.now))


class Gappy(Environment):
    """A line of which a part has no reading now and then; there it has what nobody can know."""

    def start(self, rng: Generator) -> Landscape:
        return _GappyLandscape(float(rng.random()))


class _GappyLandscape:
    domain = Box(0.0, 1.0)

    def __init__(self, phase: float) -> None:
        self._phase = phase

    def rewards(self, points: Points, time: float) -> Values:
        values = np.sin(points[:, 0] + time)
        return np.where(self.available(points, time), values, 1000.0)

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        there: NDArray[np.bool_] = (points[:, 0] < 0.5) | (np.sin(time + 6 * self._phase) > -0.5)
        return there

    def best(self, time: float) -> tuple[Point, float]:
        if not self.available(np.ones((1, 1)), time)[0]:
            return np.ones(1), 1000.0
        top = float(np.clip((np.pi / 2 - time) % (2 * np.pi), 0.0, 1.0))
        points = np.array([[0.0], [top], [1.0]])
        rewards = self.rewards(points, time)
        return points[rewards.argmax()], float(rewards.max())
