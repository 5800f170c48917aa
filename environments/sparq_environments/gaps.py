"""Gaps: a complete record of every site at every time, made from readings, with flags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from math import isclose
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_environments.cells import ReadingError
from sparq_environments.readings import Reading, Readings
from sparq_sim.messages import Matrix, Values, frozen_array

Rule: TypeAlias = Literal["interpolate", "carry", "anomaly"]
MOST_CELLS = 20_000_000
"""Of a record: 160 MB; times that lie on no even grid would need more."""


@dataclass(frozen=True, eq=False)
class Record:
    """Values of all sites (sites,) at all steps (steps, sites), without gaps."""

    sites: tuple[str, ...]
    places: Matrix
    """Latitude and longitude of each site, in degrees: (sites, 2)."""
    values: Matrix
    observed: NDArray[np.bool_]
    """Where a value was read, not filled in: (steps, sites)."""
    repairs: tuple[str, ...]
    """All that was done to the readings, a sentence each."""


def complete(readings: Readings, *, gaps: Rule, coverage: float) -> Record:
    """Put readings on an even grid of times, leave out poor sites, and fill the gaps.

    A site stays if it was read at a share of at least *coverage* of all steps. Gaps are filled by
    one of these rules, and flagged:

    interpolate: linearly between the site's neighbours in time; its ends by the nearest value;
    carry: by the site's last value before; its beginning by its first;
    anomaly: by the mean of the sites read at that step, plus the site's mean distance from it
    (steps at which no site was read by interpolation).
    """
    repairs = [f"{count} {what}" for what, count in sorted(readings.repairs.items())]
    names, values, observed = _grid(readings)
    values, observed, names = _covered(values, observed, names, coverage, repairs)
    if not (observed.sum(axis=1) > 1).any():
        spans = "; ".join(_span(name, readings) for name in names[:6])
        raise ReadingError(f"no two sites were read at the same time, so none is best: {spans}")
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
        values = FILLS[gaps](values)
    flags = observed.copy()
    flags.setflags(write=False)
    return Record(tuple(names), frozen_array(places), frozen_array(values), flags, tuple(repairs))


def _grid(readings: Readings) -> tuple[list[str], Matrix, NDArray[np.bool_]]:
    rows = [row for row in readings.rows.values() if row.value == row.value]
    if not rows:
        raise ReadingError("all values are empty")
    times = np.array(sorted({row.time for row in rows}))
    step = 1.0
    if readings.clock != "date" and len(times) > 1:
        step = float(np.diff(times).min())
    names = sorted({row.site for row in rows})
    steps = round((times[-1] - times[0]) / step) + 1
    if steps * len(names) > MOST_CELLS:
        raise ReadingError(
            f"{len(names)} sites from time {times[0]:g} to {times[-1]:g} in steps of {step:g}, "
            f"their smallest distance, are more than {MOST_CELLS} values; put them on an even grid"
        )
    number = {name: i for i, name in enumerate(names)}
    values = np.full((steps, len(names)), np.nan)
    observed = np.zeros(values.shape, dtype=bool)
    for row in rows:
        at = _step(row, float(times[0]), step)
        values[at, number[row.site]] = row.value
        observed[at, number[row.site]] = row.observed
    return names, values, observed


def _step(row: Reading, first: float, step: float) -> int:
    exact = (row.time - first) / step
    if not isclose(exact, round(exact), abs_tol=1e-3):
        raise ReadingError(
            f"{row.source}, time: {row.time:g} is not a whole number of steps of {step:g}, the "
            f"smallest distance between times, after the first, {first:g}; put them on an even grid"
        )
    return round(exact)


def _covered(
    values: Matrix,
    observed: NDArray[np.bool_],
    names: list[str],
    coverage: float,
    repairs: list[str],
) -> tuple[Matrix, NDArray[np.bool_], list[str]]:
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
            f"{told or 'none'}. Add files, or lower coverage"
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


def _interpolated(values: Matrix) -> Matrix:
    """Fill each column linearly between neighbours in time, its ends by the nearest value."""
    filled = values.copy()
    steps = np.arange(len(values), dtype=float)
    for column in filled.T:
        known = ~np.isnan(column)
        column[~known] = np.interp(steps[~known], steps[known], column[known])
    return filled


def _carried(values: Matrix) -> Matrix:
    """Fill each column by the value before, its beginning by its first."""
    known = ~np.isnan(values)
    steps = np.arange(len(values))[:, None]
    latest = np.maximum.accumulate(np.where(known, steps, -1), axis=0)
    source = np.where(latest < 0, known.argmax(axis=0), latest)
    return np.take_along_axis(values, source, axis=0)


def _by_anomaly(values: Matrix) -> Matrix:
    """Fill by the network mean of the step plus the site's mean distance from it."""
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    means: Values = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    means = _interpolated(means[:, None])[:, 0]
    distances = np.where(known, values - means[:, None], 0.0).sum(axis=0) / known.sum(axis=0)
    return np.where(known, values, means[:, None] + distances)


FILLS: dict[Rule, Callable[[Matrix], Matrix]] = {
    "interpolate": _interpolated,
    "carry": _carried,
    "anomaly": _by_anomaly,
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
