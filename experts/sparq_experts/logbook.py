"""The expert `logbook`: past evaluations, looked up by point."""

from __future__ import annotations

from math import inf
from typing import Self

import numpy as np
from pydantic import NonNegativeInt, PositiveFloat, model_validator

from sparq_sim.arrays import Points, Values
from sparq_sim.errors import Unavailable
from sparq_sim.fields import Amount
from sparq_sim.messages import NO_READING, Estimate, Query
from sparq_sim.plugin.contract import Answering, Briefing, Expert, World

__all__ = ["Logbook"]


class Logbook(Expert):
    """Answers from a log of dated evaluations, as continual learning keeps one.

    The answer for a point is the nearest entry within *reach*, dated with that entry. If it
    *evaluates*, a point that has no entry, or only one older than *refresh_after*, is evaluated
    now and logged. If not, a point without an entry fails, and old entries are returned as they
    are. Where a record has a gap nothing is logged, and an older entry stays. The noise of an
    entry is drawn once, when it is logged: asking again does not average it out. A query has one
    date, that of its oldest entry; over a channel with `split` each point has its own date.
    """

    reach: Amount = 0.0
    """The largest Euclidean distance from a point to the entry that answers for it; 0 requires the
    same point."""
    evaluates: bool = True
    """Whether it can evaluate points; if not, the log stays as it was at time 0."""
    refresh_after: PositiveFloat = inf
    """The age beyond which an entry is evaluated again, in clock units."""
    service_per_evaluation: Amount = 0.0
    """How long one evaluation takes, in clock units; looking up takes no time."""
    entries: NonNegativeInt = 0
    """How many points, spread evenly over the domain, are in the log at time 0; on sites, all."""
    std: Amount = 0.0
    """The std of the noise that is added to an evaluation, beside the environment's own, in reward
    units; it is also the std that is claimed."""

    @model_validator(mode="after")
    def _has_a_log(self) -> Self:
        if not self.evaluates and not self.entries:
            raise ValueError(
                "entries is 0 and evaluates is false: the log stays empty; give it entries"
            )
        return self

    def start(self, briefing: Briefing) -> Answering:
        return _LogbookAtWork(self)


class _LogbookAtWork:
    def __init__(self, model: Logbook) -> None:
        self._model = model
        self._log: dict[tuple[float, ...], tuple[float, float]] = {}
        """The value and the date of each entry, by point."""
        self._columns: tuple[Points, Values] | None = None
        """The log as arrays of points and of values with dates; None after something was added."""

    async def broadcast(self, world: World) -> None:
        """Fill in the entries of time 0, from a random stream that no query uses."""
        if self._model.entries:
            self._evaluate(world.domain.cover(self._model.entries), world)

    async def answer(self, query: Query, world: World) -> Estimate:
        model, points = self._model, query.points
        if model.evaluates:
            _, dates = self._look_up(points)
            # A date is NaN where there is no entry, so the comparison is negated.
            wanted = ~(world.clock.now - dates <= model.refresh_after)
            if wanted.any():
                await world.clock.sleep(model.service_per_evaluation * np.count_nonzero(wanted))
                self._evaluate(points[wanted], world)
        values, dates = self._look_up(points)
        absent = NO_READING if model.evaluates else "not in the log"
        if np.isnan(dates).all():
            raise Unavailable(absent)
        measured_at = float(np.nanmin(dates))
        return Estimate(values, stds=model.std, measured_at=measured_at, absent=absent)

    def _look_up(self, points: Points) -> tuple[Values, Values]:
        """Return value and date of the nearest entry to each point, NaN where none is in reach."""
        if self._model.reach == 0 or not self._log:
            nothing = (np.nan, np.nan)
            found = np.array([self._log.get(tuple(point), nothing) for point in points.tolist()])
            return found[:, 0], found[:, 1]
        if self._columns is None:
            self._columns = np.array(list(self._log)), np.array(list(self._log.values()))
        places, entries = self._columns
        distances = np.linalg.norm(points[:, None] - places, axis=2)
        nearest = entries[distances.argmin(axis=1)]
        nearest[distances.min(axis=1) > self._model.reach] = np.nan
        return nearest[:, 0], nearest[:, 1]

    def _evaluate(self, points: Points, world: World) -> None:
        """Evaluate *points* now and log them in place of older entries."""
        now = world.clock.now
        values = world.observe(points)
        if self._model.std:
            values = values + self._model.std * world.rng.standard_normal(len(points))
        for i in np.flatnonzero(~np.isnan(values)).tolist():
            self._log[tuple(points[i].tolist())] = (float(values[i]), now)
        self._columns = None
