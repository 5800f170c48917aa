"""A complete record of every site at every step, built from readings, its gaps filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from math import isclose
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_environments._file_rows import ReadingError
from sparq_environments._readings import Reading, Readings
from sparq_environments._resampling import Resampling, measure_spacing, suggest_resampling
from sparq_sim.arrays import Matrix, Values, freeze_array

__all__ = ["Rule", "SiteRecord", "build_record"]

Rule: TypeAlias = Literal["interpolate", "carry", "anomaly"]
"""How gaps are filled; see `build_record`."""

_MOST_VALUES = 20_000_000
"""The largest size of a record, 160 MB; times on no even grid would need more."""


@dataclass(frozen=True, eq=False)
class SiteRecord:
    """The values of all sites at all steps, without gaps."""

    sites: tuple[str, ...]
    """The names of the sites."""
    places: Matrix
    """The latitude and longitude of each site, in degrees, (sites, 2)."""
    values: Matrix
    """The value of each site at each step, (steps, sites)."""
    observed: NDArray[np.bool_]
    """Whether each value was read, not filled in, (steps, sites)."""
    repairs: tuple[str, ...]
    """Everything that was done to the readings, a sentence each."""


def build_record(
    readings: Readings, *, gaps: Rule, coverage: float, resampling: Resampling | None = None
) -> SiteRecord:
    """Put readings on an even grid of times, leave out poor sites, and fill the gaps.

    Gaps are filled, and flagged as not observed, by one of these rules:

    - interpolate: linearly in time between the values of the site; before its first and after its
      last value by the nearest one;
    - carry: by the last value of the site; before its first value by the first;
    - anomaly: by the mean of the sites that were read at that step, plus the site's mean distance
      from that mean; the mean of a step without any reading is interpolated.

    Args:
        readings: The readings, one for each site and time.
        gaps: The rule by which gaps are filled.
        coverage: The share of all steps at which a site must have been read to be kept.
        resampling: How uneven times are moved to an even grid; by default they are not.

    Returns:
        The record, with everything that was done to the readings.

    Raises:
        ReadingError: Times lie on no even grid, or no two sites can be compared.
    """
    repairs = [f"{count} {what}" for what, count in sorted(readings.repairs.items())]
    rows = [row for row in readings.rows.values() if row.value == row.value]
    if not rows:
        raise ReadingError("all values are empty")
    resampling = resampling or Resampling()
    grid = _Grid(resampling.apply(rows, repairs), readings.clock, resampling.step)
    values, observed, names = _select_sites(grid, coverage, repairs)
    if not (observed.sum(axis=1) > 1).any():
        spans = "; ".join(_span(name, readings) for name in names[:6])
        hint = f"; {grid.too_fine}" if grid.too_fine else ""
        raise ReadingError(
            f"no two sites were read at the same time, so none is best: {spans}{hint}"
        )
    places = np.array([readings.places[name] for name in names])
    _check_places(names, places)
    missing = np.isnan(values)
    given = ~missing & ~observed
    if given.any():
        repairs.append(f"{_share(given)} come as filled in (observed 0)")
    if missing.any():
        repairs.append(f"{_share(missing)} are gaps, filled by {gaps!r}")
        silent = int(missing.all(axis=1).sum())
        if silent:
            repairs.append(f"{silent} steps have no reading at all")
        values = _FILLS[gaps](values)
    flags = observed.copy()
    flags.setflags(write=False)
    return SiteRecord(
        tuple(names), freeze_array(places), freeze_array(values), flags, tuple(repairs)
    )


class _Grid:
    """Readings on an even grid of times: values, and whether they were read, by step and site."""

    def __init__(self, rows: Sequence[Reading], clock: str, step: float | None) -> None:
        times = np.array(sorted({row.time for row in rows}))
        self._rows = rows
        self._clock = clock
        self._first = float(times[0])
        self._step = step or 1.0
        if step is None and clock != "date" and len(times) > 1:
            self._step = float(np.diff(times).min())
        self.names = sorted({row.site for row in rows})
        steps = round((times[-1] - times[0]) / self._step) + 1
        if steps * len(self.names) > _MOST_VALUES:
            raise ReadingError(
                f"{len(self.names)} sites from time {times[0]:.10g} to {times[-1]:.10g} in steps "
                f"of {self._step:g}, their smallest distance, are more than {_MOST_VALUES} values; "
                f"{self._remedy}"
            )
        number = {name: i for i, name in enumerate(self.names)}
        self.values = np.full((steps, len(self.names)), np.nan)
        self.observed = np.zeros(self.values.shape, dtype=bool)
        for row in rows:
            at = self._place(row), number[row.site]
            self.values[at] = row.value
            self.observed[at] = row.observed

    def _place(self, row: Reading) -> int:
        exact = (row.time - self._first) / self._step
        if not isclose(exact, round(exact), abs_tol=1e-3):
            raise ReadingError(
                f"{row.source}, time: {row.time:.10g} is not a whole number of steps of "
                f"{self._step:g}, the smallest distance between times, after the first, "
                f"{self._first:.10g}; {self._remedy}"
            )
        return round(exact)

    @property
    def too_fine(self) -> str:
        """A remedy for sites that are read at few of the steps; empty if steps are long enough."""
        distance = measure_spacing(self._rows)
        if not distance > 1.5 * self._step:
            return ""
        return f"a step is {self._step:g}, and {self._remedy}"

    @property
    def _remedy(self) -> str:
        distance = measure_spacing(self._rows)
        if distance != distance:
            return "put them on an even grid"
        told = f"a site is read about every {distance:g}"
        return f"{told}: {suggest_resampling(distance, self._clock)}"


def _select_sites(
    grid: _Grid, coverage: float, repairs: list[str]
) -> tuple[Matrix, NDArray[np.bool_], list[str]]:
    values, observed, names = grid.values, grid.observed, grid.names
    shares = observed.mean(axis=0)
    kept = (shares >= coverage) & (shares > 0)
    told = ", ".join(
        f"{name} ({share:.2f})"
        for name, share, keep in zip(names, shares, kept, strict=True)
        if not keep
    )
    left = [name for name, keep in zip(names, kept, strict=True) if keep]
    if len(left) < 2:
        raise ReadingError(
            f"{len(left)} of {len(names)} sites were read at a share of at least {coverage:g} of "
            f"the {len(values)} steps; two are needed to choose between. Left out: "
            f"{told or 'none'}; {grid.too_fine or 'add files, or lower coverage'}"
        )
    if told:
        repairs.append(
            f"{len(names) - len(left)} sites below coverage {coverage:g} left out: {told}"
        )
    return values[:, kept], observed[:, kept], left


def _check_places(names: list[str], places: Matrix) -> None:
    first: dict[tuple[float, ...], str] = {}
    for name, place in zip(names, places.tolist(), strict=True):
        other = first.setdefault(tuple(place), name)
        if other != name:
            raise ReadingError(
                f"sites {other!r} and {name!r} both lie at {place}; choose by `sites` which to keep"
            )


def _interpolate(values: Matrix) -> Matrix:
    """Fill each column linearly in time, and its ends by the nearest value."""
    filled = values.copy()
    steps = np.arange(len(values), dtype=float)
    for column in filled.T:
        known = ~np.isnan(column)
        column[~known] = np.interp(steps[~known], steps[known], column[known])
    return filled


def _carry(values: Matrix) -> Matrix:
    """Fill each column by the value before, and its beginning by its first value."""
    known = ~np.isnan(values)
    steps = np.arange(len(values))[:, None]
    latest = np.maximum.accumulate(np.where(known, steps, -1), axis=0)
    source = np.where(latest < 0, known.argmax(axis=0), latest)
    return np.take_along_axis(values, source, axis=0)


def _fill_by_anomaly(values: Matrix) -> Matrix:
    """Fill by the mean of all sites at the step plus the site's mean distance from it."""
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    means: Values = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    means = _interpolate(means[:, None])[:, 0]
    distances = np.where(known, values - means[:, None], 0.0).sum(axis=0) / known.sum(axis=0)
    return np.where(known, values, means[:, None] + distances)


_FILLS: dict[Rule, Callable[[Matrix], Matrix]] = {
    "interpolate": _interpolate,
    "carry": _carry,
    "anomaly": _fill_by_anomaly,
}


def _share(flags: NDArray[np.bool_]) -> str:
    return f"{int(flags.sum())} of {flags.size} values ({100 * flags.mean():.1f} %)"


def _span(name: str, readings: Readings) -> str:
    times = [time for site, time in readings.rows if site == name]
    ends = [
        date.fromordinal(int(time)).isoformat() if readings.clock == "date" else f"{time:g}"
        for time in (min(times), max(times))
    ]
    return f"{name} from {ends[0]} to {ends[1]}"
