"""Cassettes: what a source said in a recorded play is said again, as late as then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path

import numpy as np

from sparq_sim.arrays import Point, Points
from sparq_sim.domain import Domain
from sparq_sim.errors import AnswerLost, JournalError, Unavailable
from sparq_sim.journal.reader import Journal, read_journal
from sparq_sim.limits import check_data_file
from sparq_sim.messages import AGENT_NAME, REWARD, Answer, Estimate, Failure, Notes, Query
from sparq_sim.plugin.expert import World
from sparq_sim.simulation.records import UNASKED, Fate, Record

__all__ = ["SUFFIX", "Cassette", "choose_source", "read_cassette"]

SUFFIX = ".jsonl"
"""How the names of journals end."""

_NOT_THERE = "not in the journal"
_REFUSED = frozenset({Fate.ACCESS, Fate.BUDGET})
"""What a play refuses itself, so that the source knows nothing of it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """What became of one point that a source was asked about, or that it told of unasked."""

    point: Point
    asked_at: float
    arrived_at: float
    """When the asker heard of it; infinity where it never did."""
    value: float
    """NaN where there was none."""
    std: float
    measured_at: float
    notes: Notes
    reason: str
    """Why there was no value."""
    fate: Fate


class Cassette:
    """Says again what a source has said in a recorded play.

    A question about a point has the outcome that the question about the same point had whose
    asking moment is nearest; several at one moment take turns, in their order. It comes as long
    after the question as it did then, and is dated as long after. What failed fails again; what
    was never heard of is never heard of.
    """

    def __init__(
        self,
        asked: Sequence[_Outcome],
        told: Sequence[tuple[Points, Sequence[_Outcome]]],
        *,
        reach: float,
        latency: bool,
    ) -> None:
        """Make a cassette; see `read_cassette`.

        Args:
            asked: What became of each point that was asked about, in the order of asking.
            told: What the source told unasked: points, and what it said of each.
            reach: The largest distance from a point to the one that answers for it.
            latency: Whether answers come as late as then, and not at once.
        """
        self._reach, self._latency, self._told = reach, latency, told
        self._by_place: dict[bytes, list[_Outcome]] = {}
        self._turns: dict[_Outcome, int] = {}
        for outcome in asked:
            self._by_place.setdefault(outcome.point.tobytes(), []).append(outcome)
        self._places: Points = np.array([group[0].point for group in self._by_place.values()])
        self._groups = list(self._by_place.values())

    async def answer(self, query: Query, world: World) -> Estimate:
        """Return what was said, when it is time.

        Args:
            query: What is asked.
            world: Its clock is used.

        Raises:
            Unavailable: Nothing was said, or a failure, whose reason is the message.
        """
        found = [self._find(point, query.asked_at) for point in query.points + 0.0]
        there = [outcome for outcome in found if outcome is not None]
        if not there:
            raise Unavailable(_NOT_THERE)
        if self._latency:
            ends = [_shift(each.arrived_at, each, query) for each in there]
            # A row that was never heard of does not keep the others from being heard.
            await world.clock.until(max([end for end in ends if end < inf], default=inf))
        return _estimate(found, query, world.clock.now)

    async def broadcast(self, world: World) -> None:
        """Send what the source told unasked, at the same moments.

        Args:
            world: Its clock is used.
        """
        for points, outcomes in self._told:
            first = outcomes[0]
            await world.clock.until(first.asked_at)
            query = world.open(points)
            if first.arrived_at > world.clock.now:
                world.clock.start(self._send_later(query, outcomes, world))
            else:
                world.send(query, _estimate_told(outcomes, query, world.clock.now))

    async def _send_later(self, query: Query, outcomes: Sequence[_Outcome], world: World) -> None:
        await world.clock.until(outcomes[0].arrived_at)
        world.send(query, _estimate_told(outcomes, query, world.clock.now))

    def _find(self, point: Point, asked_at: float) -> _Outcome | None:
        group = self._by_place.get(point.tobytes())
        if group is None and self._reach and self._groups:
            distances = np.linalg.norm(self._places - point, axis=1)
            nearest = int(distances.argmin())
            group = self._groups[nearest] if distances[nearest] <= self._reach else None
        if group is None:
            return None
        moment = min((each.asked_at for each in group), key=lambda then: abs(then - asked_at))
        equal = [each for each in group if each.asked_at == moment]
        turn = self._turns.get(equal[0], 0)
        self._turns[equal[0]] = turn + 1
        return equal[turn % len(equal)]


