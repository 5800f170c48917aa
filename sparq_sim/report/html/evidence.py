"""Evidence in a page: on which answers the belief of each frame rests, packed for the script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.messages import AGENT_NAME
from sparq_sim.plugin.optimizer import Evidence
from sparq_sim.report.html.packing import Floats, pack_numbers
from sparq_sim.report.replay import Film
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import Columns

__all__ = ["pack_evidence"]


def pack_evidence(
    film: Film, times: Floats, rows: NDArray[np.intp], *, before: float
) -> dict[str, Any] | None:
    """Pack on which answers the belief of each frame rests, and how uncertain they are by then.

    Args:
        film: What is packed.
        times: The moments of its frames.
        rows: The replies that are packed, as rows of the trace.
        before: For how long after its measurement an answer is shown, in clock units.

    Returns:
        The number of answers of each frame, their places among *rows* and their stds, one frame
        after the other; None if the agent never tells.
    """
    beliefs = [None if belief is None else belief.evidence for belief in film.beliefs]
    if not any(beliefs):
        return None
    told = {name: column[rows] for name, column in film.trace.replies.items()}
    known = _index(told, film.trace.coordinates)
    counts: list[float] = []
    places: list[int] = []
    stds: list[float] = []
    for evidence, now in zip(beliefs, times.tolist(), strict=True):
        found = {} if evidence is None else _match(evidence, known, told["arrived_at"], now)
        recent = {k: std for k, std in found.items() if now - told["measured_at"][k] <= before}
        counts.append(np.nan if evidence is None else len(recent))
        places += recent.keys()
        stds += recent.values()
    return {
        "counts": pack_numbers(np.array(counts), "f4"),
        "places": pack_numbers(np.array(places), "u2" if len(rows) < 2**16 - 1 else "f4"),
        "stds": pack_numbers(np.array(stds), "u1"),
    }


def _index(told: Columns, coordinates: Sequence[str]) -> dict[tuple[bytes, float], list[int]]:
    """List the places of the answers that the agent was told, by point and value."""
    to_agent = (told["asker"] == AGENT_NAME) | (told["asker"] == told["source"])
    heard = np.flatnonzero(to_agent & told["heard"] & (told["fate"] == Fate.ANSWERED))
    points = np.stack([told[name][heard] for name in coordinates], axis=1)
    places: dict[tuple[bytes, float], list[int]] = {}
    for place, key in zip(heard.tolist(), _keys(points, told["value"][heard]), strict=True):
        places.setdefault(key, []).append(place)
    return places


def _keys(points: NDArray[np.float64], values: Floats) -> list[tuple[bytes, float]]:
    points = np.ascontiguousarray(points + 0.0)  # -0.0 and 0.0 are one place
    return [(row.tobytes(), value) for row, value in zip(points, values.tolist(), strict=True)]


def _match(
    evidence: Evidence,
    known: dict[tuple[bytes, float], list[int]],
    arrived_at: Floats,
    now: float,
) -> dict[int, float]:
    """Find where the answers are that are evidence, and their stds; of equal ones, the newest."""
    found: dict[int, float] = {}
    keys = _keys(evidence.points, evidence.values)
    for key, std in zip(keys, evidence.stds.tolist(), strict=True):
        for place in reversed(known.get(key, ())):
            if place not in found and arrived_at[place] <= now:
                found[place] = std
                break
    return found
