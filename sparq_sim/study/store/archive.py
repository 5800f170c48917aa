"""Archives: compacted files, which hold many plays, a row group each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from sparq_sim.study.store.codec import (
    TableName,
    conform,
    describe_table,
    open_writer,
    read_metadata,
    unify_schemas,
)
from sparq_sim.study.store.errors import UnfitError, explain_content_errors
from sparq_sim.study.store.files import whole_file
from sparq_sim.study.store.keys import FORMAT, PlayId, canonical, is_key
from sparq_sim.study.store.labels import label_columns
from sparq_sim.study.store.limits import check_size
from sparq_sim.study.store.summary import StoredSummary

__all__ = ["Archive", "write_archive"]

Load: TypeAlias = Callable[[str], pa.Table]
"""Reads the table of a play, by its key, with its provenance in the metadata."""


class Archive:
    """A compacted file: a row group a play, and in its metadata a map of their provenances."""

    def __init__(self, path: Path) -> None:
        """Open an archive; only its metadata are read.

        Args:
            path: The file.

        Raises:
            UnfitError: It is foreign or damaged.
        """
        self.path = path
        if not path.is_file():
            raise UnfitError("it is not a file")
        with explain_content_errors("it cannot be read"):
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
        metadata = read_metadata(self._file.schema_arrow.metadata)
        with explain_content_errors("its map of plays is not whole"):
            self._shared: list[Any] = metadata["shared"]
            self._plays = {play["key"]: play for play in metadata["plays"]}
        # Files are called after keys: another one could name a file elsewhere.
        if wrong := [key for key in self._plays if not is_key(key)]:
            raise UnfitError(f"it names a play {wrong[0]!r:.80}, which is no key")

    def __contains__(self, key: str) -> bool:
        return key in self._plays

    @property
    def keys(self) -> Iterable[str]:
        """The keys of its plays."""
        return self._plays.keys()

    def metadata(self, key: str) -> dict[str, Any]:
        """Return the provenance of a play, as JSON holds it.

        Args:
            key: Which play.

        Raises:
            UnfitError: The file is damaged.
        """
        with explain_content_errors("its map of plays is not whole"):
            return {name: self._shared[at] for name, at in self._plays[key]["told"].items()}

    def summaries(self) -> dict[str, StoredSummary]:
        """Return what is known of each play, by key.

        Raises:
            UnfitError: The file is damaged.
        """
        with explain_content_errors("its map of plays is not whole"):
            return {key: StoredSummary.from_json(self.metadata(key)) for key in self._plays}

    def table(self, key: str, name: TableName, columns: list[str] | None) -> pa.Table:
        """Return the table of a play, with its provenance in the metadata.

        Args:
            key: Which play.
            name: What the archive holds: rounds or replies.
            columns: Those to read; by default, all that the play has.

        Raises:
            UnfitError: The file is damaged.
        """
        metadata = self.metadata(key)
        with explain_content_errors("it cannot be read"):
            group = self._plays[key]["group"]
            if columns is None:
                known = set(self._file.schema_arrow.names)
                own = (*label_columns(PlayId.from_json(metadata)), *metadata["columns"][name])
                columns = [each for each in own if each in known]
            if group is None:
                table = self._file.schema_arrow.empty_table()
            else:
                check_size(
                    self._file.metadata,
                    lambda names: pq.ParquetFile(self.path, read_dictionary=names),
                    [group],
                )
                table = self._file.read_row_group(group, columns=columns)
            return describe_table(table.select(columns), metadata)


def write_archive(path: Path, keys: Sequence[str], load: Load) -> None:
    """Write the tables of several plays to one file, in full or not at all.

    Args:
        path: The file.
        keys: Which plays.
        load: Reads the table of a play; called twice for each, so that one is in memory at a time.

    Raises:
        StoreError: The file cannot be written.
    """
    shared = _Shared()
    schemas: list[pa.Schema] = []
    plays, groups = [], 0
    for key in keys:
        table = load(key)
        if (schema := table.schema.remove_metadata()) not in schemas:
            schemas.append(schema)
        plays.append(
            {
                "key": key,
                "group": groups if len(table) else None,
                "told": {
                    name: shared.place(value)
                    for name, value in read_metadata(table.schema.metadata).items()
                },
            }
        )
        groups += bool(len(table))
    metadata = {"format": FORMAT, "plays": plays, "shared": shared.values}
    schema = describe_table(unify_schemas(schemas).empty_table(), metadata).schema
    with whole_file(path) as file, open_writer(file, schema) as writer:
        for key in keys:
            table = load(key)
            if len(table):
                writer.write_table(conform(table, schema), row_group_size=len(table))


class _Shared:
    """Gathers values, each once: most of a provenance is the same in all plays."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._places: dict[str, int] = {}

    def place(self, value: object) -> int:
        text = canonical(value)
        if text not in self._places:
            self._places[text] = len(self.values)
            self.values.append(value)
        return self._places[text]
