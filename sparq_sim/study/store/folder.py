"""The folder of a study as its store: a Parquet file a finished play."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pyarrow as pa

from sparq_sim.study.store.archive import Archive, write_archive
from sparq_sim.study.store.codec import (
    TABLES,
    PlayFiles,
    TableName,
    check_table,
    encode,
    list_tables,
    read_metadata,
)
from sparq_sim.study.store.errors import (
    SET_RIGHT,
    StoreError,
    UnfitError,
    explain_disk_errors,
)
from sparq_sim.study.store.files import remove_parts, temporary_name, write_whole
from sparq_sim.study.store.keys import PlayId, hash_json
from sparq_sim.study.store.layout import Layout, Reject, check_name, read_file_metadata
from sparq_sim.study.store.provenance import Provenance
from sparq_sim.study.store.summary import StoredSummary

__all__ = ["FolderStore", "compact", "relabel", "retire"]


class FolderStore:
    """A study's folder as its store: `rounds/`, `replies/`, `accounts/`, and `set-aside/`.

    Writers make each file under another name and rename it, so that many may write at once and be
    killed at any time. Who reads leaves out what is unfit, and `tidy` sets it aside; *notes* says
    which files, and why.
    """

    def __init__(self, folder: Path | str) -> None:
        """Name a folder; nothing is read or written yet.

        Args:
            folder: It need not be there yet.
        """
        self.layout = Layout(Path(folder))
        self._damaged: set[str] = set()

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
        """Return what is known of each finished play, by key; unfit files are left out, and noted.

        Args:
            verify: The keys of plays to read in full, so that damage is found now; those that are
                damaged are left out from now on, until they are whole again.

        Raises:
            StoreError: The folder cannot be read, or is of another format.
        """
        wanted = {*verify} | self._damaged
        found = _Survey(self.layout, wanted, self.layout.leave_out).finished
        self._damaged = wanted - found.keys()
        return found

    def tidy(self, verify: Iterable[str] = ()) -> dict[str, StoredSummary]:
        """Set unfit files aside, and return what is known of each finished play, by key.

        Args:
            verify: The keys of plays to read in full, so that damage is found now.

        Raises:
            StoreError: The folder cannot be read, is of another format, or a file cannot be moved.
        """
        self._damaged = set()
        return _Survey(self.layout, {*verify}, self.layout.set_aside).finished

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
            raise _explain(self.layout.locate(table, key), unfit) from unfit

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
            raise _explain(self.layout.locate("rounds", key), unfit) from unfit


def _explain(path: Path, unfit: UnfitError) -> StoreError:
    return StoreError(f"{path}: {unfit}; {SET_RIGHT}")


_LOOKS = 5
"""How often a folder is looked through while others take files away."""


class _Survey:
    """Looks through a folder once: lists what is finished, and rejects what is unfit."""

    def __init__(self, layout: Layout, verify: set[str], reject: Reject) -> None:
        self._layout = layout
        self._verify = verify
        self._reject_file = reject
        self._rejected: set[Path] = set()
        self.finished: dict[str, StoredSummary] = {}
        for _ in range(_LOOKS):
            self._vanished = False
            self._look()
            if not self._vanished:
                break

    def _look(self) -> None:
        layout = self._layout
        files = {name: layout.list_files(name) for name in TABLES}
        layout.archives = {name: layout.open_archives(name, self._reject) for name in TABLES}
        for path in [path for name in TABLES[1:] for path in files[name]]:
            self._check_beside(path)
        single = dict(filter(None, map(self._check_rounds, files["rounds"])))
        self.finished = {**self._list_archived(single), **single}

    def _reject(self, path: Path, reason: str) -> None:
        if os.path.lexists(path):
            self._rejected.add(path)
            self._reject_file(path, reason)
        else:
            self._vanished = True  # Others have just moved it, or merged it into an archive.

    def _check_beside(self, path: Path) -> None:
        """Check a file of replies or of accounts."""
        try:
            check_name(path)
            read_file_metadata(path)
        except UnfitError as unfit:
            self._reject(path, str(unfit))

    def _check_rounds(self, path: Path) -> tuple[str, StoredSummary] | None:
        key, layout = path.stem, self._layout
        try:
            check_name(path)
            metadata = read_file_metadata(path)
            for name in list_tables(metadata):
                if not layout.has(name, key):
                    raise UnfitError(f"its {name} are missing")
                if layout.path(name, key) in self._rejected:
                    raise UnfitError(f"its {name} are damaged")
            if key in self._verify:
                layout.read(key)
            return key, StoredSummary.from_json(metadata)
        except UnfitError as unfit:
            self._reject(path, str(unfit))
            for beside in [layout.path(name, key) for name in TABLES[1:]]:
                if key in self._verify and beside.exists() and beside not in self._rejected:
                    self._reject(beside, f"it belongs to {path.name}, which is damaged")
        return None

    def _list_archived(self, single: Mapping[str, StoredSummary]) -> dict[str, StoredSummary]:
        """List the plays that are in archives only, and check those to be verified."""
        found: dict[str, StoredSummary] = {}
        layout = self._layout
        for archive in list(layout.archives["rounds"]):
            try:
                found |= archive.summaries()
            except UnfitError as unfit:
                self._reject_archives([archive], str(unfit))
        known = {key: each for key, each in found.items() if key not in single}
        for key in sorted(self._verify & known.keys()):
            if not layout.path("rounds", key).exists() and layout.is_archived("rounds", key):
                self._check_archived(key, known)
        # An archive that was set aside has taken others along.
        return {key: each for key, each in known.items() if layout.is_archived("rounds", key)}

    def _check_archived(self, key: str, known: dict[str, StoredSummary]) -> None:
        layout = self._layout
        try:
            layout.read(key)
        except UnfitError as unfit:
            del known[key]
            holding = [each for name in TABLES for each in layout.archives[name] if key in each]
            self._reject_archives(holding, f"of its play {key}, {unfit}")

    def _reject_archives(self, archives: Sequence[Archive], reason: str) -> None:
        """Reject archives; those that stay where they are can still be read for other plays."""
        for archive in archives:
            self._reject(archive.path, reason)
            if not archive.path.exists():
                for some in self._layout.archives.values():
                    if archive in some:
                        some.remove(archive)


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
            raise _explain(layout.locate("rounds", play.key), unfit) from unfit
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
    finished = store.tidy(verify=[path.stem for path in layout.list_files("rounds")])
    # What is merged again under other labels, or more fully recorded, is another file.
    state = hash_json(
        [
            [key, each.record, each.digest, each.play.scenario, dict(each.setting)]
            for key, each in sorted(finished.items())
        ]
    )
    written: dict[TableName, Path] = {}
    merged: dict[TableName, list[str]] = {}
    for name in TABLES:
        keys = [key for key in sorted(finished) if name == "rounds" or layout.has(name, key)]
        if keys:
            merged[name] = keys
            written[name] = layout.folder / name / f"compact-{state[:16]}.parquet"
            if _find_fault(written[name], name, keys):
                write_archive(written[name], keys, partial(store.load, table=name))
                if fault := _find_fault(written[name], name, keys):
                    raise StoreError(
                        f"{written[name]} does not hold what was written to it ({fault}); nothing "
                        "was removed: check the disk, and compact again"
                    )
    # Rounds go first: while they are there, their replies and accounts are wanted.
    for name in TABLES:
        for old in layout.archives[name]:
            if old.path != written.get(name):
                with explain_disk_errors("remove", old.path):
                    old.path.unlink(missing_ok=True)
        for key in merged.get(name, ()):
            with explain_disk_errors("remove", layout.path(name, key)):
                layout.path(name, key).unlink(missing_ok=True)
    store.finished()


def _find_fault(path: Path, name: TableName, keys: Sequence[str]) -> str:
    """Return why an archive cannot take the place of plays; nothing where it can."""
    try:
        archive = Archive(path)
        for key in keys:
            if key not in archive:
                return f"the play {key} is missing"
            check_table(archive.table(key, name, None), name, archive.metadata(key))
    except UnfitError as unfit:
        return str(unfit)
    return ""
