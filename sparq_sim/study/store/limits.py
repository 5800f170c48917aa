"""Limits of tables: a small file may unpack to more than a machine has memory for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sparq_sim.study.store.errors import UnfitError

__all__ = ["MOST_CELLS", "MOST_TEXT", "check_size"]

MOST_CELLS = 200_000_000
"""How many cells a table may have: 1.6 GB of numbers."""
MOST_TEXT = 2_000_000_000
"""How many bytes a column of text may have in memory, where every cell takes as many as the
longest."""
_WIDTH = 4
"""Bytes of a character in memory."""


def check_size(
    metadata: pq.FileMetaData,
    reopen: Callable[[list[str]], pq.ParquetFile],
    groups: Iterable[int] | None = None,
) -> None:
    """Refuse a table that is too large for memory, before it is unpacked.

    Args:
        metadata: What the file says of itself.
        reopen: Opens the file so that columns of the given names stay packed.
        groups: Which row groups are to be read; by default, all.

    Raises:
        UnfitError: It has too many cells, or too long texts.
    """
    chosen = range(metadata.num_row_groups) if groups is None else list(groups)
    rows = sum(metadata.row_group(group).num_rows for group in chosen)
    if rows * metadata.num_columns > MOST_CELLS:
        raise UnfitError(
            f"it says that it has {rows} rows of {metadata.num_columns} columns; at most "
            f"{MOST_CELLS} cells are read"
        )
    # In the worst case every cell is as long as all that the file has. What it says of single
    # chunks is not asked for: where that is damaged, Arrow ends the process.
    if rows * sum(metadata.row_group(group).total_byte_size for group in chosen) <= MOST_TEXT:
        return
    for place in range(metadata.num_columns):
        column = metadata.schema.column(place)
        if column.physical_type == "BYTE_ARRAY":
            name = column.path
            _check_text(reopen([name]).read_row_groups(list(chosen), columns=[name]), rows)


def _check_text(table: pa.Table, rows: int) -> None:
    for chunk in table.column(0).chunks:
        texts = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
        longest = pc.max(pc.binary_length(texts)).as_py() or 0
        if rows * longest * _WIDTH > MOST_TEXT:
            raise UnfitError(
                f"its column {table.column_names[0]!r} has {rows} texts, one of them of {longest} "
                f"bytes; at most {MOST_TEXT} bytes are taken in memory"
            )
