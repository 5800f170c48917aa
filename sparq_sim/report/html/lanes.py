"""Lanes: in which row of the timeline each query is drawn, and where rows give way to an area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.report.journeys import find_lanes
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
    found = [
        find_lanes({name: column[own] for name, column in once.items()}, before) for own in owns
    ]
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
