"""Lanes: in which row of the timeline each query is drawn, and where rows give way to an area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.report.html.packing import Floats
from sparq_sim.simulation.trace import Columns

__all__ = ["NO_LANE", "Lanes", "assign_lanes"]

NO_LANE = 255
"""The lane of what is drawn as part of an area."""
_ROOM = 24
"""Lanes that all sources share."""
_THIN = 4
"""Thin lanes that take the room of one."""
_AREA = 6
"""Lanes whose room an area takes."""

LaneStyle: TypeAlias = Literal["lanes", "thin", "area"]
"""How the queries of a source are drawn: as bars, as thin bars, or counted in an area."""


@dataclass(frozen=True)
class Lanes:
    """Where the queries of all sources are drawn."""

    of: NDArray[np.intp]
    """The lane of each journey within its source, or `NO_LANE`: (n,)."""
    styles: Sequence[LaneStyle]
    """How each source is drawn."""
    counts: Sequence[int]
    """How many lanes each source has."""


def assign_lanes(
    once: Columns, sources: Sequence[str], *, strips: Sequence[int], before: float
) -> Lanes:
    """Return the first free lane of its source for each journey; too many are an area instead.

    Args:
        once: A row for each journey.
        sources: Their names, in the order in which they are drawn.
        strips: In how many strips each source draws the points of a query, each a quarter of a
            lane.
        before: How much time a frame shows before its moment, in clock units.
    """
    lanes = np.full(len(once["round"]), NO_LANE, dtype=np.intp)
    owns = [np.flatnonzero(once["source"] == source) for source in sources]
    found = [_find_free(once, own, before) for own in owns]
    needs = [int(own.max(initial=-1)) + 1 for own in found]
    heights = [1.0 if count == 1 else (count + 1) / _THIN for count in strips]
    styles: list[LaneStyle] = ["lanes"] * len(sources)
    # What a source does not need is for those that need more.
    order = sorted(range(len(sources)), key=lambda i: needs[i] * heights[i])
    room = float(_ROOM)
    for place, i in enumerate(order):
        most = max(2.0, room / (len(sources) - place))
        taken = needs[i] * heights[i]
        if taken > most:
            thin = strips[i] == 1 and taken <= most * _THIN
            styles[i], taken = ("thin", taken / _THIN) if thin else ("area", _AREA)
        room -= taken
        if styles[i] != "area":
            lanes[owns[i]] = found[i]
    counts = [0 if style == "area" else need for style, need in zip(styles, needs, strict=True)]
    return Lanes(lanes, styles, counts)


def _find_free(once: Columns, own: NDArray[np.intp], before: float) -> NDArray[np.intp]:
    """Return the first free lane of each journey of a source, were there room for all."""
    asked, arrived = once["asked_at"][own], once["arrived_at"][own]
    gap = before / 60
    # Where values are older than their query, a line leads back to when they were measured.
    measured = np.fmin(once["measured_at"][own], asked)
    lanes = _fill(np.maximum(measured, asked - before), arrived + gap)
    return lanes if lanes.max(initial=0) < _AREA else _fill(asked, arrived + gap)


def _fill(starts: Floats, ends: Floats) -> NDArray[np.intp]:
    """Put spans into lanes in which they do not touch."""
    lanes = np.zeros(len(starts), dtype=np.intp)
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for span in np.argsort(starts, kind="stable").tolist():
        while busy and busy[0][0] <= starts[span]:
            heappush(free, heappop(busy)[1])
        lanes[span] = heappop(free) if free else len(busy)
        heappush(busy, (float(ends[span]), int(lanes[span])))
    return lanes
