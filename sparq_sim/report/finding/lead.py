"""The lead: who is best in one setting, by how much, and over whom that may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from sparq_sim.analysis.standings import Place, Ranking
from sparq_sim.analysis.summary import Summary
from sparq_sim.report.phrases import count_all, count_things, format_number, join_names, quote
from sparq_sim.report.uncertainty import find_interval

__all__ = ["tell_lead"]

_MOST_NAMED = 3
"""Optimizers that are named in a sentence; of more, they are counted."""


def tell_lead(ranking: Ranking) -> list[str]:
    """Return, in words, who is best in a setting.

    Args:
        ranking: The optimizers of the setting.

    Returns:
        A sentence, and where plays can be paired, one on what the pairs say.
    """
    best, rivals = ranking.best.row, ranking.rivals
    if not rivals:
        return [_tell_alone(best)]
    criterion, after = best.criterion, rivals[0]
    name, mean = quote(best.optimizer), format_number(best.judged.mean)
    has = f"{name} has the {criterion.superlative} {criterion.label}, {mean}"
    if all(each.row.judged.count == 1 for each in ranking.places):
        return [f"In one play each, {has}, before {_name(after)}: chance may have decided."]
    unclear = [each for each in rivals if each.verdict != "worse"]
    if not unclear:
        rest = ", beyond chance"
        if len(rivals) > 1:
            everyone = count_all(len(rivals), "others")
            rest = f", the next best, and its lead over {everyone} is beyond chance"
        lead = _describe_gap(best, after.row)
        first = f"{name} is best: its {criterion.label}, {mean}, is {lead} {_name(after)}{rest}."
        return [first, *_tell_pairs(after)]
    if all(each.verdict == "equal" for each in rivals):
        who = join_names([best.optimizer, *(each.row.optimizer for each in rivals)])
        return [f"{who} come to exactly the same {criterion.label} in each replication, {mean}."]
    if len(unclear) == len(rivals):
        over = _name(after) if len(rivals) == 1 else f"{_name(after)} and all others"
        first = f"{has}, but its lead over {over} may be chance."
    else:
        others = len(rivals) - len(unclear)
        over = "over the other one" if others == 1 else f"over the {others} others"
        some = _name_some(unclear)
        first = f"{has}, but its lead over {some} may be chance; {over}, it is beyond chance."
    return [first, *_tell_pairs(unclear[0])]


def _tell_alone(row: Summary) -> str:
    name, mean = quote(row.optimizer), format_number(row.judged.mean)
    label = row.criterion.label
    low, high = find_interval(row.judged, positive=row.criterion.from_zero)
    interval = f"95 % interval {format_number(low)} to {format_number(high)}, "
    of = count_things(row.judged.count, "play")
    return f"The {label} of {name} is {mean} ({interval if isfinite(low) else ''}{of})."


def _name(place: Place) -> str:
    return f"{quote(place.row.optimizer)} ({format_number(place.row.judged.mean)})"


def _name_some(places: Sequence[Place]) -> str:
    if len(places) > _MOST_NAMED:
        return f"{len(places)} others"
    numbers = [f" ({format_number(each.row.judged.mean)})" for each in places]
    return join_names([each.row.optimizer for each in places], numbers)


def _describe_gap(best: Summary, other: Summary) -> str:
    """Return by how much one row is better; of rewards, which may be negative, not as a share."""
    mine, theirs = best.judged.mean, other.judged.mean
    if best.criterion.more_is_better or theirs <= 0:
        side = "above" if best.criterion.more_is_better else "below"
        return f"{format_number(abs(theirs - mine), 2)} {side} that of"
    return f"{format_number(100 * (theirs - mine) / theirs, 2)} % below that of"


def _tell_pairs(place: Place) -> list[str]:
    """Return, in words, what pairs of plays with a rival say; nothing where there are too few."""
    gap, criterion = place.behind, place.row.criterion
    if gap.count < 2 or place.verdict == "equal":
        return []
    wins = round(place.beaten * gap.count)
    side = f"{criterion.comparative} {criterion.word} than {quote(place.row.optimizer)}"
    return [
        f"In {wins} of {gap.count} pairs of plays under the same chance it has {side}: the mean "
        f"difference is {format_number(gap.mean)} (95 % interval {format_number(gap.low)} to "
        f"{format_number(gap.high)})."
    ]
