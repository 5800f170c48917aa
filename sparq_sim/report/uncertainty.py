"""Uncertainty: what is drawn around a mean, an interval, or the plays where they are few."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, nan

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.criteria import REGRET, Criterion
from sparq_sim.analysis.curves import Band
from sparq_sim.analysis.intervals import FEWEST, bound_positive
from sparq_sim.analysis.summary import Spread
from sparq_sim.study.store import StoredSummary

__all__ = ["find_band", "find_interval", "find_reaches", "list_numbers"]


def find_interval(spread: Spread, *, positive: bool) -> tuple[float, float]:
    """Return the ends of the interval that is drawn around a mean.

    Args:
        spread: The mean, and Student's interval of it.
        positive: Whether the numbers cannot be negative, as regrets and costs; then the interval
            is that of `bound_positive`.

    Returns:
        The lower and the upper end; NaN for fewer than five plays.
    """
    if spread.count < FEWEST:
        return nan, nan
    if not positive:
        return spread.low, spread.high
    low, high = bound_positive(np.array([spread.mean]), np.array([spread.high - spread.mean]))
    return float(low[0]), float(high[0])


def find_reaches(spreads: Iterable[Spread], *, positive: bool) -> NDArray[np.float64]:
    """Return how far the intervals of some means reach below and above them: (2, n).

    Args:
        spreads: The means; those of fewer than five plays have no interval, and reach 0.
        positive: Whether the numbers cannot be negative, as for `find_interval`.
    """
    reaches = [
        [each.mean - low, high - each.mean] if isfinite(low) else [0.0, 0.0]
        for each in spreads
        for low, high in [find_interval(each, positive=positive)]
    ]
    return np.array(reaches).reshape(-1, 2).T


def find_band(band: Band, *, positive: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the intervals that are drawn around a curve.

    Args:
        band: The curve.
        positive: Whether its values cannot be negative, as for `find_interval`.

    Returns:
        Lower and upper ends, (rounds,); NaN where fewer than five plays are known.
    """
    low, high = band.low, band.high
    if positive:
        low, high = bound_positive(band.mean, band.high - band.mean)
    few = band.plays < FEWEST
    return np.where(few, nan, low), np.where(few, nan, high)


def list_numbers(plays: Iterable[StoredSummary], criterion: Criterion = REGRET) -> list[float]:
    """List what each replication comes to: the mean over the settings that are among the plays.

    Args:
        plays: Those of one optimizer.
        criterion: Of what.

    Returns:
        A number per replication; none for those of which it is not known.
    """
    by_replication: dict[tuple[int, int], list[float]] = {}
    for play in plays:
        if (number := criterion.of(play)) is not None:
            by_replication.setdefault((play.seed, play.replication), []).append(number)
    return [float(np.mean(numbers)) for numbers in by_replication.values()]
