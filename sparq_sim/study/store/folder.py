"""The folder of a study as its store: a Parquet file a finished play."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa

from sparq_sim.study.store.archive import Archive, write_archive
from sparq_sim.study.store.codec import (
    TABLES,
    PlayFiles,
    TableName,
    encode,
    list_tables,
    read_metadata,
)
from sparq_sim.study.store.errors import StoreError, UnfitError, explain_disk_errors
from sparq_sim.study.store.files import remove_parts, temporary_name, write_whole
from sparq_sim.study.store.keys import PlayId, hash_json
from sparq_sim.study.store.layout import Layout, check_name, read_file_metadata
from sparq_sim.study.store.provenance import Provenance
from sparq_sim.study.store.summary import StoredSummary

__all__ = ["FolderStore", "compact", "relabel", "retire"]


class FolderStore:
    """A study's folder as its store: `rounds/`, `replies/`, `accounts/`, and `set-aside/`.

    Writers make each file under another name and rename it, so that many may write at once and be
    killed at any time. What is unfit is set aside; *notes* says what was, and why.
    """

    def __init__(self, folder: Path | str) -> None:
        """Name a folder; nothing is read or written yet.

        Args:
            folder: It need not be there yet.
        """
        self.layout = Layout(Path(folder))

    def __str__(self) -> str:
        return str(self.folder)

    @property
    def folder(self) -> Path:
        """The folder."""
        return self.layout.folder

    @property
    def notes(self) -> list[str]:
        """What a user should be told: files set aside, plays left out."""
        return self.layout.notes

    # Writing

    def prepare(self) -> None:
        """Make the folder, and remove what killed writers of this machine have left behind.

        Raises:
            StoreError: The disk refuses.
        """
        for path in (self.folder / "rounds", self.folder / "replies", self.folder):
            with explain_disk_errors("make", path):
                path.mkdir(parents=True, exist_ok=True)
            remove_parts(path)
        remove_parts(self.folder / "accounts")  # A folder that few studies have.

    @contextmanager
    def put_mark(self) -> Iterator[str]:
        """Put a file into the folder by which workers know that they see it.

        Yields:
            The name of the file, which is removed afterwards.

        Raises:
            StoreError: The disk refuses.
        """
        path = temporary_name(self.folder / "run")
        with explain_disk_errors("write", path):
            path.touch()
        try:
            yield path.name
        finally:
            with suppress(OSError):
                path.unlink()

    def keep(self, files: PlayFiles) -> None:
        """Write a play; its file of rounds comes last, and says that it is finished.

        Args:
            files: The play, as `encode` writes it.

        Raises:
            StoreError: The disk refuses.
        """
        if files.accounts is not None:
            path = self.layout.path("accounts", files.key)
            with explain_disk_errors("make", path.parent):
                path.parent.mkdir(exist_ok=True)
            write_whole(path, files.accounts)
        if files.replies is not None:
            write_whole(self.layout.path("replies", files.key), files.replies)
        write_whole(self.layout.path("rounds", files.key), files.rounds)

    # Reading

    @property
    def empty(self) -> bool:
        """Whether there is no file in the folder that could be a finished play."""
        return next((self.folder / "rounds").glob("*.parquet"), None) is None

    def peek(self, key: str, record: str = "rounds") -> StoredSummary | None:
        """Return what is known of a play, if it is finished and in a file of its own.

        Args:
            key: Which play.
            record: How fully it must be recorded: "rounds" or "full".
        """
        path = self.layout.path("rounds", key)
        try:
            metadata = read_file_metadata(path) if path.exists() else None
        except UnfitError:
            return None
        if metadata is None:
            return None
        if record == "full":
            names = list_tables(metadata)
            if names == ["rounds"] or not all(self.layout.path(n, key).exists() for n in names):
                return None
        return StoredSummary.from_json(metadata)

    def finished(self, verify: Iterable[str] = ()) -> dict[str, StoredSummary]:
        """Return what is known of each finished play, by key; unfit files are set aside.

        Args:
            verify: The keys of plays to read in full, so that damage is found now.

        Raises:
            StoreError: The folder cannot be read, or is of another format.
        """
        return _Survey(self.layout, frozenset(verify)).finished

    def load(self, key: str, table: TableName) -> pa.Table:
        """Return one table of a play, with its provenance in the metadata.

        Args:
            key: Which play.
            table: Its rounds, its replies, or its accounts.

        Raises:
            StoreError: It is not there, or damaged; the file is named.
        """
        try:
            return self.layout.load(table, key)
        except UnfitError as unfit:
            raise StoreError(f"{self.layout.path(table, key)}: {unfit}") from unfit

    def provenance(self, key: str) -> Provenance:
        """Return what a play was, how it ended, and with what it was computed.

        Args:
            key: Which play.

        Raises:
            StoreError: It is not there, or damaged; the file is named.
        """
        try:
            table = self.layout.load("rounds", key, columns=[])
            return Provenance.from_json(read_metadata(table.schema.metadata))
        except UnfitError as unfit:
            raise StoreError(f"{self.layout.path('rounds', key)}: {unfit}") from unfit


class _Survey:
    """Looks through a folder once: lists what is finished, and sets aside what is unfit."""

    def __init__(self, layout: Layout, verify: frozenset[str]) -> None:
        self._layout = layout
        self._verify = verify
        self.finished: dict[str, StoredSummary] = {}
        layout.archives = {name: layout.open_archives(name) for name in TABLES}
        for archive in layout.archives["rounds"]:
            self.finished.update(archive.summaries())
        self._check_beside()
        for path in layout.list_files("rounds"):
            self._check_rounds(path)
        for key in verify & self.finished.keys():
            if not layout.path("rounds", key).exists():
                self._check_archived(key)

    def _check_beside(self) -> None:
        """Check the files of replies and of accounts."""
        for path in [path for name in TABLES[1:] for path in self._layout.list_files(name)]:
            try:
                check_name(path)
                read_file_metadata(path)
            except UnfitError as unfit:
                self._layout.set_aside(path, str(unfit))

    def _check_rounds(self, path: Path) -> None:
        key, layout = path.stem, self._layout
        try:
            check_name(path)
            metadata = read_file_metadata(path)
            for name in list_tables(metadata):
                if not layout.has(name, key):
                    raise UnfitError(f"its {name} are missing")
            self.finished[key] = StoredSummary.from_json(metadata)
            if key in self._verify:
                layout.read(key)
        except UnfitError as unfit:
            self.finished.pop(key, None)
            layout.set_aside(path, str(unfit))
            for beside in [layout.path(name, key) for name in TABLES[1:]]:
                if key in self._verify and beside.exists():
                    layout.set_aside(beside, f"it belongs to {path.name}, which was set aside")

    def _check_archived(self, key: str) -> None:
        layout = self._layout
        try:
            layout.read(key)
        except UnfitError as unfit:
            for name in TABLES:
                for archive in [each for each in layout.archives[name] if key in each]:
                    layout.archives[name].remove(archive)
                    layout.set_aside(archive.path, str(unfit))
            for lost in [
                each for each in self.finished if not layout.path("rounds", each).exists()
            ]:
                if not layout.is_archived("rounds", lost):
                    del self.finished[lost]


# Changing what is there


def retire(store: FolderStore, keys: Iterable[str]) -> set[str]:
    """Move plays out of the way, and return the keys of those that are.

    An archive is moved where all its plays are to go, and stays as it is elsewhere.

    Args:
        store: A folder of which the finished plays have just been listed.
        keys: Which plays.

    Raises:
        StoreError: A file cannot be moved.
    """
    gone, layout = set(keys), store.layout
    for name in TABLES:
        for archive in [each for each in layout.archives[name] if gone.issuperset(each.keys)]:
            layout.archives[name].remove(archive)
            layout.move_aside(archive.path)
        for path in [layout.path(name, key) for key in sorted(gone)]:
            if path.exists():
                layout.move_aside(path)
        # Plays whose rounds stay in an archive keep the rest as well.
        gone = {key for key in gone if not layout.is_archived("rounds", key)}
    return gone


def relabel(store: FolderStore, plays: Sequence[PlayId]) -> None:
    """Write plays again under another setting or scenario, in their provenance and their rows.

    Args:
        store: A folder of which the finished plays have just been listed.
        plays: What they are called now; their keys are those of before.

    Raises:
        StoreError: A file cannot be read or written.
    """
    layout = store.layout
    for play in plays:
        try:
            stored = layout.read(play.key)
        except UnfitError as unfit:
            raise StoreError(f"{layout.path('rounds', play.key)}: {unfit}") from unfit
        store.keep(encode(stored.trace, stored.provenance.with_play(play)))
    if any(layout.is_archived("rounds", play.key) for play in plays):
        compact(store)  # Else what is in an archive would be there twice.


def compact(store: FolderStore) -> None:
    """Merge the small files of a folder into one archive each of rounds, replies and accounts.

    Args:
        store: The folder; its notes say what had to be set aside.

    Raises:
        StoreError: A file cannot be read or written.
    """
    store.prepare()
    layout = store.layout
    finished = store.finished(verify=[path.stem for path in layout.list_files("rounds")])
    # What is merged again under other labels, or more fully recorded, is another file.
    state = hash_json(
        [
            [key, each.record, each.play.scenario, dict(each.setting)]
            for key, each in sorted(finished.items())
        ]
    )
    written: dict[TableName, Path] = {}
    for name in TABLES:
        keys = [key for key in sorted(finished) if name == "rounds" or layout.has(name, key)]
        if keys:
            written[name] = layout.folder / name / f"compact-{state[:16]}.parquet"
            if not written[name].exists():
                write_archive(written[name], keys, partial(store.load, table=name))
    merged = {name: set(Archive(path).keys) for name, path in written.items()}
    # Rounds go first: while they are there, their replies and accounts are wanted.
    for name in TABLES:
        for old in layout.archives[name]:
            if old.path != written.get(name):
                with explain_disk_errors("remove", old.path):
                    old.path.unlink()
        for key in merged.get(name, ()):
            with explain_disk_errors("remove", layout.path(name, key)):
                layout.path(name, key).unlink(missing_ok=True)
    store.finished()
