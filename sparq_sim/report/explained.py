"""Explained: why a point was played in a round, in words and tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite

from rich import box
from rich.markup import escape
from rich.table import Table

from sparq_sim.analysis.explanation import Explanation, Heard, Place
from sparq_sim.errors import mask_invisible
from sparq_sim.messages import REWARD

__all__ = ["asked_table", "describe_choice", "describe_outcome", "place_table"]

_MOST_ASKED = 20
"""Rows of the table of what was asked; the others are counted."""


def describe_choice(explained: Explanation) -> list[str]:
    """Return sentences on what the agent knew, and on which point it chose.

    Args:
        explained: The round.
    """
    lines = [f"When it chose, at {explained.chosen_at:g}, it had heard:"]
    lines += [f"  {_describe_heard(each)}" for each in explained.heard]
    if not explained.heard:
        lines = [f"It chose at {explained.chosen_at:g}, and had heard nothing."]
    if not explained.moved:
        lines.append("It made no move in this round: the point of a round before was in force.")
    played = explained.find("played")
    where = _where(played) if played else "nothing"
    runner = explained.find("runner-up")
    if played is None or not isfinite(played.ucb):
        return [*lines, f"It played {where}."]
    bound = f"It played {where}: its upper confidence bound, mean + {explained.width:.3g} std, was "
    if runner is None:
        return [*lines, f"{bound}{played.ucb:.4f}."]
    if runner.ucb <= played.ucb:
        return [
            *lines,
            f"{bound}{played.ucb:.4f}, above {runner.ucb:.4f} at {_where(runner)}, the highest "
            "elsewhere.",
        ]
    return [
        *lines,
        f"{bound}{played.ucb:.4f}, though {runner.ucb:.4f} at {_where(runner)} was higher: the "
        "optimizer chooses by more than this bound, or searched other places.",
    ]


def describe_outcome(explained: Explanation) -> list[str]:
    """Return sentences on what came of the point, what else could have, and what was asked.

    Args:
        explained: The round.
    """
    lines = [_describe_reward(explained)]
    if by_mean := explained.find("highest mean"):
        lines.append(_describe_by_mean(explained, by_mean))
    lines += _describe_asked(explained)
    lines.append(
        f"It spent {explained.spent:g} in this round, {explained.spent_in_all:g} in the play so "
        "far."
    )
    if explained.notes:
        told = ", ".join(f"{name} {number:.5g}" for name, number in explained.notes.items())
        lines.append(f"It noted: {told}.")
    return lines


def place_table(explained: Explanation) -> Table:
    """Return a table of what was believed and true where it matters.

    Args:
        explained: The round.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    believed = any(isfinite(place.mean) for place in explained.places)
    table.add_column("place", no_wrap=True)
    table.add_column("at")
    for name in ("true reward", *(("mean", "std", "bound") if believed else ())):
        table.add_column(name, justify="right", no_wrap=True)
    for place in explained.places:
        numbers = (place.truth, *((place.mean, place.std, place.ucb) if believed else ()))
        table.add_row(place.what, escape(_where(place)), *map(_number, numbers))
    return table


def asked_table(explained: Explanation) -> Table | None:
    """Return a table of what experts were asked, and what became of it; None if nothing was.

    Args:
        explained: The round.
    """
    if not explained.asked:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("asked", no_wrap=True)
    table.add_column("at")
    for name in ("answer", "std", "after"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("fate")
    for each in explained.asked[:_MOST_ASKED]:
        fate = f"{each.fate}: {each.reason}" if each.reason else each.fate
        where = _name_place(each.site, each.point)
        table.add_row(
            *(escape(mask_invisible(text)) for text in (each.source, where)),
            *(_number(number) for number in (each.value, each.std)),
            f"{each.latency:.3g}" if isfinite(each.latency) else "",
            escape(mask_invisible(fate)),
        )
    if (more := len(explained.asked) - _MOST_ASKED) > 0:
        table.caption = f"and {more} more"
    return table


def _describe_heard(heard: Heard) -> str:
    own = heard.source == REWARD
    what = "observation" if own else "answer"
    parts = [f"{heard.answered} {what}{'' if heard.answered == 1 else 's'}"]
    if heard.answered:
        parts[0] += f", {heard.new} since the move before"
        parts.append(f"the newest measured {heard.newest_age:.3g} before")
    if heard.failed:
        failed = ", ".join(f"{number} {fate}" for fate, number in heard.failed.items())
        parts.append(f"{failed} since the move before")
    if heard.awaited:
        parts.append(f"{heard.awaited} awaited")
    return f"{mask_invisible(heard.source)}  {'; '.join(parts)}"


def _describe_reward(explained: Explanation) -> str:
    if not isfinite(explained.reward):
        return "No reward was observed."
    best = explained.find("best")
    if best is None or not isfinite(explained.regret):
        return f"The reward was {explained.reward:.4f}."
    if explained.regret <= 0:
        return f"The reward was {explained.reward:.4f}, the best there was."
    return (
        f"The reward was {explained.reward:.4f}: {explained.regret:.4f} below the best, "
        f"{best.truth:.4f} at {_where(best)}."
    )


def _describe_by_mean(explained: Explanation, by_mean: Place) -> str:
    """Return, in words, what would have come of the place with the highest mean."""
    played = explained.find("played")
    if played is not None and by_mean.mean <= played.mean:
        return "By the mean alone it would have played there, too."
    regret = explained.reward + explained.regret - by_mean.truth
    told = f"a regret of {max(regret, 0.0):.4f}" if isfinite(regret) else "no reading"
    return f"By the mean alone it would have played {_where(by_mean)}, with {told}."


def _describe_asked(explained: Explanation) -> Iterator[str]:
    if not explained.asked:
        yield "It asked no expert."
    for source in dict.fromkeys(each.source for each in explained.asked):
        fates = Counter(each.fate for each in explained.asked if each.source == source)
        points = sum(fates.values())
        told = ", ".join(f"{number} {fate}" for fate, number in fates.items())
        yield f"It asked {mask_invisible(source)} about {points} point{'s'[: points > 1]}: {told}."


def _where(place: Place) -> str:
    return mask_invisible(_name_place(place.site, place.point))


def _name_place(site: str, point: Mapping[str, float]) -> str:
    return site or ", ".join(f"{name} = {number:.4g}" for name, number in point.items())


def _number(number: float) -> str:
    return f"{number:.4f}" if isfinite(number) else ""
