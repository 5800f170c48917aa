"""Layout: which files of a study's folder hold what, and where unfit ones are moved."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from sparq_sim.study.store.archive import Archive
from sparq_sim.study.store.codec import (
    TABLES,
    StoredPlay,
    TableName,
    check_table,
    describe_table,
    from_bytes,
    make_play,
    read_metadata,
)
from sparq_sim.study.store.errors import (
    SET_RIGHT,
    StoreError,
    UnfitError,
    explain_content_errors,
    explain_disk_errors,
)
from sparq_sim.study.store.keys import is_key
from sparq_sim.study.store.summary import StoredSummary

__all__ = ["SCENARIO", "Layout", "Reject", "check_name", "read_file_metadata"]

SCENARIO = "scenario.json"
"""The file that describes what a folder holds."""
_SET_ASIDE = "set-aside"
"""The folder of what does not belong to the study."""

_LONGEST_NAME = 200
"""Of a file that is set aside, in bytes; what is longer loses its beginning."""

Reject: TypeAlias = Callable[[Path, str], None]
"""What is done with a file that is unfit, and why it is."""

_ARCHIVE = re.compile(r"compact-[0-9a-f]{16}\.parquet")


class Layout:
    """The files of a folder: `rounds/`, `replies/`, `accounts/`, and `set-aside/` for the unfit.

    A play is a file in `rounds/`, and maybe one in `replies/` and in `accounts/`; or it is in
    archives there.
    Archives are known from the last time that they were looked for.
    """

    def __init__(self, folder: Path) -> None:
        """Name the files of a folder; nothing is read yet.

        Args:
            folder: It need not be there yet.
        """
        self.folder = folder
        self.notes: list[str] = []
        self.archives: dict[TableName, list[Archive]] = {name: [] for name in TABLES}
        self._left_out: dict[str, Path] = {}

    def path(self, name: TableName, key: str) -> Path:
        """Return the file that a play has of its own.

        Args:
            name: Of its rounds, its replies, or its accounts.
            key: Which play.
        """
        return self.folder / name / f"{key}.parquet"

    def list_files(self, name: TableName) -> list[Path]:
        """List the files that may be plays: all but archives and hidden ones.

        Args:
            name: Of rounds, of replies, or of accounts.

        Raises:
            StoreError: The folder cannot be listed.
        """
        home = self.folder / name
        with explain_disk_errors("list", home):
            if self.folder.exists() and not self.folder.is_dir():
                raise NotADirectoryError(20, "it is a file, not a folder")
            names = sorted(os.listdir(home)) if home.is_dir() else []
        plain = [home / each for each in names if not each.startswith(".")]
        return [path for path in plain if not _ARCHIVE.fullmatch(path.name)]

    def open_archives(self, name: TableName, reject: Reject | None = None) -> list[Archive]:
        """Open the archives there are.

        Args:
            name: Of rounds, of replies, or of accounts.
            reject: What is done with one that is unfit; by default, it is left out.
        """
        home, archives = self.folder / name, []
        for path in sorted(home.glob("compact-*.parquet")) if home.is_dir() else ():
            try:
                archives.append(Archive(path))
            except UnfitError as unfit:
                (reject or self.leave_out)(path, str(unfit))
        return archives

    def is_archived(self, name: TableName, key: str) -> bool:
        """Return whether a play is in an archive that is open.

        Args:
            name: Of rounds, of replies, or of accounts.
            key: Which play.
        """
        return any(key in archive for archive in self.archives[name])

    def has(self, name: TableName, key: str) -> bool:
        """Return whether there is a table of a play.

        Args:
            name: Its rounds, its replies, or its accounts.
            key: Which play.
        """
        return self.path(name, key).exists() or self.is_archived(name, key)

    def leave_out(self, path: Path, reason: str) -> None:
        """Note once that a file is not read; it stays where it is.

        Args:
            path: The file.
            reason: Why, for the note.
        """
        note = f"{path} is left out: {reason}; {SET_RIGHT}"
        if note not in self._left_out and os.path.lexists(path):
            self._left_out[note] = path
            self.notes.append(note)

    def set_aside(self, path: Path, reason: str) -> None:
        """Move a file out of the way, and note it.

        Args:
            path: The file.
            reason: Why, for the note.

        Raises:
            StoreError: It cannot be moved.
        """
        for note in [note for note, of in self._left_out.items() if of == path]:
            del self._left_out[note]
            self.notes.remove(note)
        if name := self.move_aside(path):
            self.notes.append(f"set aside {path} as {_SET_ASIDE}/{name}: {reason}")

    def move_aside(self, path: Path) -> str:
        """Move a file out of the way, and return what it is called there.

        Args:
            path: The file.

        Returns:
            Its name; empty if it was gone, for others may do the same.

        Raises:
            StoreError: It cannot be moved.
        """
        home = self.folder / _SET_ASIDE
        name = path.relative_to(self.folder).as_posix().replace("/", "-")
        target = home / os.fsdecode(os.fsencode(name)[-_LONGEST_NAME:])
        while os.path.lexists(target):
            target = home / f"{uuid4().hex[:4]}-{target.name[-_LONGEST_NAME:]}"
        with explain_disk_errors("make", home):
            home.mkdir(exist_ok=True)
        with explain_disk_errors("set aside", path):
            try:
                os.replace(path, target)
            except FileNotFoundError:
                return ""
        return target.name

    def load(self, name: TableName, key: str, columns: list[str] | None = None) -> pa.Table:
        """Return a table of a play, with its provenance in the metadata.

        Args:
            name: Its rounds, its replies, or its accounts.
            key: Which play.
            columns: Those to read; by default, all, with the labels that tell plays apart.

        Raises:
            UnfitError: It is not there, or damaged.
        """
        path = self.path(name, key)
        if path.exists():
            metadata = read_file_metadata(path)
            with explain_content_errors("it cannot be read"):
                table = from_bytes(path.read_bytes(), columns)
        else:
            archive = self._find_archive(name, key)
            metadata, table = archive.metadata(key), archive.table(key, name, columns)
        # What Arrow takes for the metadata may be a second copy of them, which was not checked.
        table = describe_table(table, metadata)
        return check_table(table, name, metadata) if columns is None else table

    def locate(self, name: TableName, key: str) -> Path:
        """Return the file that a table of a play is in: its own, or an archive.

        Args:
            name: Its rounds, its replies, or its accounts.
            key: Which play.
        """
        archives = () if (path := self.path(name, key)).exists() else self.archives[name]
        return next((each.path for each in archives if key in each), path)

    def _find_archive(self, name: TableName, key: str) -> Archive:
        for archives in (self.archives[name], self.open_archives(name)):
            for archive in archives:
                if key in archive:
                    return archive
        raise UnfitError("there is no such play")

    def read(self, key: str) -> StoredPlay:
        """Return a play, checked in full.

        Args:
            key: Which play.

        Raises:
            UnfitError: It is not there, or not as it was written.
        """

        def load(name: TableName) -> pa.Table:
            try:
                return self.load(name, key)
            except UnfitError as unfit:
                if name == "rounds":
                    raise
                raise UnfitError(f"{name}/{self.locate(name, key).name}: {unfit}") from unfit

        return make_play(load)


def check_name(path: Path) -> None:
    """Refuse a file that is not called as a play.

    Args:
        path: The file.

    Raises:
        UnfitError: Its name is not a key.
    """
    if path.suffix != ".parquet" or not is_key(path.stem):
        raise UnfitError("it is not a play")


def read_file_metadata(path: Path) -> dict[str, Any]:
    """Return the provenance in the file of one play, as JSON holds it.

    Args:
        path: The file, named by the key of its play.

    Raises:
        UnfitError: It is foreign, damaged, or of another play than its name says.
        StoreError: It is of another format, or the system refuses to read it.
    """
    if not path.is_file():
        raise UnfitError("it is not a file")
    with explain_content_errors("it cannot be read"):
        schema = pq.read_schema(path)
    try:
        metadata = read_metadata(schema.metadata)
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error
    if "key" not in metadata:
        raise UnfitError("it holds many plays, being compacted; none can be read from it alone")
    if metadata["key"] != path.stem:
        raise UnfitError(f"it holds the play {metadata['key']}, not the one it is called after")
    try:
        StoredSummary.from_json(metadata)
    except KeyError as error:
        raise UnfitError(f"its provenance lacks {error}") from error
    return metadata
