"""Readings: what monitors recorded, read from files row by row, each row checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from math import inf, isfinite, nan
from pathlib import Path

from sparq_environments._file_rows import (
    ReadingError,
    american_day,
    csv_rows,
    day,
    moment,
    parquet_rows,
    plain,
)
from sparq_sim.errors import did_you_mean

TIDY = ("date", "site", "lat", "lon", "value")
EPA = ("date", "site id", "site latitude", "site longitude", "units")
NOTHING = frozenset({"", "na", "nan", "null", "none"})
"""What stands in a cell where there is no reading."""
UNITS = {"ppm": 1000.0, "ppb": 1.0, "ug/m3": 1.0, "ug/m3 lc": 1.0, "ug/m3 sc": 1.0}
"""By what a value in EPA's units is multiplied: gases come in ppb, particles as they are."""
SAME_PLACE = 0.01
"""Degrees by which a site may move between rows and still be the same (about 1 km)."""


@dataclass(frozen=True)
class Choice:
    """Which readings are wanted; empty tuples want all."""

    pollutant: str = "Ozone"
    years: tuple[int, ...] = ()
    states: tuple[str, ...] = ()
    counties: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    limits: tuple[float, float] = (-inf, inf)
    """The lowest and the highest value that can be believed."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One value at one site and time."""

    site: str
    place: tuple[float, float]
    """Latitude and longitude, in degrees."""
    time: float
    """A day number, seconds, or the file's own numbers: see `Readings.clock`."""
    value: float
    """NaN where the cell is empty."""
    observed: bool
    rank: int
    """EPA's POC, which tells the instruments of a site apart; 0 where there is none."""
    source: str
    """File and line."""


@dataclass
class Readings:
    """All that was read: one reading for each site and time, and the repairs that made it so."""

    clock: str = ""
    """What times count: days ("date"), or what the files count ("time"): seconds, or numbers."""
    rows: dict[tuple[str, float], Reading] = field(default_factory=dict)
    places: dict[str, tuple[float, float]] = field(default_factory=dict)
    repairs: Counter[str] = field(default_factory=Counter)


