"""Winners: who is best in which of several settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sparq_sim.analysis.axis import Axis
from sparq_sim.analysis.standings import Ranking, Standings
from sparq_sim.report.finding.movement import tell_movement
from sparq_sim.report.phrases import count_all, count_things, quote
from sparq_sim.study.settings import format_setting, format_value

__all__ = ["tell_winners"]

_MOST_NAMED = 3
"""Optimizers, or swept values, that are named in a sentence; of more, they are counted."""


def tell_winners(standings: Standings, axis: Axis | None) -> list[str]:
    """Return, in words, who is best where, and what settings change for the most frequent winner.

    Args:
        standings: Rankings of several settings.
        axis: Along which the settings lie, if they lie along one.

    Returns:
        A sentence or two.
    """
    rankings, criterion = standings.rankings, standings.criterion
    order = [each.best.row.optimizer for each in rankings]
    wins = Counter(order).most_common()
    best = wins[0][0]
    changes = [place for place in range(1, len(order)) if order[place] != order[place - 1]]
    what = f"has the {criterion.superlative} {criterion.label}"
    if len(wins) == 1:
        where = f"in {count_all(len(order), 'settings')}{_span(axis, rankings)}"
    elif len(changes) == 1 and axis and axis.is_numeric:
        where = _tell_change(rankings, changes[0], axis)
        best = order[0]
    else:
        others = [f"{quote(name)} {_where(name, rankings, axis)}" for name, _ in wins[1:]]
        told = ", ".join(others[:_MOST_NAMED])
        if left := len(others) - _MOST_NAMED:
            told += f", {count_things(left, 'other')} elsewhere" * (left > 0)
        where = f"in {wins[0][1]} of {len(order)} settings, {told}"
    moves = tell_movement(standings, wins[0][0], axis, briefly=True)
    return [
        f"{quote(best)} {what} {where}{_certain(rankings)}.",
        *([f"{moves}."] if moves else []),
    ]


def _span(axis: Axis | None, rankings: Sequence[Ranking]) -> str:
    """Return from where to where settings lie, if they have an order."""
    if axis is None or not axis.is_numeric:
        return ""
    first, last = rankings[0].setting, rankings[-1].setting
    return f", {axis.describe(first)} to {format_value(last[axis.path])}"


def _tell_change(rankings: Sequence[Ranking], change: int, axis: Axis) -> str:
    """Return, in words, up to where one is best, and from where on another."""
    before, after = rankings[change - 1], rankings[change]
    upto = f"at {axis.describe(before.setting)}"
    onwards = f"at {axis.describe(after.setting)}"
    if change > 1:
        upto = f"up to {axis.describe(before.setting)}"
    if change < len(rankings) - 1:
        onwards = f"from {axis.describe(after.setting)} on"
    return f"{upto}, {quote(after.best.row.optimizer)} {onwards}"


def _where(name: str, rankings: Sequence[Ranking], axis: Axis | None) -> str:
    """Return, in words, where an optimizer is best: in which setting, or in how many."""
    own = [each.setting for each in rankings if each.best.row.optimizer == name]
    if len(own) > 1 or (axis is None and len(own[0]) > _MOST_NAMED):
        return f"in {len(own)}"
    return f"at {axis.describe(own[0])}" if axis else f"with {format_setting(own[0])}"


def _certain(rankings: Sequence[Ranking]) -> str:
    """Return, in words, in how many settings the lead over all others is beyond chance."""
    rivalled = [each for each in rankings if each.rivals]
    sure = sum(each.is_sure for each in rivalled)
    if not rivalled:
        return ""
    if not sure:
        return "; but in none of them beyond chance"
    if sure == len(rankings):
        return "; in each of them beyond chance"
    return f"; beyond chance in {sure} of {len(rankings)} settings"
