"""Codec: plays as the bytes of Parquet files, and back.

Long because each conversion stands beside the one that undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sparq_sim.documents import read_json
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.store.checksums import check_columns, hash_bytes, hash_table
from sparq_sim.study.store.errors import StoreError, UnfitError, explain_content_errors
from sparq_sim.study.store.keys import UNSEALED, PlayId, canonical, check_format
from sparq_sim.study.store.labels import check_labels, label_columns, label_table
from sparq_sim.study.store.limits import check_size
from sparq_sim.study.store.provenance import Contents, Provenance
from sparq_sim.study.store.summary import StoredSummary

__all__ = [
    "TABLES",
    "PlayFiles",
    "StoredPlay",
    "TableName",
    "check_table",
    "conform",
    "decode",
    "describe_table",
    "encode",
    "from_bytes",
    "join_tables",
    "list_tables",
    "load_table",
    "make_play",
    "make_tables",
    "make_trace",
    "open_writer",
    "read_metadata",
    "summarize",
    "to_bytes",
    "to_table",
    "unify_schemas",
    "unpack_accounts",
]

TableName: TypeAlias = Literal["rounds", "replies", "accounts"]
"""What there are tables of. That of accounts holds the tables which experts have left, a row each:
their columns and types differ from play to play."""
TABLES: tuple[TableName, ...] = ("rounds", "replies", "accounts")

_META, _CHECKSUM = b"sparq_sim", b"sparq_sim_checksum"


@dataclass(frozen=True)
class PlayFiles:
    """A finished play as the bytes of its files."""

    key: str
    """The key of the play."""
    rounds: bytes
    """The Parquet file of its rounds."""
    replies: bytes | None
    """The Parquet file of its replies; None where they were not recorded."""
    accounts: bytes | None = None
    """The Parquet file of what experts have left; None where nothing was, or not recorded."""


@dataclass(frozen=True)
class StoredPlay:
    """A play read back."""

    trace: Trace
    """What happened; where only rounds were recorded, it has no columns of replies."""
    provenance: Provenance
    """What was played, and with what."""


# Plays


def encode(trace: Trace, provenance: Provenance) -> PlayFiles:
    """Return a play as Parquet, its provenance in the metadata.

    Args:
        trace: What happened.
        provenance: What was played.

    Raises:
        StoreError: A column of the trace is called as one that tells plays apart.
    """
    labels = label_columns(provenance.play)
    if clash := sorted(labels.keys() & (trace.rounds.keys() | trace.replies.keys())):
        raise StoreError(f"two columns would be called {clash[0]!r}; rename the coordinate")
    tables = make_tables(trace, full=provenance.summary.record == "full")
    checksums: dict[str, str] = {
        name: hash_table(table, table.column_names) for name, table in tables.items()
    }
    metadata = provenance.with_checksums(checksums).to_json()
    written = {
        name: to_bytes(describe_table(label_table(table, provenance.play), metadata))
        for name, table in tables.items()
    }
    return PlayFiles(
        provenance.play.key,
        rounds=written["rounds"],
        replies=written.get("replies"),
        accounts=written.get("accounts"),
    )


def decode(files: PlayFiles) -> StoredPlay:
    """Return the play that its files hold.

    Args:
        files: What `encode` has returned.

    Raises:
        UnfitError: They are damaged.
    """
    return make_play(lambda name: load_table(files, name))


def summarize(files: PlayFiles) -> StoredSummary:
    """Return what is known of a play without decoding its rounds.

    Args:
        files: What `encode` has returned.

    Raises:
        UnfitError: They are damaged.
    """
    with explain_content_errors("it cannot be read"):
        schema = pq.read_schema(pa.BufferReader(files.rounds))
        return StoredSummary.from_json(read_metadata(schema.metadata))


def load_table(files: PlayFiles, name: TableName) -> pa.Table:
    """Return one table of a play, with its provenance in the metadata.

    Args:
        files: What `encode` has returned.
        name: Which table.

    Raises:
        UnfitError: The file is damaged, or there is none.
    """
    content: bytes | None = getattr(files, name)
    if content is None:
        raise UnfitError(f"its {name} were not recorded")
    with explain_content_errors("it cannot be read"):
        table = from_bytes(content)
        return check_table(table, name, read_metadata(table.schema.metadata))


def check_table(table: pa.Table, name: TableName, metadata: Mapping[str, Any]) -> pa.Table:
    """Return a table with its labels, if it is as its provenance says.

    Args:
        table: As it was read; that of an early version may lack labels.
        name: Which table of its play it is.
        metadata: The provenance of the play.

    Raises:
        UnfitError: It is not as it was written, or has labels of another play.
    """
    with explain_content_errors("its provenance is not whole"):
        labelled = label_table(table, PlayId.from_json(metadata))
        check_columns(labelled, name, metadata)
        check_labels(labelled, metadata, name)
        return labelled


def list_tables(metadata: Mapping[str, Any]) -> list[TableName]:
    """Return which tables of a play were written, that of its rounds first.

    Args:
        metadata: Its provenance, as it is in the file.
    """
    if metadata.get("record") != "full":
        return ["rounds"]
    return [name for name in TABLES if name != "accounts" or name in metadata.get("columns", ())]


def make_play(load: Callable[[TableName], pa.Table]) -> StoredPlay:
    """Return the play that its tables hold.

    Args:
        load: Returns a table, with its provenance in the metadata; called for those written.

    Raises:
        UnfitError: The content is not as it was written.
    """
    rounds = load("rounds")
    metadata = read_metadata(rounds.schema.metadata)
    with explain_content_errors("its provenance is not whole"):
        provenance = Provenance.from_json(metadata)
        names = list_tables(metadata)
    tables = {"rounds": rounds, **{name: load(name) for name in names[1:]}}
    with explain_content_errors("its provenance is not whole"):
        trace = make_trace(tables, metadata)
    return StoredPlay(trace, provenance)


def make_trace(tables: Mapping[TableName, pa.Table], metadata: Mapping[str, Any]) -> Trace:
    """Return the trace that its tables hold.

    Args:
        tables: By name, that of its rounds at least; without that of its replies, the trace has no
            columns of them.
        metadata: Its provenance, as it is in the file.

    Raises:
        KeyError: The provenance lacks something.
        UnfitError: The content does not match its digest.
    """
    contents = Contents.from_json(metadata)
    rounds, replies, accounts = tables["rounds"], tables.get("replies"), tables.get("accounts")
    trace = Trace(
        rounds=_to_columns(rounds, contents.columns["rounds"]),
        replies={} if replies is None else _to_columns(replies, contents.columns["replies"]),
        coordinates=tuple(contents.coordinates),
        ended=contents.ended,
        spent=contents.spent,
        accounts={} if accounts is None else unpack_accounts(accounts),
        provenance=metadata,
    )
    if trace.digest() != (contents.rounds_digest if replies is None else contents.digest):
        raise UnfitError("its content does not match its digest")
    return trace


def _to_columns(table: pa.Table, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    return {name: _to_numpy(table.column(name)) for name in names}


def _to_numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    array: NDArray[Any] = column.combine_chunks().to_numpy(zero_copy_only=False)
    return array


# Tables


def make_tables(trace: Trace, *, full: bool) -> dict[TableName, pa.Table]:
    """Return the tables of a trace that are written, without labels.

    Args:
        trace: What happened.
        full: Whether replies and accounts are written, not rounds alone.
    """
    tables: dict[TableName, pa.Table] = {"rounds": to_table(trace.rounds)}
    if full:
        tables["replies"] = to_table(trace.replies)
        if trace.accounts:
            tables["accounts"] = _pack_accounts(trace.accounts)
    return tables


def to_table(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return columns of a trace as a table.

    Args:
        columns: By name, all of one length.
    """
    arrays = {
        # The type of a column without rows cannot be guessed.
        name: pa.array(column.tolist(), pa.string()) if column.dtype.kind == "U" else column
        for name, column in columns.items()
    }
    return pa.table(arrays)


