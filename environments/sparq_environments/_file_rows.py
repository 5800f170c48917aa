"""Cells: the rows of CSV and Parquet files as text, and the times that cells tell."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import TypeAlias

from sparq_sim.errors import SparqError

Row: TypeAlias = tuple[int, list[str]]
"""The line of a row in its file, and its cells."""


class ReadingError(SparqError):
    """A file of readings that cannot be used: says the file, the line and the column."""


def csv_rows(file: Path) -> Iterator[Row]:
    """Give the rows, stripped of space."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines)
            for cells in reader:
                yield reader.line_num, [cell.strip() for cell in cells]
    except UnicodeDecodeError as error:
        raise ReadingError(f"{file}: not UTF-8 text ({error.reason}); save it as UTF-8") from error
    except (OSError, csv.Error) as error:
        raise ReadingError(f"{file}: cannot be read: {error}") from error


def parquet_rows(file: Path) -> Iterator[Row]:
    """Give the rows as text; the first row of values is line 2, as in a CSV file."""
    import pyarrow  # Loaded when a file is read, not when a scenario is checked.
    from pyarrow import parquet

    try:
        table = parquet.read_table(file)
    except (OSError, pyarrow.ArrowException) as error:
        raise ReadingError(f"{file}: cannot be read: {error}") from error
    yield 1, [str(name) for name in table.column_names]
    for line, cells in enumerate(zip(*(c.to_pylist() for c in table.columns), strict=True), 2):
        yield line, ["" if cell is None else str(cell).strip() for cell in cells]


def plain(name: str) -> str:
    """Write both of EPA's headers alike: SITE_LATITUDE as Site Latitude."""
    return " ".join(name.lower().replace("_", " ").split())


@lru_cache(maxsize=20_000)
def american_day(text: str) -> float:
    """Give the number of a day written MM/DD/YYYY."""
    try:
        month, day, year = text.split("/")
        return float(date(int(year), int(month), int(day)).toordinal())
    except ValueError:
        raise ValueError(f"{text!r} is not a date as MM/DD/YYYY") from None


@lru_cache(maxsize=20_000)
def day(text: str) -> float:
    """Give the number of a day written YYYY-MM-DD."""
    try:
        # Parquet files may hold midnights instead of days.
        return float(date.fromisoformat(text.removesuffix(" 00:00:00")).toordinal())
    except ValueError:
        raise ValueError(f"{text!r} is not a date as YYYY-MM-DD") from None


def moment(text: str) -> float:
    """Give a number as it is, and a time as seconds."""
    try:
        number = float(text)
    except ValueError:
        try:
            told = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(
                f"{text!r} is neither a number nor a time as YYYY-MM-DD HH:MM"
            ) from None
        aware = told if told.tzinfo else told.replace(tzinfo=UTC)
        return aware.timestamp()
    if not isfinite(number):
        raise ValueError(f"{text!r} is not a finite number")
    return number
