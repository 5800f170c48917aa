"""Readings of monitors from files: EPA's daily CSV, tidy CSV or Parquet, each row checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from math import inf, nan
from pathlib import Path

from sparq_environments._file_rows import (
    ReadingError,
    parse_american_day,
    parse_day,
    parse_time,
)
from sparq_environments._sheet import Sheet
from sparq_sim.errors import did_you_mean

__all__ = ["Choice", "Reading", "Readings", "read"]

_TIDY = ("date", "site", "lat", "lon", "value")
_EPA = ("date", "site id", "site latitude", "site longitude", "units")
_EMPTY = frozenset({"", "na", "nan", "null", "none"})
"""The contents of a cell, in lower case, that mean that there is no reading."""
_UNITS = {"ppm": 1000.0, "ppb": 1.0, "ug/m3": 1.0, "ug/m3 lc": 1.0, "ug/m3 sc": 1.0}
"""The factor for each of EPA's units: gases become ppb, particles stay as they are."""
_SAME_PLACE = 0.01
"""The degrees by which the place of a site may differ between rows (about 1 km)."""


@dataclass(frozen=True)
class Choice:
    """Which readings to keep; an empty tuple keeps all."""

    pollutant: str = "Ozone"
    """The pollutant that EPA's files must hold."""
    years: tuple[int, ...] = ()
    """The years that all rows must be of."""
    states: tuple[str, ...] = ()
    """The states whose sites are kept."""
    counties: tuple[str, ...] = ()
    """The counties whose sites are kept."""
    sites: tuple[str, ...] = ()
    """The sites that are kept, by name."""
    limits: tuple[float, float] = (-inf, inf)
    """The lowest and the highest value that is plausible; any other is an error."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One value at one site and time."""

    site: str
    """The name of the site."""
    place: tuple[float, float]
    """Latitude and longitude, in degrees."""
    time: float
    """A day number, seconds, or the file's own numbers: see `Readings.clock`."""
    value: float
    """The value; NaN where the cell is empty."""
    observed: bool
    """Whether the value was read, not filled in by whoever made the file."""
    rank: int
    """EPA's POC, the number of the instrument at a site; 0 where there is none."""
    source: str
    """The file and the line that it comes from."""


