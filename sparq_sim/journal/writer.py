"""The writer of a journal: one line for each thing that happens, which no crash takes away."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from importlib.metadata import version
from pathlib import Path
from tempfile import gettempdir
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import numpy as np

import sparq_sim
from sparq_sim.domain import Domain
from sparq_sim.errors import JournalError
from sparq_sim.journal.entries import (
    AskEntry,
    EndEntry,
    Entry,
    EventEntry,
    Header,
    MoveEntry,
    QueryData,
    ReplyEntry,
    SourceTraits,
    TurnEntry,
    encode,
)
from sparq_sim.journal.reader import Journal
from sparq_sim.messages import REWARD, Answer, Failure, Move
from sparq_sim.plugin.environment import Environment
from sparq_sim.plugin.expert import Expert
from sparq_sim.simulation.delivery.request import Request
from sparq_sim.simulation.play import Played
from sparq_sim.simulation.records import Record, Turn, is_for_agent

__all__ = ["JournalWriter", "make_header"]


def make_header(
    played: Played,
    domain: Domain,
    *,
    seconds: float | None = None,
    scenario: Mapping[str, Any] | None = None,
    title: str = "",
) -> Header:
    """Return the header of a play that is about to begin, with an identity of its own.

    Args:
        played: What is played.
        domain: Where points may lie.
        seconds: How long a clock unit lasts, in seconds; None in virtual time.
        scenario: What fixes the play, as `Scenario.fingerprint` gives it; by default unknown.
        title: What the play is called.
    """
    experts = {
        name: each[0] if isinstance(each, tuple) else each for name, each in played.experts.items()
    }
    sources: dict[str, Environment | Expert] = {REWARD: played.environment, **experts}
    return Header(
        play=uuid4().hex,
        unix=time.time(),
        seconds=seconds,
        optimizer=played.optimizer_name,
        seed=played.seed,
        replication=played.replication,
        period=played.rules.period,
        rounds=played.rules.most_rounds,
        domain=domain,
        scenario=dict(scenario or {}),
        title=title,
        sources={
            name: SourceTraits(
                real=source.is_real,
                idempotent=source.honours_keys(),
            )
            for name, source in sources.items()
        },
        versions={
            "sparq_sim": sparq_sim.__version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            "numpy": version("numpy"),
        },
    )


class JournalWriter:
    """Writes the journal of one play, as `Journaling` asks for; a context manager that closes it.

    Lines are handed to the operating system at once, so that they outlive the process; `sync` makes
    them outlive a loss of power. A move and its requests are one step: they are handed over
    together, by `sync` or by what follows them, so that a crash leaves all of them or none. Only
    one writer at a time can have a file. A line that cannot be written in full, as on a full disk,
    is taken back in full.

    It is made by `create` or `append_to`.
    """

    def __init__(self, path: Path, descriptor: int, header: Header) -> None:
        """Take over an open file that is locked; see `create` and `append_to`.

        Args:
            path: Where the file is.
            descriptor: The open file.
            header: Its first line.
        """
        self.path = path
        """Where the file is."""
        self.header = header
        """Its first line."""
        self._descriptor: int | None = descriptor
        self._size = 0
        self._last = 0
        self._synced = True
        self._step: list[bytes] = []
        """The lines of a move and its requests, which are yet to be written."""
        self._replies: dict[Record, int] = {}
        """The numbers of the replies that no agent was told yet."""

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
        path = Path(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL
        writer = cls(path, _open(path, flags), header)
        try:
            writer._append(encode(header))
            writer.sync()
            _sync_folder(path.parent)
        except BaseException:
            writer._release()
            with suppress(OSError):
                path.unlink()
            raise
        return writer

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
        path = journal.path
        writer = cls(path, _open(path, os.O_RDWR | os.O_APPEND), journal.header)
        try:
            descriptor = writer._opened
            if os.fstat(descriptor).st_size != journal.whole_bytes + journal.cut_bytes:
                raise JournalError(f"{path} has changed since it was read; read it again")
            os.ftruncate(descriptor, journal.whole_bytes)
            os.fsync(descriptor)
        except OSError as error:
            writer._release()
            raise _describe(path, error) from error
        except BaseException:
            writer._release()
            raise
        writer._size, writer._last = journal.whole_bytes, len(journal.entries)
        writer._replies = journal.untold()
        return writer

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
            told = [self._replies[record] for record in heard]
        except KeyError as error:
            raise JournalError(f"{self.path}: a move hears a reply that was not written") from error
        self._begin_step(
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
            del self._replies[record]

    def ask(self, request: Request, *, at: float, key: str) -> None:
        question = request.question
        query = question.query
        self._begin_step(
            AskEntry(
                **self._stamp(at),
                source=query.source,
                query=query.id,
                points=query.points.tolist(),
                rows=request.drawn.rows.tolist(),
                asked_at=query.asked_at,
                attempt=request.attempt,
                asker=question.asker,
                path=question.path,
                round=request.round,
                cost=request.cost,
                key=key,
            )
        )

    def reply(self, record: Record, *, superseded: bool, at: float) -> None:
        reply = record.reply
        query = reply.query
        answer = reply if isinstance(reply, Answer) else None
        self._write(
            ReplyEntry(
                **self._stamp(at),
                source=query.source,
                query=query.id,
                points=query.points.tolist(),
                rows=reply.rows.tolist(),
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
        if is_for_agent(record) and not superseded:
            self._replies[record] = self._last

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

    # The file.

    def sync(self) -> None:
        """Make all that was written durable, also against the loss of power.

        Raises:
            JournalError: The disk does not do it, or the file was deleted; what it held is then
                in another file, which the message names.
        """
        self._end_step()
        if self._synced:
            return
        try:
            os.fsync(self._opened)
            if not os.fstat(self._opened).st_nlink:
                raise JournalError(
                    f"{self.path} was deleted while it was being written; {self._rescue()}"
                )
        except OSError as error:
            raise _describe(self.path, error) from error
        self._synced = True

    def close(self) -> None:
        """Make all durable, close the file, and let another writer have it.

        Raises:
            JournalError: As for `sync`.
        """
        if self._descriptor is not None:
            try:
                self.sync()
            finally:
                self._release()

    @property
    def _opened(self) -> int:
        if self._descriptor is None:
            raise JournalError(f"{self.path}: the journal is closed")
        return self._descriptor

    def _release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _stamp(self, at: float) -> dict[str, Any]:
        return {"n": self._last + 1, "unix": time.time(), "at": at}

    def _begin_step(self, entry: Entry) -> None:
        self._step.append(encode(entry))
        self._last += 1

    def _end_step(self) -> None:
        if self._step:
            lines, self._step = self._step, []
            self._append(b"".join(lines))

    def _write(self, entry: Entry) -> None:
        self._end_step()
        self._append(encode(entry))
        self._last += 1

    def _append(self, line: bytes) -> None:
        descriptor = self._opened
        self._synced = False
        written = 0
        try:
            while written < len(line):  # More than once only where the disk becomes full.
                written += os.write(descriptor, line[written:] if written else line)
        except BaseException as error:
            try:
                os.ftruncate(descriptor, self._size)
            except OSError:
                self._release()  # Half a line remains, and nothing may follow it.
            if isinstance(error, OSError):
                raise _describe(self.path, error) from error
            raise
        self._size += written

    def _rescue(self) -> str:
        """Write what a deleted file holds to another one; return where it is."""
        path = Path(gettempdir()) / f"journal-{self.play_id}.jsonl"
        try:
            path.write_bytes(os.pread(self._opened, self._size, 0))
        except OSError as error:
            return f"its content could not be written to {path} either: {error.strerror}"
        return f"its content is in {path}"


def _open(path: Path, flags: int) -> int:
    """Open a file that nobody else writes, and lock it until it is closed or the process ends."""
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError as error:
        raise JournalError(
            f"{path} exists already; choose another file, or resume the play of this one"
        ) from error
    except OSError as error:
        raise _describe(path, error) from error
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise JournalError(
            f"{path} is being written by another play; wait for its end, or stop it"
        ) from error
    except OSError:
        pass  # The file system knows no locks.
    return descriptor


def _sync_folder(folder: Path) -> None:
    """Make durable that a new file is in its folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _describe(path: Path, error: OSError) -> JournalError:
    """Return the error that tells what to do where a journal cannot be written."""
    remedies = {
        FileNotFoundError: f"create the folder {path.parent} first",
        NotADirectoryError: f"{path.parent} must be a folder",
        PermissionError: "choose a folder in which you may write",
        IsADirectoryError: "name a file, not a folder",
    }
    remedy = remedies.get(
        type(error), "what was written before is whole; make room, and resume the play"
    )
    return JournalError(f"{path} cannot be written: {error.strerror or error}; {remedy}")
