"""The expert who looks it up."""

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


class Logbook(Expert):
    """Answers from a log of evaluations with their dates: the expert of continual learning.

    The answer for a point is the nearest entry within *reach*, measured_at its date. What has no
    entry, or only one older than *refresh_after*, is evaluated anew and logged, if it *evaluates*
    at all; if not, it fails, and old entries are given as they are. Where a record has a gap there
    is nothing to log: what was logged before stands. An entry's noise is drawn once, when it is
    logged: to ask again averages nothing away. A query has one date, that of its oldest entry;
    over a channel with `split` each point has its own.
    """

    reach: Amount = 0.0
    """How far from a point an entry may lie, as the crow flies; 0 for the very same point."""
    evaluates: bool = True
    """Whether it can still evaluate; if not, the log stays as it was at time 0."""
    refresh_after: PositiveFloat = inf
    """The age from which on an entry is evaluated anew, in clock units."""
    service_per_evaluation: Amount = 0.0
    """How long an evaluation takes, in clock units; to look up takes no time."""
    entries: NonNegativeInt = 0
    """How many points, evenly over the domain, are in the log from time 0; all, if sites."""
    std: Amount = 0.0
    """The std of an evaluation's noise beside the world's own, in reward units; it is claimed."""

    @model_validator(mode="after")
    def _has_a_log(self) -> Self:
        if not self.evaluates and not self.entries:
            raise ValueError(
                "entries is 0 and evaluates is false: the log stays empty; give it entries"
            )
        return self

    def start(self, briefing: Briefing) -> Answering:
        """Open an empty book."""
        return _LogbookAtWork(self)


class _LogbookAtWork:
    def __init__(self, model: Logbook) -> None:
        self._model = model
        self._log: dict[tuple[float, ...], tuple[float, float]] = {}
        """Value and date by point."""
        self._columns: tuple[Points, Values] | None = None
        """The log as arrays, for as long as nothing is added: points, and values with dates."""

    async def broadcast(self, world: World) -> None:
        """Fill in the entries of the beginning, by a chance that no query has a part in."""
        if self._model.entries:
            self._evaluate(world.domain.cover(self._model.entries), world)

    async def answer(self, query: Query, world: World) -> Estimate:
        """Look up, and evaluate what is missing or too old."""
        model, points = self._model, query.points
        if model.evaluates:
            _, dates = self._looked_up(points)
            # Not a number, where there is no entry.
            wanted = ~(world.clock.now - dates <= model.refresh_after)
            if wanted.any():
                await world.clock.sleep(model.service_per_evaluation * np.count_nonzero(wanted))
                self._evaluate(points[wanted], world)
        values, dates = self._looked_up(points)
        absent = NO_READING if model.evaluates else "not in the log"
        if np.isnan(dates).all():
            raise Unavailable(absent)
        measured_at = float(np.nanmin(dates))
        return Estimate(values, stds=model.std, measured_at=measured_at, absent=absent)

    def _looked_up(self, points: Points) -> tuple[Values, Values]:
        """Give value and date of the nearest entry to each point, NaN where none is in reach."""
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
        """Evaluate *points* as of now and log them, over older entries."""
        now = world.clock.now
        values = world.observe(points)
        if self._model.std:
            values = values + self._model.std * world.rng.standard_normal(len(points))
        for i in np.flatnonzero(~np.isnan(values)).tolist():
            self._log[tuple(points[i].tolist())] = (float(values[i]), now)
        self._columns = None
