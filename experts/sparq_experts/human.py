"""The expert `human`: exact and slow, and only available in working hours."""

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

__all__ = ["Human"]

_WEEK = 7
_SLACK = 1e-9
"""Work that rounding leaves over, as a share of a working day, does not need another day."""


class Human(Expert):
    """A person who knows the reward, works on one query at a time, and only in working hours.

    Each point takes some time to think about; work stops at closing time and goes on the next
    working day. A query is processed in batches, and between two batches other queries have their
    turn. It is answered when its last batch is done, and dated with the end of its first batch.
    Time 0 is the midnight before the first working day of a week.

    Brown et al. (2005), Statistical analysis of a telephone call center, find that people take
    lognormal times to serve. The default median of three minutes (with an hour as the clock unit)
    is chosen for this package.
    """

    thinking: AnyDraw = Lognormal(median=0.05, sigma=1.0)
    """The working time that each point takes, in clock units."""
    batch: PositiveInt = 8
    """How many points are processed before another query has its turn."""
    day: Positive = 24.0
    """The length of a day, in clock units."""
    opens: Amount = 9.0
    """When work begins, in clock units after midnight."""
    closes: Positive = 17.0
    """When work ends, in clock units after midnight."""
    workdays: Annotated[int, Field(ge=1, le=_WEEK)] = 5
    """The number of working days in a week of seven days; they are the first of the week."""

    @model_validator(mode="after")
    def _has_hours(self) -> Self:
        if not self.opens < self.closes <= self.day:
            raise ValueError(
                f"working hours from {self.opens} to {self.closes} are none in a day of "
                f"{self.day}; opens must come before closes, and closes within the day"
            )
        return self

    def start(self, briefing: Briefing) -> Answering:
        return _HumanAtWork(self)

    def done_at(self, start: float, work: float) -> float:
        """Return when some work is done.

        Args:
            start: The time at which the work may begin, in clock units.
            work: The working time that it takes, in clock units.

        Returns:
            The time at which the work ends; for no work, the first time at or after *start* that
            lies in working hours.
        """
        hours = self.closes - self.opens
        # The last of several whole weeks is counted day by day, because it ends before the weekend.
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