def read(files: tuple[Path, ...], choice: Choice) -> Readings:
    """Read *files*, each by what its header says it is: EPA daily CSV, tidy CSV or Parquet.

    Of several instruments (POC) at a site and day, the lowest POC counts. A row that repeats
    another is left out; one that contradicts another is refused.
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
                    f"no row of {_listed(files)} has {what} {name!r}: "
                    f"{did_you_mean(name, seen[what])}"
                )
    if not readings.rows:
        raise ReadingError(f"there are no readings in {_listed(files)}")
    return readings


def _add(reading: Reading, readings: Readings) -> None:
    place = readings.places.setdefault(reading.site, reading.place)
    if place != reading.place:
        if max(abs(a - b) for a, b in zip(place, reading.place, strict=True)) > SAME_PLACE:
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
    """One file: which of its columns mean what, and how its cells are read."""

    def __init__(self, file: Path, choice: Choice, seen: Mapping[str, set[str]]) -> None:
        self._file = file
        self._choice = choice
        self._seen = seen
        self._rows = (
            parquet_rows(file) if file.suffix.lower() in (".parquet", ".pq") else csv_rows(file)
        )
        try:
            self._line, self._header = next(self._rows)
        except StopIteration:
            raise ReadingError(f"{file}: the file is empty; expected a header") from None
        self._columns = {plain(name): i for i, name in reversed([*enumerate(self._header)])}
        self._parse_time: Callable[[str], float]
        epa = {"site id", "site latitude", "aqs parameter code"} & self._columns.keys()
        self._take = self._epa() if epa else self._tidy()
        self._wanted = [
            (what, frozenset(name.lower() for name in wanted), self._column(what))
            for what, wanted in (("state", choice.states), ("county", choice.counties))
            if wanted
        ]
        self._wanted_sites = frozenset(name.lower() for name in choice.sites)

    def readings(self, readings: Readings) -> Iterator[Reading]:
        """Give the readings that are wanted, and count the repairs."""
        if readings.clock not in ("", self._clock):
            raise ReadingError(
                f"{self._file}, line 1, column {self._clock!r}: other files count time by "
                f"{readings.clock!r}; give all of them the same column"
            )
        readings.clock = self._clock
        for line, cells in self._rows:
            self._line = line
            if not any(cells):
                continue
            if len(cells) != len(self._header):
                raise self._error("", f"{len(cells)} cells for {len(self._header)} columns")
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

    # The two formats: each finds its columns once and gives what reads a row.

    def _epa(self) -> Callable[[list[str]], Reading]:
        date_, site, latitude, longitude, units = (self._column(name) for name in EPA)
        value = self._epa_value()
        rank = self._columns.get("poc")
        self._clock, self._parse_time = "date", american_day

        def take(cells: list[str]) -> Reading:
            factor = UNITS.get(cells[units].lower())
            if factor is None:
                raise self._error(
                    self._header[units], f"{cells[units]!r} is none of {', '.join(UNITS)}"
                )
            return Reading(
                site=self._text(cells, site),
                place=(self._number(cells, latitude, 90), self._number(cells, longitude, 180)),
                time=self._time(cells, date_),
                value=self._value(cells, value, factor),
                observed=True,
                rank=0 if rank is None else int(self._number(cells, rank)),
                source=self._source,
            )

        return take

    def _epa_value(self) -> int:
        """Find the column of the wanted pollutant, whose name tells which it is."""
        found = [
            name for name in self._columns if name.startswith("daily ") and "concentration" in name
        ]
        if not found:
            raise self._missing(f"Daily Max 8-hour {self._choice.pollutant} Concentration")
        column = self._columns[found[0]]
        if self._choice.pollutant.lower() not in found[0].split():
            raise self._error(
                self._header[column],
                f"holds no {self._choice.pollutant}; take the file out, or set pollutant",
            )
        return column

    def _tidy(self) -> Callable[[list[str]], Reading]:
        timed = "date" not in self._columns and "time" in self._columns
        time, site, latitude, longitude, value = (
            self._column(name) for name in (("time" if timed else "date"), *TIDY[1:])
        )
        observed = self._columns.get("observed")
        self._clock, self._parse_time = "date", day
        if timed:
            self._clock, self._parse_time = "time", moment

        def take(cells: list[str]) -> Reading:
            return Reading(
                site=self._text(cells, site),
                place=(self._number(cells, latitude, 90), self._number(cells, longitude, 180)),
                time=self._time(cells, time),
                value=self._value(cells, value, 1.0),
                observed=observed is None or self._flag(cells, observed),
                rank=0,
                source=self._source,
            )

        return take

    # Cells

    def _text(self, cells: list[str], column: int) -> str:
        if not cells[column]:
            raise self._error(self._header[column], "is empty; every row names its site")
        return cells[column]

    def _number(self, cells: list[str], column: int, most: float = inf) -> float:
        try:
            number = float(cells[column])
        except ValueError:
            number = nan
        if not (isfinite(number) and abs(number) <= most):
            up_to = f" from {-most:g} to {most:g}" if most < inf else ""
            raise self._error(self._header[column], f"{cells[column]!r} is not a number{up_to}")
        return number

    def _value(self, cells: list[str], column: int, factor: float) -> float:
        if cells[column].lower() in NOTHING:
            return nan
        # Rounded, so that 0.041 ppm is 41 ppb and ties stay ties.
        value = round(factor * self._number(cells, column), 9)
        low, high = self._choice.limits
        if not low <= value <= high:
            raise self._error(
                self._header[column],
                f"{cells[column]} is {value:g}, beyond {low:g} to {high:g}; take the row out if "
                "it is wrong (or its unit), or widen limits",
            )
        return value

    def _flag(self, cells: list[str], column: int) -> bool:
        flags = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
        flag = flags.get(cells[column].lower())
        if flag is None:
            raise self._error(self._header[column], f"{cells[column]!r} is neither 0 nor 1")
        return flag

    def _time(self, cells: list[str], column: int) -> float:
        try:
            time = self._parse_time(cells[column])
        except ValueError as error:
            raise self._error(self._header[column], str(error)) from None
        years = self._choice.years
        if years:
            if self._clock != "date":
                raise self._error(self._header[column], "tells no year; leave years out")
            if (year := date.fromordinal(int(time)).year) not in years:
                told = ", ".join(map(str, years))
                raise self._error(
                    self._header[column],
                    f"{cells[column]} is of {year}, not of {told}; take the file out, or set years",
                )
        return time

    # Where things are

    @property
    def _source(self) -> str:
        return f"{self._file}, line {self._line}"

    def _column(self, name: str) -> int:
        if name not in self._columns:
            raise self._missing(name)
        return self._columns[name]

    def _missing(self, name: str) -> ReadingError:
        return ReadingError(
            f"{self._file}, line 1: column {name!r} is missing; there are: "
            f"{', '.join(self._header)}. Expected EPA's daily CSV, or a tidy file with date or "
            "time, site, lat, lon, value"
        )

    def _error(self, column: str, what: str) -> ReadingError:
        where = f", column {column!r}" if column else ""
        return ReadingError(f"{self._source}{where}: {what}")


def _listed(files: tuple[Path, ...]) -> str:
    return ", ".join(map(str, files))
