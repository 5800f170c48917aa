"""The recorder of a play: rounds and replies become the columns of a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points, Values
from sparq_sim.messages import AGENT_NAME, REWARD, Answer, Failure, Notes, Query
from sparq_sim.simulation.journaling import Journaling
from sparq_sim.simulation.records import Fate, Record, Turn, arrival_order
from sparq_sim.simulation.trace import METER, NOTE, WALL, Columns, Trace, split_note

__all__ = ["Recorder", "list_rewards"]


class Recorder:
    """Writes a trace down as the play goes on: rounds into `turns`, replies into `records`.

    Args:
        coordinates: The names of the coordinates of a point, which become columns.
        journal: Writes down each record as it comes; by default nobody does.

    Raises:
        ValueError: If traces have a column of that name already.
    """

    def __init__(self, coordinates: Sequence[str], journal: Journaling | None = None) -> None:
        self._journal = journal
        self._coordinates = tuple(coordinates)
        columns = _round_columns([], (), ()).keys() | _reply_columns([], set(), ()).keys()
        if taken := [c for c in coordinates if c in columns or c.startswith((NOTE, METER))]:
            raise ValueError(f"traces have a column {taken[0]!r}; call the coordinate otherwise")
        self.turns: list[Turn] = []
        """What happened in each round."""
        self.records: list[Record] = []
        """What became of each request, in the order in which it was known."""
        self.superseded: set[Record] = set()
        """Records of attempts that another attempt follows, so that nobody hears of them."""
        self.add: Callable[[Record], None] = (
            self.records.append if journal is None else self._add_to_journal
        )
        """Appends what became of a request."""

    def _add_to_journal(self, record: Record, *, superseded: bool = False) -> None:
        self.records.append(record)
        assert self._journal is not None
        self._journal.reply(record, superseded=superseded, at=record.reply.arrived_at)

    def keep_superseded(self, record: Record) -> None:
        """Append what became of an attempt that another attempt follows.

        Args:
            record: How the attempt ended.
        """
        self.superseded.add(record)
        if self._journal is None:
            self.records.append(record)
        else:
            self._add_to_journal(record, superseded=True)

    def trace(
        self, *, ended: str, spent: float, accounts: Mapping[str, Columns] | None = None
    ) -> Trace:
        """Return all that was written so far, as columns.

        Args:
            ended: Why the play ended.
            spent: What was spent in all.
            accounts: Tables that experts leave, by `<expert>/<table>`.
        """
        return Trace(
            rounds=_round_columns(self.turns, self._coordinates, self.records),
            replies=_reply_columns(self.records, self.superseded, self._coordinates),
            coordinates=self._coordinates,
            ended=ended,
            spent=spent,
            accounts=accounts or {},
        )


def _round_columns(
    turns: Sequence[Turn], coordinates: Sequence[str], records: Sequence[Record]
) -> Columns:
    rewards = list_rewards(turns, records)
    best = np.array([turn.best for turn in turns], dtype=float)
    points = np.array([turn.point for turn in turns], dtype=float)
    points = points.reshape(len(turns), len(coordinates))
    return {
        "round": np.array([turn.round for turn in turns], dtype=np.int64),
        "started_at": np.array([turn.started_at for turn in turns], dtype=float),
        "played_at": np.array([turn.played_at for turn in turns], dtype=float),
        "moved": np.array([turn.moved for turn in turns], dtype=bool),
        **{name: points[:, i] for i, name in enumerate(coordinates)},
        "reward": rewards,
        "best": best,
        "regret": best - rewards,
        "spent": np.array([turn.spent for turn in turns], dtype=float),
        WALL: np.array([turn.wall for turn in turns], dtype=float),
        **_note_columns([turn.notes for turn in turns]),
        **_note_columns([turn.meters for turn in turns], METER),
    }


def list_rewards(turns: Sequence[Turn], records: Sequence[Record]) -> Values:
    """Return the reward of each round: as it is known, else as it was observed, else NaN.

    Args:
        turns: The rounds.
        records: What became of each request.

    Returns:
        The rewards: (rounds,).
    """
    rewards = np.array([turn.reward for turn in turns], dtype=float)
    if not np.isnan(rewards).any():
        return rewards
    observed = _observed_rewards(records)
    told = [observed.get(turn.round, np.nan) if turn.moved else np.nan for turn in turns]
    return np.where(np.isnan(rewards), told, rewards)


def _observed_rewards(records: Sequence[Record]) -> dict[int, float]:
    """Return what was observed of the points played, by round, where nobody knows more."""
    return {
        record.reply.query.id: float(record.reply.values[0])
        for record in records
        if isinstance(record.reply, Answer)
        and record.reply.query.source == REWARD
        and record.asker == AGENT_NAME
        and record.fate == Fate.ANSWERED
    }


def _reply_columns(
    records: Sequence[Record], superseded: Set[Record], coordinates: Sequence[str]
) -> Columns:
    records = sorted(records, key=arrival_order)
    replies = [record.reply for record in records]
    answers = [reply if isinstance(reply, Answer) else _unanswered(reply) for reply in replies]
    sizes = np.array([len(reply.rows) for reply in replies], dtype=np.intp)

    def spread(values: Sequence[Any], dtype: Any) -> NDArray[Any]:
        return np.repeat(np.array(values, dtype=dtype), sizes)

    def join(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
        return np.concatenate(parts, dtype=dtype) if parts else np.empty(0, dtype=dtype)

    rows = join([reply.rows for reply in replies], np.int64)
    points = _points([reply.query for reply in replies], sizes, rows, len(coordinates))
    notes = _note_columns([answer.notes for answer in answers])
    costs = np.zeros(len(rows))
    # The first row carries what all cost.
    costs[np.cumsum(sizes) - sizes] = [reply.cost for reply in replies]
    return {
        "round": spread([record.round for record in records], np.int64),
        "asker": spread([record.asker for record in records], np.str_),
        "source": spread([reply.query.source for reply in replies], np.str_),
        "query": spread([reply.query.id for reply in replies], np.int64),
        "row": rows,
        **{name: points[:, i] for i, name in enumerate(coordinates)},
        "fate": spread([record.fate for record in records], np.str_),
        "reason": spread(
            [reply.reason if isinstance(reply, Failure) else "" for reply in replies], np.str_
        ),
        "heard": spread([record.heard and record not in superseded for record in records], bool),
        "attempt": spread([record.attempt for record in records], np.int64),
        "superseded": spread([record in superseded for record in records], bool),
        "fault": spread([record.fault for record in records], np.str_),
        "value": join([answer.values for answer in answers], float),
        "std": join([answer.stds for answer in answers], float),
        "asked_at": spread([reply.asked_at for reply in replies], float),
        "served_at": spread([record.served_at for record in records], float),
        "sent_at": spread([record.sent_at for record in records], float),
        "measured_at": spread([answer.measured_at for answer in answers], float),
        "arrived_at": spread([reply.arrived_at for reply in replies], float),
        "cost": costs,
        **{name: np.repeat(column, sizes) for name, column in notes.items()},
    }


def _unanswered(failure: Failure) -> Answer:
    """Return an answer in place of a failure, with NaN for its numbers."""
    absent = np.full(len(failure.rows), np.nan)
    return Answer(
        query=failure.query,
        rows=failure.rows,
        values=absent,
        stds=absent,
        asked_at=failure.asked_at,
        measured_at=np.nan,
        arrived_at=failure.arrived_at,
        cost=failure.cost,
    )


def _points(
    queries: Sequence[Query], sizes: NDArray[np.intp], rows: NDArray[np.int64], dimensions: int
) -> Points:
    """Return the points at *rows* of the queries, of which each has *sizes* rows."""
    if not queries:
        return np.empty((0, dimensions))
    # All points in one array, and one look-up in it: an index of its own for each reply took
    # most of the time of a trace.
    starts: dict[Query, int] = {}
    once: list[Points] = []
    total = 0
    for query in queries:
        if query not in starts:
            starts[query] = total
            once.append(query.points)
            total += len(query.points)
    firsts = np.array([starts[query] for query in queries], dtype=np.intp)
    points: Points = np.concatenate(once)[np.repeat(firsts, sizes) + rows]
    return points


def _note_columns(notes: Sequence[Notes], prefix: str = NOTE) -> Columns:
    names = dict.fromkeys(name for noted in notes for name in noted)
    return {
        prefix + name: np.array([noted.get(name, np.nan) for noted in notes], dtype=float)
        for name in sorted(names, key=_place_of_note)
    }


def _place_of_note(name: str) -> str:
    # The parts of a whole stay in the order in which they were noted: 3, 10, 30, not 10, 3, 30.
    group, _ = split_note(name)
    return f"{group}/" if group else name
