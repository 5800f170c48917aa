"""Fates: what became of the points that optimizers asked experts about, as shares of a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from sparq_sim.report.data import ChartData, curve_name, occurring_fates
from sparq_sim.report.palette import spread_shares
from sparq_sim.study.settings import Setting, agree

__all__ = ["FATES", "FateRow", "choose_fate_colours", "find_fates"]

FATES = "What became of the points asked, of each counted once; the shares sum to 100 %."
"""What a chart of fates shows."""


@dataclass(frozen=True)
class FateRow:
    """What became of the points that an optimizer asked about."""

    name: str
    """Of the optimizer, with what the setting does not say."""
    shares: Mapping[str, float]
    """In per cent, by headings; they sum to 100."""
    retries: float
    """Further attempts per round, which are no points of their own."""

    @property
    def told(self) -> str:
        """What stands beside its bar: how much was asked again."""
        return f"{self.retries:.3g} asked again per round" if self.retries else ""


def find_fates(data: ChartData, setting: Setting) -> list[FateRow]:
    """Return what became of the points asked in a setting, by optimizer.

    Args:
        data: What is drawn.
        setting: Swept values.

    Returns:
        A row per optimizer that asked; none where all points of the study were answered.
    """
    fates = occurring_fates(data.summaries)
    if len(fates) == 1:
        return []
    return [
        FateRow(
            curve_name(row, setting),
            {heading: 100 * getattr(row, fate) for fate, heading in fates.items()},
            row.retries_per_round,
        )
        for name in data.optimizers
        for row in data.summaries
        if row.optimizer == name and agree(row.setting, setting) and isfinite(row.answered)
    ]


def choose_fate_colours(data: ChartData) -> dict[str, int]:
    """Return which colours of `palette.SHARES`, from 1, the fates of a study have, by headings.

    Args:
        data: What is drawn.
    """
    headings = list(occurring_fates(data.summaries).values())
    # What was answered is bright.
    return dict(zip(headings, reversed(spread_shares(len(headings))), strict=True))
