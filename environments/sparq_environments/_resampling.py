"""Resampling: readings at uneven times, moved to even ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import floor, isclose, nan
from statistics import fmean, median
from typing import Literal, TypeAlias

from sparq_environments._readings import Reading

How: TypeAlias = Literal["mean", "last", "first"]

USUAL = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 900.0, 1200.0, 1800.0),
    *(3600.0, 7200.0, 10800.0, 21600.0, 43200.0, 86400.0),
)
"""What loggers are set to, in seconds."""


@dataclass(frozen=True)
class Resampling:
    """How readings come to lie on even times; lengths are in the unit of the files."""

    step: float | None = None
    """Of the grid; a step holds the readings from its beginning to the next one's."""
    round_to: float | None = None
    """Each time is moved to the nearest multiple of it, first of all."""
    how: How = "mean"
    """What becomes of several readings of a site at one step, or at one rounded time."""

    def apply(self, rows: Sequence[Reading], repairs: list[str]) -> Sequence[Reading]:
        """Return the readings at their new times, one for each site and time.

        Args:
            rows: The readings as they were made.
            repairs: Where to add what was done, a sentence each.
        """
        if self.step is None and self.round_to is None:
            return rows
        ordered = sorted(rows, key=lambda row: row.time)
        groups: dict[tuple[str, float], list[Reading]] = {}
        for row in ordered:
            groups.setdefault((row.site, self._moved(row.time)), []).append(row)
        if self.round_to is not None:
            most = max(abs(_nearest(row.time, self.round_to) - row.time) for row in rows)
            repairs.append(
                f"times rounded to multiples of {self.round_to:g}, each by at most {most:g}"
            )
        if self.step is not None or len(groups) < len(rows):
            of = f"a step of {self.step:g}" if self.step is not None else "a rounded time"
            repairs.append(
                f"{len(rows)} readings resampled to {len(groups)}, "
                f"the {self.how} of each site's in {of}"
            )
        return [self._one(group, time) for (_, time), group in groups.items()]

    def _moved(self, time: float) -> float:
        if self.round_to is not None:
            time = _nearest(time, self.round_to)
        # A multiple that a rounding puts just below is one.
        return time if self.step is None else floor(time / self.step + 1e-9) * self.step

    def _one(self, group: list[Reading], time: float) -> Reading:
        """Make one reading of several, from what was read rather than filled in."""
        chosen = [row for row in group if row.observed] or group
        if self.how == "mean":
            return replace(chosen[0], time=time, value=fmean(row.value for row in chosen))
        return replace(chosen[-1 if self.how == "last" else 0], time=time)


def _nearest(time: float, unit: float) -> float:
    return floor(time / unit + 0.5) * unit


def usual_distance(rows: Iterable[Reading]) -> float:
    """Return the median distance between two readings of a site in a row; NaN without any."""
    times: dict[str, list[float]] = {}
    for row in rows:
        times.setdefault(row.site, []).append(row.time)
    gaps = [after - before for each in times.values() for before, after in pairwise(sorted(each))]
    return median(gaps) if gaps else nan


def remedy(distance: float, clock: str) -> str:
    """Name the fields that put readings on even times, with a value that suits their *distance*."""
    if clock == "date":
        return f"step = {_suited(distance, ()):g} resamples them to steps of so many days"
    value = _suited(distance, USUAL)
    return (
        f"round_to = {value:g} moves each reading to the nearest of such times, for those that "
        f"are a little early or late; step = {value:g} makes one value of all in a step, for "
        "those at any time (see `resample`)"
    )


def _suited(distance: float, usual: Sequence[float]) -> float:
    close = [each for each in usual if isclose(each, distance, rel_tol=0.05)]
    return close[0] if close else float(f"{distance:.2g}")
