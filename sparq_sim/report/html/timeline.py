"""The timeline in a page: what became of each query, packed for the script that draws it."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import mask_invisible
from sparq_sim.messages import AGENT_NAME
from sparq_sim.report.html.packing import (
    Floats,
    mark_shown,
    pack_codes,
    pack_numbers,
    pack_words,
)
from sparq_sim.report.html.phases import find_phases
from sparq_sim.report.network import PHASES
from sparq_sim.report.replay import Film
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import Columns

__all__ = ["choose_window", "pack_replies"]

_MOST_LANES = 24
"""Of the timeline, shared by all sources."""
_HIDDEN = 255
"""The lane of what finds no lane free."""


def choose_window(film: Film, stride: int) -> tuple[float, float]:
    """Return how much time before and after now is shown: some latencies, at least a dozen rounds.

    Where frames are left out to save room, less is shown beside each.

    Args:
        film: What is packed.
        stride: From one frame that is kept to the next.
    """
    replies = film.trace.replies
    latencies = replies["arrived_at"] - replies["asked_at"]
    usual = 2.5 * float(np.quantile(latencies, 0.9)) if len(latencies) else 0.0
    before = max(min(max(usual, 12 * film.period), 60 * film.period) / stride, 2 * film.period)
    return before, before / 4


def pack_replies(
    film: Film, times: Floats, *, before: float, after: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Pack what the frames of a film show of replies: what travelled together is one.

    Args:
        film: What is packed.
        times: The moments of its frames.
        before: How much time a frame shows before its moment, in clock units.
        after: How much it shows after it.

    Returns:
        The columns of the replies, and the lanes in which they are drawn.
    """
    replies, coordinates = film.trace.replies, film.trace.coordinates
    starts = _journeys(replies)
    sizes = np.diff(np.append(starts, len(replies["round"])))
    once = {name: column[starts] for name, column in replies.items()}
    sources = sorted(set(once["source"].tolist()), key=lambda name: (name != "reward", name))
    lanes = _lanes(once, sources, gap=before / 60)
    shown = mark_shown(once["asked_at"], once["arrived_at"], times, before=before, after=after)
    rows = np.repeat(shown, sizes)
    latencies = np.maximum(once["arrived_at"] - once["asked_at"], 1e-12)
    points = np.stack([replies[name] for name in coordinates], axis=1)[rows]
    # What was never served waited to its end; what was never sent was served to its end.
    served, sent = (
        np.clip(np.nan_to_num((once[name] - once["asked_at"]) / latencies, nan=1.0), 0.0, 1.0)
        for name in ("served_at", "sent_at")
    )
    packed = {
        "source": pack_words(once["source"][shown], sources),
        "fate": pack_words(once["fate"][shown], tuple(Fate)),
        "asked": pack_numbers((once["asker"] == AGENT_NAME)[shown], "u1"),
        "lane": pack_codes(lanes[shown]),
        "attempt": pack_codes(np.minimum(once["attempt"][shown], 254)),
        "size": pack_numbers(sizes[shown], "u2"),
        "asked_at": pack_numbers(once["asked_at"][shown], "f4"),
        "arrived_at": pack_numbers(once["arrived_at"][shown], "f4"),
        "measured_at": pack_numbers(once["measured_at"][shown], "f4"),
        "served": pack_numbers(served[shown], "u1"),
        "sent": pack_numbers(sent[shown], "u1"),
        "point": pack_numbers(points, "u2"),
        "value": pack_numbers(replies["value"][rows], "u2"),
    }
    phases, known, nodes = find_phases(film.networks, film.trace, starts, shown)
    counts = [
        int(lanes[(once["source"] == name) & (lanes < _HIDDEN)].max(initial=-1)) + 1
        for name in sources
    ]
    hidden = int((lanes == _HIDDEN).sum())
    names = [mask_invisible(name) for name in sources]
    return packed, {
        "sources": names,
        "counts": counts,
        "fates": list(Fate),
        "hidden": hidden,
        "phases": {
            "names": known,
            "words": [PHASES.get(name, name) for name in known],
            "nodes": nodes if known else [],
            "journey": pack_numbers(phases["journey"], "f4"),
            "place": pack_codes(phases["place"]),
            "phase": pack_codes(phases["phase"]),
            "node": pack_numbers(phases["node"], "f4"),
            "start": pack_numbers(phases["start"], "f4"),
            "length": pack_numbers(phases["length"], "f4"),
        },
    }


def _journeys(replies: Columns) -> NDArray[np.intp]:
    """Find the first rows of what travelled together: same query, attempt, times and fate."""
    same = ("source", "query", "attempt", "fate")
    names = (*same, "asked_at", "served_at", "sent_at", "arrived_at")
    new = np.zeros(len(replies["round"]), dtype=bool)
    new[:1] = True
    for name in names:
        before, after = replies[name][:-1], replies[name][1:]
        new[1:] |= (before != after) & ~((before != before) & (after != after))
    return np.flatnonzero(new)


def _lanes(once: Columns, sources: Sequence[str], *, gap: float) -> NDArray[np.intp]:
    """Assign to each journey the first free lane of its source, if there is room for it."""
    lanes = np.full(len(once["round"]), _HIDDEN, dtype=np.intp)
    needs: dict[str, int] = {}
    for source in sources:
        own = np.flatnonzero(once["source"] == source)
        own = own[np.argsort(once["asked_at"][own], kind="stable")]
        free: list[int] = []
        busy: list[tuple[float, int]] = []
        for journey in own.tolist():
            while busy and busy[0][0] <= once["asked_at"][journey]:
                heappush(free, heappop(busy)[1])
            lanes[journey] = heappop(free) if free else len(busy)
            heappush(busy, (once["arrived_at"][journey] + gap, int(lanes[journey])))
        needs[source] = int(lanes[own].max(initial=-1)) + 1
    # What a source does not need is for those that need more.
    room = _MOST_LANES
    for place, source in enumerate(sorted(sources, key=lambda name: needs[name])):
        most = max(2, room // (len(sources) - place))
        lanes[(once["source"] == source) & (lanes >= most)] = _HIDDEN
        room -= min(needs[source], most)
    return lanes
