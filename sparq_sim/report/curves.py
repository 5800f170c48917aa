"""Curves: regret, or mean reward, over the rounds as charts show it, and which is the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan

import numpy as np

from sparq_sim.analysis.curves import Band
from sparq_sim.arrays import Matrix, Values
from sparq_sim.report.data import ChartData
from sparq_sim.report.scales import fit
from sparq_sim.report.uncertainty import find_band
from sparq_sim.study.settings import Setting, agree

__all__ = ["RegretCurve", "draw_levels", "find_curves", "find_end", "find_longest", "tell_beyond"]

_UNSETTLED = 0.04
"""The share of the rounds, at first, that an axis need not show."""


@dataclass(frozen=True)
class RegretCurve:
    """The curve of an optimizer in a setting, average or cumulative."""

    band: Band
    """Whose curve it is."""
    mean: Values
    """Over the plays, (rounds,)."""
    low: Values
    """Lower end of the interval, (rounds,); NaN for fewer than five plays."""
    high: Values
    """Upper end of it."""
    singles: Matrix
    """The plays themselves, (plays, rounds), where they are fewer than five; otherwise none."""
    best: bool = False
    """Whether it is the best in the end."""

    @property
    def end(self) -> float:
        """The last mean that is known."""
        return find_end(self.mean)

    @property
    def shown(self) -> list[Values]:
        """What an axis is to fit: not the first rounds, which may be far from all others."""
        settled = self.band.rounds > _UNSETTLED * self.band.rounds[-1]
        return [self.mean[settled], self.low[-1:], self.high[-1:]]


def find_curves(data: ChartData, setting: Setting, *, average: bool) -> list[RegretCurve]:
    """Return the curves of a setting.

    Args:
        data: What is drawn.
        setting: Swept values.
        average: Whether they are averages, or sums, of the rounds so far.
    """
    curves = []
    for band in data.bands:
        if agree(band.setting, setting):
            scale = 1 / band.rounds if average else np.ones(len(band.rounds))
            low, high = find_band(band, positive=data.criterion.from_zero)
            curves.append(
                RegretCurve(
                    band, band.mean * scale, low * scale, high * scale, band.singles * scale
                )
            )
    losses = [data.criterion.to_loss(curve.end) for curve in curves]
    best = min((loss for loss in losses if isfinite(loss)), default=inf)
    return [replace(curve, best=loss == best) for curve, loss in zip(curves, losses, strict=True)]


def find_end(values: Values) -> float:
    """Return the last value that is known; NaN if none is.

    Args:
        values: Over the rounds.
    """
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else nan


def find_longest(curves: Sequence[RegretCurve]) -> int:
    """Return the last round of the longest curve.

    Args:
        curves: Those of a chart.
    """
    return max((int(each.band.rounds[-1]) for each in curves), default=1)


def tell_beyond(curves: Sequence[RegretCurve], *, from_zero: bool) -> str:
    """Return a sentence that first rounds lie beyond the axis, if they do.

    Args:
        curves: Those of a chart.
        from_zero: Whether a linear axis begins at 0.

    Returns:
        A sentence, or nothing.
    """
    scale = fit([part for curve in curves for part in curve.shown], from_zero=from_zero)
    if scale is None or not any(
        ((curve.mean < scale.low) | (curve.mean > scale.high)).any() for curve in curves
    ):
        return ""
    return f"Some of the first {_UNSETTLED:.0%} of the rounds lie beyond the axis.".replace(
        "%", " %"
    )


def draw_levels(
    data: ChartData, setting: Setting, curves: Sequence[RegretCurve], *, average: bool
) -> dict[str, tuple[Values, Values]]:
    """Return the rounds and heights of the reference levels beside curves, by their names.

    Args:
        data: What is drawn.
        setting: Swept values.
        curves: Those of the setting.
        average: Whether they are averages, or sums, of the rounds so far.
    """
    longest = find_longest(curves)
    # On a logarithmic axis, a straight line is drawn by many points.
    rounds = (
        np.array([1.0, longest]) if average else np.unique(np.geomspace(1, longest, 40).round())
    )
    return {
        name: (rounds, level * (np.ones(len(rounds)) if average else rounds))
        for name, level in data.levels_in(setting)
    }
