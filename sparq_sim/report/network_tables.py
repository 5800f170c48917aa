"""Tables of networks: which columns are read from the accounts of a trace, and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparq_sim.simulation.trace import Columns

__all__ = ["AT", "CAUSES", "NEEDED", "read_table"]

CAUSES = ("measure", "send", "receive", "listen", "sleep", "compute")
"""What energy is used for, as in the names of the columns `energy_...`."""
_Kind: TypeAlias = Literal["text", "number", "whole", "flag"]
_LINKS: Mapping[str, _Kind] = {"gateway": "whole", "distance": "number"}
_COUNTS: Mapping[str, _Kind] = dict.fromkeys(
    ("sent", "delivered", "lost", "collided", "refused"), "whole"
)
NEEDED: Mapping[str, Mapping[str, _Kind]] = {
    "nodes": {
        "name": "text",
        "east": "number",
        "north": "number",
        "capacity": "number",
        "left": "number",
        "died_at": "number",
    },
    "gateways": {"name": "text", "east": "number", "north": "number"},
    "levels": {"time": "number", "node": "whole", "left": "number", "alive": "flag"},
    "packets": {"purpose": "text", "fate": "text"},
    "phases": {
        "query": "whole",
        "node": "whole",
        "phase": "text",
        "started_at": "number",
        "ended_at": "number",
    },
}
"""Columns without which a table is not drawn."""
_MORE: Mapping[str, Mapping[str, _Kind]] = {
    "nodes": {
        **_LINKS,
        **_COUNTS,
        "margin": "number",
        "rate": "whole",
        "harvested": "number",
        "airtime": "number",
        **{f"energy_{cause}": "number" for cause in CAUSES},
    },
    "gateways": {"airtime": "number", "busiest": "whole"},
    "packets": {"direction": "text"},
    "phases": {"row": "whole"},
}
"""Columns that are shown where they are there."""
AT = "at_"
"""The prefix of columns of nodes that hold the coordinates, in the domain, of the point at which a
node measures."""


def read_table(given: Mapping[str, ArrayLike], table: str, nodes: int | None) -> Columns:
    """Return the columns of a table that are drawn.

    Args:
        given: The whole table.
        table: Which one it is, of those in `NEEDED`.
        nodes: How many nodes there are, where that is known.

    Raises:
        ValueError: A column is missing or wrong; the message says which and how.
    """
    needed = NEEDED[table]
    if missing := [name for name in needed if name not in given]:
        raise ValueError(f"it has no column {missing[0]!r}")
    wanted = {**needed, **{n: k for n, k in _MORE.get(table, {}).items() if n in given}}
    if table == "nodes":
        wanted |= {name: "number" for name in given if name.startswith(AT)}
    columns = {name: _read_column(given[name], name, kind) for name, kind in wanted.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"its columns differ in length: {lengths}")
    if table == "nodes" and not lengths["name"]:
        raise ValueError("it has no row")
    for name in {"east", "north", "time", "started_at", "ended_at"} & columns.keys():
        if not np.isfinite(columns[name]).all():
            raise ValueError(f"its column {name!r} has a value that is not finite")
    if nodes is not None and "node" in columns:
        numbers = columns["node"]
        if ((numbers < 0) | (numbers >= nodes)).any():
            raise ValueError(f"its column 'node' goes beyond the {nodes} nodes that there are")
    return columns


def _read_column(values: ArrayLike, name: str, kind: _Kind) -> NDArray[Any]:
    try:
        column = np.asarray(values)
        match kind:
            case "text":
                column = column.astype(np.str_)
            case "number":
                column = column.astype(float)
            case "whole":
                column = column.astype(np.int64)
            case "flag":
                column = column.astype(bool)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"its column {name!r} does not hold {_HELD[kind]}") from None
    if column.ndim != 1:
        raise ValueError(f"its column {name!r} has {column.ndim} dimensions in place of 1")
    return column


_HELD: Mapping[_Kind, str] = {
    "text": "text",
    "number": "numbers",
    "whole": "whole numbers",
    "flag": "true or false",
}
