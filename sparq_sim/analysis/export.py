"""Export: a table of a study as a CSV, Parquet or JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from sparq_sim.analysis.criteria import choose_criterion
from sparq_sim.analysis.summary import AnalysisError, finite, summary
from sparq_sim.simulation import measures
from sparq_sim.study.results import Results
from sparq_sim.study.store import canonical
from sparq_sim.study.store.files import replace_file

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["export", "make_table", "write_table"]


_FORMULA = r"^[=@\t\r+-]"
"""How a text begins that spreadsheets would take for a formula, unless it is a number."""
_NUMBER = r"^[+-]([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-](inf|nan)$"


def export(
    study: Results, path: Path | str, what: str = "summary", *, best_seen: bool = False
) -> int:
    """Write the summary, the rounds, the replies or an account of a study to a file.

    Args:
        study: A study with finished plays.
        path: The file; its ending, .csv, .parquet or .json, decides the format.
        what: "summary" for a row per optimizer and setting, "rounds" for a row per round of each
            play, "replies" for a row per reply, "<expert>/<table>" for a table that an expert
            leaves at the end of a play, as "network/nodes".
        best_seen: Whether the summary and the rounds have regret against the best reward seen in
            each play, where the best reward is not known.

    Returns:
        How many texts of a CSV file have got an apostrophe, as `write_table` does.

    Raises:
        AnalysisError: There is no such table, the ending is another, or the file cannot be
            written.
        SparqError: Regret against the best seen is wished for, and all plays know the best.
        StoreError: No play has that account, or it was not recorded.
    """
    return write_table(partial(_table, study, what, best_seen=best_seen), path)


def write_table(make: Callable[[], pa.Table], path: Path | str) -> int:
    """Write a table to a file.

    In a CSV file, a text that spreadsheets would take for a formula gets an apostrophe before it.
    Parquet and JSON have all texts as they are.

    Args:
        make: Makes the table, once it is known that the file can be of its kind.
        path: The file; its ending, .csv, .parquet or .json, decides the format.

    Returns:
        How many texts have got an apostrophe, names of columns included.

    Raises:
        AnalysisError: The ending is another, or the file cannot be written.
    """
    path = Path(path)
    writers = {".csv": _to_csv, ".parquet": _to_parquet, ".json": _to_json}
    if path.suffix not in writers:
        raise AnalysisError(f"cannot export to {path.name}; end it in {', '.join(writers)}")
    table = make()
    guarded = 0
    if path.suffix == ".csv":
        table, guarded = _guard_formulas(table)
    try:
        # A file that is there is replaced in full or not at all, also through a link to it.
        with replace_file(path.resolve()) as file:
            writers[path.suffix](table, file)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise AnalysisError(
            f"cannot write {path}: {reason}; make its folder, or choose another file"
        ) from error
    return guarded


def make_table(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Return rows as a table; what a row lacks is null.

    Args:
        rows: The values by the names of their columns.
    """
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def _table(study: Results, what: str, *, best_seen: bool) -> pa.Table:
    if "/" in what:
        return study.accounts(what)
    if what == "rounds":
        return _rounds(study, best_seen=best_seen)
    if what == "replies":
        return study.table("replies")
    if what != "summary":
        raise AnalysisError(
            f"there is no table {what!r}; choose summary, rounds or replies, or EXPERT/TABLE for "
            "what an expert leaves at the end of a play, as network/nodes"
        )
    return make_table([each.flat() for each in summary(study, best_seen=best_seen)])


def _rounds(study: Results, *, best_seen: bool) -> pa.Table:
    """Return the rounds of all plays; where the best is not known, nulls stand for NaN."""
    import pyarrow as pa
    from pyarrow import compute

    found = study.finished()
    criterion = choose_criterion(found, best_seen=best_seen)
    table = study.table("rounds")
    if criterion.is_regret:
        return table
    for place, name in enumerate(table.column_names):
        column = table[name]
        if pa.types.is_floating(column.type):
            known = compute.if_else(compute.is_nan(column), pa.scalar(None, column.type), column)
            table = table.set_column(place, name, known)
    unknown = [name for name in ("best", "regret") if table[name].null_count == len(table)]
    table = table.drop_columns(unknown)
    if not best_seen:
        return table
    # The rounds of each play follow each other, in the order of the plays.
    traces = [study.read(each.key).trace for each in found]
    bests = np.concatenate([np.full(len(each), measures.best_seen(each)) for each in traces])
    regrets = np.concatenate([measures.regret_to_best_seen(each) for each in traces])
    for name, values in (("best_seen", bests), ("regret_to_best_seen", regrets)):
        table = table.append_column(name, pa.array(values, from_pandas=True))
    return table


def _column(values: Sequence[object]) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values)
    except pa.ArrowException:
        return pa.array([v if isinstance(v, str | None) else canonical(v) for v in values])


def _guard_formulas(table: pa.Table) -> tuple[pa.Table, int]:
    """Return a table in which no text is a formula, and how many have got an apostrophe."""
    import pyarrow as pa

    count = 0
    for place, name in enumerate(table.column_names):
        if pa.types.is_string(table[name].type):
            column, some = _guard_column(table[name])
            table, count = table.set_column(place, name, column), count + some
    names, some = _guard_column(pa.chunked_array([pa.array(table.column_names, pa.string())]))
    return table.rename_columns(names.to_pylist()), count + some


def _guard_column(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    from pyarrow import compute

    is_formula = compute.and_not(
        compute.match_substring_regex(column, _FORMULA),
        compute.match_substring_regex(column, _NUMBER),
    )
    quoted = compute.binary_join_element_wise("'", column, "")
    return compute.if_else(is_formula, quoted, column), compute.sum(is_formula).as_py() or 0


def _to_csv(table: pa.Table, file: BinaryIO) -> None:
    from pyarrow import csv

    csv.write_csv(table, file)


def _to_parquet(table: pa.Table, file: BinaryIO) -> None:
    from pyarrow import parquet

    parquet.write_table(table, file)


def _to_json(table: pa.Table, file: BinaryIO) -> None:
    file.write(b"[")
    between = "\n"
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            plain: dict[str, Any] = {name: finite(value) for name, value in row.items()}
            file.write(f"{between}{json.dumps(plain, ensure_ascii=False)}".encode())
            between = ",\n"
    file.write(b"\n]\n")
