"""Averages: curves over the rounds, averaged over plays and over neighbouring rounds."""

from __future__ import annotations

from math import nan

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.intervals import FEWEST, reach

__all__ = ["Means", "Running", "bin_rounds", "choose_window", "smooth", "thin_rounds"]


class Running:
    """Mean and squared deviations of curves, a few curves in memory at a time (Welford 1962)."""

    def __init__(self) -> None:
        """Begin without a curve."""
        self.counts = np.zeros(0, dtype=np.int64)
        self.means, self.squares = np.zeros(0), np.zeros(0)
        self._added: list[NDArray[np.float64]] | None = []

    def add(self, curve: NDArray[np.float64]) -> None:
        """Add a curve.

        Args:
            curve: (rounds,), which may be more or fewer than those of others; NaN is unknown.
        """
        if self._added is not None:
            # Five curves have an interval, and need not be shown one by one.
            self._added = [*self._added, curve] if len(self._added) + 1 < FEWEST else None
        more = max(0, len(curve) - len(self.counts))
        self.counts = np.pad(self.counts, (0, more))
        self.means, self.squares = np.pad(self.means, (0, more)), np.pad(self.squares, (0, more))
        part = slice(len(curve))
        known = ~np.isnan(curve)
        self.counts[part] += known
        step = np.where(known, curve - self.means[part], 0.0)
        self.means[part] += step / np.maximum(self.counts[part], 1)
        self.squares[part] += step * np.where(known, curve - self.means[part], 0.0)

    @property
    def singles(self) -> NDArray[np.float64]:
        """The curves themselves where they are fewer than five, (curves, rounds); NaN past the end.

        Otherwise there is none, (0, rounds).
        """
        rounds = len(self.counts)
        padded = [
            np.pad(curve, (0, rounds - len(curve)), constant_values=nan)
            for curve in self._added or ()
        ]
        return np.array(padded).reshape(-1, rounds)

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


def choose_window(rounds: int) -> int:
    """Return over how many rounds a moving mean is, such that plateaus and jumps remain.

    Args:
        rounds: How many there are.

    Returns:
        About a twentieth of them, an odd number.
    """
    return 1 + 2 * (rounds // 40)


def smooth(values: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Compute the moving mean of a curve, of the rounds to both sides.

    Args:
        values: Of each round, (rounds,); what is not finite is unknown.
        window: Over how many rounds, an odd number; at the ends, those that there are.

    Returns:
        The means, (rounds,); NaN where nothing in the window is known.
    """
    known = np.isfinite(values)
    ends = np.arange(len(values))[:, None] + [-(window // 2), window // 2 + 1]
    first, after = np.clip(ends, 0, len(values)).T
    sums, counts = (
        np.concatenate([[0.0], np.cumsum(each)]) for each in (np.where(known, values, 0.0), known)
    )
    means: NDArray[np.float64] = np.full(len(values), nan)
    counted = counts[after] - counts[first]
    np.divide(sums[after] - sums[first], counted, out=means, where=counted > 0)
    if known.any():
        # Differences of long sums may lie beyond by what was rounded, such as below 0.
        means = np.clip(means, values[known].min(), values[known].max())
    return means
