"""Journeys: which points travelled together, what held them up, and how to draw them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.messages import REWARD
from sparq_sim.simulation.trace import Columns

__all__ = [
    "choose_span",
    "find_journeys",
    "find_lanes",
    "list_outages",
    "list_sources",
    "split_journey",
]

_FEW = 6
"""Lanes, from which on values older than their query take no room."""


def find_journeys(replies: Columns) -> NDArray[np.intp]:
    """Return the first rows of what travelled together: same query, attempt, times and fate.

    Args:
        replies: Those of a trace, in their order.
    """
    same = ("source", "query", "attempt", "fate")
    names = (*same, "asked_at", "served_at", "sent_at", "measured_at", "arrived_at")
    new = np.zeros(len(replies["round"]), dtype=bool)
    new[:1] = True
    for name in names:
        before, after = replies[name][:-1], replies[name][1:]
        new[1:] |= (before != after) & ~((before != before) & (after != after))
    return np.flatnonzero(new)


def list_sources(replies: Columns) -> list[str]:
    """Return the names of all sources: own observations first.

    Args:
        replies: Those of a trace.
    """
    return sorted(set(replies["source"].tolist()), key=lambda name: (name != REWARD, name))


def split_journey(row: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yield the phases of a journey that took time: their names, starts and ends.

    Args:
        row: Its reply; a time that is not known is None.
    """
    arrived = row["arrived_at"]
    # What was never served waited to its end; what was never sent was served to its end.
    served = arrived if row["served_at"] is None else min(row["served_at"], arrived)
    sent = arrived if row["sent_at"] is None else min(max(served, row["sent_at"]), arrived)
    spans = pairwise([row["asked_at"], served, sent, arrived])
    for name, (begun, over) in zip(("waiting", "service", "transit"), spans, strict=True):
        if begun < over:
            yield name, begun, over


def list_outages(fingerprint: Mapping[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """Return when nobody could be asked, by source, as the channels of a play declare it.

    Args:
        fingerprint: What was played.
    """
    experts = fingerprint.get("experts", {})
    channels = {name: each.get("channel", {}) for name, each in experts.items()}
    channels[REWARD] = fingerprint.get("feedback", {})
    return {
        source: [(float(start), float(end)) for start, end in channel.get("outages", ())]
        for source, channel in channels.items()
    }


def choose_span(replies: Columns, period: float) -> float:
    """Return how much time before a moment tells of it: some latencies, at least a dozen rounds.

    Args:
        replies: Those of a trace.
        period: Clock units between rounds.
    """
    latencies = replies["arrived_at"] - replies["asked_at"]
    usual = 2.5 * float(np.quantile(latencies, 0.9)) if len(latencies) else 0.0
    return min(max(usual, 12 * period), 60 * period)


def find_lanes(once: Columns, before: float) -> NDArray[np.intp]:
    """Return the first free lane of each journey: (n,).

    Args:
        once: A row for each journey of a source.
        before: How much time is shown before a moment, in clock units.
    """
    asked, arrived = once["asked_at"], once["arrived_at"]
    gap = before / 60
    # Where values are older than their query, a line leads back to when they were measured.
    measured = np.fmin(once["measured_at"], asked)
    lanes = _fill(np.maximum(measured, asked - before), arrived + gap)
    return lanes if lanes.max(initial=0) < _FEW else _fill(asked, arrived + gap)


def _fill(starts: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.intp]:
    """Assign spans to lanes in which they do not touch."""
    lanes = np.zeros(len(starts), dtype=np.intp)
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for span in np.argsort(starts, kind="stable").tolist():
        while busy and busy[0][0] <= starts[span]:
            heappush(free, heappop(busy)[1])
        lanes[span] = heappop(free) if free else len(busy)
        heappush(busy, (float(ends[span]), int(lanes[span])))
    return lanes
