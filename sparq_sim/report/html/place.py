"""Place over time in a page: pictures packed as JSON for the script that draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparq_sim.report.html.packing import pack_numbers
from sparq_sim.report.place import Ground, PlacePicture, PlaceRow

__all__ = ["caption_places", "pack_places"]


def caption_places(pictures: Sequence[PlacePicture]) -> str:
    """Return what a reader must know of the pictures; nothing where there is none.

    Args:
        pictures: Those of a study.
    """
    if not pictures:
        return ""
    first = pictures[0]
    what = "its observed reward" if first.paint.word == "reward" else "its regret"
    on = ", on the true reward of the moment" if first.ground is not None else ""
    plays = {each.play for each in pictures}
    play = first.play if len(plays) == 1 else "one replication"
    best, rows = ("optimizer", ", the best on top") if first.ranked else ("setting", "")
    return (
        f"Each dot is a round: where it was played, coloured by {what}{on}. All rows are of "
        f"{play}, in which the best {best} did as in its median play{rows}."
    )


def pack_places(pictures: Sequence[PlacePicture]) -> dict[str, Any]:
    """Pack pictures for a page; a ground that several share is packed once.

    Args:
        pictures: Those of a study.

    Returns:
        What the script of the page reads.
    """
    grounds = {id(each.ground): each.ground for each in pictures if each.ground is not None}
    places = {key: place for place, key in enumerate(grounds)}
    return {
        "grounds": [_pack_ground(ground) for ground in grounds.values()],
        "pictures": [_pack(each, places.get(id(each.ground))) for each in pictures],
    }


def _pack(picture: PlacePicture, ground: int | None) -> dict[str, Any]:
    axis, paint = picture.axis, picture.paint
    return {
        "setting": picture.setting,
        "kind": axis.kind,
        "label": axis.label,
        "limits": axis.limits,
        "window": axis.window,
        "names": axis.names,
        "word": paint.word,
        "paint": [paint.good, paint.bad],
        "note": paint.note,
        "span": picture.span,
        "ground": ground,
        "shows": picture.ground.describe(axis) if picture.ground is not None else "",
        "rows": [_pack_row(row) for row in picture.rows],
        "notes": [*picture.notes],
    }


def _pack_ground(ground: Ground) -> dict[str, Any]:
    low, high = ground.range
    return {
        "times": pack_numbers(ground.times, "f4"),
        "heights": pack_numbers(ground.heights, "f4"),
        "best": pack_numbers(ground.best, "u2"),
        "rewards": pack_numbers(np.clip(ground.rewards, low, high), "u1"),
        "range": [low, high],
    }


def _pack_row(row: PlaceRow) -> dict[str, Any]:
    return {
        "title": row.title,
        "words": row.words,
        "total": row.total,
        "round": pack_numbers(row.rounds, "f4"),
        "time": pack_numbers(row.times, "f4"),
        "height": pack_numbers(row.heights, "u2"),
        "value": pack_numbers(row.values, "u2"),
        "moved": pack_numbers(row.moved, "u1"),
    }
