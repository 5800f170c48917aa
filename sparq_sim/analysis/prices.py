"""Prices: at which price of a unit of cost two ways to play come to the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.intervals import Ranges, find_roots_in_mean

__all__ = ["PRICE_FIELDS", "BreakEven", "Gaps", "break_even"]

PRICE_FIELDS = ("cost", "cost_per_point")
"""Fields that are the price of a query, or of a point of it."""

Gaps: TypeAlias = NDArray[np.float64]
"""(n, 2): by replication, how much more average regret, and how much more is spent per round."""


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

    It is the price at which the mean of regret + price x spent, of the gaps, is 0.

    Args:
        gaps: By pair, how much more average regret one has, and how much more it spends per
            round: (n, 2).

    Returns:
        The price and its set; of fewer than two pairs, no price and all prices.
    """
    if len(gaps) < 2:
        return BreakEven(None, find_roots_in_mean(gaps))
    regret, spent = gaps.mean(axis=0)
    price = float(-regret / spent) if spent else -1.0
    return BreakEven(price if price >= 0 else None, find_roots_in_mean(gaps))
