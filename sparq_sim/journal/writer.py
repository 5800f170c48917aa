"""The writer of a journal: one line for each thing that happens, which no crash takes away."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from sparq_sim.arrays import Points
from sparq_sim.errors import JournalError
from sparq_sim.journal.codec import encode
from sparq_sim.journal.durable_file import DurableFile
from sparq_sim.journal.entries import (
    AskEntry,
    EndEntry,
    Entry,
    EventEntry,
    Header,
    MoveEntry,
    QueryData,
    ReplyEntry,
    TurnEntry,
)
from sparq_sim.journal.reader import Journal
from sparq_sim.messages import Answer, Failure, Move, Query
from sparq_sim.simulation.delivery.request import Request, Rows
from sparq_sim.simulation.records import Record, Turn, is_for_agent

__all__ = ["JournalWriter"]


class JournalWriter:
    """Writes the journal of one play, as `Journaling` asks for; a context manager that closes it.

    Each entry outlives the process as soon as it is written, and a loss of power after `sync`. A
    move and its requests are one step: they are written together, by `sync` or by what follows
    them, so that a crash leaves all of them or none. Only one writer at a time can have a file.

    It is made by `create` or `append_to`.
    """

    def __init__(self, file: DurableFile, header: Header) -> None:
        """Take over an open file; see `create` and `append_to`.

        Args:
            file: The file, whose first line is written.
            header: That line.
        """
        self.header = header
        """The first line of the journal."""
        self.listener: Callable[[Record], None] | None = None
        """Called with each reply when it is written."""
        self._file = file
        self._last = 0
        self._step = b""  # The lines of a move and its requests, which are yet to be written.
        self._untold: dict[Record, int] = {}
        # Of queries of several points: what the file has.
        self._known: dict[tuple[int, str], Points] = {}

    @classmethod
    def create(cls, path: Path | str, header: Header) -> JournalWriter:
        """Begin a journal with its header, which is durable then.

        Args:
            path: A file that does not exist yet, in a folder that does.
            header: The first line.

        Returns:
            The writer, to be closed.

        Raises:
            JournalError: There is such a file, or it cannot be written.
        """
        return cls(DurableFile.create(Path(path), encode(header)), header)

    @classmethod
    def append_to(cls, journal: Journal) -> JournalWriter:
        """Go on with a journal that was read; a line that was cut is removed from the file.

        Args:
            journal: The journal. The records of its `past` count as written.

        Returns:
            The writer, to be closed.

        Raises:
            JournalError: Another writer has the file, it has changed since it was read, or it
                cannot be written.
        """
        untold, whole = journal.untold(), journal.whole_bytes
        length = whole + journal.cut_bytes
        writer = cls(DurableFile.reopen(journal.path, length=length, whole=whole), journal.header)
        writer._last, writer._untold = len(journal.entries), untold
        writer._known = journal.known_points()
        return writer

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # What a play reports.

    @property
    def play_id(self) -> str:
        return self.header.play

    def move(
        self, move: Move, *, number: int, now: float, at: float, heard: Sequence[Record]
    ) -> None:
        try:
            told = [self._untold[record] for record in heard]
        except KeyError as error:
            raise JournalError(f"{self.path}: a move hears a reply that was not written") from error
        self._add_to_step(
            MoveEntry(
                **self._stamp(at),
                round=number,
                now=now,
                heard=told,
                point=None if move.point is None else np.asarray(move.point, dtype=float).tolist(),
                queries=[
                    QueryData(id=query.id, source=query.source, points=query.points.tolist())
                    for query in move.queries
                ],
                notes=dict(move.notes),
                effort=move.effort,
            )
        )
        for record in heard:
            del self._untold[record]
        for query in move.queries:
            if len(query.points) > 1:
                self._known[query.id, query.source] = query.points

    def ask(self, request: Request, *, at: float, key: str) -> None:
        question = request.question
        query = question.query
        self._add_to_step(
            AskEntry(
                **self._stamp(at),
                source=query.source,
                query=query.id,
                **self._tell_points(query, request.drawn.rows),
                asked_at=query.asked_at,
                attempt=request.attempt,
                asker=question.asker,
                path=question.path,
                round=request.round,
                cost=request.cost,
                owed=request.owed,
                key=key,
            )
        )
        self._keep_points(query)

    def reply(self, record: Record, *, superseded: bool, at: float) -> None:
        reply = record.reply
        query = reply.query
        answer = reply if isinstance(reply, Answer) else None
        self._write(
            ReplyEntry(
                **self._stamp(at),
                source=query.source,
                query=query.id,
                **self._tell_points(query, reply.rows),
                fate=str(record.fate),
                reason=reply.reason if isinstance(reply, Failure) else "",
                heard=record.heard,
                superseded=superseded,
                attempt=record.attempt,
                fault=record.fault,
                asker=record.asker,
                round=record.round,
                values=None if answer is None else answer.values.tolist(),
                stds=None if answer is None else answer.stds.tolist(),
                asked_at=reply.asked_at,
                served_at=record.served_at,
                sent_at=record.sent_at,
                measured_at=np.nan if answer is None else answer.measured_at,
                arrived_at=reply.arrived_at,
                cost=reply.cost,
                notes={} if answer is None else dict(answer.notes),
            )
        )
        self._keep_points(query)
        if is_for_agent(record) and not superseded:
            self._untold[record] = self._last
        if self.listener is not None:
            self.listener(record)

    def turn(self, turn: Turn, *, at: float) -> None:
        self._write(
            TurnEntry(
                **self._stamp(at),
                round=turn.round,
                started_at=turn.started_at,
                played_at=turn.played_at,
                moved=turn.moved,
                point=turn.point.tolist(),
                reward=turn.reward,
                best=turn.best,
                spent=turn.spent,
                wall=turn.wall,
                notes=dict(turn.notes),
                meters=dict(turn.meters),
            )
        )

    def event(self, what: str, text: str, *, at: float, **numbers: object) -> None:
        self._write(EventEntry(**self._stamp(at), what=what, text=text, numbers=numbers))

    def end(self, ended: str, *, at: float, spent: float) -> None:
        self._write(EndEntry(**self._stamp(at), ended=ended, spent=spent))

    def sync(self) -> None:
        self._end_step()
        self._file.sync()

    def close(self) -> None:
        """Make all durable, close the file, and let another writer have it.

        Raises:
            JournalError: The disk does not do it, or the file was deleted.
        """
        try:
            self._end_step()
        finally:
            self._file.close()

    def _stamp(self, at: float) -> dict[str, Any]:
        return {"n": self._last + 1, "unix": time.time(), "at": at}

    def _tell_points(self, query: Query, rows: Rows) -> dict[str, Any]:
        """Return rows and their points; and all points, where the file does not have them yet."""
        points, asked = query.points, rows.tolist()
        known = self._known.get((query.id, query.source))
        told = {"rows": asked, "points": points[rows].tolist()}
        are_all = asked == list(range(len(points)))
        if (known is None and are_all) or (known is not None and np.array_equal(known, points)):
            return told
        return {**told, "query_points": points.tolist()}

    def _keep_points(self, query: Query) -> None:
        if len(query.points) > 1:
            self._known.setdefault((query.id, query.source), query.points)

    def _add_to_step(self, entry: Entry) -> None:
        self._step += encode(entry)
        self._last += 1

    def _end_step(self) -> None:
        if self._step:
            self._file.append(self._step)  # Should it fail, it is tried again.
            self._step = b""

    def _write(self, entry: Entry) -> None:
        self._end_step()
        self._file.append(encode(entry))
        self._last += 1
