"""Messages: what agent, loop and sources say to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparq_sim.arrays import Point, Points, Values, all_finite, all_rows, freeze_array

__all__ = [
    "Answer",
    "Estimate",
    "Failure",
    "Move",
    "Notes",
    "Query",
    "Reply",
]

Notes: TypeAlias = Mapping[str, float]
"""Numbers worth a column of the trace."""

REWARD = "reward"
"""The name under which the environment answers."""
AGENT_NAME = "agent"
"""The name under which the agent asks."""
NO_READING = "no reading"
"""Why nothing is known where a record has a gap."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A question: the value at each of *points* (q, d), put to *source*.

    The *id* tells an agent's queries apart and survives journals and networks; it is
    positive for the queries of an agent and negative for those that a source opens itself.
    """

    id: int
    source: str
    points: Points
    asked_at: float

    def __post_init__(self) -> None:
        points = freeze_array(self.points)
        if points.ndim != 2 or not points.size:
            raise ValueError(
                f"points of a query have shape {points.shape}; expected (q, d), at least one row"
            )
        if not all_finite(points):
            raise ValueError(f"points of a query must be finite, not {points.tolist()}")
        if not 0 <= self.asked_at < np.inf:
            raise ValueError(f"asked_at must be a moment from 0 on, not {self.asked_at!r}")
        object.__setattr__(self, "points", points)

    def row(self, number: int) -> Query:
        """Give the question about one row only."""
        return make_checked_query(
            self.id, self.source, self.points[number : number + 1], self.asked_at
        )

    def answer(
        self,
        values: ArrayLike,
        *,
        stds: ArrayLike = 0.0,
        measured_at: float | None = None,
        arrived_at: float | None = None,
        cost: float = 0.0,
    ) -> Answer:
        """Answer all of this query: the door for values that come from outside a play."""
        numbers = freeze_array(values)
        arrived = self.asked_at if arrived_at is None else arrived_at
        measured = arrived if measured_at is None else measured_at
        if numbers.shape != (len(self.points),) or not all_finite(numbers):
            raise ValueError(
                f"query {self.id} takes {len(self.points)} finite values, not {numbers.tolist()}"
            )
        spread = freeze_array(stds)
        spread = freeze_array(np.full(len(numbers), spread)) if not spread.ndim else spread
        if spread.shape != numbers.shape or not (all_finite(spread) and (spread >= 0).all()):
            raise ValueError(
                f"stds must be finite and not negative, one for each value, not {spread.tolist()}"
            )
        if not 0 <= cost < np.inf:
            raise ValueError(f"cost must be finite and not negative, not {cost!r}")
        if not (self.asked_at <= arrived < np.inf and 0 <= measured <= arrived):
            raise ValueError(
                f"an answer is measured (at {measured!r}) before it arrives (at {arrived!r}), "
                f"and arrives after it was asked for (at {self.asked_at!r})"
            )
        return Answer(
            query=self,
            rows=all_rows(len(numbers)),
            values=numbers,
            stds=spread,
            asked_at=self.asked_at,
            measured_at=measured,
            arrived_at=arrived,
            cost=cost,
        )


def make_checked_query(number: int, source: str, points: Points, asked_at: float) -> Query:
    """Make a query of *points* that were checked before and that nobody can change."""
    query = object.__new__(Query)
    object.__setattr__(query, "id", number)
    object.__setattr__(query, "source", source)
    object.__setattr__(query, "points", points)
    object.__setattr__(query, "asked_at", asked_at)
    return query


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What a source knows: a value and a standard deviation for each point it was asked about.

    *measured_at* is the time that the values speak of; by default, the moment of answering. Where
    it knows nothing, the value is NaN, and *absent* says why. NaN from a gap in a record needs no
    reason: the play knows of the gap.
    """

    values: Values
    stds: Values | float = 0.0
    measured_at: float | None = None
    notes: Notes = field(default_factory=dict)
    absent: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What came: values at *rows* of the query's points, known with *stds*, as of *measured_at*."""

    query: Query
    rows: NDArray[np.intp]
    values: Values
    stds: Values
    asked_at: float
    measured_at: float
    arrived_at: float
    cost: float
    notes: Notes = field(default_factory=dict)

    @property
    def points(self) -> Points:
        """Where the values were measured: (rows, d)."""
        points = self.query.points
        return points if self.rows is all_rows(len(points)) else points[self.rows]


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """That nothing came for *rows* of the query's points, and why."""

    query: Query
    rows: NDArray[np.intp]
    reason: str
    asked_at: float
    arrived_at: float
    cost: float = 0.0


Reply: TypeAlias = Answer | Failure
"""What an asker is told: an answer, or that there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """What an agent does: play *point* (or wait, with None) and put *queries* to experts.

    *notes* are numbers for the trace: a confidence width, a bound, a log determinant. *effort* is
    how much work the move was, in units of the agent's own, which a play may turn into time
    (`Rules.thinking_by_effort`); those with a Gaussian process count the observations they hold.
    """

    point: Point | None
    queries: tuple[Query, ...] = ()
    notes: Notes = field(default_factory=dict)
    effort: float = 0.0
