"""Shared answers: points that need not be asked, because an answer is known or on its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from sparq_sim.arrays import Point, freeze_array
from sparq_sim.messages import Answer, Failure, Notes, Query, Reply
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.delivery.link import Link
from sparq_sim.simulation.delivery.request import Question
from sparq_sim.simulation.records import UNASKED, Fate, Record

__all__ = ["Cached", "Merged"]

ROOM = 1024
"""So many answers are remembered before those that have expired are looked for."""


@dataclass(frozen=True, slots=True)
class _Known:
    """An answer that may serve again, and who gave it: perhaps the fallback."""

    source: str
    value: float
    std: float
    measured_at: float
    notes: Notes

    @classmethod
    def from_answer(cls, answer: Answer, place: int) -> _Known:
        """Return what an *answer* says in one *place* of it."""
        return cls(
            answer.query.source,
            float(answer.values[place]),
            float(answer.stds[place]),
            answer.measured_at,
            answer.notes,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Taker:
    """A row of a question that an answer to another question serves, at no cost."""

    question: Question
    row: int
    round: int

    def answer(self, known: _Known, now: float) -> None:
        """Hand over what is *known*."""
        asked = self.question.query
        if known.source != asked.source:
            asked = Query(asked.id, known.source, asked.points, asked.asked_at)
        answer = Answer(
            query=asked,
            rows=np.array([self.row], dtype=np.intp),
            values=freeze_array([known.value]),
            stds=freeze_array([known.std]),
            asked_at=asked.asked_at,
            measured_at=known.measured_at,
            arrived_at=now,
            cost=0.0,
            notes=known.notes,
        )
        self._tell(answer, Fate.ANSWERED, heard=True)

    def fail(self, record: Record, reason: str, now: float) -> None:
        """Hand over that what this row waited for has failed, as the *record* of it has it."""
        asked = self.question.query
        failure = Failure(
            query=asked,
            rows=np.array([self.row], dtype=np.intp),
            reason=reason,
            asked_at=asked.asked_at,
            arrived_at=now,
        )
        self._tell(failure, record.fate, heard=record.heard)

    def _tell(self, reply: Reply, fate: Fate, *, heard: bool) -> None:
        asker = self.question.asker
        self.question.on_record(Record(reply, fate, heard, self.round, asker, nan, nan, attempt=0))


def _key(query: Query, row: int) -> bytes:
    point: Point = query.points[row] + 0.0  # -0.0 and 0.0 are one place.
    return point.tobytes()


class Cached:
    """Answers what was answered not long ago, at no cost, and passes the rest on."""

    def __init__(self, remember: float, inner: Link, context: PlayContext) -> None:
        """Remember nothing yet.

        Args:
            remember: How long after it was measured an answer serves, in clock units; 0 for never.
            inner: The next link.
            context: The play.
        """
        self._remember = remember
        self._inner = inner
        self._context = context
        self._known: dict[bytes, _Known] = {}
        self._room = ROOM

    def recall(self, records: Sequence[Record]) -> None:
        """Remember what was answered before the play was interrupted.

        Args:
            records: What became of questions to this source.
        """
        if self._remember:
            for record in records:
                self._keep(record)

    def ask(self, question: Question) -> None:
        """Answer the rows whose answers are remembered; pass the others on."""
        if not self._remember:
            self._inner.ask(question)
            return
        now = self._context.clock.now
        unknown: list[int] = []
        for row in question.rows.tolist():
            known = self._known.get(_key(question.query, row))
            if known is None or now - known.measured_at > self._remember:
                unknown.append(row)
            else:
                _Taker(question, row, self._context.round).answer(known, now)
        if unknown:

            def take(record: Record) -> None:
                question.on_record(record)
                self._keep(record)

            rows = np.array(unknown, dtype=np.intp)
            self._inner.ask(question.about(rows).told_to(take))

    def _keep(self, record: Record) -> None:
        reply = record.reply
        if isinstance(reply, Answer):
            for place, row in enumerate(reply.rows.tolist()):
                known, key = _Known.from_answer(reply, place), _key(reply.query, row)
                before = self._known.get(key)
                if before is None or before.measured_at <= known.measured_at:
                    self._known[key] = known
            if len(self._known) > self._room:
                self._forget_expired()

    def _forget_expired(self) -> None:
        oldest = self._context.clock.now - self._remember
        self._known = {k: known for k, known in self._known.items() if known.measured_at >= oldest}
        self._room = max(ROOM, 2 * len(self._known))


@dataclass(slots=True, eq=False)
class _Leader:
    """A row that is being asked, and those who asked for the same point at the same moment."""

    takers: list[_Taker]


class Merged:
    """Asks a point that is asked twice at the same moment only once; both get the answer."""

    def __init__(self, is_on: bool, inner: Link, context: PlayContext) -> None:
        """Begin with nothing asked.

        Args:
            is_on: Whether to merge at all.
            inner: The next link.
            context: The play.
        """
        self._is_on = is_on
        self._inner = inner
        self._context = context
        self._moment = -inf
        self._asked_now: dict[bytes, _Leader | _Known] = {}

    def ask(self, question: Question) -> None:
        """Pass on the rows whose point is not being asked at this very moment; others follow."""
        if not self._is_on:
            self._inner.ask(question)
            return
        if self._moment != question.moment:
            self._moment = question.moment
            self._asked_now.clear()
        leaders: dict[int, _Leader] = {}
        copies: list[tuple[int, bytes]] = []
        for row in question.rows.tolist():
            key = _key(question.query, row)
            if key in self._asked_now:
                copies.append((row, key))
            else:
                self._asked_now[key] = leaders[row] = _Leader([])
        if leaders:
            rows = np.array(list(leaders), dtype=np.intp)

            def take(record: Record) -> None:
                question.on_record(record)
                self._settle(record, leaders)

            self._inner.ask(question.about(rows).told_to(take))
        # What was asked may have failed at once, as a request with more points than a rate allows.
        alone = [row for row, key in copies if not self._follow(question, row, key)]
        if alone:
            self.ask(question.about(np.array(alone, dtype=np.intp)))

    def _follow(self, question: Question, row: int, key: bytes) -> bool:
        """Return whether the same point has an answer, or will have one; the *row* gets it."""
        taker = _Taker(question, row, self._context.round)
        match self._asked_now.get(key):
            case _Leader(takers):
                takers.append(taker)
            case _Known() as known:  # Asked and answered at this very moment.
                taker.answer(known, self._context.clock.now)
            case None:
                return False
        return True

    def _settle(self, record: Record, leaders: dict[int, _Leader]) -> None:
        """Pass on what became of rows to those who wait for the same."""
        if record.fate in UNASKED:
            return
        reply, now = record.reply, self._context.clock.now
        for place, row in enumerate(reply.rows.tolist()):
            leader = leaders[row]
            takers, leader.takers = leader.takers, []
            key = _key(reply.query, row)
            # The same point may have been asked again meanwhile, at a later moment.
            is_asked_now = self._asked_now.get(key) is leader
            if isinstance(reply, Answer):
                known = _Known.from_answer(reply, place)
                if is_asked_now:
                    self._asked_now[key] = known
                for taker in takers:
                    taker.answer(known, now)
            else:
                for taker in takers:
                    taker.fail(record, reply.reason, now)
                if is_asked_now:
                    del self._asked_now[key]
