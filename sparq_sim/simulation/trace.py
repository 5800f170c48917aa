"""Traces: what happened in a play, as flat columns."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparq_sim.arrays import Point, Points
from sparq_sim.messages import Answer, Failure, Notes, Query
from sparq_sim.simulation.records import Record

if TYPE_CHECKING:
    from sparq_sim.plugin.optimizer import Belief
    from sparq_sim.simulation.play import Played

Columns: TypeAlias = Mapping[str, NDArray[Any]]

NOTE = "note_"
"""What the columns of notes begin with."""
WALL = "wall"
"""The column of measured computing time, in seconds: the only one that differs between runs."""
AS_PLANNED = ("rounds", "horizon")
"""Why plays end that go on to the end of their rules."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One round, as the loop saw it."""

    round: int
    started_at: float
    played_at: float
    moved: bool
    """Whether a point was played; if not, the one still in force is charged."""
    point: Point
    reward: float
    best: float
    spent: float
    """In all, up to the moment of playing, this move's queries included."""
    wall: float
    notes: Notes


@dataclass(frozen=True, eq=False)
class Trace:
    """What happened: a row a round, and a row a queried point.

    *coordinates* are the names of the point's columns, *ended* says why the play ended. Two traces
    are equal if their digests are.
    """

    rounds: Columns
    replies: Columns
    coordinates: tuple[str, ...]
    ended: str
    spent: float
    played: Played | None = field(default=None, repr=False)
    """What was played, by which it can be played again; unknown (None) when read from a file."""
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Of a trace read from a file: what was played, and with which versions."""

    def __repr__(self) -> str:
        # Where only rounds were recorded, there are no columns of replies.
        rounds, replies = len(self), len(self.replies.get("round", ()))
        return f"Trace({rounds=}, {replies=}, ended={self.ended!r}, spent={self.spent:g})"

    def __eq__(self, other: object) -> bool:
        return self.digest() == other.digest() if isinstance(other, Trace) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest())

    def __getstate__(self) -> dict[str, Any]:
        # What was played may hold what cannot be sent to another process, such as a lambda.
        state = dict(self.__dict__)
        try:
            pickle.dumps(self.played)
        except Exception:
            state["played"] = None
        return state

    @property
    def points(self) -> NDArray[np.float64]:
        """The point of each round: (rounds, d)."""
        return np.stack([self.rounds[name] for name in self.coordinates], axis=1)

    def __len__(self) -> int:
        return len(self.rounds["round"])

    def digest(self) -> str:
        """Hash everything but wall times: equal digests, equal plays."""
        return self.digests()[1]

    def digests(self) -> tuple[str, str]:
        """Give the digest as it is without replies, and the whole one."""
        hashed, found = blake2b(digest_size=16), []
        for columns in (self.rounds, self.replies):
            for name in sorted(columns.keys() - {WALL}):
                column = np.ascontiguousarray(columns[name])
                hashed.update(f"{name}:{column.dtype.str}:{len(column)};".encode())
                hashed.update(column.tobytes())
            ended = hashed.copy()
            ended.update(repr((self.coordinates, self.ended, self.spent)).encode())
            found.append(ended.hexdigest())
        return found[0], found[1]

    @property
    def ended_early(self) -> bool:
        """Whether the play ended before its rounds or its horizon."""
        return self.ended not in AS_PLANNED

    # What is imported below is not needed to play, and takes long to load.

    def save(self, path: Path | str) -> None:
        """Write the trace to one file, in full or not at all, with what is known of its play.

        The file is a zip archive of the Parquet files that a study keeps: `rounds.parquet` and
        `replies.parquet`. A file that is there is replaced.

        Raises:
            SparqError: The file cannot be written.
        """
        from sparq_sim.study.store import save_trace

        save_trace(self, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> Trace:
        """Read a trace that `save` has written; its digest is that of the one saved.

        Raises:
            SparqError: There is no such file, it is no trace, it is damaged, or another version
                has written it in a format that this one cannot read.
        """
        from sparq_sim.study.store import load_trace

        return load_trace(Path(path))

    def belief_at(
        self,
        round: int,  # noqa: A002 - the word for it in columns, plays and tables
        points: ArrayLike,
        *,
        allow_import: bool = False,
    ) -> Belief:
        """Return what the agent believed at some points when it chose its move of a round.

        The play is played again, with its experts, and its agent is asked for its `belief`; for
        many rounds at once, see `simulation.beliefs.belief_map`. The optimizers of this package
        know the reward at their candidates only, and take the nearest of these.

        Args:
            round: Its number, from 1. In a round without a move, the move before counts.
            points: Where, (n, d), within the domain.
            allow_import: Whether the file that the trace comes from may name code to run, as
                `module:Class`.

        Returns:
            Mean and std at each point, (n,); NaN while the agent believes nothing yet.

        Raises:
            SparqError: The optimizer has no belief, what was played is not known or was played in
                real time, or the play now comes out otherwise, as with changed code or data.
        """
        from sparq_sim.simulation.beliefs import belief_at

        return belief_at(self, round, points, allow_import=allow_import)


def first_difference(one: Trace, other: Trace) -> str | None:
    """Say where two traces part: the first row of rounds or replies that differs, and how."""
    for name in ("rounds", "replies"):
        mine: Columns = getattr(one, name)
        theirs: Columns = getattr(other, name)
        columns = sorted((mine.keys() | theirs.keys()) - {WALL})
        if missing := [c for c in columns if c not in mine or c not in theirs]:
            return f"{name}: only one has the column {missing[0]}"
        parting = {c: _first_unequal(mine[c], theirs[c]) for c in columns}
        rows = [row for row in parting.values() if row is not None]
        if rows:
            row = min(rows)
            if any(row >= len(side["round"]) for side in (mine, theirs)):
                return f"{name}: {len(mine['round'])} rows and {len(theirs['round'])}"
            parts = [
                f"{c} {mine[c][row]} and {theirs[c][row]}" for c in columns if parting[c] == row
            ]
            return f"{name}, row {row + 1} (round {mine['round'][row]}): {'; '.join(parts)}"
    return None if one.ended == other.ended else f"ended: {one.ended} and {other.ended}"


def _first_unequal(a: NDArray[Any], b: NDArray[Any]) -> int | None:
    """Give the first row in which two columns differ, NaN being equal to NaN."""
    shared = min(len(a), len(b))
    x, y = a[:shared], b[:shared]
    unequal = (x != y) & ~((x != x) & (y != y))
    if unequal.any():
        return int(unequal.argmax())
    return None if len(a) == len(b) else shared


class Recorder:
    """Writes a trace down as the play goes on; nothing is changed afterwards."""

    def __init__(self, coordinates: Sequence[str]) -> None:
        self._coordinates = tuple(coordinates)
        columns = _round_columns([], ()).keys() | _reply_columns([], ()).keys()
        if taken := [c for c in coordinates if c in columns or c.startswith(NOTE)]:
            raise ValueError(f"traces have a column {taken[0]!r}; call the coordinate otherwise")
        self._turns: list[Turn] = []
        self._records: list[Record] = []

    def turn(self, turn: Turn) -> None:
        """Append a round."""
        self._turns.append(turn)

    def record(self, record: Record) -> None:
        """Append a reply."""
        self._records.append(record)

    def trace(self, *, ended: str, spent: float) -> Trace:
        """Give all that was written, in columns; replies in the order of arrival."""
        return Trace(
            rounds=_round_columns(self._turns, self._coordinates),
            replies=_reply_columns(self._records, self._coordinates),
            coordinates=self._coordinates,
            ended=ended,
            spent=spent,
        )


def arrival_order(record: Record) -> tuple[float, str, int, int]:
    """Order replies: by moment, and within one instant by source, query and row."""
    reply = record.reply
    query = reply.query
    return (reply.arrived_at, query.source, query.id, reply.rows.item(0))


def _round_columns(turns: Sequence[Turn], coordinates: Sequence[str]) -> Columns:
    rewards = np.array([turn.reward for turn in turns], dtype=float)
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
    }


def _reply_columns(records: Sequence[Record], coordinates: Sequence[str]) -> Columns:
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
        "heard": spread([record.heard for record in records], bool),
        "attempt": spread([record.attempt for record in records], np.int64),
        "superseded": spread([record.superseded for record in records], bool),
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
    """Give the answer that a failure stands for, without numbers in it."""
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
    """Give the points at *rows* of the queries, of which each has *sizes* rows."""
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


def _note_columns(notes: Sequence[Notes]) -> Columns:
    names = sorted({name for noted in notes for name in noted})
    return {
        NOTE + name: np.array([noted.get(name, np.nan) for noted in notes], dtype=float)
        for name in names
    }
