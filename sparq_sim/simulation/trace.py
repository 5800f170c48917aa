"""Traces: what happened in a play, as flat columns."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from sparq_sim.plugin.optimizer import Belief
    from sparq_sim.simulation.play import Played

__all__ = [
    "AS_PLANNED",
    "METER",
    "NOTE",
    "WALL",
    "Columns",
    "Trace",
    "first_difference",
    "split_note",
]

Columns: TypeAlias = Mapping[str, NDArray[Any]]
"""A table: columns of equal length, by name."""

NOTE = "note_"
"""The prefix of columns of notes."""
METER = "meter_"
"""The prefix of columns of meters; the name of the expert and an underscore follow."""
WALL = "wall"
"""The column of measured computing time, in seconds: the only one that differs between runs."""
AS_PLANNED = ("rounds", "horizon")
"""What `Trace.ended` says of plays that went on to the end of their rules."""


@dataclass(frozen=True, eq=False)
class Trace:
    """What happened in a play: a row for each round, and a row for each point of a reply.

    It is made by `play` when the play has ended, or read from a file, and does not change. Two
    traces are equal if their digests are.
    """

    rounds: Columns
    """A row for each round."""
    replies: Columns
    """A row for each point of each reply, in the order of arrival; without columns where they were
    not recorded."""
    coordinates: tuple[str, ...]
    """The names of the columns that hold the coordinates of a point."""
    ended: str
    """Why the play ended: `rounds` or `horizon` if as planned."""
    spent: float
    """What was spent in all."""
    accounts: Mapping[str, Columns] = field(default_factory=dict)
    """Tables that experts left when the play had ended, by `<expert>/<table>`; none where they
    were not recorded."""
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

    @property
    def knows_best(self) -> bool:
        """Whether the best reward is known, and so regret; of something real, it is not.

        Where it is not, `best` and `regret` of all rounds are NaN, and `reward` is as observed.
        """
        best = self.rounds["best"]
        return not len(best) or bool(np.isfinite(best).any())

    def digest(self) -> str:
        """Return a hash of everything but wall times; equal plays have equal digests."""
        return self.digests()[1]

    def digests(self) -> tuple[str, str]:
        """Return two digests: that of the trace without its replies, and that of all of it."""
        hashed, found = blake2b(digest_size=16), []
        accounts = {
            f"{table}/{name}": column
            for table, columns in self.accounts.items()
            for name, column in columns.items()
        }
        for columns in (self.rounds, {**self.replies, **accounts}):
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

        The file is a zip archive of the Parquet files that a study keeps: `rounds.parquet`,
        `replies.parquet`, and `accounts.parquet` if experts left tables. A file that is there is
        replaced.

        Args:
            path: Where to write it.

        Raises:
            SparqError: If the file cannot be written.
        """
        from sparq_sim.study.store import save_trace

        save_trace(self, Path(path))

    @classmethod
    def load(cls, path: Path | str) -> Trace:
        """Read a trace that `save` has written; its digest is that of the one saved.

        Args:
            path: The file.

        Raises:
            SparqError: If there is no such file, it is not a trace, it is damaged, or another
                version has written it in a format that this one cannot read.
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
            round: The number of the round, from 1. In a round without a move, the move before
                counts.
            points: Where to evaluate the belief, (n, d), within the domain.
            allow_import: Whether the file that the trace comes from may name code to run, as
                `module:Class`.

        Returns:
            Mean and std at each point, (n,); NaN while the agent believes nothing yet.

        Raises:
            SparqError: If the optimizer has no belief, if what was played is not known or was
                played in real time, or if the play now comes out otherwise, as with changed code
                or data.
        """
        from sparq_sim.simulation.beliefs import belief_at

        return belief_at(self, round, points, allow_import=allow_import)


def split_note(name: str) -> tuple[str, str]:
    """Return the group and the part of a note that is named `group/part`, a part of a whole.

    Args:
        name: Of the note, without the prefix of its column.

    Returns:
        Both; of a note that stands for itself, "" and its name.
    """
    group, _, part = name.partition("/")
    return (group, part) if group and part else ("", name)


def first_difference(one: Trace, other: Trace) -> str | None:
    """Describe where two traces part.

    Args:
        one: A trace.
        other: The trace to compare it with.

    Returns:
        The first row of rounds, replies or accounts that differs and how, or None for traces of
        the same play; wall times are not compared.
    """
    if missing := sorted(one.accounts.keys() ^ other.accounts.keys()):
        which = "first" if missing[0] in one.accounts else "second"
        return f"accounts: only the {which} has the table {missing[0]}"
    tables = [("rounds", one.rounds, other.rounds), ("replies", one.replies, other.replies)]
    tables += [(name, one.accounts[name], other.accounts[name]) for name in sorted(one.accounts)]
    for name, mine, theirs in tables:
        columns = sorted((mine.keys() | theirs.keys()) - {WALL})
        if missing := [c for c in columns if c not in mine or c not in theirs]:
            which = "first" if missing[0] in mine else "second"
            return f"{name}: only the {which} has the column {missing[0]}"
        parting = {c: _first_unequal(mine[c], theirs[c]) for c in columns}
        rows = [row for row in parting.values() if row is not None]
        if rows:
            row = min(rows)
            lengths = [len(side[columns[0]]) for side in (mine, theirs)]
            if row >= min(lengths):
                return f"{name}: {lengths[0]} rows and {lengths[1]}"
            parts = [
                f"{c} {mine[c][row]} and {theirs[c][row]}" for c in columns if parting[c] == row
            ]
            where = f" (round {mine['round'][row]})" if "round" in mine else ""
            return f"{name}, row {row + 1}{where}: {'; '.join(parts)}"
    return None if one.ended == other.ended else f"ended: {one.ended} and {other.ended}"


def _first_unequal(a: NDArray[Any], b: NDArray[Any]) -> int | None:
    """Return the first row in which two columns differ, where NaN is equal to NaN."""
    shared = min(len(a), len(b))
    x, y = a[:shared], b[:shared]
    unequal = (x != y) & ~((x != x) & (y != y))
    if unequal.any():
        return int(unequal.argmax())
    return None if len(a) == len(b) else shared
