"""Journeys: which points travelled together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparq_sim.simulation.trace import Columns

__all__ = ["find_journeys"]


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
