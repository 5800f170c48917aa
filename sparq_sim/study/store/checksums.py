"""Checksums: by which damage to what is stored is noticed, be it one bit that has flipped.

The provenance in a Parquet file has one of its own, and names one of each table of its play: of
the names, types and values of all columns, wall times included. JSON files have one beside their
content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from sparq_sim.study.store.errors import UnfitError

__all__ = ["check_columns", "hash_bytes", "hash_table", "seal", "unseal"]

_CHECKSUM = "checksum"


def hash_bytes(content: bytes) -> str:
    """Return 32 digits that stand for some bytes.

    Args:
        content: The bytes.
    """
    return blake2b(content, digest_size=16).hexdigest()


def hash_table(table: pa.Table, names: Sequence[str]) -> str:
    """Return 32 digits that stand for columns of a table: their names, types and values.

    Args:
        table: It may have other columns too.
        names: Of the columns, in their order.
    """
    hashed = blake2b(digest_size=16)
    for name in names:
        column = table.column(name).combine_chunks()
        head = [name, str(column.type), len(column), column.null_count]
        hashed.update(json.dumps(head).encode())
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            # Each text once, for most of them come again and again.
            column = column.dictionary_encode()
            if isinstance(column, pa.ChunkedArray):
                column = column.combine_chunks()
            for each in column.dictionary.cast(pa.binary()).to_pylist():
                hashed.update(f"{len(each)}:".encode())
                hashed.update(each)
            column = column.indices
        hashed.update(np.ascontiguousarray(column.to_numpy(zero_copy_only=False)).tobytes())
    return hashed.hexdigest()


def check_columns(table: pa.Table, name: str, metadata: Mapping[str, Any]) -> None:
    """Refuse a table that is not as it was written; one of an early version has no checksum.

    Args:
        table: The columns of a trace, and maybe others.
        name: Which table of its play it is.
        metadata: The provenance of the play.

    Raises:
        UnfitError: A column is missing, or another than it was.
        KeyError: The provenance does not say what the table was.
    """
    columns = metadata["columns"][name]
    if missing := [each for each in columns if each not in table.column_names]:
        raise UnfitError(f"the column {missing[0]!r} of its {name} is missing")
    if "checksums" in metadata and hash_table(table, columns) != metadata["checksums"][name]:
        raise UnfitError(f"its {name} do not match their checksum")


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a JSON file is to hold, with a checksum.

    Args:
        content: All that JSON can write.
    """
    # As it is read back: pairs are lists then, and numbers that name something are texts.
    plain: dict[str, Any] = json.loads(json.dumps(content))
    return {**plain, _CHECKSUM: _hash_json(plain)}


def unseal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a JSON file holds, without its checksum.

    Args:
        content: As `seal` has returned it.

    Raises:
        UnfitError: It has no checksum, or is not what was written.
    """
    plain = {name: value for name, value in content.items() if name != _CHECKSUM}
    if _CHECKSUM not in content:
        raise UnfitError("it has no checksum")
    if content[_CHECKSUM] != _hash_json(plain):
        raise UnfitError("it does not match its checksum")
    return plain


def _hash_json(content: Mapping[str, Any]) -> str:
    return hash_bytes(json.dumps(content, sort_keys=True).encode())
