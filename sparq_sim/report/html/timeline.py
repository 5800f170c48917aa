"""The timeline in a page: what became of each query, packed for the script that draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import mask_invisible
from sparq_sim.messages import AGENT_NAME, REWARD
from sparq_sim.report.html.density import list_spans, pack_density
from sparq_sim.report.html.lanes import Lanes, assign_lanes
from sparq_sim.report.html.packing import (
    Floats,
    mark_shown,
    pack_codes,
    pack_numbers,
    pack_words,
)
from sparq_sim.report.journeys import choose_span, find_journeys, list_sources
from sparq_sim.report.network import PHASES
from sparq_sim.report.phases import find_phases
from sparq_sim.report.replay import Film
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import Columns

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played

__all__ = ["choose_window", "pack_replies"]

_STRIPS = 6
"""Of the points of one query, in a bar, at most."""
_BINS = 160
"""Of an area, in the time that a frame shows."""


def choose_window(film: Film, stride: int) -> tuple[float, float]:
    """Return how much time before and after now is shown: some latencies, at least a dozen rounds.

    Where frames are left out to save room, less is shown beside each.

    Args:
        film: What is packed.
        stride: From one frame that is kept to the next.
    """
    span = choose_span(film.trace.replies, film.period)
    before = max(span / stride, 2 * film.period)
    return before, before / 4


def pack_replies(
    film: Film, times: Floats, *, before: float, after: float
) -> tuple[dict[str, Any], dict[str, Any], NDArray[np.intp]]:
    """Pack what the frames of a film show of replies: what travelled together is one.

    What finds room in lanes is drawn as bars; of a source that has too many at a time, an area
    tells how many there are.

    Args:
        film: What is packed.
        times: The moments of its frames.
        before: How much time a frame shows before its moment, in clock units.
        after: How much it shows after it.

    Returns:
        The columns of the replies, the lanes in which they are drawn, and the rows of the trace
        that are packed.
    """
    replies, coordinates = film.trace.replies, film.trace.coordinates
    starts = find_journeys(replies)
    sizes = np.diff(np.append(starts, len(replies["round"])))
    once = {name: column[starts] for name, column in replies.items()}
    sources = list_sources(once)
    shown = mark_shown(once["asked_at"], once["arrived_at"], times, before=before, after=after)
    phases, known, nodes = find_phases(film.networks, film.trace, starts, shown)
    strips = _count_strips(once["source"][shown], sizes[shown], phases, sources)
    lanes = assign_lanes(once, sources, strips=strips, before=before)
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
        "lane": pack_codes(lanes.of[shown]),
        "attempt": pack_codes(np.minimum(once["attempt"][shown], 254)),
        "size": pack_numbers(sizes[shown], "u2"),
        "asked_at": pack_numbers(once["asked_at"][shown], "f4"),
        "arrived_at": pack_numbers(once["arrived_at"][shown], "f4"),
        "measured_at": pack_numbers(once["measured_at"][shown], "f4"),
        "served": pack_numbers(served[shown], "u1"),
        "sent": pack_numbers(sent[shown], "u1"),
        "point": pack_numbers(points, "u2"),
        "value": pack_numbers(replies["value"][rows], "u2"),
        "std": pack_numbers(replies["std"][rows], "u2"),
    }
    described = {
        "sources": [mask_invisible(name) for name in sources],
        "counts": list(lanes.counts),
        "styles": list(lanes.styles),
        "strips": strips,
        "areas": _pack_areas(film, rows, lanes, sources, width=(before + after) / _BINS),
        "outages": _list_outages(film.trace.played, sources),
        "instant": _tell_instant(replies),
        "fates": list(Fate),
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
    return packed, described, np.flatnonzero(rows)


def _count_strips(
    of: NDArray[np.str_], sizes: NDArray[np.intp], phases: Columns, sources: Sequence[str]
) -> list[int]:
    """Count for each source how many points a query on its network usually has: a strip each."""
    journeys = np.unique(phases["journey"].astype(np.intp))
    usual = [np.sort(sizes[journeys][of[journeys] == name]) for name in sources]
    return [min(_STRIPS, int(each[len(each) // 2])) if len(each) else 1 for each in usual]


def _pack_areas(
    film: Film, rows: NDArray[np.bool_], lanes: Lanes, sources: Sequence[str], *, width: float
) -> list[dict[str, Any] | None]:
    """Pack for each source whose queries have no lanes how many are on their way."""
    replies = {name: column[rows] for name, column in film.trace.replies.items()}
    phases = {each.source: each.phases for each in film.networks if each.phases}
    packed: list[dict[str, Any] | None] = []
    for name, style in zip(sources, lanes.styles, strict=True):
        own = replies["source"] == name
        if style != "area" or not own.any():
            packed.append(None)
            continue
        points = {column: values[own] for column, values in replies.items()}
        spans = list_spans(points, phases.get(name, {}))
        packed.append(pack_density(points, spans, tuple(Fate), width=width))
    return packed


def _list_outages(
    played: Played | None, sources: Sequence[str]
) -> list[tuple[tuple[float, float], ...]]:
    """List for each source the times at which nobody could be asked, as its channel declares."""
    if played is None:
        return [() for _ in sources]
    channels = {
        name: each[1] for name, each in played.experts.items() if isinstance(each, tuple)
    } | {REWARD: played.feedback}
    return [channels[name].outages if name in channels else () for name in sources]


def _tell_instant(replies: Columns) -> str:
    """Return a sentence that no query took time, nor was a value older than it; "" if not so."""
    asked = replies["asked_at"]
    if not len(asked):
        return ""
    if (replies["arrived_at"] > asked).any() or (replies["measured_at"] < asked).any():
        return ""
    silent = int((replies["fate"] != Fate.ANSWERED).sum())
    none = f"; {silent} of {len(asked)} points had none" if silent else ""
    return f"Every answer arrives in the round in which it is asked{none}."