def read_cassette(
    file: Path,
    source: str,
    *,
    domain: Domain | None = None,
    reach: float = 0.0,
    begins_at: float = 0.0,
    latency: bool = True,
) -> tuple[Cassette, Journal]:
    """Return what a source said in the play of a journal, to be said again.

    Args:
        file: The journal.
        source: The name of the source in it; empty for the only expert that it has.
        domain: Where points lie now; by default where they lay then.
        reach: The largest Euclidean distance from a point to the one that answers for it.
        begins_at: The moment of the journal at which a play begins, in clock units; what was
            asked earlier is left out.
        latency: Whether answers come as late as then, and not at once.

    Returns:
        The cassette, and the journal.

    Raises:
        JournalError: The file is no journal, it has no such source, or points have other
            coordinates.
    """
    try:
        check_data_file(file)
    except OSError as error:
        raise JournalError(f"{file} cannot be read: {error.strerror or error}") from error
    journal = read_journal(file)
    name = source or choose_source(journal)
    if name not in journal.sources():
        raise JournalError(
            f"{file}: no source is called {name!r}; there are: {', '.join(journal.sources())}"
        )
    if domain is not None and domain.names != journal.header.coordinates:
        raise JournalError(
            f"{file}: its points have the coordinates {', '.join(journal.header.coordinates)}; "
            f"here they are {', '.join(domain.names)}"
        )
    records = [each for each in journal.past().records if each.reply.query.source == name]
    records = [each for each in records if each.reply.asked_at >= begins_at]
    told = [_split(each, begins_at) for each in records if _is_told(each, name)]
    told = [each for each in told if each[0].arrived_at < inf]
    asked = _list_asked([each for each in records if not _is_told(each, name)], begins_at)
    if not told and not asked:
        raise JournalError(f"{file}: {name!r} was asked nothing from {begins_at:g} on")
    told.sort(key=lambda outcomes: outcomes[0].asked_at)
    pushed = [(np.array([each.point for each in outcomes]), outcomes) for outcomes in told]
    return Cassette(asked, pushed, reach=reach, latency=latency), journal


def choose_source(journal: Journal) -> str:
    """Return the name of the only expert of a journal.

    Args:
        journal: The journal.

    Raises:
        JournalError: It has none, or several.
    """
    experts = [name for name in journal.sources() if name != REWARD]
    if len(experts) == 1:
        return experts[0]
    if not experts:
        raise JournalError(f'{journal.path} has no expert; write source = "{REWARD}"')
    raise JournalError(
        f"{journal.path} has several experts: {', '.join(experts)}; choose one: "
        f'source = "{experts[0]}"'
    )


def _is_told(record: Record, source: str) -> bool:
    """Return whether a record is of something that the source has sent unasked."""
    return record.asker == source


def _list_asked(records: Sequence[Record], begins_at: float) -> list[_Outcome]:
    """Return what became of each row in the end, in the order of asking, the agent's first."""
    # A later attempt takes the place of the one before.
    ended: dict[tuple[int, int], tuple[Record, _Outcome]] = {}
    for record in records:
        if record.fate not in UNASKED and record.fate not in _REFUSED:
            rows = record.reply.rows.tolist()
            for row, outcome in zip(rows, _split(record, begins_at), strict=True):
                ended[record.reply.query.id, row] = record, outcome

    def order(key: tuple[int, int]) -> tuple[float, bool, int, int]:
        record, outcome = ended[key]
        return outcome.asked_at, record.asker != AGENT_NAME, abs(key[0]), key[1]

    return [ended[key][1] for key in sorted(ended, key=order)]


def _split(record: Record, begins_at: float) -> list[_Outcome]:
    """Return what a record says of each of its rows."""
    reply = record.reply
    points = reply.query.points[reply.rows] + 0.0  # Without -0, whose bytes are others.
    count = len(points)
    match reply:
        case Answer(values=values, stds=stds, measured_at=measured_at, notes=notes):
            told, spread, reason = values.tolist(), stds.tolist(), ""
        case Failure(reason=reason):
            told, spread, measured_at, notes = [nan] * count, [0.0] * count, nan, {}
    return [
        _Outcome(
            point=points[i],
            asked_at=reply.asked_at - begins_at,
            arrived_at=reply.arrived_at - begins_at if record.heard else inf,
            value=told[i],
            std=spread[i],
            measured_at=measured_at - begins_at,
            notes=notes,
            reason=reason,
            fate=record.fate,
        )
        for i in range(count)
    ]


def _shift(moment: float, outcome: _Outcome, query: Query) -> float:
    """Return a moment of then as one of now: as long after the question."""
    return moment + (query.asked_at - outcome.asked_at)


def _estimate(found: Sequence[_Outcome | None], query: Query, now: float) -> Estimate:
    """Return what was said of each point as one estimate; raise Unavailable where nothing was."""
    there = [outcome for outcome in found if outcome is not None]
    answers = [outcome for outcome in there if outcome.fate == Fate.ANSWERED]
    reasons = [_NOT_THERE if each is None else each.reason for each in found]
    if not answers:
        lost = all(outcome.fate == Fate.LOST for outcome in there)
        raise (AnswerLost if lost else Unavailable)(next(filter(None, reasons)))
    oldest = min(_shift(each.measured_at, each, query) for each in answers)
    return Estimate(
        np.array([nan if each is None else each.value for each in found]),
        stds=np.array([0.0 if each is None else each.std for each in found]),
        measured_at=min(max(oldest, 0.0), now),
        notes=answers[0].notes,
        absent=next(filter(None, reasons), ""),
    )


def _estimate_told(outcomes: Sequence[_Outcome], query: Query, now: float) -> Estimate:
    try:
        return _estimate(outcomes, query, now)
    except Unavailable as error:
        return Estimate(np.full(len(outcomes), nan), absent=str(error))
