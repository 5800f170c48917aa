"""Resampling of readings at uneven times to even times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import floor, isclose, nan
from statistics import fmean, median
from typing import Literal, TypeAlias

from sparq_environments._readings import Reading

__all__ = ["How", "Resampling", "measure_spacing", "suggest_resampling"]

How: TypeAlias = Literal["mean", "last", "first"]
"""Which value represents several readings of a site in one step."""

_USUAL = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 900.0, 1200.0, 1800.0),
    *(3600.0, 7200.0, 10800.0, 21600.0, 43200.0, 86400.0),
)
"""The intervals that loggers are usually set to, in seconds."""


@dataclass(frozen=True)
class Resampling:
    """How readings are moved to even times; lengths are in the time unit of the files."""

    step: float | None = None
    """The length of a step, which takes the readings from its beginning to the next; None: none."""
    round_to: float | None = None
    """The multiple to which each time is rounded first; None: times stay as they are."""
    how: How = "mean"
    """Which value represents several readings of a site in one step, or at one rounded time."""

    def apply(self, rows: Sequence[Reading], repairs: list[str]) -> Sequence[Reading]:
        """Return the readings at their new times, one for each site and time.

        Args:
            rows: The readings as they were made.
            repairs: A list to which a sentence about each change is added.
        """
        if self.step is None and self.round_to is None:
            return rows
        ordered = sorted(rows, key=lambda row: row.time)
        groups: dict[tuple[str, float], list[Reading]] = {}
        for row in ordered:
            groups.setdefault((row.site, self._move(row.time)), []).append(row)
        if self.round_to is not None:
            most = max(abs(_round(row.time, self.round_to) - row.time) for row in rows)
            repairs.append(
                f"times rounded to multiples of {self.round_to:g}, each by at most {most:g}"
            )
        if self.step is not None or len(groups) < len(rows):
            of = f"a step of {self.step:g}" if self.step is not None else "a rounded time"
            repairs.append(
                f"{len(rows)} readings resampled to {len(groups)}, "
                f"the {self.how} of each site's in {of}"
            )
        return [self._merge(group, time) for (_, time), group in groups.items()]

    def _move(self, time: float) -> float:
        if self.round_to is not None:
            time = _round(time, self.round_to)
        # Rounding may put a multiple just below itself.
        return time if self.step is None else floor(time / self.step + 1e-9) * self.step

    def _merge(self, group: list[Reading], time: float) -> Reading:
        """Make one reading of several, of those that were read if there are any."""
        chosen = [row for row in group if row.observed] or group
        if self.how == "mean":
            return replace(chosen[0], time=time, value=fmean(row.value for row in chosen))
        return replace(chosen[-1 if self.how == "last" else 0], time=time)


def _round(time: float, unit: float) -> float:
    return floor(time / unit + 0.5) * unit


def measure_spacing(rows: Iterable[Reading]) -> float:
    """Return the median time between two consecutive readings of a site.

    Args:
        rows: The readings of all sites.

    Returns:
        The median, in the time unit of the files; NaN if no site has two readings.
    """
    times: dict[str, list[float]] = {}
    for row in rows:
        times.setdefault(row.site, []).append(row.time)
    gaps = [after - before for each in times.values() for before, after in pairwise(sorted(each))]
    return median(gaps) if gaps else nan


def suggest_resampling(distance: float, clock: str) -> str:
    """Return a sentence about the fields that put readings on even times.

    Args:
        distance: The usual time between two readings, in the time unit of the files.
        clock: The column that times come from, "date" or "time".

    Returns:
        The sentence, with values that suit the distance.
    """
    if clock == "date":
        return f"step = {_round_spacing(distance, ()):g} resamples them to steps of so many days"
    value = _round_spacing(distance, _USUAL)
    return (
        f"round_to = {value:g} moves each reading to the nearest of such times, for those that "
        f"are a little early or late; step = {value:g} makes one value of all in a step, for "
        "those at any time (see `resample`)"
    )


def _round_spacing(distance: float, usual: Sequence[float]) -> float:
    close = [each for each in usual if isclose(each, distance, rel_tol=0.05)]
    return close[0] if close else float(f"{distance:.2g}")
