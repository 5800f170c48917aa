"""Recorded: the replay of what monitors read."""

from __future__ import annotations

from functools import lru_cache
from glob import glob, has_magic
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, field_validator, model_validator

from sparq_environments._file_rows import ReadingError
from sparq_environments._readings import Choice, read
from sparq_environments._resampling import How, Resampling
from sparq_environments._site_record import Record, Rule, complete
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Sites
from sparq_sim.fields import Positive, Probability
from sparq_sim.plugin.contract import Environment


def _several(given: Any) -> Any:
    return (given,) if isinstance(given, str | int) else given


Names = Annotated[
    tuple[str, ...], BeforeValidator(_several, json_schema_input_type=str | tuple[str, ...])
]


class Recorded(Environment):
    """Recorded values of monitors at named sites with latitude and longitude, played again.

    f(site, t) = the value of step floor(t), where step 0 is the first day of the record: a design
    at time 0 sees the first day and round t of a period of 1 plays day t + 1, so N days serve
    N - 1 rounds. The record ends at time N, which still counts to the last day; later times are
    refused. Nothing is left to chance: all replications play the same values.

    The files are EPA's daily CSV as users download it (either header, https://www.epa.gov/
    outdoor-air-quality-data/download-daily-data), a day a step; or tidy CSV or Parquet with
    columns date (or time), site, lat, lon, value and, if wanted, observed (0 where the value was
    filled in). Times in a time column must lie on an even grid, whose step is the clock unit, or
    are put on one by *round_to* or *step*. Files are read when a play starts, once in a process as
    long as they do not change.

    For worlds whose drift is real. `repairs` of the landscape says what was done to the readings,
    `available` which values were filled in.
    """

    level_evaluations = 5_000_000

    files: Annotated[Names, Field(min_length=1)]
    """Paths, or patterns such as `data/ad_viz_*.csv`. A relative one is one from the working
    directory, or, in a scenario file, from that file's; `~` is home."""
    pollutant: str = "Ozone"
    """What EPA's files must hold, as in `Daily Max 8-hour Ozone Concentration`; gases in ppb."""
    years: Annotated[
        tuple[int, ...], BeforeValidator(_several, json_schema_input_type=int | tuple[int, ...])
    ] = ()
    """The years that rows may be of, or else there is an error; empty: any."""
    states: Names = ()
    """States whose sites are wanted, by name; empty: all."""
    counties: Names = ()
    """Counties whose sites are wanted, by name; empty: all."""
    sites: Names = ()
    """Sites that are wanted, by EPA's Site ID or the name in a tidy file; empty: all."""
    limits: tuple[float, float] = (0.0, 500.0)
    """The lowest and highest value that can be believed; a value beyond is an error."""
    gaps: Rule = "interpolate"
    """How gaps are filled: `interpolate` in time, `carry` forward, or by the network's mean of
    the day plus the site's mean `anomaly`."""
    coverage: Probability = 0.75
    """Share of all days at which a site must have been read, or it is left out."""

    step: Positive | None = None
    """The clock unit, in the unit of the files: seconds for times such as 2024-05-01 13:00, days
    for dates, or what their numbers count. Of all readings of a site from one multiple of it to
    the next one value is made, which counts for the whole step. Without it, a step is the smallest
    distance between two times."""
    round_to: Positive | None = None
    """Before all else, each time is moved to the nearest multiple of this, in the unit of the
    files, for loggers that are a little early or late. So a reading may count before it was made,
    by at most half of this."""
    resample: How = "mean"
    """What counts of several readings of a site in one step: their `mean`, or the `last` or the
    `first` of them."""

    @model_validator(mode="after")
    def _resamples(self) -> Self:
        if self.resample != "mean" and self.step is None and self.round_to is None:
            raise ValueError(
                f"resample = {self.resample!r} does nothing without step or round_to; "
                "add one of them, or take it out"
            )
        return self

    @field_validator("limits")
    @classmethod
    def _ordered(cls, limits: tuple[float, float]) -> tuple[float, float]:
        low, high = limits
        if not (isfinite(low) and isfinite(high) and low < high):
            raise ValueError(f"limits {limits} must be two finite numbers, the lower one first")
        return limits

    def check_play(self, until: float) -> None:
        """Refuse files that are missing or cannot be read, and a record that ends before then."""
        steps = len(self._read().values)
        if until > steps * (1 + 1e-9):
            raise ReadingError(
                f"the record has {steps} steps and ends at time {steps}, before the play does, "
                f"at {until:g}; play at most {steps - 1} periods of 1, or add files"
            )

    def start(self, rng: Generator) -> RecordedLandscape:
        """Read the files, or remember them."""
        return RecordedLandscape(self._read())

    def _read(self) -> Record:
        stamps = tuple((file, *_stamp(file)) for file in _found(self.files))
        choice = Choice(
            pollutant=self.pollutant,
            years=self.years,
            states=self.states,
            counties=self.counties,
            sites=self.sites,
            limits=self.limits,
        )
        resampling = Resampling(self.step, self.round_to, self.resample)
        return _record(stamps, choice, self.gaps, self.coverage, resampling)


class RecordedLandscape:
    """A record, step by step; *repairs* says what was done to make it complete."""

    def __init__(self, record: Record) -> None:
        self.domain = Sites(record.places, record.sites, ["lat", "lon"])
        self.repairs = record.repairs
        self._values = record.values
        self._observed = record.observed
        self._best = record.values.argmax(axis=1)

    @property
    def steps(self) -> int:
        """How many steps there are; the record ends at this time."""
        return len(self._values)

    def rewards(self, points: Points, time: float) -> Values:
        """Give the value of the step at each site."""
        values: Values = self._values[self._step(time), self.domain.index(points)]
        return values

    def best(self, time: float) -> tuple[Point, float]:
        """Give the first site of the highest value, exactly."""
        step = self._step(time)
        site = self._best[step]
        return self.domain.points[site], float(self._values[step, site])

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        """Tell for each site whether its value was read, not filled in: (n,)."""
        flags: NDArray[np.bool_] = self._observed[self._step(time), self.domain.index(points)]
        return flags

    def _step(self, time: float) -> int:
        if not 0 <= time <= self.steps:
            raise ReadingError(
                f"the record has {self.steps} steps and ends at time {self.steps}; there is "
                f"nothing at {time:g}. Play at most {self.steps - 1} periods of 1, or add files"
            )
        return min(int(time), self.steps - 1)


def _found(patterns: tuple[str, ...]) -> list[Path]:
    """Give the files of all *patterns*, each once."""
    files: dict[Path, None] = {}
    for pattern in patterns:
        path = str(Path(pattern).expanduser())
        matches = sorted(glob(path, recursive=True)) if has_magic(path) else [path]
        if not matches:
            there = "" if Path(path).is_absolute() else f" in {Path.cwd()}"
            raise ReadingError(
                f"no file matches {pattern!r}{there}; name the files of your record, "
                """as in --set 'environment.files=["ozone/*.csv"]'"""
            )
        files.update((Path(match).resolve(), None) for match in matches)
    return list(files)


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError as error:
        raise ReadingError(f"{file}: {error.strerror}; check `files`") from error
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _record(
    stamps: tuple[tuple[Path, int, int], ...],
    choice: Choice,
    gaps: Rule,
    coverage: float,
    resampling: Resampling,
) -> Record:
    """Read and complete a record; with the same files unchanged, the same once more."""
    readings = read(tuple(file for file, _, _ in stamps), choice)
    return complete(readings, gaps=gaps, coverage=coverage, resampling=resampling)