def _pack_accounts(accounts: Mapping[str, Mapping[str, NDArray[Any]]]) -> pa.Table:
    """Return what experts have left as one table: a row for each of theirs, a Parquet file."""
    contents = [to_bytes(to_table(columns)) for columns in accounts.values()]
    return pa.table({"table": list(accounts), "content": pa.array(contents, pa.binary())})


def unpack_accounts(table: pa.Table) -> dict[str, dict[str, NDArray[Any]]]:
    """Return what experts have left, by `<expert>/<table>`.

    Args:
        table: A row for each, a Parquet file; other columns are left out.

    Raises:
        UnfitError: It is damaged.
    """
    with explain_content_errors("its accounts cannot be read"):
        tables = {
            name: from_bytes(content)
            for name, content in zip(
                table.column("table").to_pylist(), table.column("content").to_pylist(), strict=True
            )
        }
        return {name: _to_columns(each, each.column_names) for name, each in tables.items()}


def describe_table(table: pa.Table, metadata: Mapping[str, Any]) -> pa.Table:
    """Return a table with a provenance in its metadata.

    Args:
        table: Any; metadata that it has are replaced.
        metadata: The provenance, as JSON can write it.
    """
    told = canonical(metadata).encode()
    return table.replace_schema_metadata({_META: told, _CHECKSUM: hash_bytes(told)})


