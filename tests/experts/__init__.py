"""What tests of experts share: a way to consult one without an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, Philox

from sparq_sim import Answer, Briefing, Channel, Environment, Expert, Failure, Query
from sparq_sim.arrays import Points
from sparq_sim.plugin.contract import Answering, Landscape
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.delivery.push import start_broadcast
from sparq_sim.simulation.records import Record
from sparq_sim.testing import Slope
from tests.conftest import Run, on_sim_clock
from tests.delivery import ask, connect, context_on


def landscape(environment: Environment | None = None) -> Landscape:
    return (environment or Slope()).start(Generator(Philox(key=5)))


@dataclass
class Heard:
    """What became of what was asked of "expert", and what all cost."""

    records: list[Record]
    spent: float
    truth: Landscape

    @property
    def answers(self) -> list[Answer]:
        return [r.reply for r in self._own if isinstance(r.reply, Answer)]

    @property
    def failures(self) -> list[Failure]:
        return [r.reply for r in self._own if isinstance(r.reply, Failure)]

    @property
    def errors(self) -> list[float]:
        """Of all values, against the reward of when they were measured."""
        return [
            float(error)
            for answer in self.answers
            for error in answer.values - self.truth.rewards(answer.points, answer.measured_at)
        ]

    @property
    def _own(self) -> list[Record]:
        return [record for record in self.records if record.reply.query.source == "expert"]


def consult(
    expert: Expert,
    moments: Sequence[float],
    points: Points | Sequence[float] = (0.5,),
    *,
    channel: Channel | None = None,
    environment: Environment | None = None,
    others: Mapping[str, tuple[Expert, Channel]] | None = None,
    run: Run = on_sim_clock,
    patience: float = 1000.0,
) -> Heard:
    """Ask *expert* about all *points* at each of the *moments*, and listen for a while."""
    places = np.array(points, dtype=float).reshape(len(points), -1)
    truth = landscape(environment)
    pairs = {**(others or {}), "expert": (expert, channel or Channel())}
    briefing = Briefing(truth.domain, experts={name: c.terms for name, (_, c) in pairs.items()})

    async def main(clock: Clock) -> Heard:
        heard = Heard([], 0.0, truth)
        context = context_on(clock, truth)
        for name, (each, road) in pairs.items():
            started = each.start(briefing)
            assert isinstance(started, Answering)
            start_broadcast(connect(name, started, road, context))
        for number, moment in enumerate(moments, 1):
            await clock.until(moment)
            context.round = number
            ask(context, Query(number, "expert", places, clock.now))
        await clock.sleep(patience)
        heard.records += context.recorder.records
        heard.spent = context.budget.spent
        return heard

    told: Heard = run(main)
    return told