@dataclass
class Readings:
    """All readings, one for each site and time, and what was repaired to make them so."""

    clock: str = ""
    """The column that times come from: "date" for days, "time" for seconds or plain numbers."""
    rows: dict[tuple[str, float], Reading] = field(default_factory=dict)
    """The readings, by site and time."""
    places: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The latitude and longitude of each site, in degrees."""
    repairs: Counter[str] = field(default_factory=Counter)
    """How often each repair was made."""


def read(files: tuple[Path, ...], choice: Choice) -> Readings:
    """Read files of readings; the header tells the format: EPA daily CSV, tidy CSV or Parquet.

    Of several instruments (POC) at a site and day, the lowest POC counts. A row that repeats
    another is left out; a row that contradicts another is an error.

    Args:
        files: The files; all must count time in the same way.
        choice: Which readings to keep.

    Returns:
        The readings that are kept, and what was repaired.

    Raises:
        ReadingError: A file cannot be read, a cell makes no sense, or nothing is left.
    """
    readings = Readings()
    seen: dict[str, set[str]] = {"state": set(), "county": set(), "site": set()}
    for file in files:
        for reading in _File(file, choice, seen).readings(readings):
            _add(reading, readings)
    for what, wanted in (
        ("state", choice.states),
        ("county", choice.counties),
        ("site", choice.sites),
    ):
        for name in wanted:
            if name.lower() not in {known.lower() for known in seen[what]}:
                raise ReadingError(
                    f"no row of {_join(files)} has {what} {name!r}: "
                    f"{did_you_mean(name, seen[what])}"
                )
    if not readings.rows:
        raise ReadingError(f"there are no readings in {_join(files)}")
    return readings


def _add(reading: Reading, readings: Readings) -> None:
    place = readings.places.setdefault(reading.site, reading.place)
    if place != reading.place:
        if max(abs(a - b) for a, b in zip(place, reading.place, strict=True)) > _SAME_PLACE:
            raise ReadingError(
                f"{reading.source}, latitude and longitude: site {reading.site!r} lies at "
                f"{reading.place}, but at {place} before; give one of the two another name"
            )
        readings.repairs["rows where a site lies a little off; its first place is kept"] += 1
    key = reading.site, reading.time
    other = readings.rows.get(key)
    if other is None or other.value != other.value:
        readings.rows[key] = reading
    elif reading.value != reading.value:
        return
    elif reading.rank != other.rank:
        readings.repairs["readings of a higher POC left out"] += 1
        if reading.rank < other.rank:
            readings.rows[key] = reading
    elif (reading.value, reading.observed) == (other.value, other.observed):
        readings.repairs["rows that repeat another left out"] += 1
    else:
        raise ReadingError(
            f"{reading.source}, value: {reading.value:g} contradicts {other.value:g} in "
            f"{other.source}, the same site {reading.site!r} and time; take one of the rows out"
        )


class _File:
    """One file: what its columns mean, and which of its readings are kept."""

    def __init__(self, file: Path, choice: Choice, seen: Mapping[str, set[str]]) -> None:
        self._sheet = Sheet(file)
        self._choice = choice
        self._seen = seen
        self._parse_time: Callable[[str], float]
        epa = {"site id", "site latitude", "aqs parameter code"} & self._sheet.columns.keys()
        self._take = self._take_epa() if epa else self._take_tidy()
        self._wanted = [
            (what, frozenset(name.lower() for name in wanted), self._sheet.find_column(what))
            for what, wanted in (("state", choice.states), ("county", choice.counties))
            if wanted
        ]
        self._wanted_sites = frozenset(name.lower() for name in choice.sites)

    def readings(self, readings: Readings) -> Iterator[Reading]:
        """Yield the readings that are kept, and count the repairs."""
        if readings.clock not in ("", self._clock):
            raise ReadingError(
                f"{self._sheet.file}, line 1, column {self._clock!r}: other files count time by "
                f"{readings.clock!r}; give all of them the same column"
            )
        readings.clock = self._clock
        for cells in self._sheet.rows():
            if not all(self._is_wanted(*each, cells) for each in self._wanted):
                continue
            reading = self._take(cells)
            self._seen["site"].add(reading.site)
            if self._wanted_sites and reading.site.lower() not in self._wanted_sites:
                continue
            if reading.value != reading.value:
                readings.repairs["rows without a value taken as gaps"] += 1
            yield reading

    def _is_wanted(self, what: str, wanted: frozenset[str], column: int, cells: list[str]) -> bool:
        self._seen[what].add(cells[column])
        return cells[column].lower() in wanted

    # The two formats: each finds its columns once and returns a function that reads a row.

    def _take_epa(self) -> Callable[[list[str]], Reading]:
        sheet = self._sheet
        date_, site, latitude, longitude, units = (sheet.find_column(name) for name in _EPA)
        value = self._find_pollutant()
        rank = sheet.columns.get("poc")
        self._clock, self._parse_time = "date", parse_american_day

        def take(cells: list[str]) -> Reading:
            factor = _UNITS.get(cells[units].lower())
            if factor is None:
                raise sheet.error(units, f"{cells[units]!r} is none of {', '.join(_UNITS)}")
            return Reading(
                site=sheet.read_text(cells, site),
                place=self._read_place(cells, latitude, longitude),
                time=self._read_time(cells, date_),
                value=self._read_value(cells, value, factor),
                observed=True,
                rank=0 if rank is None else int(sheet.read_number(cells, rank)),
                source=sheet.source,
            )

        return take

    def _find_pollutant(self) -> int:
        """Return the column of the pollutant, which is found by its name."""
        pollutant, columns = self._choice.pollutant, self._sheet.columns
        found = [name for name in columns if name.startswith("daily ") and "concentration" in name]
        if not found:
            raise self._sheet.missing(f"Daily Max 8-hour {pollutant} Concentration")
        column = columns[found[0]]
        if pollutant.lower() not in found[0].split():
            raise self._sheet.error(
                column, f"holds no {pollutant}; take the file out, or set pollutant"
            )
        return column

    def _take_tidy(self) -> Callable[[list[str]], Reading]:
        sheet = self._sheet
        timed = "date" not in sheet.columns and "time" in sheet.columns
        time, site, latitude, longitude, value = (
            sheet.find_column(name) for name in (("time" if timed else "date"), *_TIDY[1:])
        )
        observed = sheet.columns.get("observed")
        self._clock, self._parse_time = "date", parse_day
        if timed:
            self._clock, self._parse_time = "time", parse_time

        def take(cells: list[str]) -> Reading:
            return Reading(
                site=sheet.read_text(cells, site),
                place=self._read_place(cells, latitude, longitude),
                time=self._read_time(cells, time),
                value=self._read_value(cells, value, 1.0),
                observed=observed is None or sheet.read_flag(cells, observed),
                rank=0,
                source=sheet.source,
            )

        return take

    # Cells

    def _read_place(self, cells: list[str], latitude: int, longitude: int) -> tuple[float, float]:
        read = self._sheet.read_number
        return read(cells, latitude, 90), read(cells, longitude, 180)

    def _read_value(self, cells: list[str], column: int, factor: float) -> float:
        if cells[column].lower() in _EMPTY:
            return nan
        # Rounded, so that 0.041 ppm is 41 ppb and ties stay ties.
        value = round(factor * self._sheet.read_number(cells, column), 9)
        low, high = self._choice.limits
        if not low <= value <= high:
            raise self._sheet.error(
                column,
                f"{cells[column]} is {value:g}, beyond {low:g} to {high:g}; take the row out if "
                "it is wrong (or its unit), or widen limits",
            )
        return value

    def _read_time(self, cells: list[str], column: int) -> float:
        try:
            time = self._parse_time(cells[column])
        except ValueError as error:
            raise self._sheet.error(column, str(error)) from None
        years = self._choice.years
        if years:
            if self._clock != "date":
                raise self._sheet.error(column, "tells no year; leave years out")
            if (year := date.fromordinal(int(time)).year) not in years:
                told = ", ".join(map(str, years))
                raise self._sheet.error(
                    column,
                    f"{cells[column]} is of {year}, not of {told}; take the file out, or set years",
                )
        return time


def _join(files: tuple[Path, ...]) -> str:
    return ", ".join(map(str, files))