def read_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Return what the metadata of a file tell.

    Args:
        metadata: Those of its schema.

    Raises:
        UnfitError: It was not written by sparq-sim, or is damaged.
        StoreError: It is of another format.
    """
    kept = metadata or {}
    if _META not in kept:
        raise UnfitError("it was not written by sparq-sim")
    checksum = kept.get(_CHECKSUM)
    if checksum is not None and checksum != hash_bytes(kept[_META]).encode():
        raise UnfitError("its provenance does not match its checksum")
    with explain_content_errors("its provenance cannot be read"):
        data = read_json(kept[_META])
    if not isinstance(data, dict):
        raise UnfitError("its provenance cannot be read")
    check_format(data.get("format"), "it holds plays")
    if checksum is None and data["format"] != UNSEALED:
        raise UnfitError("its provenance has lost its checksum")
    return data


def join_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of several tables as one, which has the columns of all.

    Args:
        tables: At least one.
    """
    schema = unify_schemas([table.schema for table in tables])
    return pa.concat_tables([conform(table, schema) for table in tables])


def unify_schemas(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the one schema that holds all columns; where types disagree, numbers or text.

    Args:
        schemas: Of several tables.
    """
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for column in schema:
            known = types.setdefault(column.name, column.type)
            if known != column.type:
                both = {known, column.type}
                types[column.name] = (
                    pa.float64() if both <= {pa.int64(), pa.float64()} else pa.string()
                )
    return pa.schema(types.items())


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a schema, empty where it has none.

    Args:
        table: Any whose columns are in the schema.
        schema: As `unify_schemas` makes it.
    """
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema.remove_metadata())


# Bytes


def to_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file.

    Args:
        table: With its metadata.
    """
    sink = pa.BufferOutputStream()
    with open_writer(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def from_bytes(content: bytes, columns: list[str] | None = None) -> pa.Table:
    """Return the table that a Parquet file holds.

    Args:
        content: All of the file.
        columns: Those to read; by default, all.
    """
    file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    check_size(
        file.metadata,
        lambda names: pq.ParquetFile(pa.BufferReader(content), read_dictionary=names),
    )
    return file.read(columns=columns)


def open_writer(where: object, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of Parquet, as all files of a store are written.

    Args:
        where: A path, or a stream of Arrow.
        schema: The columns to be written, and the metadata.
    """
    # Dictionaries for text only: among numbers they would merge what differs in no more than
    # the bits of a NaN, and a digest sees that.
    text = [field.name for field in schema if pa.types.is_string(field.type)]
    return pq.ParquetWriter(
        where, schema, compression="zstd", use_dictionary=text or False, write_page_checksum=True
    )
