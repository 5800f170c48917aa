"""Rows of CSV and Parquet files as text, and the dates and times that their cells hold."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import TypeAlias

from sparq_sim.errors import SparqError
from sparq_sim.limits import check_data_file

__all__ = [
    "ReadingError",
    "Row",
    "normalize_header",
    "parse_american_day",
    "parse_day",
    "parse_time",
    "read_csv_rows",
    "read_parquet_rows",
]

Row: TypeAlias = tuple[int, list[str]]
"""The number of the line in the file, from 1, and the cells of the row."""


class ReadingError(SparqError):
    """A file of readings cannot be used; the message names the file, the line and the column."""


def read_csv_rows(file: Path) -> Iterator[Row]:
    """Read the rows of a CSV file, the header included.

    Args:
        file: The file, in UTF-8.

    Yields:
        Each row, its cells without surrounding spaces.

    Raises:
        ReadingError: The file cannot be read.
    """
    try:
        check_data_file(file)
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines)
            for cells in reader:
                yield reader.line_num, [cell.strip() for cell in cells]
    except UnicodeDecodeError as error:
        raise ReadingError(f"{file}: not UTF-8 text ({error.reason}); save it as UTF-8") from error
    except OSError as error:
        raise ReadingError(f"{file}: cannot be read: {error.strerror or error}") from error
    except csv.Error as error:
        raise ReadingError(f"{file}: cannot be read: {error}") from error


def read_parquet_rows(file: Path) -> Iterator[Row]:
    """Read the rows of a Parquet file as text, the names of the columns first.

    Args:
        file: The file.

    Yields:
        Each row; the first row of values is line 2, as in a CSV file.

    Raises:
        ReadingError: The file cannot be read.
    """
    import pyarrow  # Loaded when a file is read, not when a scenario is checked.
    from pyarrow import parquet

    try:
        check_data_file(file)
        table = parquet.read_table(file)
    except OSError as error:
        raise ReadingError(f"{file}: cannot be read: {error.strerror or error}") from error
    except pyarrow.ArrowException as error:
        raise ReadingError(f"{file}: cannot be read: {error}") from error
    yield 1, [str(name) for name in table.column_names]
    for line, cells in enumerate(zip(*(c.to_pylist() for c in table.columns), strict=True), 2):
        yield line, ["" if cell is None else str(cell).strip() for cell in cells]


def normalize_header(name: str) -> str:
    """Return a column's name in lower case with single spaces.

    EPA's two headers become the same: `SITE_LATITUDE` and `Site Latitude`.

    Args:
        name: The name as it stands in the file.
    """
    return " ".join(name.lower().replace("_", " ").split())


@lru_cache(maxsize=20_000)
def parse_american_day(text: str) -> float:
    """Return the ordinal number of a day.

    Args:
        text: The day, as MM/DD/YYYY.

    Raises:
        ValueError: The text is not such a date.
    """
    try:
        month, day, year = text.split("/")
        return float(date(int(year), int(month), int(day)).toordinal())
    except ValueError:
        raise ValueError(f"{text!r} is not a date as MM/DD/YYYY") from None


@lru_cache(maxsize=20_000)
def parse_day(text: str) -> float:
    """Return the ordinal number of a day.

    Args:
        text: The day, as YYYY-MM-DD.

    Raises:
        ValueError: The text is not such a date.
    """
    try:
        # Parquet files may hold midnights instead of days.
        return float(date.fromisoformat(text.removesuffix(" 00:00:00")).toordinal())
    except ValueError:
        raise ValueError(f"{text!r} is not a date as YYYY-MM-DD") from None


def parse_time(text: str) -> float:
    """Return a time as a number: a number as it is, a date and time in seconds since 1970.

    Args:
        text: A number, or a time as YYYY-MM-DD HH:MM; UTC, unless it names a time zone.

    Raises:
        ValueError: The text is neither.
    """
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
