"""The environment `recorded`: readings of real monitors, played again."""

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
from sparq_environments._site_record import Rule, SiteRecord, build_record
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Sites
from sparq_sim.fields import Positive, Probability
from sparq_sim.plugin.contract import Environment, Units

__all__ = ["ReadingError", "Recorded", "RecordedLandscape"]


def _as_tuple(given: Any) -> Any:
    return (given,) if isinstance(given, str | int) else given


_Names = Annotated[
    tuple[str, ...], BeforeValidator(_as_tuple, json_schema_input_type=str | tuple[str, ...])
]


class Recorded(Environment):
    """Recorded values of monitors at named sites with latitude and longitude, played again.

        f(site, t) = the value of step floor(t)

    Use it where the drift should be real. Step 0 is the first day of the record: a design at time
    0 sees the first day, and round t of a period of 1 plays day t + 1, so that N days are enough
    for N - 1 rounds. The record ends at time N, which still belongs to the last day; later times
    are an error. Nothing is random: all replications play the same values.

    The files are EPA's daily CSV as users download it (either header, https://www.epa.gov/
    outdoor-air-quality-data/download-daily-data), with a day as the step; or tidy CSV or Parquet
    with the columns date (or time), site, lat, lon, value and, optionally, observed (0 where the
    value was filled in). Times in a time column must lie on an even grid, whose step is the clock
    unit, or are moved to one by *round_to* or *step*. Files are read when a play starts, and once
    in a process while they do not change.

    The landscape's `repairs` list what was done to the readings, and its `available` tells which
    values were read and not filled in.
    """

    level_evaluations = 5_000_000
    units = Units(coordinates=("°", "°"))

    files: Annotated[_Names, Field(min_length=1)]
    """Paths, or patterns such as `data/ad_viz_*.csv`. A relative path starts from the working
    directory or, in a scenario file, from the folder of that file; `~` is the home directory."""
    pollutant: str = "Ozone"
    """The pollutant that EPA's files must hold, as in `Daily Max 8-hour Ozone Concentration`;
    gases are converted to ppb."""
    years: Annotated[
        tuple[int, ...], BeforeValidator(_as_tuple, json_schema_input_type=int | tuple[int, ...])
    ] = ()
    """The years that all rows must be of; a row of another year is an error. Empty: any year."""
    states: _Names = ()
    """The states whose sites are kept, by name; empty: all."""
    counties: _Names = ()
    """The counties whose sites are kept, by name; empty: all."""
    sites: _Names = ()
    """The sites that are kept, by EPA's Site ID or by the name in a tidy file; empty: all."""
    limits: tuple[float, float] = (0.0, 500.0)
    """The lowest and the highest plausible value; a value outside is an error."""
    gaps: Rule = "interpolate"
    """How gaps are filled: `interpolate` linearly in time, `carry` the last value forward, or
    `anomaly`: the mean of all sites on that day plus the site's mean difference from it."""
    coverage: Probability = 0.75
    """The share of all days on which a site must have been read; other sites are left out."""

    step: Positive | None = None
    """The length of a step, which is the clock unit, in the time unit of the files: seconds for
    times such as 2024-05-01 13:00, days for dates, or what their numbers count. All readings of a
    site from one multiple of it to the next become one value, which holds for the whole step. By
    default a step is the smallest distance between two times."""
    round_to: Positive | None = None
    """The multiple to which each time is rounded first, in the time unit of the files, for loggers
    that are a little early or late. A reading may then count before it was made, by at most half
    of this."""
    resample: How = "mean"
    """Which value represents several readings of a site in one step: their `mean`, the `last` or
    the `first`."""

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
        """Check that the files can be read and that the record is long enough.

        Args:
            until: The time at which the play ends, in clock units.

        Raises:
            ReadingError: A file is missing or cannot be read, or the record ends earlier.
        """
        steps = len(self._read().values)
        if until > steps * (1 + 1e-9):
            raise ReadingError(
                f"the record has {steps} steps and ends at time {steps}, before the play does, "
                f"at {until:g}; play at most {steps - 1} periods of 1, or add files"
            )

    def start(self, rng: Generator) -> RecordedLandscape:
        """Read the files, unless this process has read them before.

        Args:
            rng: Not used, because nothing is random.

        Raises:
            ReadingError: A file is missing or cannot be read.
        """
        return RecordedLandscape(self._read())

    def _read(self) -> SiteRecord:
        stamps = tuple((file, *_stamp(file)) for file in _find_files(self.files))
        choice = Choice(
            pollutant=self.pollutant,
            years=self.years,
            states=self.states,
            counties=self.counties,
            sites=self.sites,
            limits=self.limits,
        )
        resampling = Resampling(self.step, self.round_to, self.resample)
        return _read_record(stamps, choice, self.gaps, self.coverage, resampling)


class RecordedLandscape:
    """The landscape of a record.

    Its `repairs` list what was done to the readings, a sentence each.

    Args:
        record: The values of all sites at all steps.
    """

    def __init__(self, record: SiteRecord) -> None:
        self.domain = Sites(record.places, record.sites, ["lat", "lon"])
        self.repairs = record.repairs
        self._values = record.values
        self._observed = record.observed
        self._best = record.values.argmax(axis=1)

    @property
    def steps(self) -> int:
        """The number of steps; the record ends at this time."""
        return len(self._values)

    def rewards(self, points: Points, time: float) -> Values:
        """Return the value of each site at a time, exactly.

        Args:
            points: Sites, (n, 2).
            time: The time, in clock units.

        Returns:
            The values, (n,), whether they were read or filled in.

        Raises:
            ReadingError: The record has no such time.
        """
        values: Values = self._values[self._step(time), self.domain.index(points)]
        return values

    def best(self, time: float) -> tuple[Point, float]:
        """Return the first site with the highest value at a time.

        Args:
            time: The time, in clock units.

        Returns:
            The site, (2,), and its value.

        Raises:
            ReadingError: The record has no such time.
        """
        step = self._step(time)
        site = self._best[step]
        return self.domain.points[site], float(self._values[step, site])

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        """Return whether the value at each site was read, not filled in.

        Args:
            points: Sites, (n, 2).
            time: The time, in clock units.

        Returns:
            True where the value was read, (n,).
        """
        flags: NDArray[np.bool_] = self._observed[self._step(time), self.domain.index(points)]
        return flags

    def _step(self, time: float) -> int:
        if not 0 <= time <= self.steps:
            raise ReadingError(
                f"the record has {self.steps} steps and ends at time {self.steps}; there is "
                f"nothing at {time:g}. Play at most {self.steps - 1} periods of 1, or add files"
            )
        return min(int(time), self.steps - 1)


def _find_files(patterns: tuple[str, ...]) -> list[Path]:
    """Return the files of all *patterns*, each once."""
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
def _read_record(
    stamps: tuple[tuple[Path, int, int], ...],
    choice: Choice,
    gaps: Rule,
    coverage: float,
    resampling: Resampling,
) -> SiteRecord:
    """Read and complete a record; remembered while the files do not change."""
    readings = read(tuple(file for file, _, _ in stamps), choice)
    return build_record(readings, gaps=gaps, coverage=coverage, resampling=resampling)
