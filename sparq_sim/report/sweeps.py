"""Sweeps: what optimizers come to along each axis of a sweep, and at its crossings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite, nan
from typing import Any

import numpy as np

from sparq_sim.analysis.contrasts import find_linked_paths
from sparq_sim.analysis.summary import Spread, spread
from sparq_sim.arrays import Matrix
from sparq_sim.fields import is_number
from sparq_sim.report.data import REFERENCES, ChartData
from sparq_sim.report.uncertainty import list_numbers
from sparq_sim.study.settings import Setting, agree, list_values, shorten_path, shorten_paths
from sparq_sim.study.store import StoredSummary, canonical

__all__ = ["Along", "SweptAxis", "find_along", "find_axes", "find_grid", "list_levels"]

_WIDE = 50
"""Where the largest value is at least so many times the smallest, an axis is logarithmic."""


@dataclass(frozen=True)
class SweptAxis:
    """One axis of a sweep: a path, and those that move along with it."""

    label: str
    """What it is called."""
    values: Sequence[object]
    """Of the path, numbers by their size."""
    points: Sequence[Setting]
    """The values of all its paths, for each of *values*."""

    @property
    def numbers(self) -> list[float]:
        """The values, where all of them are numbers; otherwise none."""
        numbers: list[Any] = [value for value in self.values if is_number(value)]
        return numbers if len(numbers) == len(self.values) else []

    @property
    def is_wide(self) -> bool:
        """Whether the values are numbers above 0 that a logarithmic axis shows better."""
        numbers = self.numbers
        return bool(numbers) and min(numbers) > 0 and max(numbers) >= _WIDE * min(numbers)


@dataclass(frozen=True)
class Along:
    """What an optimizer comes to along an axis."""

    optimizer: str
    """Its name."""
    numbers: Sequence[Sequence[float]]
    """At each value, a number per replication: the mean over all other settings."""

    @property
    def spreads(self) -> list[Spread]:
        """The mean at each value, and its interval."""
        return [spread(numbers) for numbers in self.numbers]


def find_axes(data: ChartData) -> list[SweptAxis]:
    """Find the axes of a sweep: paths that move together are one.

    Paths move together if the value of one decides that of the other (`way = "zip"`), or if no play
    has both, their last words are the same and so are their values: a field of several optimizers.

    Args:
        data: What is drawn.

    Returns:
        The axes, each after a path of numbers where there is one.
    """
    paths, settings = data.varied_paths, [play.setting for play in data.found]
    values = {path: [canonical(value) for value in data.values(path)] for path in paths}
    together = {path: {path, *find_linked_paths(data.found, path)} for path in paths}
    for one, other in combinations(paths, 2):
        apart = not any(one in setting and other in setting for setting in settings)
        alike = shorten_path(one) == shorten_path(other) and values[one] == values[other]
        if apart and alike:
            together[one].add(other)
            together[other].add(one)
    names = shorten_paths(paths)
    axes: list[SweptAxis] = []
    covered: set[str] = set()
    # Those that decide most come first, and of these numbers.
    for path in sorted(paths, key=lambda path: (-len(together[path]), not _is_numeric(data, path))):
        if path not in covered:
            covered |= together[path]
            axes.append(_make_axis(data, path, sorted(together[path], key=paths.index), names))
    return sorted(axes, key=lambda axis: min(paths.index(path) for path in axis.points[0]))


def _is_numeric(data: ChartData, path: str) -> bool:
    return all(is_number(value) for value in data.values(path))


def _make_axis(
    data: ChartData, path: str, moving: Sequence[str], names: Mapping[str, str]
) -> SweptAxis:
    values = data.values(path)
    points = []
    for value in values:
        here = [
            p.setting for p in data.found if agree(p.setting, {path: value}) and path in p.setting
        ]
        point = {path: value}
        for other in moving:
            own = list_values(here, other)
            # No play has both where each optimizer has a path of its own.
            point[other] = own[0] if own else value
        points.append(point)
    differing = [other for other in moving if any(point[other] != point[path] for point in points)]
    alike = {shorten_path(other) for other in moving if other not in differing}
    label = shorten_path(path) if len(moving) > 1 and len(alike) == 1 else names[path]
    label += f", and with it {', '.join(names[other] for other in differing)}" * bool(differing)
    return SweptAxis(label, values, points)


def find_along(data: ChartData, axis: SweptAxis) -> list[Along]:
    """Return what each optimizer comes to along an axis.

    Args:
        data: What is drawn.
        axis: One of the sweep.
    """
    found = []
    for name in data.optimizers:
        own = [play for play in data.found if play.optimizer == name]
        numbers = [
            list_numbers((play for play in own if agree(play.setting, point)), data.criterion)
            for point in axis.points
        ]
        if any(numbers):
            found.append(Along(name, numbers))
    return found


def list_levels(data: ChartData, axis: SweptAxis) -> dict[str, list[float]]:
    """Return the reference levels along an axis, NaN where one is not known, by their names.

    Args:
        data: What is drawn.
        axis: One of the sweep.
    """
    known = [dict(data.levels_in(point)) for point in axis.points]
    levels = {name: [each.get(name, nan) for each in known] for name in REFERENCES.values()}
    return {name: heights for name, heights in levels.items() if any(map(isfinite, heights))}


def find_grid(data: ChartData, optimizer: str, one: SweptAxis, other: SweptAxis) -> Matrix | None:
    """Compute what an optimizer comes to where two axes cross.

    Args:
        data: What is drawn.
        optimizer: Its name.
        one: The axis below.
        other: The axis to the left.

    Returns:
        Means, NaN where nothing was played, (values of *other*, values of *one*); None where the
        optimizer did not play both axes crossed.
    """
    own = [
        play
        for play in data.found
        if play.optimizer == optimizer
        and all(play.setting.keys() & axis.points[0].keys() for axis in (one, other))
    ]

    def pool(x: Setting, y: Setting) -> float:
        cell: list[StoredSummary] = [play for play in own if agree(play.setting, {**x, **y})]
        return spread(list_numbers(cell, data.criterion)).mean

    grid = np.array([[pool(x, y) for x in one.points] for y in other.points])
    # Lists that run side by side fill a diagonal only, which is no map.
    return grid if np.isfinite(grid).sum() > max(grid.shape) else None
