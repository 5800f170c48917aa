"""Replays in a page: films packed as JSON for the script that plays them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import mask_invisible
from sparq_sim.report.html.packing import mark_shown, pack_numbers
from sparq_sim.report.html.timeline import choose_window, pack_replies
from sparq_sim.report.palette import spread_shares
from sparq_sim.report.replay import Film, Replay
from sparq_sim.report.shares import list_parts, spell_out
from sparq_sim.simulation.trace import Trace

__all__ = ["pack", "pack_all"]

_MOST_BYTES = 3_000_000
"""Of all replays together, as JSON."""


def pack_all(replays: Sequence[Replay]) -> list[dict[str, Any]]:
    """Pack replays for a page, with fewer frames where they would be too large together.

    Args:
        replays: Those of a report.

    Returns:
        What the script draws of each, JSON-able.
    """
    stride = 1
    while True:
        packed = [pack(replay, stride=stride) for replay in replays]
        longest = max((len(each.film.frames) for each in replays if each.film), default=0)
        if stride > longest or len(json.dumps(packed)) <= _MOST_BYTES:
            return packed
        stride *= 2


def pack(replay: Replay, *, stride: int = 1) -> dict[str, Any]:
    """Pack all that the script of a page draws of a replay, thinned and quantised.

    Args:
        replay: One play to watch.
        stride: Only every so-many-th frame is kept, and a window that much shorter.

    Returns:
        What is JSON-able; where there is no film, the title and the reason.
    """
    if replay.film is None:
        return {"title": mask_invisible(replay.title), "missing": mask_invisible(replay.missing)}
    film = replay.film.every(stride)
    rounds = film.trace.rounds
    times = rounds["played_at"][film.frames]
    before, after = choose_window(film, stride)
    shown = mark_shown(rounds["played_at"], rounds["played_at"], times, before=before, after=0.0)
    replies, lanes = pack_replies(film, times, before=before, after=after)
    notes = list(replay.notes)
    if len(film.frames) < len(film.trace):
        notes.append(f"{len(film.frames)} of its {len(film.trace)} rounds are shown.")
    return {
        "title": mask_invisible(replay.title),
        "notes": [mask_invisible(note) for note in notes],
        "scene": film.scene.kind,
        **film.scene.shape,
        "period": film.period,
        "total": len(film.trace),
        "window": [before, after],
        "frames": np.searchsorted(np.flatnonzero(shown), film.frames).tolist(),
        "best": pack_numbers(film.best, "u2"),
        **_fields(film),
        "rounds": _rounds(film.trace, shown),
        "shares": _shares(film),
        "replies": replies,
        "lanes": lanes,
    }


def _fields(film: Film) -> dict[str, Any]:
    """Pack true rewards and beliefs; curves finely, since they are drawn, fields for colours."""
    if not film.rewards.size:
        return {}
    kind: Literal["u1", "u2"] = "u2" if film.scene.kind == "line" else "u1"
    low, high = float(film.rewards.min()), float(film.rewards.max())
    data: dict[str, Any] = {"true": pack_numbers(film.rewards, kind), "range": [low, high]}
    known = [belief for belief in film.beliefs if belief is not None]
    if not known:
        return data
    absent = np.full(len(film.scene.believed), np.nan)
    means = np.array([absent if b is None else b.mean for b in film.beliefs])
    stds = np.array([absent if b is None else b.std for b in film.beliefs])
    widths = np.array([np.nan if b is None else b.width for b in film.beliefs])
    # A bound may be far above all rewards; a curve that leaves the picture says as much.
    room = high - low or 1.0
    bounds = [*np.nanquantile(means - stds, [0.02]), *np.nanquantile(means + stds, [0.98])]
    upper = float(np.nanquantile(means + widths[:, None] * stds, 0.9))
    return data | {
        "mean": pack_numbers(means, kind),
        "std": pack_numbers(stds, kind),
        "width": pack_numbers(widths, "f4"),
        "range": [
            min(low, max(bounds[0], low - room / 2)),
            max(high, min(max(bounds[1], upper), high + room)),
        ],
    }


def _rounds(trace: Trace, shown: NDArray[np.bool_]) -> dict[str, Any]:
    """Pack what became of each round that is *shown*."""
    rounds = trace.rounds
    averages = np.cumsum(rounds["regret"]) / np.arange(1, len(trace) + 1)
    return {
        "round": pack_numbers(rounds["round"][shown], "f4"),
        "started_at": pack_numbers(rounds["started_at"][shown], "f4"),
        "played_at": pack_numbers(rounds["played_at"][shown], "f4"),
        "point": pack_numbers(trace.points[shown], "u2"),
        "reward": pack_numbers(rounds["reward"][shown], "f4"),
        "best": pack_numbers(rounds["best"][shown], "f4"),
        "regret": pack_numbers(rounds["regret"][shown], "f4"),
        "average": pack_numbers(averages[shown], "f4"),
        "spent": pack_numbers(rounds["spent"][shown], "f4"),
    }


def _shares(film: Film) -> list[dict[str, Any]]:
    """Pack the parts of each whole that the agent noted in the rounds of the frames."""
    return [
        {
            "group": mask_invisible(spell_out(group)),
            "parts": [mask_invisible(spell_out(part)) for part in columns],
            "colours": spread_shares(len(columns)),
            "values": pack_numbers(
                np.stack([column[film.frames] for column in columns.values()], axis=1), "u2"
            ),
        }
        for group, columns in list_parts(film.trace.rounds).items()
    ]
