"""Densities: how many points of a source are on their way, where they are too many for bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import mask_invisible
from sparq_sim.report.html.packing import Floats, pack_numbers
from sparq_sim.report.network import PHASES
from sparq_sim.simulation.trace import Columns

__all__ = ["Spans", "list_spans", "pack_density"]

Spans: TypeAlias = dict[str, tuple[Floats, Floats]]
"""By phase, when points began and ended it, in clock units."""


def list_spans(points: Columns, phases: Columns) -> Spans:
    """List when the points of a source were in which phase, but for waiting.

    Args:
        points: A row for each point, with `asked_at`, `served_at`, `sent_at` and `arrived_at`.
        phases: The phases of queries on its network, without columns where it is none.
    """
    if phases:
        own = np.isin(phases["query"], points["query"])
        words, starts, ends = (phases[name][own] for name in ("phase", "started_at", "ended_at"))
        known = list(PHASES)
        names = sorted(
            set(words.tolist()), key=lambda name: (known.index(name) if name in known else 99, name)
        )
        return {
            mask_invisible(str(name)): (starts[words == name], ends[words == name])
            for name in names
        }
    arrived = points["arrived_at"]
    # What was never served waited to its end; what was never sent was served to its end.
    served, sent = (
        np.where(np.isnan(points[name]), arrived, points[name]) for name in ("served_at", "sent_at")
    )
    sent = np.maximum(served, sent)
    return {"service": (served, sent), "transit": (sent, arrived)}


def pack_density(
    points: Columns, spans: Spans, fates: Sequence[str], *, width: float
) -> dict[str, Any]:
    """Pack how many points were on their way, in which phase, and what became of them.

    Args:
        points: A row for each point, with `asked_at`, `arrived_at` and `fate`.
        spans: When they were in which phase.
        fates: All that can become of a point.
        width: Of a bin, in clock units.

    Returns:
        For each bin from time 0 on: the points that were on their way in some part of it; the
        shares of their time that they spent in each phase, the rest of which they waited; and how
        many ended in it, by fate.
    """
    asked, arrived = np.sort(points["asked_at"]), np.sort(points["arrived_at"])
    last = int(arrived.max(initial=0.0) / width) + 1
    edges: Floats = np.asarray(np.arange(last + 1) * width, dtype=float)
    # What arrives where a bin begins is in it.
    flying = np.searchsorted(asked, edges[1:]) - np.searchsorted(arrived, edges[:-1])
    total = np.maximum(_time_within(asked, arrived, edges), 1e-9 * width)
    shares = np.stack([_time_within(*span, edges) / total for span in spans.values()])
    bins = np.searchsorted(edges, points["arrived_at"], "right") - 1
    ended = {
        fate: np.bincount(bins[points["fate"] == fate], minlength=last)
        for fate in fates
        if (points["fate"] == fate).any()
    }
    return {
        "width": width,
        "flying": pack_numbers(flying, "u2"),
        "names": list(spans),
        "shares": pack_numbers(np.clip(shares, 0.0, 1.0), "u1"),
        "fates": list(ended),
        "ended": pack_numbers(np.stack([*ended.values()]), "u2"),
    }


def _time_within(starts: Floats, ends: Floats, edges: Floats) -> Floats:
    """Return how long the spans lasted within each bin, all together."""

    def sum_since(moments: Floats) -> Floats:
        sums = np.concatenate([[0.0], np.cumsum(np.sort(moments))])
        begun = np.searchsorted(np.sort(moments), edges)
        return np.asarray(begun * edges - sums[begun])

    within: NDArray[np.float64] = np.diff(sum_since(starts) - sum_since(ends))
    return np.maximum(0.0, within)
