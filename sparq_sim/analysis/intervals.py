"""Intervals: how far a mean, or a ratio of means, may be from what plays come to."""

from __future__ import annotations

from math import copysign, inf, nan, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CONFIDENCE",
    "FEWEST",
    "Ranges",
    "bound_positive",
    "find_p_value",
    "find_roots_in_mean",
    "reach",
    "student",
]

CONFIDENCE = 0.95
"""Of all intervals."""
FEWEST = 5
"""Plays of which charts draw an interval; of fewer, they draw the plays themselves."""
Ranges: TypeAlias = tuple[tuple[float, float], ...]
"""Of numbers from 0 on, from the least to the largest; the last may be without an end (inf)."""


def reach(stds: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute half the width of the 95 % interval of each mean.

    Args:
        stds: Standard deviation of the numbers behind each mean, (n,).
        counts: How many numbers there are behind each, (n,).

    Returns:
        Half widths, (n,); NaN for means of fewer than two numbers.
    """
    half = student(counts) * stds / np.sqrt(np.maximum(counts, 1))
    return np.where(counts > 1, half, nan)


def student(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how many standard errors the 95 % interval of a mean reaches to each side.

    Args:
        counts: How many numbers there are behind each mean, (n,).
    """
    from scipy.special import stdtrit  # The whole of scipy.stats takes half a second to load.

    return np.asarray(stdtrit(np.maximum(counts - 1, 1), (1 + CONFIDENCE) / 2), dtype=float)


def bound_positive(
    means: NDArray[np.float64], halves: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the 95 % interval of each mean of numbers that cannot be negative, such as regrets.

    It is Student's interval of the logarithm of the mean, by the delta method:
    mean x exp(± half / mean). So it never reaches below 0, is equal to mean ± half where that is
    narrow, and holds the truth at least as often where the numbers are skew.

    Args:
        means: Of numbers from 0 on, (n,).
        halves: Half widths of Student's intervals, as `reach` computes them, (n,).

    Returns:
        Lower and upper ends, (n,); mean ± half where a mean is not above 0.
    """
    above = means > 0
    ratios = np.divide(halves, means, out=np.zeros_like(means), where=above)
    low = np.where(above, means * np.exp(-ratios), means - halves)
    high = np.where(above, means * np.exp(ratios), means + halves)
    return low, high


def find_p_value(mean: float, std: float, count: int) -> float:
    """Compute how probable a mean at least as far from 0 is by chance alone: Student's t test.

    Args:
        mean: Of the numbers.
        std: Their standard deviation.
        count: How many there are.

    Returns:
        The probability, of both sides; 1 for fewer than two numbers, which prove nothing.
    """
    from scipy.special import stdtr  # As above.

    if count < 2:
        return 1.0
    if std == 0:
        return 0.0 if mean else 1.0
    return float(2 * stdtr(count - 1, -abs(mean) * sqrt(count) / std))


def find_roots_in_mean(pairs: NDArray[np.float64]) -> Ranges:
    """Find all p >= 0 at which the mean of y + p z may be 0, with 95 % confidence.

    It is the set of Fieller (1954) for the ratio -mean(y) / mean(z): all p that a t test of
    y + p z does not exclude. With m_y, m_z the means, V their covariance and t the quantile of
    Student's distribution, it is (m_y + p m_z)^2 <= t^2 (V_yy + 2 p V_yz + p^2 V_zz).

    Args:
        pairs: y and z, a row per play or pair of plays, (n, 2).

    Returns:
        The set: it may be empty, two pieces, or without an end. Of fewer than two rows, it is all.
    """
    if len(pairs) < 2:
        return ((0.0, inf),)
    first, second = pairs.mean(axis=0)
    covariance = np.cov(pairs, rowvar=False) / len(pairs)
    covariance *= float(student(np.array(len(pairs)))) ** 2
    square = second**2 - covariance[1, 1]
    slope = first * second - covariance[0, 1]
    constant = first**2 - covariance[0, 0]
    return _not_above_zero(square, slope, constant)


def _not_above_zero(square: float, slope: float, constant: float) -> Ranges:
    """Return where *square* p^2 + 2 *slope* p + *constant* <= 0, of p >= 0."""
    discriminant = slope**2 - square * constant
    if square == 0:
        edge = -constant / (2 * slope) if slope else 0.0
        if slope:
            pieces = [(-inf, edge) if slope > 0 else (edge, inf)]
        else:
            pieces = [(-inf, inf)] if constant <= 0 else []
    elif square > 0:  # There are roots: the p at which the mean is 0 lies between.
        pieces = [_roots(square, slope, constant, discriminant=max(discriminant, 0.0))]
    elif discriminant <= 0:
        pieces = [(-inf, inf)]
    else:
        low, high = _roots(square, slope, constant, discriminant=discriminant)
        pieces = [(-inf, low), (high, inf)] if high > 0 else [(-inf, inf)]
    return tuple((max(low, 0.0), high) for low, high in pieces if high >= 0)


def _roots(
    square: float, slope: float, constant: float, *, discriminant: float
) -> tuple[float, float]:
    # The one without cancellation, and the other by their product.
    far = -(slope + copysign(sqrt(discriminant), slope))
    low, high = sorted((far / square, constant / far)) if far else (0.0, 0.0)
    return low, high
