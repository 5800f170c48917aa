"""Replays in a page: films packed as JSON for the script that plays them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import mask_invisible
from sparq_sim.messages import AGENT_NAME
from sparq_sim.report.html.phases import find_phases
from sparq_sim.report.network import PHASES
from sparq_sim.report.palette import spread_shares
from sparq_sim.report.replay import Film, Replay
from sparq_sim.report.shares import list_parts, spell_out
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import Columns, Trace

__all__ = ["pack", "pack_all"]

_MOST_BYTES = 3_000_000
"""Of all replays together, as JSON."""
_MOST_LANES = 24
"""Of the timeline, shared by all sources."""
_HIDDEN = 255
"""The lane of what finds no lane free."""

_Packed: TypeAlias = dict[str, Any]
_Floats: TypeAlias = NDArray[np.float64]


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
    before, after = _window(film, stride)
    shown = _near(rounds["played_at"], rounds["played_at"], times, before=before, after=0.0)
    replies, lanes = _replies(film, times, before=before, after=after)
    notes = list(replay.notes)
    if len(film.frames) < len(film.trace):
        notes.append(f"{len(film.frames)} of its {len(film.trace)} rounds are shown.")
    if lanes["hidden"]:
        notes.append(f"The timeline has no room for {lanes['hidden']} of the queries.")
    return {
        "title": mask_invisible(replay.title),
        "notes": [mask_invisible(note) for note in notes],
        "scene": film.scene.kind,
        **film.scene.shape,
        "period": film.period,
        "total": len(film.trace),
        "window": [before, after],
        "frames": np.searchsorted(np.flatnonzero(shown), film.frames).tolist(),
        "best": _pack_numbers(film.best, "u2"),
        **_fields(film),
        "rounds": _rounds(film.trace, shown),
        "shares": _shares(film),
        "replies": replies,
        "lanes": lanes,
    }


def _pack_numbers(numbers: NDArray[Any], kind: Literal["u1", "u2", "f4"]) -> _Packed:
    """Pack numbers as base64: single floats, or whole numbers k for low + k step, the last NaN.

    Numbers that are all equal are written once.
    """
    array = np.asarray(numbers, dtype=float)
    shape = list(array.shape)
    if array.size and np.isfinite(array.flat[0]) and (array == array.flat[0]).all():
        return {"shape": shape, "same": float(array.flat[0])}
    if kind == "f4":
        return {"shape": shape, "kind": kind, "bytes": _base64(array.astype("<f4"))}
    known = array[np.isfinite(array)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    absent = 2 ** (8 * int(kind[1])) - 1
    step = (high - low) / (absent - 1) or 1.0
    codes = np.where(np.isfinite(array), (array - low) / step, absent)
    bytes_ = _base64(codes.round().astype(f"<{kind}"))
    return {"shape": shape, "kind": kind, "low": low, "step": step, "bytes": bytes_}


def _base64(array: NDArray[Any]) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _fields(film: Film) -> dict[str, Any]:
    """Pack true rewards and beliefs; curves finely, since they are drawn, fields for colours."""
    if not film.rewards.size:
        return {}
    kind: Literal["u1", "u2"] = "u2" if film.scene.kind == "line" else "u1"
    low, high = float(film.rewards.min()), float(film.rewards.max())
    data: dict[str, Any] = {"true": _pack_numbers(film.rewards, kind), "range": [low, high]}
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
        "mean": _pack_numbers(means, kind),
        "std": _pack_numbers(stds, kind),
        "width": _pack_numbers(widths, "f4"),
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
        "round": _pack_numbers(rounds["round"][shown], "f4"),
        "started_at": _pack_numbers(rounds["started_at"][shown], "f4"),
        "played_at": _pack_numbers(rounds["played_at"][shown], "f4"),
        "point": _pack_numbers(trace.points[shown], "u2"),
        "reward": _pack_numbers(rounds["reward"][shown], "f4"),
        "best": _pack_numbers(rounds["best"][shown], "f4"),
        "regret": _pack_numbers(rounds["regret"][shown], "f4"),
        "average": _pack_numbers(averages[shown], "f4"),
        "spent": _pack_numbers(rounds["spent"][shown], "f4"),
    }


def _shares(film: Film) -> list[dict[str, Any]]:
    """Pack the parts of each whole that the agent noted in the rounds of the frames."""
    return [
        {
            "group": mask_invisible(spell_out(group)),
            "parts": [mask_invisible(spell_out(part)) for part in columns],
            "colours": spread_shares(len(columns)),
            "values": _pack_numbers(
                np.stack([column[film.frames] for column in columns.values()], axis=1), "u2"
            ),
        }
        for group, columns in list_parts(film.trace.rounds).items()
    ]


def _window(film: Film, stride: int) -> tuple[float, float]:
    """Return how much time before and after now is shown: some latencies, at least a dozen rounds.

    Where frames are left out to save room, less is shown beside each.
    """
    replies = film.trace.replies
    latencies = replies["arrived_at"] - replies["asked_at"]
    usual = 2.5 * float(np.quantile(latencies, 0.9)) if len(latencies) else 0.0
    before = max(min(max(usual, 12 * film.period), 60 * film.period) / stride, 2 * film.period)
    return before, before / 4


def _near(starts: _Floats, ends: _Floats, times: _Floats, *, before: float, after: float) -> Any:
    """Mark the spans from start to end of which some frame, at *times*, shows a part."""
    next_frame = np.searchsorted(times, starts - after)
    return np.append(times, inf)[next_frame] <= ends + before


def _replies(
    film: Film, times: _Floats, *, before: float, after: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Pack what frames at *times* show of replies: what travelled together is one."""
    replies, coordinates = film.trace.replies, film.trace.coordinates
    starts = _journeys(replies)
    sizes = np.diff(np.append(starts, len(replies["round"])))
    once = {name: column[starts] for name, column in replies.items()}
    sources = sorted(set(once["source"].tolist()), key=lambda name: (name != "reward", name))
    lanes = _lanes(once, sources, gap=before / 60)
    shown = _near(once["asked_at"], once["arrived_at"], times, before=before, after=after)
    rows = np.repeat(shown, sizes)
    latencies = np.maximum(once["arrived_at"] - once["asked_at"], 1e-12)
    points = np.stack([replies[name] for name in coordinates], axis=1)[rows]
    # What was never served waited to its end; what was never sent was served to its end.
    served, sent = (
        np.clip(np.nan_to_num((once[name] - once["asked_at"]) / latencies, nan=1.0), 0.0, 1.0)
        for name in ("served_at", "sent_at")
    )
    packed = {
        "source": _pack_words(once["source"][shown], sources),
        "fate": _pack_words(once["fate"][shown], tuple(Fate)),
        "asked": _pack_numbers((once["asker"] == AGENT_NAME)[shown], "u1"),
        "lane": _pack_codes(lanes[shown]),
        "attempt": _pack_codes(np.minimum(once["attempt"][shown], 254)),
        "size": _pack_numbers(sizes[shown], "u2"),
        "asked_at": _pack_numbers(once["asked_at"][shown], "f4"),
        "arrived_at": _pack_numbers(once["arrived_at"][shown], "f4"),
        "measured_at": _pack_numbers(once["measured_at"][shown], "f4"),
        "served": _pack_numbers(served[shown], "u1"),
        "sent": _pack_numbers(sent[shown], "u1"),
        "point": _pack_numbers(points, "u2"),
        "value": _pack_numbers(replies["value"][rows], "u2"),
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
            "journey": _pack_numbers(phases["journey"], "f4"),
            "place": _pack_codes(phases["place"]),
            "phase": _pack_codes(phases["phase"]),
            "node": _pack_numbers(phases["node"], "f4"),
            "start": _pack_numbers(phases["start"], "f4"),
            "length": _pack_numbers(phases["length"], "f4"),
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


def _pack_words(words: NDArray[Any], known: Sequence[str]) -> _Packed:
    """Pack words as their numbers among those *known*."""
    order = np.argsort(known)
    return _pack_codes(order[np.searchsorted(np.array(known)[order], words)])


def _pack_codes(numbers: NDArray[np.intp]) -> _Packed:
    """Pack small whole numbers as they are."""
    return {
        "shape": [len(numbers)],
        "kind": "u1",
        "low": 0,
        "step": 1,
        "bytes": _base64(numbers.astype("<u1")),
    }
