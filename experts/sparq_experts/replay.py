"""The expert who has it in writing."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from math import isfinite, nan
from pathlib import Path

import numpy as np
from pydantic import FiniteFloat

from sparq_sim.arrays import Points, Values
from sparq_sim.errors import SparqError, Unavailable
from sparq_sim.fields import Amount
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Answering, Briefing, Expert, World
from sparq_sim.simulation.records import Fate


class Replay(Expert):
    """Answers from what was recorded: a table, or the replies of an earlier study.

    The table has the columns `time`, `value`, one for each coordinate by its name, and may have
    `std`. A table of replies, which has a column `fate`, is dated by `measured_at`, and of it the
    answers count; they must all be of one landscape. The answer for a point comes from the nearest
    place within *reach* at which something was recorded by now, and is the latest of it, with its
    date; where there is none, it fails. A query has one date, the oldest of its answers; over a
    channel with `split` each point has its own.
    """

    file: Path
    """A .csv or .parquet file, or the folder of a study that recorded its replies. A relative path
    is one from the working directory, or, in a scenario file, from that file's; `~` is home."""
    where: tuple[tuple[str, str | int | float], ...] = ()
    """Which rows of the table count: columns with the value that a row must have there, as
    `[["source", "lab"]]`."""
    reach: Amount = 0.0
    """How far from a point a place may lie, as the crow flies; 0 for the very same point."""
    begins_at: FiniteFloat = 0.0
    """The time of the table at which the play begins, in clock units; earlier rows are left out."""

    def check_play(self, until: float) -> None:
        """Refuse a table that is missing or cannot be read, or that begins after then."""
        table, times = self._read()
        first = times[times >= 0].min()
        if first > until:
            raise SparqError(
                f"{self.file}: its first row is of time {first:g} of the play, which ends at "
                f"{until:g}; set begins_at to the time of the table at which the play begins"
            )
        table.values_and_stds()

    def start(self, briefing: Briefing) -> Answering:
        """Read the table."""
        table, times = self._read()
        points = np.stack([table.numbers(name) for name in briefing.domain.names], axis=1)
        columns = (points, times, *table.values_and_stds())
        return _ReplayAtWork(self.reach, *(column[times >= 0] for column in columns))

    def _read(self) -> tuple[_Table, Values]:
        """Read the rows that are wanted, and when in the play each was measured."""
        table = _read(self.file.expanduser())
        for column, value in self.where:
            table = table.only(column, value)
        time = "time"
        if "fate" in table.columns:
            table, time = table.only("fate", Fate.ANSWERED), "measured_at"
            table.check_one_landscape()
        times = table.numbers(time) - self.begins_at
        if not (times >= 0).any():
            raise SparqError(f"{self.file}: no row is left from {time} {self.begins_at} on")
        return table, times


class _ReplayAtWork:
    def __init__(
        self, reach: float, points: Points, times: Values, values: Values, stds: Values
    ) -> None:
        order = np.argsort(times, kind="stable")
        self._times, self._values, self._stds = times[order], values[order], stds[order]
        self._reach = reach
        self._places, numbers, counts = np.unique(
            points[order], axis=0, return_inverse=True, return_counts=True
        )
        # The rows of each place, in the order of time.
        by_place = np.argsort(numbers.reshape(-1), kind="stable")
        self._rows = np.split(by_place, np.cumsum(counts)[:-1])
        self._first_at = np.array([self._times[rows[0]] for rows in self._rows])

    async def answer(self, query: Query, world: World) -> Estimate:
        """Look up the latest that is near."""
        now = world.clock.now
        rows = [self._row(point, now) for point in query.points]
        found = np.array([row is not None for row in rows])
        if not found.any():
            raise Unavailable("nothing recorded by now")
        chosen = np.array([row or 0 for row in rows])
        values = np.where(found, self._values[chosen], nan)
        oldest = float(self._times[chosen[found]].min())
        stds = self._stds[chosen]
        return Estimate(values, stds=stds, measured_at=oldest, absent="nothing recorded by now")

    def _row(self, point: Values, now: float) -> int | None:
        distances = np.linalg.norm(self._places - point, axis=1)
        distances[self._first_at > now] = np.inf
        nearest = int(distances.argmin())
        if distances[nearest] > self._reach:
            return None
        rows = self._rows[nearest]
        last = np.searchsorted(self._times[rows], now, side="right") - 1
        return int(rows[last])


# The table


