"""Requests: what is asked of a source, and the life of each attempt to have it answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import nan
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Values
from sparq_sim.messages import AGENT_NAME, Answer, Failure, Query, Reply
from sparq_sim.simulation.channel.faults import FaultModel
from sparq_sim.simulation.channel.noise import Noise
from sparq_sim.simulation.clock.protocol import Process
from sparq_sim.simulation.delivery.examine import Measured, name_blamed
from sparq_sim.simulation.records import Fate, Record

__all__ = ["Drawn", "OnRecord", "Question", "Request", "Rows"]

OnRecord: TypeAlias = Callable[[Record], None]
"""Takes what became of some rows of a question."""
Rows: TypeAlias = NDArray[np.intp]
"""Which points of a query, by their numbers."""


@dataclass(slots=True, eq=False)
class Question:
    """Rows of a query that somebody wants one source to answer.

    It goes down the links to the source, and records come back to `on_record`: one with the end
    of each row, which the asker hears unless it says otherwise; and, where a source answers twice
    or too late, further ones that nobody hears, with a fate in `UNASKED`. An attempt that another
    attempt follows is written to the trace only.
    """

    query: Query
    """The query that they belong to."""
    rows: Rows
    """Which of its points are asked about."""
    on_record: OnRecord
    """What is called with the record of each row."""
    asker: str = AGENT_NAME
    """Who asks, as the trace names it."""
    path: str = AGENT_NAME
    """Through whom it is asked, as in "committee>member". It names the random streams, so that
    nobody shifts another's draws, and shows where experts would ask each other in a circle."""
    asked_again_at: float | None = None
    """When it was put to a fallback; None where this source is asked first."""

    @property
    def moment(self) -> float:
        """When this source is asked, in clock units: questions of one moment may be merged."""
        return self.query.asked_at if self.asked_again_at is None else self.asked_again_at

    def about(self, rows: Rows) -> Question:
        """Return the same question about some of its *rows*.

        Args:
            rows: The rows to keep.
        """
        return replace(self, rows=rows)

    def told_to(self, on_record: OnRecord) -> Question:
        """Return the same question, whose records *on_record* takes.

        Args:
            on_record: What is called with each record.
        """
        return replace(self, on_record=on_record)


@dataclass(slots=True, eq=False)
class Drawn:
    """What a request is about, and all that chance decides about it, drawn when it is made."""

    rows: Rows
    """Which points of the query it is about."""
    subquery: Query
    """The query as the source sees it: these rows only."""
    origin: tuple[int, int]
    """The round of the first attempt, and how many requests the asker had made of this source in
    it before: what the generators of this request are numbered by."""
    cost: float
    """In units of the budget."""
    service: float
    """In clock units."""
    transit: float
    """In clock units."""
    lost: bool
    """Whether the answer is lost on its way."""
    units: Values | None
    """Unit noise for each row; None where there is no noise."""
    fault: FaultModel | None
    """The fault that is injected, if any."""


@dataclass(slots=True, eq=False)
class Request:
    """One attempt to have rows of a query answered: all of them, or one where a channel splits.

    The life of a request:

    - *made*: all that chance decides about it is drawn, and nothing is drawn later. Where it is
      refused (by an outage, a budget or a rate) it is done at once.
    - *held*: a rate, or the wait before a retry, keeps it back; so far it costs nothing.
    - *waiting*: it has been sent to the source, whose slots are all taken.
    - *served*: from `served_at` on it holds a slot; the value is measured when service ends.
    - *sent*: from `sent_at` on the answer is on its way, and the value ages.
    - *done*: it was answered, failed or was given up, and `open` is False.

    A source may send its answer before service ends, by `world.send`. A retry is a new request.

    The end of a request makes one record; two where some rows have an answer and others have none.
    What arrives later, because the source answers twice or too late, makes a record that nobody
    hears.
    """

    question: Question
    """What is asked, and who is told."""
    drawn: Drawn
    """All that chance has decided about it."""
    round: int
    """In which it was sent; what it costs counts in this round."""
    cost: float
    """What its next record states as its cost."""
    attempt: int = 1
    """Which attempt this is, from 1."""
    sent_before: bool = False
    """Whether it was sent, and paid for, before the play was interrupted."""
    open: bool = True
    """Whether its end is yet to come."""
    answered: bool = False
    """Whether it ended with an answer."""
    owed: float = 0.0
    """What is reserved for it and has not fallen due."""
    served_at: float = nan
    """When service began, in clock units; NaN before."""
    sent_at: float = nan
    """When the answer was sent, in clock units; NaN before."""
    process: Process[None] | None = None
    """What carries it, from being sent on."""
    notes: dict[str, float] = field(default_factory=dict)
    """Numbers that the source adds to the record."""

    def succeed(self, measured: Measured, noise: Noise, *, source: str, now: float) -> None:
        """Hand over what was measured, with noise; rows without a usable value fail.

        Args:
            measured: What the source gave, examined.
            noise: What the channel adds to it.
            source: The name of the source, for the reason of a failure.
            now: The moment of arrival.
        """
        drawn = self.drawn
        rows, values, bad = drawn.rows, measured.values, measured.bad
        stds: Values | float = 0.0 if measured.stds is None else measured.stds
        if drawn.units is not None:
            true = noise.stds(drawn.subquery.points, values)
            claimed = true if noise.claimed is None else noise.claimed
            stds = claimed if measured.stds is None else np.hypot(measured.stds, claimed)
            values = values + true * drawn.units
        if isinstance(stds, float):
            # A third of the time of np.full.
            stds, std = np.empty(len(values)), stds
            stds.fill(std)
        if drawn.fault is not None and drawn.fault.claimed_share != 1.0:
            stds = stds * drawn.fault.claimed_share
        if bad is not None:
            good = ~bad
            rows, values, stds = rows[good], values[good], stds[good]
        if len(rows):
            self.answered = True
            # What an agent is told is what the trace keeps.
            values.setflags(write=False)
            stds.setflags(write=False)
            query = self.question.query
            # By position: keywords would add a quarter to the time of the commonest message.
            answer = Answer(
                query,
                rows,
                values,
                stds,
                query.asked_at,
                measured.measured_at,
                now,
                self.cost,
                {**measured.notes, **self.notes},
            )
            self._end(answer, Fate.ANSWERED, heard=True)
            self.cost = 0.0
        if bad is not None:
            reason = name_blamed(source, measured.fate, measured.reason)
            self.fail(measured.fate, reason, now=now, rows=drawn.rows[bad])

    def fail(
        self, fate: Fate, reason: str, *, now: float, heard: bool = True, rows: Rows | None = None
    ) -> None:
        """Hand over that nothing came for *rows*.

        Args:
            fate: What became of them.
            reason: Why, in words.
            now: The present moment.
            heard: Whether the asker is told.
            rows: Which rows; by default all.
        """
        query = self.question.query
        failure = Failure(
            query=query,
            rows=self.drawn.rows if rows is None else rows,
            reason=reason,
            asked_at=query.asked_at,
            arrived_at=now,
            cost=self.cost,
        )
        self._end(failure, fate, heard=heard)

    def _end(self, reply: Reply, fate: Fate, *, heard: bool) -> None:
        self.open = False
        fault = self.drawn.fault
        self.question.on_record(
            Record(
                reply,
                fate,
                heard,
                self.round,
                self.question.asker,
                self.served_at,
                self.sent_at,
                self.attempt,
                "" if fault is None else fault.name,
            )
        )
