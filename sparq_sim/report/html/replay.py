"""Replays in a page: films packed as JSON for the script that plays them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import mask_invisible
from sparq_sim.report.html.evidence import pack_evidence
from sparq_sim.report.html.packing import Packed, mark_shown, pack_numbers
from sparq_sim.report.html.timeline import choose_window, pack_replies
from sparq_sim.report.palette import spread_shares
from sparq_sim.report.phrases import add_unit
from sparq_sim.report.replay import Film, Replay
from sparq_sim.report.roster import Roster, name_play
from sparq_sim.report.shares import list_parts, spell_out
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.settings import format_setting
from sparq_sim.study.store import StoredSummary

__all__ = ["pack", "pack_all"]

_MOST_BYTES = 3_000_000
"""Of all replays together, as JSON."""
_ENOUGH_BYTES = 1_200_000
"""After so many, no further replays but those that must be there."""
_MOST_OFFERED = 20_000
"""Combinations of optimizer, setting and draw of which a page tells whether they are filmed."""
_BINS = 600
"""Of the curve of regret above the slider: more than a screen can show."""


def pack_all(
    replays: Sequence[Replay],
    plays: Iterable[StoredSummary] = (),
    *,
    order: Sequence[str] = (),
    folder: str = "",
) -> dict[str, Any]:
    """Pack replays for a page: with fewer frames, and fewer of them, where they would be too large.

    Args:
        replays: Those of a report.
        plays: All finished plays of the study, filmed or not.
        order: Names of the optimizers, in the order in which they are shown.
        folder: The folder of the study, for the command that films more.

    Returns:
        What the script shows, JSON-able: the films, the plays among which to choose, the film with
        which to begin, and the command that films further plays.
    """
    stride = 1
    filmed = [replay for replay in replays if replay.film is not None]
    needed = [replay for replay in filmed if replay.is_first or replay.is_wished]
    longest = max((len(each.film.frames) for each in needed if each.film), default=0)
    while True:
        films = [pack(replay, stride=stride) for replay in needed]
        if stride > longest or _measure(films) <= _MOST_BYTES:
            break
        stride *= 2
    kept = list(needed)
    size = _measure(films)
    for replay in filmed:
        if not (replay.is_first or replay.is_wished):
            packed = pack(replay, stride=stride)
            size += _measure(packed)
            if size > _ENOUGH_BYTES:
                break
            films.append(packed)
            kept.append(replay)
    roster = Roster(plays, order)
    command = shlex.join(["sparq-sim", "report", folder, "--film"])
    return {
        "common": _share(films),
        "films": films,
        **_pack_choice(kept, roster),
        "command": mask_invisible(command),
    }


def _share(films: Sequence[dict[str, Any]]) -> list[Packed]:
    """Move what several films have alike, the rewards of one world, to a list of its own."""
    common: dict[str, Packed] = {}
    for film in films:
        for name in {"true", "best"} & film.keys():
            common.setdefault(json.dumps(film[name]), film[name])
            film[name] = list(common).index(json.dumps(film[name]))
    return list(common.values())


def _measure(packed: object) -> int:
    return len(json.dumps(packed))


def _find_opening(kept: Sequence[Replay], roster: Roster) -> int:
    """Find the film to begin with: one that was asked for, or the winner where it is hardest."""
    if wished := [place for place, replay in enumerate(kept) if replay.is_wished]:
        return wished[0]
    places = {replay.key: place for place, replay in enumerate(kept)}
    for setting in roster.rank_settings():
        for draw in roster.draws:
            play = roster.find(roster.find_winner(setting), setting, draw)
            if play is not None and play.key in places:
                return places[play.key]
    return 0


def _pack_choice(kept: Sequence[Replay], roster: Roster) -> dict[str, Any]:
    """Pack among which plays to choose, which of them are filmed, and which to show first."""
    places = {replay.key: place for place, replay in enumerate(kept)}
    settings, draws = roster.settings, roster.draws
    if len(roster.optimizers) * len(settings) * len(draws) > _MOST_OFFERED:
        settings, draws = settings[:50], draws[:20]
    found = [
        [[roster.find(name, setting, draw) for draw in draws] for setting in settings]
        for name in roster.optimizers
    ]
    several = len({seed for seed, _ in draws}) > 1
    return {
        "opens": _find_opening(kept, roster),
        "optimizers": [mask_invisible(name) for name in roster.optimizers],
        "settings": [mask_invisible(format_setting(setting)) for setting in settings],
        "draws": [
            f"seed {seed}, replication {replication}" if several else str(replication)
            for seed, replication in draws
        ],
        # The place of a film; of a play that is not filmed, its name; null where there is none.
        "plays": [
            [[play and places.get(play.key, name_play(play)) for play in row] for row in rows]
            for rows in found
        ],
    }


def pack(replay: Replay, *, stride: int = 1) -> dict[str, Any]:
    """Pack all that the script of a page draws of a replay, thinned and quantised.

    Args:
        replay: One play to watch, with its film.
        stride: Only every so-many-th frame is kept, and a window that much shorter.

    Returns:
        What is JSON-able.

    Raises:
        ValueError: There is no film.
    """
    if replay.film is None:
        raise ValueError(f"there is no film of {replay.title}: {replay.missing}")
    film = replay.film.every(stride)
    rounds = film.trace.rounds
    times = rounds["played_at"][film.frames]
    before, after = choose_window(film, stride)
    shown = mark_shown(rounds["played_at"], rounds["played_at"], times, before=before, after=0.0)
    replies, lanes, rows = pack_replies(film, times, before=before, after=after)
    notes = list(replay.notes)
    if len(film.frames) < len(film.trace):
        notes.append(f"{len(film.frames)} of its {len(film.trace)} rounds are filmed.")
    return {
        "title": mask_invisible(replay.title),
        "notes": [mask_invisible(note) for note in notes],
        "scene": film.scene.kind,
        **film.scene.shape,
        "labels": _labels(film),
        "period": film.period,
        "total": len(film.trace),
        "window": [before, after],
        "frames": np.searchsorted(np.flatnonzero(shown), film.frames).tolist(),
        "moments": [
            [int(np.abs(film.frames - moment.row).argmin()), mask_invisible(moment.about)]
            for moment in film.moments
        ],
        "regrets": _regrets(film.trace),
        "best": pack_numbers(film.best, "u2"),
        **_fields(film),
        "rounds": _rounds(film.trace, shown),
        "shares": _shares(film),
        "replies": replies,
        "lanes": lanes,
        "evidence": pack_evidence(film, times, rows, before=before),
    }


def _labels(film: Film) -> dict[str, Any]:
    """Return the labels of axes, with units where they have names."""
    names = film.trace.coordinates
    return {
        "reward": mask_invisible(add_unit("reward", film.units.reward)),
        "time": mask_invisible(add_unit("time", film.units.time)),
        "coordinates": [
            mask_invisible(add_unit(name, film.units.of_coordinate(place)))
            for place, name in enumerate(names)
        ],
    }


def _regrets(trace: Trace) -> dict[str, Any]:
    """Pack the regret of all rounds, the largest of each bin where there are many."""
    regrets = trace.rounds["regret"]
    bins = min(_BINS, len(regrets))
    return pack_numbers(np.maximum.reduceat(regrets, np.arange(bins) * len(regrets) // bins), "u2")


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
        "moved": pack_numbers(rounds["moved"][shown], "u1"),
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
