"""The expert `replay`: answers from a table that was recorded earlier."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from math import isfinite, nan
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import FiniteFloat, model_validator

from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Domain
from sparq_sim.errors import SparqError, Unavailable
from sparq_sim.fields import Amount
from sparq_sim.journal.cassette import SUFFIX, Cassette, read_cassette
from sparq_sim.limits import check_data_file
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Answering, Briefing, Expert, World
from sparq_sim.simulation.records import Fate

__all__ = ["Replay"]


class Replay(Expert):
    """Answers from a recorded table, from the replies of an earlier study, or from a journal.

    The table has the columns `time` and `value`, a column for each coordinate by its name, and
    may have `std`. A table of replies, which has a column `fate`, is dated by `measured_at`; only
    its answers count, and they must all come from one landscape. The answer for a point is the
    latest value at the nearest place within *reach* that has a value by now, with its date; if
    there is none, the point fails. A query has one date, that of its oldest value; over a channel
    with `split` each point has its own date.

    A journal (.jsonl) of a live or simulated play is a cassette of one *source* in it. The answer
    for a point is the one that the question about the same point had whose asking moment is
    nearest; it comes as long after the question as then, and is dated as long after. What failed
    fails again, what was lost is lost, and readings that nobody asked for are sent again. What was
    not asked within *reach* fails as "not in the journal". Of the channel only costs and splitting
    apply, because all else was recorded.
    """

    file: Path
    """A .csv or .parquet file, the folder of a study that recorded its replies, or a .jsonl file,
    which is a journal. A relative path starts from the working directory or, in a scenario file,
    from the folder of that file; `~` is the home directory."""
    source: str = ""
    """Of a journal: whose answers, by the name there; by default those of its only expert."""
    latency: bool = True
    """Of a journal: whether answers come as late as then, and not at once."""
    where: tuple[tuple[str, str | int | float], ...] = ()
    """Which rows of the table count: pairs of a column and the value that a row must have there,
    such as `[["source", "lab"]]`."""
    reach: Amount = 0.0
    """The largest Euclidean distance from a point to the place that answers for it; 0 requires the
    same point."""
    begins_at: FiniteFloat = 0.0
    """The time of the table at which the play begins, in clock units; earlier rows are left out."""

    @model_validator(mode="after")
    def _fits_its_file(self) -> Self:
        if self.is_recording() and self.where:
            raise ValueError("where chooses rows of a table; of a journal, choose a source")
        if not self.is_recording() and (self.source or not self.latency):
            raise ValueError(
                f"source and latency are for a journal ({SUFFIX}); of a table, choose rows: "
                'where = [["source", "lab"]]'
            )
        return self

    def is_recording(self) -> bool:
        return self.file.suffix == SUFFIX

    def check_play(self, until: float) -> None:
        """Check that the table can be read and begins before the play ends.

        Args:
            until: The time at which the play ends, in clock units.

        Raises:
            SparqError: The table is missing, cannot be read, or begins later.
        """
        if self.is_recording():
            self._read_journal(None)
            return
        table, times = self._read()
        first = times[times >= 0].min()
        if first > until:
            raise SparqError(
                f"{self.file}: its first row is of time {first:g} of the play, which ends at "
                f"{until:g}; set begins_at to the time of the table at which the play begins"
            )
        table.values_and_stds()

    def start(self, briefing: Briefing) -> Answering:
        if self.is_recording():
            return self._read_journal(briefing.domain)
        table, times = self._read()
        points = np.stack([table.numbers(name) for name in briefing.domain.names], axis=1)
        columns = (points, times, *table.values_and_stds())
        return _ReplayAtWork(self.reach, *(column[times >= 0] for column in columns))

    def _read_journal(self, domain: Domain | None) -> Cassette:
        cassette, _ = read_cassette(
            self.file.expanduser(),
            self.source,
            domain=domain,
            reach=self.reach,
            begins_at=self.begins_at,
            latency=self.latency,
        )
        return cassette

    def _read(self) -> tuple[_Table, Values]:
        """Return the rows that count, and the time of the play at which each was measured."""
        table = _read_table(self.file.expanduser())
        for column, value in self.where:
            table = table.select(column, value)
        time = "time"
        if "fate" in table.columns:
            table, time = table.select("fate", Fate.ANSWERED), "measured_at"
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
    """Columns of cells as they were read, and the place of each row in the file."""

    file: Path
    columns: Mapping[str, Sequence[object]]
    places: Sequence[str]

    def column(self, name: str) -> Sequence[object]:
        """Return a column, or raise an error that lists the columns there are."""
        if name not in self.columns:
            raise SparqError(
                f"{self.file} has no column {name!r}; its columns are: {', '.join(self.columns)}"
            )
        return self.columns[name]

    def select(self, name: str, value: object) -> _Table:
        """Keep the rows that have *value* in a column."""
        kept = [i for i, cell in enumerate(self.column(name)) if str(cell) == str(value)]
        if not kept:
            there = ", ".join(sorted({str(cell) for cell in self.columns[name]})[:8])
            raise SparqError(f"{self.file}: no row has {name} {value!r}; there are: {there}")
        columns = {key: [cells[i] for i in kept] for key, cells in self.columns.items()}
        return _Table(self.file, columns, [self.places[i] for i in kept])

    def check_one_landscape(self) -> None:
        """Raise an error if replies are of several landscapes, which contradict each other."""
        for name, cells in self.columns.items():
            if name in ("replication", "seed") or name.partition(".")[0] == "environment":
                several = sorted({str(cell) for cell in cells})
                if len(several) > 1:
                    raise SparqError(
                        f"{self.file} has several {name} ({', '.join(several[:8])}), each with a "
                        "landscape of its own; choose one: "
                        f"where = [[{dumps(name)}, {_as_toml(several[0])}]]"
                    )

    def values_and_stds(self) -> tuple[Values, Values]:
        """Return the values and their stds; without a column of stds, zeros."""
        values = self.numbers("value")
        return values, self.numbers("std") if "std" in self.columns else np.zeros(len(values))

    def numbers(self, name: str) -> Values:
        """Return a column as finite numbers, or raise an error that names the first other cell."""
        numbers = np.array([_parse_number(cell) for cell in self.column(name)])
        for i in np.flatnonzero(~np.isfinite(numbers)).tolist():
            raise SparqError(
                f"{self.file}, {self.places[i]}, {name}: {self.columns[name][i]!r} is no number"
            )
        if name == "std" and (negative := np.flatnonzero(numbers < 0)).size:
            place = self.places[negative[0]]
            raise SparqError(f"{self.file}, {place}, std: {numbers.min()} is negative")
        return numbers


def _as_toml(cell: str) -> str:
    """Write the content of a cell as it stands in a scenario file."""
    return cell if isfinite(_parse_number(cell)) else dumps(cell)


def _parse_number(cell: object) -> float:
    try:
        number = float(cell)  # type: ignore[arg-type] # whatever a table holds
    except (TypeError, ValueError):
        return nan
    return number if isfinite(number) else nan


def _read_table(file: Path) -> _Table:
    if file.is_dir():
        from sparq_sim.study.results import Results

        return _from_arrow(file, Results.open(file).table("replies").to_pydict())
    if file.suffix not in (".csv", ".parquet"):
        raise SparqError(
            f"{file}: expected a .csv or .parquet file, a journal ({SUFFIX}), or the folder of a "
            "study"
        )
    with _report_unreadable(file):
        check_data_file(file)
        return _read_csv(file) if file.suffix == ".csv" else _read_parquet(file)


@contextmanager
def _report_unreadable(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SparqError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SparqError(f"{file} is not a text file in UTF-8: {error.reason}") from error


def _read_csv(file: Path) -> _Table:
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
    return _check_rows(_Table(file, columns, places))


def _read_parquet(file: Path) -> _Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return _from_arrow(file, parquet.read_table(file).to_pydict())
    except pa.ArrowException as error:
        raise SparqError(f"{file} is no Parquet file: {error}") from error


def _from_arrow(file: Path, columns: Mapping[str, Sequence[object]]) -> _Table:
    rows = len(next(iter(columns.values()), []))
    return _check_rows(_Table(file, columns, [f"row {i + 1}" for i in range(rows)]))


def _check_rows(table: _Table) -> _Table:
    if not table.places:
        raise SparqError(f"{table.file} has no rows")
    return table
