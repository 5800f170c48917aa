"""Prices: at which price of a unit of cost two ways to play come to the same."""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, inf, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.summary import student

__all__ = ["BreakEven", "Gaps", "Ranges", "break_even"]

Gaps: TypeAlias = NDArray[np.float64]
"""(n, 2): by replication, how much more average regret, and how much more is spent per round."""
Ranges: TypeAlias = tuple[tuple[float, float], ...]
"""Of prices, from the least to the largest."""


@dataclass(frozen=True)
class BreakEven:
    """The price of a unit of cost at which two come to the same, and its 95 % confidence set.

    Fieller's (1954): all prices at which a paired t test does not tell the two apart. So it has
    the coverage of the t test where a ratio of means has no standard error, and need not be one
    interval: it may be empty, two pieces, or all prices, which is said by *ranges*.
    """

    price: float | None
    """None where the one that has less regret also spends less, or where both spend the same."""
    ranges: Ranges
    """From 0 on; the last may be without an end (inf)."""


def break_even(gaps: Gaps) -> BreakEven:
    """Compute at which price two come to the same, with its confidence set.

    It is the price at which the mean of regret + price x spent, of the gaps, is 0. With m_r, m_c
    the means, V the covariance of the means and t the quantile of Student's distribution, the set
    is (m_r + p m_c)^2 <= t^2 (V_rr + 2 p V_rc + p^2 V_cc).

    Args:
        gaps: By pair, how much more average regret one has, and how much more it spends per
            round: (n, 2).

    Returns:
        The price and its set; of fewer than two pairs, no price and all prices.
    """
    if len(gaps) < 2:
        return BreakEven(None, ((0.0, inf),))
    regret, spent = gaps.mean(axis=0)
    covariance = np.cov(gaps, rowvar=False) / len(gaps) * float(student(np.array(len(gaps)))) ** 2
    square = spent**2 - covariance[1, 1]
    slope = regret * spent - covariance[0, 1]
    constant = regret**2 - covariance[0, 0]
    price = float(-regret / spent) if spent else -1.0
    return BreakEven(price if price >= 0 else None, _not_above_zero(square, slope, constant))


def _not_above_zero(square: float, slope: float, constant: float) -> Ranges:
    """Return where *square* p^2 + 2 *slope* p + *constant* <= 0, of prices p >= 0."""
    discriminant = slope**2 - square * constant
    if square == 0:
        edge = -constant / (2 * slope) if slope else 0.0
        if slope:
            pieces = [(-inf, edge) if slope > 0 else (edge, inf)]
        else:
            pieces = [(-inf, inf)] if constant <= 0 else []
    elif square > 0:  # There are roots: the price at which the means are equal lies between.
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
