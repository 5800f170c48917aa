"""Sources that fail, and a way to ask them over their roads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np

from sparq_sim import (
    Answer,
    Channel,
    Estimate,
    Expert,
    Query,
    World,
)
from sparq_sim.arrays import Values
from sparq_sim.errors import Unavailable
from sparq_sim.simulation.channel.policy import Policy
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.records import Record
from sparq_sim.testing import Slope, Teller
from tests.conftest import Run
from tests.delivery import ask, connect, context_on

LANDSCAPE = Slope().start(np.random.default_rng(0))
Experts = Mapping[str, tuple[Expert, Channel]]


# Sources, and a way to ask them over their roads.


class Awake(Expert):
    """Knows the reward as it is, but raises at points from *above* on before *wakes*."""

    wakes: float = inf
    above: float = 0.0

    async def answer(self, query: Query, world: World) -> Estimate:
        now = world.clock.now
        if now >= self.wakes or (query.points < self.above).all():
            return Estimate(world.rewards(query.points, now))
        raise RuntimeError("asleep")


class HalfAwake(Expert):
    """Gives NaN beyond 0.5 before *wakes*."""

    wakes: float

    async def answer(self, query: Query, world: World) -> Estimate:
        known = (query.points[:, 0] <= 0.5) | (world.clock.now >= self.wakes)
        return Estimate(np.where(known, world.rewards(query.points, world.clock.now), nan))


class Ignorant(Expert):
    """Knows that it does not know."""

    async def answer(self, query: Query, world: World) -> Estimate:
        raise Unavailable("not my field")


class Relay(Expert):
    """Asks *other* as soon as *hops* instants are over, and passes on what it hears."""

    other: str
    hops: int = 0

    async def answer(self, query: Query, world: World) -> Estimate:
        for _ in range(self.hops):
            hop = world.clock.signal()
            world.clock.call_at(world.clock.now, hop.set)
            await hop
        values: Values = np.full(len(query.points), nan)
        replies = await world.ask(self.other, query.points)
        for reply in replies:
            if isinstance(reply, Answer):
                values[reply.rows] = reply.values
        return Estimate(values, notes={"replies": float(len(replies))})


@dataclass
class Heard:
    """All records, in the order in which they came."""

    context: PlayContext

    @property
    def records(self) -> list[Record]:
        return self.context.recorder.records

    def of(self, *what: str, source: str | None = None) -> list[tuple[Any, ...]]:
        """Give some facts of each record."""
        return [
            tuple(self._fact(record, name) for name in what)
            for record in self.records
            if source in (None, record.reply.query.source)
        ]

    def _fact(self, record: Record, name: str) -> Any:
        superseded = record in self.context.recorder.superseded
        match name:
            case "source":
                return record.reply.query.source
            case "id":
                return record.reply.query.id
            case "rows":
                return record.reply.rows.tolist()
            case "arrived_at" | "asked_at" | "cost":
                return getattr(record.reply, name)
            case "measured_at":
                return record.reply.measured_at if isinstance(record.reply, Answer) else None
            case "superseded":
                return superseded
            case "heard":
                return record.heard and not superseded
        return getattr(record, name)


def consult(
    run: Run,
    experts: Experts,
    asks: Sequence[tuple[float, str, Sequence[float]]],
    *,
    budget: float = inf,
    until: float = 1000.0,
    seed: int = 0,
) -> Heard:
    """Put points to experts at moments, in the agent's name, and listen until the end."""

    async def main(clock: Clock) -> Heard:
        context = context_on(clock, LANDSCAPE, seed=seed, budget=Budget(budget))
        for name, (expert, channel) in experts.items():
            connect(name, expert, channel, context)
        for number, (moment, name, points) in enumerate(asks, 1):
            await clock.until(moment)
            context.round = int(moment)
            query = Query(number, name, np.array(points, dtype=float)[:, None], clock.now)
            ask(context, query)
        await clock.until(until)
        context.close()
        return Heard(context)

    heard: Heard = run(main)
    return heard


def ask_one(
    run: Run, expert: Expert, channel: Channel, *points: float, until: float = 1000.0, **more: Any
) -> Heard:
    """Ask one expert once, at 0."""
    asks = [(0.0, "expert", points or (0.5,))]
    return consult(run, {"expert": (expert, channel)}, asks, until=until, **more)


def retrying(retries: int = 3, backoff: float = 1.0, **more: Any) -> Policy:
    return Policy(retries=retries, backoff=backoff, **more)


def with_backup(channel: Channel, expert: Expert | None = None, **others: Any) -> Experts:
    return {"expert": (expert or Awake(), channel), "backup": (Teller(), Channel(cost=3)), **others}
