"""Labels: the columns that tell the rows of a play from those of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sparq_sim.study.store.errors import UnfitError
from sparq_sim.study.store.keys import PlayId, canonical

__all__ = ["check_labels", "label_columns", "label_table"]


def label_columns(play: PlayId) -> dict[str, object]:
    """Return what is the same in all rows of a play, and tells it from other plays, by column.

    Args:
        play: Which play.
    """
    return {
        "scenario": play.scenario,
        "optimizer": play.optimizer,
        "setting": canonical(play.setting),
        "seed": play.seed,
        "replication": play.replication,
        **play.setting,
    }


def label_table(table: pa.Table, play: PlayId) -> pa.Table:
    """Return a table with the columns that tell a play from others before its own.

    Args:
        table: Of rounds, replies or accounts; labels that it has are kept.
        play: Which play.
    """
    rows = len(table)
    labels = {
        name: table.column(name)
        if name in table.column_names
        else pa.array([value] * rows, _arrow_type(value))
        for name, value in label_columns(play).items()
    }
    others = [name for name in table.column_names if name not in labels]
    columns = labels | {name: table.column(name) for name in others}
    return pa.table(columns).replace_schema_metadata(table.schema.metadata)


def check_labels(table: pa.Table, metadata: Mapping[str, Any], own: str) -> None:
    """Refuse a table whose labels are not those of its play, or that has columns of neither.

    Args:
        table: With its labels.
        metadata: The provenance of the play.
        own: Which table of its play it is.

    Raises:
        UnfitError: A label is another, or there is a column that was not written.
        KeyError: The provenance does not say what the table was.
    """
    labels = label_columns(PlayId.from_json(metadata))
    known = labels.keys() | set(metadata["columns"][own])
    if strange := [name for name in table.column_names if name not in known]:
        raise UnfitError(f"the column {strange[0]!r} of its {own} does not belong to it")
    for name, value in labels.items():
        column = table.column(name)
        # Among plays whose swept values are numbers or text, those of one may have become so.
        kinds = (_arrow_type(value), pa.float64(), pa.string())
        if column.type not in kinds:
            raise UnfitError(f"its column {name!r} is not of the type that it was")
        written = pa.array([value], _arrow_type(value)).cast(column.type).to_pylist()
        if len(table) and repr(column.unique().to_pylist()) != repr(written):
            raise UnfitError(f"its column {name!r} is not what its provenance says")


def _arrow_type(value: object) -> pa.DataType:
    match value:
        case bool():
            return pa.bool_()
        case int():
            return pa.int64()
        case float():
            return pa.float64()
    return pa.string()
