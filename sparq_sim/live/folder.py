"""The folder of a live play: its journal, and, when it has ended, its trace as in a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sparq_sim.errors import JournalError, SparqError
from sparq_sim.journal.entries import Header
from sparq_sim.journal.reader import Journal, read_journal
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.trace import AS_PLANNED, Trace
from sparq_sim.study.store import FolderStore
from sparq_sim.study.store.codec import encode
from sparq_sim.study.store.keys import hash_json, name_play
from sparq_sim.study.store.provenance import describe_play

__all__ = ["JOURNAL", "LiveFolder"]

JOURNAL = "journal.jsonl"
"""The name of the journal in the folder of a live play."""


class LiveFolder:
    """The folder of one live play.

    Args:
        path: Of the folder, which need not exist.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        """Of the folder."""

    @property
    def journal(self) -> Path:
        """Where the journal is, or will be."""
        return self.path / JOURNAL

    def refuse_used(self) -> None:
        """Refuse a folder that cannot take a new play.

        Raises:
            SparqError: The folder has a journal, or plays of a study.
        """
        if self.journal.exists():
            raise SparqError(
                f"{self.path} has the journal of a live play{self._describe()}, or give another "
                "folder by --out"
            )
        if (self.path / "rounds").exists():
            raise SparqError(
                f"{self.path} is the folder of a study; give another one to a live play, by --out"
            )

    def _describe(self) -> str:
        """Return how far the play of the journal came, and what can be done about it."""
        try:
            past = read_journal(self.journal).past()
        except JournalError:
            return ", which is damaged: move it away"
        if not past.thoughts:
            return " that did not come to its first move: remove the folder, go on by --resume"
        if past.ended in AS_PLANNED:
            return " that has ended: move the folder away"
        return ": go on with it by --resume"

    def begin(self, header: Header) -> JournalWriter:
        """Begin the journal of a new play.

        Args:
            header: Its first line.

        Returns:
            The writer of the journal, to be closed.

        Raises:
            SparqError: The folder has a journal, or plays of a study, or cannot be written.
        """
        self.refuse_used()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SparqError(f"{self.path} cannot be made: {error.strerror}") from error
        return JournalWriter.create(self.journal, header)

    def read(self) -> Journal:
        """Return the journal of a play that was interrupted.

        Raises:
            SparqError: There is none, or it cannot be read.
        """
        if not self.journal.exists():
            raise SparqError(
                f"{self.path} has no {JOURNAL}, so there is no play to go on with; leave out "
                "--resume, or name its folder by --out"
            )
        return read_journal(self.journal)

    def keep(self, trace: Trace, scenario: Scenario, optimizer: str, header: Header) -> None:
        """Store the trace of a play, so that tables and reports can be made of it.

        Args:
            trace: What happened; that of a play which went on replaces that of before.
            scenario: What was played.
            optimizer: The name of the one that played.
            header: The first line of its journal.

        Raises:
            SparqError: The disk refuses.
        """
        full = scenario.model_copy(update={"record": "full"})
        made = describe_play(full, optimizer, header.replication, trace, setting={})
        # It is not what the same scenario gives in virtual time.
        family = hash_json([made.play.family, "live", header.play])
        key = name_play(family, header.seed, header.replication)
        live = {"play": header.play, "seconds": header.seconds, "journal": JOURNAL}
        made = replace(
            made.with_play(replace(made.play, key=key, family=family)), further={"live": live}
        )
        store = FolderStore(self.path)
        store.prepare()
        store.keep(encode(trace, made))
