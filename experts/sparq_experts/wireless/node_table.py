"""Node tables: one node a row, as a scenario or a CSV file lists them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, FiniteFloat, model_validator
from pydantic_core import PydanticCustomError

from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.fields import Positive, Quantity, is_number
from sparq_sim.limits import check_data_file
from sparq_sim.plugin.contract import Model

__all__ = [
    "SPREADING_FACTORS",
    "AnyPoint",
    "ListedNode",
    "NodeAt",
    "check_fields",
    "check_file",
    "read_nodes",
]

SPREADING_FACTORS = (7, 12)
"""The lowest and the highest spreading factor that a node may be given."""
_OPTIONAL = ("name", "battery", "spreading_factor", "distance")
_ALIKE = 0.8
"""From which likeness on the name of a column is taken for a misspelt one, of 1."""


def check_fields(given: Any, model: type[Model]) -> Any:
    """Return a table, after checking that a model has all its fields.

    A scenario cannot tell which model was meant where several can stand, so that its own error
    would list the fields of another.

    Args:
        given: The table, or anything else, which is left alone.
        model: The model that it is read as.

    Raises:
        PydanticCustomError: A field is unknown; the message has the one that was probably meant.
    """
    for key in given if isinstance(given, Mapping) else ():
        if key not in model.model_fields:
            hint = did_you_mean(str(key), model.model_fields)
            raise PydanticCustomError(
                "node", "{reason}", {"reason": f"there is no field {key!r}; {hint}"}
            )
    return given


def _as_point(given: Any) -> Any:
    return (given,) if is_number(given) else given


AnyPoint: TypeAlias = Annotated[
    tuple[FiniteFloat, ...],
    BeforeValidator(_as_point, json_schema_input_type=FiniteFloat | tuple[FiniteFloat, ...]),
]
"""A point of the domain as a field: a list of its coordinates; in one dimension also a number."""


class NodeAt(Model):
    """One node: where it is, and what it has of its own in place of what all nodes have."""

    at: AnyPoint | None = None
    """Its coordinates in the domain, such as `[0.2, 0.4]`; a number in one dimension. On a domain
    of sites it may be left out where `name` is that of a site."""
    name: Annotated[str, Field(min_length=1)] | None = None
    """Its name; by default that of its site, or else node-0, node-1, ..."""
    battery: Annotated[Positive | None, Quantity("J")] = None
    """The energy in its full battery, in J; by default as for all nodes."""
    spreading_factor: (
        Annotated[int, Field(ge=SPREADING_FACTORS[0], le=SPREADING_FACTORS[1])] | None
    ) = None
    """Its LoRa spreading factor, 7 to 12; by default as for all nodes."""
    distance: Annotated[Positive | None, Quantity("m")] = None
    """Its distance to the only gateway, in m, in place of that on the map."""

    @model_validator(mode="before")
    @classmethod
    def _check_table(cls, given: Any) -> Any:
        if not isinstance(given, Mapping | NodeAt):
            reason = "should be a table, such as { at = [0.2, 0.4] }"
            raise PydanticCustomError("node", "{reason}", {"reason": reason})
        return check_fields(given, cls)


ListedNode: TypeAlias = tuple[str, NodeAt]
"""Where a node is listed, as "nodes.csv, line 3", and the node."""


def check_file(file: Path) -> None:
    """Check that a CSV file of nodes can be read, whatever the domain.

    Args:
        file: The file.

    Raises:
        PluginError: It cannot be read, or has no nodes; the message has the remedy.
    """
    _read_table(file)


def read_nodes(file: Path, coordinates: Sequence[str], *, sites: bool = False) -> list[ListedNode]:
    """Read the nodes in a CSV file with a header line.

    Its columns are one for each coordinate, by its name or as x0, x1, ..., and optionally `name`,
    `battery` (J), `spreading_factor` and `distance` (m); an empty cell is as if there were no such
    column. Other columns are not used, but one that looks like a misspelt name is refused. A file
    is read once in a process while it does not change.

    Args:
        file: The file, in UTF-8.
        coordinates: The names of the domain's coordinates.
        sites: Whether the domain has sites, so that names can stand for coordinates.

    Returns:
        Each node, with the file and the line where it stands.

    Raises:
        PluginError: The file cannot be read, lacks a column, or has a cell that is not as it must
            be; the message names the file, the line, the column, the value and the remedy.
    """
    table = _read_table(file)
    if not sites or "name" not in table.header or table.has_any(coordinates):
        columns = [table.find_column(name, i) for i, name in enumerate(coordinates)]
    else:
        columns = []
    table.check_spelling([*coordinates, *_OPTIONAL])
    return [(row.where, _read_node(row, columns)) for row in table.rows]


def _read_node(row: _Row, columns: Sequence[str]) -> NodeAt:
    return NodeAt(
        at=tuple(row.number(column, "write a number, with a point") for column in columns) or None,
        name=row.cells.get("name") or None,
        battery=row.positive("battery", "write the energy of the full battery in J"),
        spreading_factor=row.spreading_factor(),
        distance=row.positive("distance", "write the distance to the gateway in m"),
    )


@dataclass(frozen=True)
class _Row:
    """The cells of one line, by column."""

    where: str
    cells: Mapping[str, str]

    def number(self, column: str, remedy: str) -> float:
        """Return the finite number in a cell."""
        try:
            number = float(self.cells[column])
        except ValueError:
            raise self.wrong(column, "is no number", remedy) from None
        if not isfinite(number):
            raise self.wrong(column, "is not finite", remedy)
        return number

    def positive(self, column: str, remedy: str) -> float | None:
        """Return the number above 0 in a cell, if there is one."""
        remedy = f"{remedy}, or leave the cell empty"
        if not self.cells.get(column):
            return None
        number = self.number(column, remedy)
        if number <= 0:
            raise self.wrong(column, "is not above 0", remedy)
        return number

    def spreading_factor(self) -> int | None:
        column = "spreading_factor"
        low, high = SPREADING_FACTORS
        remedy = f"write a whole number from {low} to {high}, or leave the cell empty"
        if not self.cells.get(column):
            return None
        number = self.number(column, remedy)
        if not (low <= number <= high and number.is_integer()):
            raise self.wrong(column, "is no spreading factor", remedy)
        return int(number)

    def wrong(self, column: str, what: str, remedy: str) -> PluginError:
        """Return the error about a cell."""
        return PluginError(f"{self.where}, {column}: {self.cells[column]!r} {what}; {remedy}")


@dataclass(frozen=True)
class _Table:
    """A CSV file: the names of its columns, and its rows."""

    file: Path
    header: tuple[str, ...]
    rows: tuple[_Row, ...]

    def has_any(self, coordinates: Sequence[str]) -> bool:
        """Return whether there is a column for a coordinate."""
        return any({name, f"x{i}"} & {*self.header} for i, name in enumerate(coordinates))

    def find_column(self, coordinate: str, number: int) -> str:
        """Return the column of a coordinate, which has its name or its number."""
        for name in (coordinate, f"x{number}"):
            if name in self.header:
                return name
        other = "" if coordinate == f"x{number}" else f" (or 'x{number}')"
        apart = ""
        if len(self.header) == 1 and any(mark in self.header[0] for mark in ";\t"):
            apart = "; separate the columns by commas"
        raise PluginError(
            f"{self.file} has no column {coordinate!r}{other} for that coordinate of the domain; "
            f"its columns are: {', '.join(self.header)}{apart or '; add it, or rename one'}"
        )

    def check_spelling(self, known: Sequence[str]) -> None:
        """Refuse a column that is not used and looks like one that would be."""
        for column in self.header:
            free = [name for name in known if name not in self.header]
            word = column.lower().replace(" ", "_")
            if column not in known and get_close_matches(word, free, n=1, cutoff=_ALIKE):
                raise PluginError(
                    f"{self.file}, line 1: the column {column!r} is not used; "
                    f"{did_you_mean(word, free)}"
                )


def _read_table(file: Path) -> _Table:
    path = file.expanduser()
    try:
        check_data_file(path)
        status = path.stat()
        return _read_csv(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise PluginError(
            f"{path} cannot be read: {error.strerror or error}; check `nodes.file`"
        ) from error
    except UnicodeDecodeError as error:
        raise PluginError(
            f"{path} is not a text file in UTF-8: {error.reason}; save it as UTF-8"
        ) from error


@lru_cache(maxsize=16)
def _read_csv(path: Path, changed_at: int, size: int) -> _Table:
    """Read a file; remembered while it is not written to."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines)
        try:
            numbered = [
                (reader.line_num, cells)
                for cells in ([cell.strip() for cell in row] for row in reader)
                if any(cells)
            ]
        except csv.Error as error:
            raise PluginError(f"{path}, line {reader.line_num}: {error}") from error
    if len(numbered) < 2:
        raise PluginError(f"{path} has no nodes; it needs a header and a line for each node")
    header = numbered[0][1]
    for name in header:
        if header.count(name) > 1:
            raise PluginError(f"{path}, line 1: the column {name!r} stands there twice; keep one")
    rows = []
    for line, cells in numbered[1:]:
        if len(cells) != len(header):
            raise PluginError(
                f"{path}, line {line}: {len(cells)} cells, but the header has {len(header)}; "
                "separate cells by commas, and write decimals with a point"
            )
        rows.append(_Row(f"{path}, line {line}", dict(zip(header, cells, strict=True))))
    return _Table(path, tuple(header), tuple(rows))
