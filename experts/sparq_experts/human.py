"""The expert who goes home in the evening."""

from __future__ import annotations

from math import ceil
from typing import Annotated, Self

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from sparq_sim.fields import Amount, Positive
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Answering, Briefing, Expert, World
from sparq_sim.simulation.channel.draws import AnyDraw, Lognormal
from sparq_sim.simulation.clock.protocol import Gate

_WEEK = 7
_SLACK = 1e-9
"""Work that is left over by a rounding, as a share of a working day, is not worth another one."""


class Human(Expert):
    """Knows the reward, is slow, works on one thing at a time, and in working hours only.

    Thinking takes its time for each point; it stops at closing time and goes on the next working
    day. A query is worked off in batches, and between two batches others have their turn. It is
    answered when its last batch is done, as of when its first one was. Time 0 is midnight before
    the first working day of a week.

    That people take lognormal times to serve is found in Brown et al. (2005), Statistical
    analysis of a telephone call center; a median of three minutes, in hours, is ours.
    """

    thinking: AnyDraw = Lognormal(median=0.05, sigma=1.0)
    """How long each point takes, in clock units of working time."""
    batch: PositiveInt = 8
    """How many points are worked off before somebody else has a turn."""
    day: Positive = 24.0
    """How long a day is, in clock units."""
    opens: Amount = 9.0
    """When work begins, in clock units from midnight."""
    closes: Positive = 17.0
    """When work ends, in clock units from midnight."""
    workdays: Annotated[int, Field(ge=1, le=_WEEK)] = 5
    """On how many of the seven days of a week there is work: the first so many."""

    @model_validator(mode="after")
    def _has_hours(self) -> Self:
        if not self.opens < self.closes <= self.day:
            raise ValueError(
                f"working hours from {self.opens} to {self.closes} are none in a day of "
                f"{self.day}; opens must come before closes, and closes within the day"
            )
        return self

    def start(self, briefing: Briefing) -> Answering:
        """Sit down at an empty desk."""
        return _HumanAtWork(self)

    def done_at(self, start: float, work: float) -> float:
        """Give when *work* that begins at *start* is done, or would begin, if there is none."""
        hours = self.closes - self.opens
        # Of whole weeks the last one is worked off day by day: it ends before the weekend.
        weeks = max(0, ceil(work / (self.workdays * hours) - _SLACK) - 1)
        left = work - weeks * self.workdays * hours
        date, hour = divmod(start, self.day)
        date, hour = date + _WEEK * weeks, max(hour, self.opens)
        latest = self.closes + _SLACK * hours
        while date % _WEEK >= self.workdays or hour >= self.closes or hour + left > latest:
            if date % _WEEK < self.workdays:
                left = max(0.0, left - max(0.0, self.closes - hour))
            date, hour = date + 1, self.opens
        return max(start, date * self.day + min(hour + left, self.closes))


class _HumanAtWork:
    def __init__(self, model: Human) -> None:
        self._model = model
        self._desk: Gate | None = None

    async def answer(self, query: Query, world: World) -> Estimate:
        """Think about one batch after the other."""
        model, clock = self._model, world.clock
        if self._desk is None:
            self._desk = clock.gate(1)
        thinking = model.thinking.sample(world.rng, len(query.points))
        values, dates = [], []
        for first in range(0, len(query.points), model.batch):
            rows = slice(first, first + model.batch)
            async with self._desk:
                await clock.until(model.done_at(clock.now, float(thinking[rows].sum())))
                values.append(world.rewards(query.points[rows], clock.now))
                dates.append(clock.now)
        return Estimate(np.concatenate(values), measured_at=dates[0])
