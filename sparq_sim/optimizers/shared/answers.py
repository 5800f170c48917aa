"""Answers of experts: what they have said, as far as nothing newer takes its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points, Values
from sparq_sim.messages import Answer, Query

__all__ = ["ExpertAnswers", "Measurements"]

_MANY = 100
"""So many answers that stand in for others may well be old."""


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """Values: where and when each was measured, with how much noise, and when it was asked for."""

    points: Points
    """Where, (n, d)."""
    values: Values
    """What was measured, in reward units, (n,)."""
    variances: Values
    """The noise variances when measured, in squared reward units, (n,)."""
    times: Values
    """When each was measured, in clock units, (n,)."""
    asked: Values
    """When each was asked for, in clock units, (n,); infinity where nobody asked."""

    @classmethod
    def empty(cls, dimensions: int) -> Self:
        """Return no measurements.

        Args:
            dimensions: How many coordinates a point has.
        """
        none = np.empty(0)
        return cls(np.empty((0, dimensions)), none, none, none, none)

    @classmethod
    def from_answer(cls, answer: Answer, variances: Values) -> Self:
        """Return what an answer tells.

        Args:
            answer: The answer.
            variances: The noise variance of each of its values, in squared reward units, (n,).
        """
        alike = np.ones(len(variances))
        asked_at = answer.asked_at if answer.query.id > 0 else inf
        times, asked = answer.measured_at * alike, asked_at * alike
        return cls(answer.points, answer.values, variances, times, asked)

    def __len__(self) -> int:
        return len(self.values)

    def _columns(self) -> tuple[Points | Values, ...]:
        """Return all columns."""
        return self.points, self.values, self.variances, self.times, self.asked

    def select(self, rows: NDArray[np.bool_] | Sequence[int]) -> Self:
        """Return some of the measurements.

        Args:
            rows: Which ones, as a mask (n,) or as row numbers.
        """
        return type(self)(*(column[rows] for column in self._columns()))

    def join(self, more: Self) -> Self:
        """Return these measurements followed by others.

        Args:
            more: The others.
        """
        pairs = zip(self._columns(), more._columns(), strict=True)
        return type(self)(*(np.concatenate(pair) for pair in pairs))

    def keep_newest(self) -> Self:
        """Return what was measured last at each point; of equals, what came last."""
        keys = [point.tobytes() for point in self.points + 0.0]
        rows = np.argsort(self.times, kind="stable").tolist()
        return self.select(sorted({keys[row]: row for row in rows}.values()))


@dataclass(slots=True)
class _Batch:
    """Queries that went out together: the *last* one's number, and how many rows are unanswered."""

    last: int
    unanswered: int


class ExpertAnswers:
    """What experts have said, as far as nothing newer takes its place.

    A newer answer of a source about a point replaces the one before. Once all queries of a round
    are answered in full, answers to queries that were asked more than *retained* before are
    forgotten: with answers that come at once, only the newest round counts, as in Algorithm 1.
    Where rows come late or are lost, earlier answers stand in for them, ageing. Readings that
    nobody asked for are replaced only by newer ones at their point.

    Args:
        retained: For how long answers to earlier queries still count, in clock units.
    """

    def __init__(self, retained: float) -> None:
        self._retained = retained
        self._said: dict[str, Measurements] = {}
        self._batches: dict[int, _Batch] = {}

    def expect(self, queries: tuple[Query, ...]) -> None:
        """Record queries that are sent together.

        Args:
            queries: All queries of a round.
        """
        if queries:
            last = max(query.id for query in queries)
            batch = _Batch(last, sum(len(query.points) for query in queries))
            self._batches |= {query.id: batch for query in queries}

    def add(self, answer: Answer, told: Measurements) -> None:
        """Add an answer.

        Args:
            answer: The answer.
            told: What it tells.
        """
        if self._completes(answer):
            oldest = answer.asked_at - self._retained * (1 + 1e-9)
            self._filter(lambda said: said.asked >= oldest)
        source = answer.query.source
        known = self._said.get(source)
        if known is not None:
            told = known.join(told)
        # A query asks about a point once; readings that nobody asked for may come twice.
        if known is not None or answer.query.id < 0:
            told = told.keep_newest()
        self._said[source] = told

    def _completes(self, answer: Answer) -> bool:
        """Count rows as answered; return whether that completes a round of queries."""
        batch = self._batches.get(answer.query.id)
        if batch is None:  # Nobody asked, or a later round is complete already.
            return False
        batch.unanswered -= len(answer.rows)
        if batch.unanswered > 0:
            return False
        # Earlier queries need not be waited for any more.
        self._batches = {
            number: other for number, other in self._batches.items() if other.last > batch.last
        }
        return True

    def keep(self, good: Callable[[Measurements], NDArray[np.bool_]]) -> None:
        """Forget all but what is good, once there is much.

        Where rows are lost no round may ever be complete, so that nothing else would be forgotten.

        Args:
            good: Returns which of some measurements to keep, as a mask (n,).
        """
        if sum(map(len, self._said.values())) > _MANY:
            self._filter(good)

    def _filter(self, good: Callable[[Measurements], NDArray[np.bool_]]) -> None:
        for source, said in list(self._said.items()):
            kept = good(said)
            stay = np.count_nonzero(kept)
            if not stay:
                del self._said[source]
            elif stay < len(said):
                self._said[source] = said.select(kept)

    def current(self) -> Measurements | None:
        """Return all that still counts; None where there is nothing."""
        return reduce(Measurements.join, self._said.values()) if self._said else None