@dataclass(frozen=True)
class _Table:
    """Columns of cells as they were read, and where each row stands in the file."""

    file: Path
    columns: Mapping[str, Sequence[object]]
    places: Sequence[str]

    def column(self, name: str) -> Sequence[object]:
        """Give a column, or say which there are."""
        if name not in self.columns:
            raise SparqError(
                f"{self.file} has no column {name!r}; its columns are: {', '.join(self.columns)}"
            )
        return self.columns[name]

    def only(self, name: str, value: object) -> _Table:
        """Keep the rows that have *value* in a column."""
        kept = [i for i, cell in enumerate(self.column(name)) if str(cell) == str(value)]
        if not kept:
            there = ", ".join(sorted({str(cell) for cell in self.columns[name]})[:8])
            raise SparqError(f"{self.file}: no row has {name} {value!r}; there are: {there}")
        columns = {key: [cells[i] for i in kept] for key, cells in self.columns.items()}
        return _Table(self.file, columns, [self.places[i] for i in kept])

    def check_one_landscape(self) -> None:
        """Refuse replies from several landscapes, which would contradict each other."""
        for name, cells in self.columns.items():
            if name in ("replication", "seed") or name.partition(".")[0] == "environment":
                several = sorted({str(cell) for cell in cells})
                if len(several) > 1:
                    raise SparqError(
                        f"{self.file} has several {name} ({', '.join(several[:8])}), each with a "
                        "landscape of its own; choose one: "
                        f"where = [[{dumps(name)}, {_value(several[0])}]]"
                    )

    def values_and_stds(self) -> tuple[Values, Values]:
        """Return what was recorded, and its stds; without a column of stds, 0."""
        values = self.numbers("value")
        return values, self.numbers("std") if "std" in self.columns else np.zeros(len(values))

    def numbers(self, name: str) -> Values:
        """Give a column as finite numbers, or say where there is none."""
        numbers = np.array([_number(cell) for cell in self.column(name)])
        for i in np.flatnonzero(~np.isfinite(numbers)).tolist():
            raise SparqError(
                f"{self.file}, {self.places[i]}, {name}: {self.columns[name][i]!r} is no number"
            )
        if name == "std" and (negative := np.flatnonzero(numbers < 0)).size:
            place = self.places[negative[0]]
            raise SparqError(f"{self.file}, {place}, std: {numbers.min()} is negative")
        return numbers


def _value(cell: str) -> str:
    """Write what a cell holds as a scenario file would."""
    return cell if isfinite(_number(cell)) else dumps(cell)


def _number(cell: object) -> float:
    try:
        number = float(cell)  # type: ignore[arg-type] # whatever a table holds
    except (TypeError, ValueError):
        return nan
    return number if isfinite(number) else nan


def _read(file: Path) -> _Table:
    if file.is_dir():
        from sparq_sim.study.study import Study

        return _from_arrow(file, Study.open(file).table("replies").to_pydict())
    if file.suffix not in (".csv", ".parquet"):
        raise SparqError(f"{file}: expected a .csv or .parquet file, or the folder of a study")
    with _readable(file):
        return _from_csv(file) if file.suffix == ".csv" else _from_parquet(file)


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SparqError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SparqError(f"{file} is not a text file in UTF-8: {error.reason}") from error


def _from_csv(file: Path) -> _Table:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines)
        try:
            # A blank line has no cells.
            numbered = [(f"line {reader.line_num}", row) for row in reader if row]
        except csv.Error as error:
            raise SparqError(f"{file}, line {reader.line_num}: {error}") from error
    header = numbered[0][1] if numbered else []
    places, rows = [place for place, _ in numbered[1:]], [row for _, row in numbered[1:]]
    for place, row in zip(places, rows, strict=True):
        if len(row) != len(header):
            raise SparqError(f"{file}, {place}: {len(row)} cells; the header has {len(header)}")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    return _checked(_Table(file, columns, places))


def _from_parquet(file: Path) -> _Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return _from_arrow(file, parquet.read_table(file).to_pydict())
    except pa.ArrowException as error:
        raise SparqError(f"{file} is no Parquet file: {error}") from error


def _from_arrow(file: Path, columns: Mapping[str, Sequence[object]]) -> _Table:
    rows = len(next(iter(columns.values()), []))
    return _checked(_Table(file, columns, [f"row {i + 1}" for i in range(rows)]))


def _checked(table: _Table) -> _Table:
    if not table.places:
        raise SparqError(f"{table.file} has no rows")
    return table
