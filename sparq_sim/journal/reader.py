"""The reader of a journal: what was written of a play, also where its last line was cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from sparq_sim.arrays import Points
from sparq_sim.errors import JournalError
from sparq_sim.journal.codec import decode_entry, decode_header
from sparq_sim.journal.entries import Entry, Header
from sparq_sim.journal.rebuilding import PastBuilder
from sparq_sim.simulation.past import OpenAsk, Past
from sparq_sim.simulation.records import Record
from sparq_sim.simulation.trace import Trace

__all__ = ["LONGEST_LINE", "Journal", "JournalTail", "read_journal"]

LONGEST_LINE = 64_000_000
"""How many bytes a line may have, and how many of a file are read at once."""


@dataclass(frozen=True, eq=False)
class Journal:
    """A journal as it was read: the header and all whole entries."""

    path: Path
    """The file."""
    header: Header
    """Which play it is of."""
    entries: list[Entry] = field(repr=False)
    """All that was written, in order."""
    whole_bytes: int
    """How long the file is up to the end of its last whole line."""
    cut_bytes: int = 0
    """How many bytes follow, of a line that was not written to its end; 0 in most journals."""

    def past(self) -> Past:
        """Return what happened in the play, to go on from there.

        Returns:
            The same object at each call; its records count as written for `append_to`.

        Raises:
            JournalError: Entries contradict each other.
        """
        return self._builder.past

    def to_trace(self) -> Trace:
        """Return the trace of the play, as far as the journal has it.

        Returns:
            The trace that the play returned, but for the tables that experts leave. Where the
            play did not end, `ended` is "interrupted".

        Raises:
            JournalError: Entries contradict each other.
        """
        return self._builder.to_trace()

    def sources(self) -> tuple[str, ...]:
        """Return the names of the reward and of all experts, in the order of the header."""
        found = (record.reply.query.source for record in self.past().records)
        return tuple(dict.fromkeys([*self.header.sources, *found]))

    def open_questions(self) -> list[OpenAsk]:
        """Return the requests that were sent and whose end is not known, in order."""
        return self.past().open

    def untold(self) -> dict[Record, int]:
        """Return the replies that the agent was not told yet, each with the number of its entry."""
        return dict(self._builder.untold)

    def known_points(self) -> dict[tuple[int, str], Points]:
        """Return all points of each query that has several, by its id and its source."""
        return dict(self._builder.known_points)

    @cached_property
    def _builder(self) -> PastBuilder:
        builder = PastBuilder(self.header)
        for line, entry in enumerate(self.entries, start=2):
            with _placed(self.path, line):
                builder.take(entry)
        return builder


def read_journal(path: Path | str) -> Journal:
    """Read a journal, also while it is being written.

    Args:
        path: The file.

    Returns:
        The journal, without a last line that was not written to its end.

    Raises:
        JournalError: There is no such file, it is no journal, or it is damaged before its last
            line; the message names the line.
    """
    tail = JournalTail(path)
    entries: list[Entry] = []
    while more := tail.poll():
        entries += more
    if tail.header is None:
        raise JournalError(
            f"{tail.path} has no whole first line, so that no play can have begun; delete it"
        )
    return Journal(tail.path, tail.header, entries, tail.whole_bytes, tail.cut_bytes)


class JournalTail:
    """Reads a journal while it grows: each `poll` returns what was written since the last.

    Args:
        path: The file; it must exist when it is read.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        """The file."""
        self.header: Header | None = None
        """The first line of the file; None as long as it was not read."""
        self.whole_bytes = 0
        """How much was read: up to the end of a line."""
        self.cut_bytes = 0
        """How many bytes followed, of a line that was not whole yet."""
        self._lines = 0

    def poll(self) -> list[Entry]:
        """Return the entries that were written since the last call; a line not whole is left.

        Raises:
            JournalError: The file cannot be read, or is damaged; the message names the line. The
                entries before it were returned by the call before.
        """
        entries: list[Entry] = []
        while not entries and self._take_some(entries):
            pass
        return entries

    def _take_some(self, entries: list[Entry]) -> bool:
        """Take the lines of the next part of the file; return whether there is more of it."""
        data = self._read_part()
        whole, _, rest = data.rpartition(b"\n")
        is_more = len(data) == LONGEST_LINE
        if len(rest) < len(data):
            for line in whole.split(b"\n"):
                try:
                    with _placed(self.path, self._lines + 1):
                        self._take(line, entries)
                except JournalError:
                    if entries:
                        return False  # What is whole comes first; the next call raises.
                    raise
                self._lines += 1
                self.whole_bytes += len(line) + 1
        elif is_more:
            with _placed(self.path, self._lines + 1):
                raise JournalError(f"it is longer than {LONGEST_LINE} bytes")
        self.cut_bytes = len(rest)
        return is_more

    def _take(self, line: bytes, entries: list[Entry]) -> None:
        if self.header is None:
            self.header = decode_header(line)
            return
        entry = decode_entry(line)
        if entry.n != self._lines:
            raise JournalError(f"it has the number {entry.n}; expected {self._lines}")
        entries.append(entry)

    def _read_part(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self.whole_bytes:
                    raise JournalError(
                        f"{self.path} has become shorter than what was read of it before; "
                        "read it again from its beginning"
                    )
                file.seek(self.whole_bytes)
                return file.read(LONGEST_LINE)
        except OSError as error:
            raise JournalError(f"{self.path} cannot be read: {error.strerror or error}") from error


@contextmanager
def _placed(path: Path, line: int) -> Iterator[None]:
    """Add to an error in which line of which file it is, and what can be done."""
    try:
        yield
    except JournalError as error:
        remedy = (
            "is this the journal of a play?"
            if line == 1
            else "restore the file from a copy, or keep what is before: "
            f"head -n {line - 1} {path} > whole.jsonl"
        )
        raise JournalError(f"{path}, line {line}: {error}; {remedy}") from error
