"""Messages: what agent, engine and sources send to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparq_sim.arrays import Point, Points, Values, all_finite, all_rows, freeze_array

__all__ = [
    "AGENT_NAME",
    "NO_READING",
    "REWARD",
    "Answer",
    "Estimate",
    "Failure",
    "Move",
    "Notes",
    "Query",
    "Reply",
    "make_checked_query",
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
    """A question to a source: the reward at each of one or more points.

    Raises:
        ValueError: There is no point, a number is not finite, or *asked_at* is negative.
    """

    id: int
    """Distinguishes the queries of a play: positive where the agent asks, negative where a source
    sends a reading unasked or asks another."""
    source: str
    """Who is asked: "reward", or the name of an expert."""
    points: Points
    """Where: (q, d); copied, so that nobody can change them."""
    asked_at: float
    """When, in clock units."""

    def __post_init__(self) -> None:
        points = freeze_array(self.points)
        if points.ndim != 2 or not points.size:
            raise ValueError(
                f"points of a query have shape {points.shape}; expected (q, d), at least one row"
            )
        if not all_finite(points):
            raise ValueError(f"points of a query must be finite, not {points.tolist()}")
        if not 0 <= self.asked_at < np.inf:
            raise ValueError(f"asked_at must be a finite time, 0 or more, not {self.asked_at!r}")
        object.__setattr__(self, "points", points)

    def row(self, number: int) -> Query:
        """Return the same query about one of its points only.

        Args:
            number: Which row of `points`, from 0.
        """
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
        """Return an answer to all points of this query, for values that come from outside a play.

        Args:
            values: One finite number for each point: (q,).
            stds: How uncertain they are, in reward units: one number for all, or (q,).
            measured_at: The time that the values are about; by default *arrived_at*.
            arrived_at: When the answer came; by default when it was asked for.
            cost: What it cost.

        Raises:
            ValueError: Numbers are not finite or not as many as points, or times are in the wrong
                order.
        """
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
    """Return a query without checking it, which is faster.

    Args:
        number: Its id.
        source: Who is asked.
        points: Where: (q, d), checked before, and an array that nobody can change.
        asked_at: When, in clock units.
    """
    query = object.__new__(Query)
    object.__setattr__(query, "id", number)
    object.__setattr__(query, "source", source)
    object.__setattr__(query, "points", points)
    object.__setattr__(query, "asked_at", asked_at)
    return query


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What an expert knows of the points of a query: a value and a std for each."""

    values: Values
    """The estimated reward at each point: (q,); NaN where nothing is known."""
    stds: Values | float = 0.0
    """How uncertain the values are, in reward units: one number for all, or (q,)."""
    measured_at: float | None = None
    """The time that the values are about, from 0 to now; None for the moment of answering."""
    notes: Notes = field(default_factory=dict)
    """Numbers for the trace: `name` becomes the column `note_name`."""
    absent: str = ""
    """Why values are NaN. A gap of the record needs no reason: the play knows of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The reply to a query, or to some of its points, that has values."""

    query: Query
    """What was asked."""
    rows: NDArray[np.intp]
    """Which rows of the query's points it is about: (n,)."""
    values: Values
    """The values at these points: (n,)."""
    stds: Values
    """How uncertain they are, as the source claims, in reward units: (n,)."""
    asked_at: float
    """When the query was put, in clock units."""
    measured_at: float
    """The time that the values are about."""
    arrived_at: float
    """When the answer came."""
    cost: float
    """What was charged for it."""
    notes: Notes = field(default_factory=dict)
    """Numbers that the source added for the trace."""

    @property
    def points(self) -> Points:
        """The points that the values are about: (n, d)."""
        points = self.query.points
        return points if self.rows is all_rows(len(points)) else points[self.rows]


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """The reply to a query, or to some of its points, that has no values."""

    query: Query
    """What was asked."""
    rows: NDArray[np.intp]
    """Which rows of the query's points it is about: (n,)."""
    reason: str
    """Why there is no answer."""
    asked_at: float
    """When the query was put, in clock units."""
    arrived_at: float
    """When the asker learnt of it."""
    cost: float = 0.0
    """What was charged nevertheless."""


Reply: TypeAlias = Answer | Failure
"""What whoever asked receives: an answer, or a failure with a reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """What an agent does: play a point, or wait, and put queries to experts."""

    point: Point | None
    """The point to play, (d,), within the domain; None to wait."""
    queries: tuple[Query, ...] = ()
    """What experts are asked."""
    notes: Notes = field(default_factory=dict)
    """Numbers for the trace, such as a confidence width: `name` becomes the column `note_name`.
    Notes named `group/part`, such as `time_scale/10` and `time_scale/30`, are parts of one whole:
    shares from 0 to 1, which sum to 1 within a group. A move that notes one part notes them all,
    in the order in which the report is to stack them."""
    effort: float = 0.0
    """How much work the move was, in units of the agent's own, which a play may turn into time
    (`Rules.thinking_by_effort`); optimizers with a Gaussian process count the observations that
    they hold."""
