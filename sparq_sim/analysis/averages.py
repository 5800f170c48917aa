"""Averages: curves over the rounds, averaged over plays and over neighbouring rounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.intervals import reach

__all__ = ["Means", "Running", "bin_rounds", "thin_rounds"]


class Running:
    """Mean and squared deviations of curves, one curve in memory at a time (Welford 1962)."""

    def __init__(self) -> None:
        """Begin without a curve."""
        self.counts = np.zeros(0, dtype=np.int64)
        self.means, self.squares = np.zeros(0), np.zeros(0)

    def add(self, curve: NDArray[np.float64]) -> None:
        """Add a curve.

        Args:
            curve: (rounds,), which may be more or fewer than those of others; NaN is unknown.
        """
        more = max(0, len(curve) - len(self.counts))
        self.counts = np.pad(self.counts, (0, more))
        self.means, self.squares = np.pad(self.means, (0, more)), np.pad(self.squares, (0, more))
        part = slice(len(curve))
        known = ~np.isnan(curve)
        self.counts[part] += known
        step = np.where(known, curve - self.means[part], 0.0)
        self.means[part] += step / np.maximum(self.counts[part], 1)
        self.squares[part] += step * np.where(known, curve - self.means[part], 0.0)

    def interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the 95 % interval of the mean of each round; NaN where unknown."""
        stds = np.sqrt(self.squares / np.maximum(self.counts - 1, 1))
        half = reach(stds, self.counts)
        return self.means - half, self.means + half


class Means:
    """Means over plays of what is known of each round."""

    def __init__(self) -> None:
        """Begin without a play."""
        self.sums, self.counts = np.zeros(0), np.zeros(0)

    def add(self, values: NDArray[np.float64]) -> None:
        """Add what is known of a play.

        Args:
            values: (rounds,), which may be more or fewer than those of others; what is not finite
                is unknown.
        """
        more = max(0, len(values) - len(self.sums))
        self.sums, self.counts = np.pad(self.sums, (0, more)), np.pad(self.counts, (0, more))
        known = np.isfinite(values)
        self.sums[: len(values)][known] += values[known]
        self.counts[: len(values)] += known

    @property
    def means(self) -> NDArray[np.float64]:
        """The means, (rounds,); NaN where no play knows a value."""
        means = np.full(len(self.sums), np.nan)
        np.divide(self.sums, self.counts, out=means, where=self.counts > 0)
        return means


def thin_rounds(count: int, most_points: int | None) -> NDArray[np.intp]:
    """Choose some of the rounds, evenly, the first and the last among them.

    Args:
        count: How many rounds there are.
        most_points: How many are chosen at most; None for all.

    Returns:
        Their places, from 0.
    """
    points = count if most_points is None else min(count, most_points)
    return np.unique(np.linspace(0, count - 1, points).round().astype(np.intp))


def bin_rounds(
    values: NDArray[np.float64], most_points: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average a curve over bins of neighbouring rounds.

    Args:
        values: Of each round, (rounds,); what is not finite is unknown.
        most_points: How many bins there are at most.

    Returns:
        The middles of the bins in which anything is known, as rounds from 1, and their means.
    """
    bins = np.array_split(np.arange(len(values)), min(len(values), most_points) or 1)
    middles, means = [], []
    for places in bins:
        known = values[places][np.isfinite(values[places])]
        if len(known):
            middles.append(1 + places.mean())
            means.append(known.mean())
    return np.array(middles), np.array(means)
