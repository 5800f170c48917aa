"""Movement: how regret or reward changes from setting to setting, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from sparq_sim.analysis.axis import Axis
from sparq_sim.analysis.intervals import CONFIDENCE, find_p_value
from sparq_sim.analysis.standings import Standings, compare_rows, label_of
from sparq_sim.analysis.summary import Summary, group
from sparq_sim.report.phrases import count_all, format_number, quote
from sparq_sim.study.settings import Setting, format_setting

__all__ = ["tell_movement"]

_MANIFOLD = 1.5
"""From here on, one number is told as a multiple of another."""


def tell_movement(
    standings: Standings, optimizer: str, axis: Axis | None, *, briefly: bool = False
) -> str:
    """Return, in words, what the settings change for an optimizer, and how surely.

    Args:
        standings: The rows of the study, ranked.
        optimizer: Its name.
        axis: Along which the settings lie, if they lie along one.
        briefly: Whether the sentence stands behind another about the same optimizer.

    Returns:
        A sentence without its full stop; nothing where the optimizer has one setting only.
    """
    rows = [
        (ranking.setting, place.row)
        for ranking in standings.rankings
        for place in ranking.places
        if place.row.optimizer == optimizer
    ]
    if len({label_of(row) for _, row in rows}) < 2:
        return ""
    what = f"The {standings.criterion.label} of {quote(optimizer)}"
    return f"{what} {_describe(rows, standings, axis, briefly=briefly)}"


def _describe(
    rows: Sequence[tuple[Setting, Summary]],
    standings: Standings,
    axis: Axis | None,
    *,
    briefly: bool,
) -> str:
    def where(place: int) -> str:
        setting = rows[place][0]
        return f"at {axis.describe(setting)}" if axis else f"with {format_setting(setting)}"

    means = [row.judged.mean for _, row in rows]
    least, most = means.index(min(means)), means.index(max(means))
    if means[least] == means[most]:
        name = axis.name if axis else "what is swept"
        where_all = count_all(len(rows), "settings")
        return f"is {format_number(means[0])} in {where_all}: {name} changes nothing"
    low, high = (format_number(means[place]) for place in (least, most))
    chance = "" if briefly else _judge(rows[least][1], rows[most][1], standings, of=len(rows))
    last = len(rows) - 1
    if axis and axis.is_numeric and {least, most} == {0, last}:
        verb, start, end = ("rises", low, high) if least == 0 else ("falls", high, low)
        return (
            f"{verb} from {start} {where(0)} to {end} {where(last)}"
            f"{_manifold(means[0], means[last])}{chance}"
        )
    # Equal means of several settings, as where a change comes to nothing, are told by the first.
    return f"is lowest {where(least)} ({low}) and highest {where(most)} ({high}){chance}"


def _manifold(before: float, after: float) -> str:
    """Return, in words, a rise as a multiple; nothing of a fall or of negative numbers."""
    if before <= 0 or after / before < _MANIFOLD:
        return ""
    return f", {format_number(after / before, 2)} times as much"


def _judge(least: Summary, most: Summary, standings: Standings, *, of: int) -> str:
    """Return, in words, whether the difference between two of so many settings may be chance."""
    plays = group(standings.found)
    gap = compare_rows(plays[label_of(most)], plays[label_of(least)], standings.criterion)
    if gap.count < 2:
        return "; of one play each, this may be chance"
    # The two were chosen among all pairs (Bonferroni).
    chance = find_p_value(gap.mean, gap.std, gap.count) * of * (of - 1) / 2
    return ", beyond chance" if chance <= 1 - CONFIDENCE else ", which may be chance"
