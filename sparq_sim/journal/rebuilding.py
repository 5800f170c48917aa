"""Rebuilding: from the entries of a journal to what happened in the play, entry by entry."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from sparq_sim.arrays import Points, all_rows, freeze_array
from sparq_sim.domain import Box
from sparq_sim.errors import JournalError
from sparq_sim.journal.entries import (
    AskEntry,
    EndEntry,
    Entry,
    EventEntry,
    Header,
    MoveEntry,
    ReplyEntry,
    TurnEntry,
)
from sparq_sim.messages import Answer, Failure, Move, Query, Reply
from sparq_sim.simulation.delivery.request import Rows
from sparq_sim.simulation.past import OpenAsk, Past, SentAsk, Thought
from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import UNASKED, Fate, Record, Turn, is_for_agent
from sparq_sim.simulation.trace import Trace

__all__ = ["INTERRUPTED", "PastBuilder"]

INTERRUPTED = "interrupted"
"""Why a play ended whose journal has no end."""


class PastBuilder:
    """Builds the past of a play from the entries of its journal, as they come.

    Args:
        header: The first line of the journal.
    """

    def __init__(self, header: Header) -> None:
        self.untold: dict[Record, int] = {}
        """The replies that the agent was not told yet, each with the number of its entry."""
        self.known_points: dict[tuple[int, str], Points] = {}
        """All points of each query that has several, by its id and its source."""
        self._header = header
        self._past = Past()
        self._queries: dict[tuple[int, str], Query] = {}
        self._replies: dict[int, Record] = {}
        # Each row that was asked about, until its end is known.
        self._open: dict[tuple[int, str, int], dict[int, OpenAsk]] = {}
        self._bounds: list[tuple[float, Box]] = []  # Each with the moment since when it counts.
        self._paid = Fraction(0)
        self._spent: float | None = None

    @property
    def past(self) -> Past:
        """What happened so far; the same object each time, brought up to date."""
        past = self._past
        past.open = [
            replace(ask, rows=_share_rows(rows, len(ask.query.points)))
            for group in self._open.values()
            for ask, rows in _gather(group)
        ]
        if self._spent is None:
            known = float(self._paid + sum(Fraction(ask.cost) for ask in past.open))
            # A reading that was under way, unasked, may have cost something too.
            past.spent = max([known, *(turn.spent for turn in past.turns[-1:])])
        else:
            past.spent = self._spent
        return past

    def to_trace(self) -> Trace:
        """Return the trace of what happened so far, without the tables that experts leave."""
        past = self.past
        recorder = Recorder(self._header.coordinates)
        recorder.turns = past.turns
        recorder.records = past.records
        recorder.superseded = past.superseded
        return recorder.trace(ended=past.ended or INTERRUPTED, spent=past.spent)

    def take(self, entry: Entry) -> None:
        """Add the next entry of the journal.

        Args:
            entry: The entry.

        Raises:
            JournalError: It does not fit what came before.
        """
        self._past.now = max(self._past.now, entry.at)
        try:
            match entry:
                case MoveEntry():
                    self._take_move(entry)
                case AskEntry():
                    self._take_ask(entry)
                case ReplyEntry():
                    self._take_reply(entry)
                case TurnEntry():
                    self._past.turns.append(_read_turn(entry))
                case EventEntry():
                    self._take_event(entry)
                case EndEntry():
                    self._past.ended, self._spent = entry.ended, entry.spent
        except (ValueError, LookupError, TypeError) as error:
            raise JournalError(f"the entry {entry.type!r} does not fit: {error}") from error

    def _take_move(self, entry: MoveEntry) -> None:
        unknown = [n for n in entry.heard if n not in self._replies]
        if unknown:
            raise ValueError(f"it hears the replies {unknown}, which are not there or were heard")
        heard = tuple(self._replies.pop(n) for n in entry.heard)
        for record in heard:
            del self.untold[record]
        queries = tuple(
            Query(query.id, query.source, np.array(query.points, dtype=float), entry.now)
            for query in entry.queries
        )
        for query in queries:
            if len(query.points) > 1:
                self.known_points[query.id, query.source] = query.points
        point = None if entry.point is None else freeze_array(entry.point)
        move = Move(point, queries, entry.notes, entry.effort)
        # A move may have been thought before the bounds were changed, and carried out after.
        then = [bounds for at, bounds in self._bounds if at <= entry.now]
        thought = Thought(
            now=entry.now,
            heard=heard,
            move=move,
            at=entry.at,
            round=entry.round,
            bounds=then[-1] if then else None,
            applied_within=self._past.bounds,
        )
        self._past.thoughts.append(thought)

    def _take_ask(self, entry: AskEntry) -> None:
        query = self._find_query(entry)
        ask = OpenAsk(
            query=query,
            rows=_share_rows(entry.rows, len(query.points)),
            attempt=entry.attempt,
            asker=entry.asker,
            path=entry.path,
            round=entry.round,
            cost=entry.cost,
            owed=entry.owed,
            key=entry.key,
        )
        cost = entry.cost + entry.owed
        sent = SentAsk(entry.source, entry.at, len(entry.rows), cost, entry.round)
        self._past.sent.append(sent)
        group = self._open.setdefault((query.id, query.source, entry.attempt), {})
        group.update(dict.fromkeys(entry.rows, ask))

    def _take_reply(self, entry: ReplyEntry) -> None:
        past, fate = self._past, Fate(entry.fate)
        record = Record(
            reply=_read_reply(entry, self._find_query(entry)),
            fate=fate,
            heard=entry.heard,
            round=entry.round,
            asker=entry.asker,
            served_at=entry.served_at,
            sent_at=entry.sent_at,
            attempt=entry.attempt,
            fault=entry.fault,
        )
        past.records.append(record)
        self._paid += Fraction(entry.cost)
        if entry.superseded:
            past.superseded.add(record)
        elif is_for_agent(record):
            self._replies[entry.n] = record
            self.untold[record] = entry.n
        if fate not in UNASKED:
            self._close(entry)

    def _close(self, entry: ReplyEntry) -> None:
        key = (entry.query, entry.source, entry.attempt)
        if group := self._open.get(key):
            for row in entry.rows:
                group.pop(row, None)
            if not group:
                del self._open[key]

    def _take_event(self, entry: EventEntry) -> None:
        if entry.what == "bounds":
            lower, upper = entry.numbers["lower"], entry.numbers["upper"]
            self._past.bounds = Box(lower, upper, self._header.coordinates)
            self._bounds.append((entry.at, self._past.bounds))
        elif entry.what == "resumed":
            self._past.ended = self._spent = None

    def _find_query(self, entry: AskEntry | ReplyEntry) -> Query:
        """Return the query of an entry: the same object for all entries of it."""
        key = (entry.query, entry.source)
        query = self._queries.get(key)
        if query is None:
            query = Query(entry.query, entry.source, self._find_points(entry), entry.asked_at)
            self._queries[key] = query
            if len(query.points) > 1:
                self.known_points.setdefault(key, query.points)
            self._past.own_queries = max(self._past.own_queries, -entry.query)
        if not all(0 <= row < len(query.points) for row in entry.rows) or not entry.rows:
            raise ValueError(f"rows {entry.rows} of a query of {len(query.points)} points")
        if len(entry.points) != len(entry.rows):
            raise ValueError(f"{len(entry.rows)} rows and {len(entry.points)} points")
        return query

    def _find_points(self, entry: AskEntry | ReplyEntry) -> Points:
        """Return all points of a query whose first request or reply this entry is."""
        known = self.known_points.get((entry.query, entry.source))
        if entry.query_points is not None:
            return np.array(entry.query_points, dtype=float)
        if known is not None:
            return known
        if entry.rows != list(range(len(entry.points))):
            raise ValueError(f"rows {entry.rows} of a query whose other points are not told")
        return np.array(entry.points, dtype=float)


def _gather(group: dict[int, OpenAsk]) -> list[tuple[OpenAsk, list[int]]]:
    """Return each request once, with its rows that are open."""
    rows: dict[OpenAsk, list[int]] = {}
    for row, ask in group.items():
        rows.setdefault(ask, []).append(row)
    return list(rows.items())


def _share_rows(rows: list[int], count: int) -> Rows:
    """Return rows as an array: the one that all messages about *count* points share, if all."""
    if len(rows) == count and rows == list(range(count)):
        return all_rows(count)
    return np.array(rows, dtype=np.intp)


def _read_reply(entry: ReplyEntry, query: Query) -> Reply:
    rows = _share_rows(entry.rows, len(query.points))
    if entry.values is None or entry.stds is None:
        return Failure(
            query=query,
            rows=rows,
            reason=entry.reason,
            asked_at=entry.asked_at,
            arrived_at=entry.arrived_at,
            cost=entry.cost,
        )
    if not len(entry.values) == len(entry.stds) == len(rows):
        raise ValueError(f"{len(rows)} rows, {len(entry.values)} values and {len(entry.stds)} stds")
    return Answer(
        query=query,
        rows=rows,
        values=freeze_array(entry.values),
        stds=freeze_array(entry.stds),
        asked_at=entry.asked_at,
        measured_at=entry.measured_at,
        arrived_at=entry.arrived_at,
        cost=entry.cost,
        notes=entry.notes,
    )


def _read_turn(entry: TurnEntry) -> Turn:
    return Turn(
        round=entry.round,
        started_at=entry.started_at,
        played_at=entry.played_at,
        moved=entry.moved,
        point=freeze_array(entry.point),
        reward=entry.reward,
        best=entry.best,
        spent=entry.spent,
        wall=entry.wall,
        notes=entry.notes,
        meters=entry.meters,
    )
