"""One file of readings as a table whose cells are read with errors that name their place."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite, nan
from pathlib import Path

from sparq_environments._file_rows import (
    ReadingError,
    normalize_header,
    read_csv_rows,
    read_parquet_rows,
)

__all__ = ["Sheet"]

_FLAGS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}


class Sheet:
    """The header of a file, and its rows one after the other.

    Columns are numbers; cells of the current row are read by `read_text`, `read_number` and
    `read_flag`, whose errors name the file, the line and the column.

    Args:
        file: A CSV file, or a Parquet file that ends in .parquet or .pq.

    Raises:
        ReadingError: The file cannot be read, or is empty.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        parquet = file.suffix.lower() in (".parquet", ".pq")
        self._rows = read_parquet_rows(file) if parquet else read_csv_rows(file)
        try:
            self._line, self._header = next(self._rows)
        except StopIteration:
            raise ReadingError(f"{file}: the file is empty; expected a header") from None
        # Of several columns with one name the first counts.
        self.columns = {
            normalize_header(name): i for i, name in reversed([*enumerate(self._header)])
        }

    @property
    def source(self) -> str:
        """The file and the line of the current row."""
        return f"{self.file}, line {self._line}"

    def rows(self) -> Iterator[list[str]]:
        """Yield the cells of each row that is not empty, and make it the current row."""
        for line, cells in self._rows:
            self._line = line
            if not any(cells):
                continue
            if len(cells) != len(self._header):
                raise ReadingError(
                    f"{self.source}: {len(cells)} cells for {len(self._header)} columns"
                )
            yield cells

    def find_column(self, name: str) -> int:
        """Return the column with this normalized *name*, or raise an error."""
        if name not in self.columns:
            raise self.missing(name)
        return self.columns[name]

    def read_text(self, cells: list[str], column: int) -> str:
        """Return the name of a site, which must not be empty."""
        if not cells[column]:
            raise self.error(column, "is empty; every row names its site")
        return cells[column]

    def read_number(self, cells: list[str], column: int, most: float = inf) -> float:
        """Return a finite number from -*most* to *most*."""
        try:
            number = float(cells[column])
        except ValueError:
            number = nan
        if not (isfinite(number) and abs(number) <= most):
            up_to = f" from {-most:g} to {most:g}" if most < inf else ""
            raise self.error(column, f"{cells[column]!r} is not a number{up_to}")
        return number

    def read_flag(self, cells: list[str], column: int) -> bool:
        """Return whether a cell is 1, not 0."""
        flag = _FLAGS.get(cells[column].lower())
        if flag is None:
            raise self.error(column, f"{cells[column]!r} is neither 0 nor 1")
        return flag

    def missing(self, name: str) -> ReadingError:
        """Return the error that there is no column with this *name*."""
        return ReadingError(
            f"{self.file}, line 1: column {name!r} is missing; there are: "
            f"{', '.join(self._header)}. Expected EPA's daily CSV, or a tidy file with date or "
            "time, site, lat, lon, value"
        )

    def error(self, column: int, what: str) -> ReadingError:
        """Return the error that *what* is wrong in a column of the current row."""
        return ReadingError(f"{self.source}, column {self._header[column]!r}: {what}")
