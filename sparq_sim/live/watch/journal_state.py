"""The state of a play, as far as its journal has come: what is in force, in flight and answered."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path

import numpy as np

from sparq_sim.domain import Domain, Sites
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
from sparq_sim.journal.rebuilding import PastBuilder
from sparq_sim.messages import REWARD
from sparq_sim.report.phrases import format_number
from sparq_sim.simulation.past import Past

__all__ = ["AnswerRow", "Flight", "JournalState", "describe_point", "has_writer"]

_MOST_ANSWERS = 12
"""Answers that are listed: the newest."""
_MOST_EVENTS = 20
"""Events that are listed: the newest."""
_MOST_FLIGHTS = 30
"""Queries in flight that are listed: those asked first."""
_MOST_POINTS = 3
"""Points of one query that are named; of the others, there is a count."""


@dataclass(frozen=True)
class Flight:
    """A query in flight."""

    source: str
    """Who is asked."""
    where: str
    """The points, in words."""
    points: int
    """How many points it asks about."""
    attempt: int
    """Which attempt it is, from 1."""
    cost: float
    """What it costs, in units of the budget."""
    round: int
    """The round in which it was sent."""
    unix: float
    """When it was sent, in seconds of the Unix epoch."""


@dataclass(frozen=True)
class AnswerRow:
    """What came back of a query."""

    source: str
    """Who was asked."""
    where: str
    """The points, in words."""
    value: str
    """The values with their standard deviations, or why there are none."""
    fate: str
    """What became of the query."""
    took: float
    """How long it took, in the unit of the page; NaN for what was not asked for."""
    age: float
    """How old the values were when they came, in the unit of the page."""
    unix: float
    """When it came, in seconds of the Unix epoch."""


class JournalState:
    """What a page shows of a play, brought up to date entry by entry."""

    def __init__(self, header: Header) -> None:
        """Begin with the first line of a journal.

        Args:
            header: Which play it is of.
        """
        self.header = header
        self.builder = PastBuilder(header)
        self.events: deque[EventEntry] = deque(maxlen=_MOST_EVENTS)
        """The newest events, the newest last."""
        self.fates: Counter[str] = Counter()
        """How often queries of experts came to which end."""
        self.in_force: Sequence[float] | None = None
        """The point that was applied last."""
        self.safe = ""
        """The safe state that the system was brought to after the last move, in words."""
        self.paused = False
        """Whether the play is paused."""
        self.end: EndEntry | None = None
        """How it ended, if it did."""
        self.news_at = header.unix
        """When the newest entry was written, in seconds of the Unix epoch."""
        self._replies: deque[ReplyEntry] = deque(maxlen=_MOST_ANSWERS)
        self._asked: dict[tuple[int, str, int], float] = {}

    def take(self, entry: Entry) -> None:
        """Add the next entry of the journal.

        Args:
            entry: The entry.

        Raises:
            JournalError: It does not fit what came before.
        """
        self.builder.take(entry)
        self.news_at = entry.unix
        match entry:
            case AskEntry():
                self._asked[entry.query, entry.source, entry.attempt] = entry.unix
                if entry.source == REWARD:
                    self.in_force = entry.points[0]
            case ReplyEntry():
                self._asked.pop((entry.query, entry.source, entry.attempt), None)
                if entry.source != REWARD:
                    self.fates[entry.fate] += 1
                if not entry.superseded:
                    self._replies.append(entry)
            case MoveEntry():
                self.safe = ""
            case TurnEntry():
                self.in_force = entry.point
            case EventEntry():
                self._take_event(entry)
            case EndEntry():
                self.end = entry

    def _take_event(self, entry: EventEntry) -> None:
        self.events.append(entry)
        match entry.what:
            case "paused":
                self.paused = True
            case "continued":
                self.paused = False
            case "safe reached":
                self.safe = entry.text
            case "resumed":
                self.paused, self.end = False, None

    @property
    def past(self) -> Past:
        """What happened so far."""
        return self.builder.past

    @property
    def rounds(self) -> int:
        """How many rounds were played."""
        turns = self.builder.past.turns
        return turns[-1].round if turns else 0

    @property
    def unit(self) -> str:
        """In which unit the page shows durations: seconds where a clock unit is known in them."""
        return "clock units" if self.header.seconds is None else "s"

    def flights(self) -> list[Flight]:
        """List the queries in flight, those asked first at the beginning."""
        return [
            Flight(
                source=ask.query.source,
                where=self._name_points(ask.query.points[ask.rows].tolist()),
                points=len(ask.rows),
                attempt=ask.attempt,
                cost=ask.cost,
                round=ask.round,
                unix=self._asked.get((ask.query.id, ask.query.source, ask.attempt), self.news_at),
            )
            for ask in self.past.open[:_MOST_FLIGHTS]
        ]

    def answers(self) -> list[AnswerRow]:
        """List what came back, the newest first."""
        scale = self.header.seconds or 1.0
        return [
            AnswerRow(
                source=each.source,
                where=self._name_points([each.points[row] for row in each.rows]),
                value=_name_values(each),
                fate=each.fate,
                took=scale * (each.arrived_at - each.asked_at) if each.attempt else nan,
                age=scale * (each.arrived_at - each.measured_at),
                unix=each.unix,
            )
            for each in reversed(self._replies)
        ]

    def _name_points(self, points: Sequence[Sequence[float]]) -> str:
        named = [describe_point(self.header.domain, point) for point in points[:_MOST_POINTS]]
        more = len(points) - len(named)
        return "; ".join(named) + (f" and {more} more" if more else "")


def _name_values(entry: ReplyEntry) -> str:
    if entry.values is None or entry.stds is None:
        return entry.reason or entry.fate
    pairs = list(zip(entry.values, entry.stds, strict=True))[:_MOST_POINTS]
    named = [
        f"{format_number(value, 4)} ± {format_number(std, 2)}"
        if isfinite(std)
        else format_number(value, 4)
        for value, std in pairs
    ]
    return "; ".join(named) + (" …" if len(entry.values) > len(pairs) else "")


def describe_point(domain: Domain, point: Sequence[float]) -> str:
    """Return a point in words: the name of its site, or its coordinates.

    Args:
        domain: Where it lies.
        point: Its coordinates, (d,).
    """
    if isinstance(domain, Sites):
        place = int(domain.index(np.array([point]))[0])
        if domain.site_names:
            return domain.site_names[place]
    return ", ".join(
        f"{name} = {format_number(value, 4)}"
        for name, value in zip(domain.names, point, strict=True)
    )


def has_writer(path: Path) -> bool | None:
    """Return whether a journal is being written; None where the system does not tell.

    A writer holds a lock on the file. It is looked up in the list of locks, for to try the lock
    could keep a writer from having it.

    Args:
        path: The journal.
    """
    try:
        state = path.stat()
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except (OSError, UnicodeError):
        return None
    # By its number alone: file systems with volumes in them name another device here.
    ending = f":{state.st_ino}"
    return any(
        "FLOCK" in line and any(word.endswith(ending) for word in line.split())
        for line in locks.splitlines()
    )
