"""Totals: what a round comes to with the price of what it spends, and who is best when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np

from sparq_sim.analysis.contrasts import read_loss_and_spending
from sparq_sim.analysis.criteria import Criterion
from sparq_sim.analysis.intervals import Ranges, find_roots_in_mean
from sparq_sim.arrays import Matrix, Values
from sparq_sim.study.store import StoredSummary

__all__ = ["Change", "Totals", "total_along", "total_at_prices"]

_Lines: TypeAlias = Mapping[tuple[int, int], Matrix]
"""By seed and replication, the total where each piece of a line begins, and its slope: (n, 2)."""


@dataclass(frozen=True)
class Change:
    """A break-even price: up to it one is best in the mean, and from it on another."""

    before: str
    """The name of the best below it."""
    after: str
    """The name of the best above it."""
    price: float
    """Where their lines cross."""
    height: float
    """What both come to there: regret, or minus the reward, and what is spent."""
    ranges: Ranges
    """Its 95 % confidence set, after Fieller (1954): where a paired t test does not tell the two
    apart."""


@dataclass(frozen=True)
class Totals:
    """What a round comes to by the price: its regret, or minus its reward, and what it spends."""

    starts: Values
    """Prices at which a straight piece of each line begins, (n,)."""
    lines: Mapping[str, Matrix]
    """By name, the mean where each piece begins, and its slope: (n, 2)."""
    changes: Sequence[Change]
    """Where the best changes, by growing price; none where one is best at every price."""

    def find_height(self, name: str, price: float) -> float:
        """Compute what a round of one comes to.

        Args:
            name: Of its line.
            price: Not below the first one; beyond the last, its last piece goes on.
        """
        piece = int(np.searchsorted(self.starts, price, side="right")) - 1
        start, slope = self.lines[name][piece]
        return float(start + (price - self.starts[piece]) * slope)


def total_at_prices(rows: Mapping[str, Sequence[StoredSummary]], criterion: Criterion) -> Totals:
    """Compute what a round would come to at any price of a unit of cost, from 0 on.

    Args:
        rows: Plays of each optimizer in one setting, by its name.
        criterion: What is to be low, or high.

    Returns:
        Lines of one piece. They are what plays would come to if no choice depended on the price.
    """
    lines: dict[str, _Lines] = {}
    for name, plays in rows.items():
        told = {(p.seed, p.replication): read_loss_and_spending(p, criterion) for p in plays}
        lines[name] = {key: np.array([pair]) for key, pair in told.items() if pair is not None}
    return _compare(np.zeros(1), inf, lines)


def total_along(
    prices: Sequence[float],
    rows: Mapping[str, Sequence[Sequence[StoredSummary]]],
    criterion: Criterion,
) -> Totals:
    """Compute what a round comes to along swept prices, which plays know and pay.

    Args:
        prices: At least two, growing.
        rows: By the name of each optimizer, its plays at each price.
        criterion: What is to be low, or high.

    Returns:
        Lines with a piece between each two neighbouring prices, of replications played at all.
    """
    steps = np.diff(prices)
    lines: dict[str, _Lines] = {}
    for name, at_prices in rows.items():
        told: dict[tuple[int, int], list[float]] = {}
        for plays in at_prices:
            for play in plays:
                if (pair := read_loss_and_spending(play, criterion)) is not None:
                    told.setdefault((play.seed, play.replication), []).append(sum(pair))
        lines[name] = {
            key: np.column_stack([totals[:-1], np.diff(totals) / steps])
            for key, totals in told.items()
            if len(totals) == len(prices)
        }
    return _compare(np.array(prices[:-1], dtype=float), float(prices[-1]), lines)


def _compare(starts: Values, end: float, plays: Mapping[str, _Lines]) -> Totals:
    """Average lines, and find where the lowest changes."""
    means = {name: np.mean(list(own.values()), axis=0) for name, own in plays.items() if own}
    ends = [*starts[1:].tolist(), end]
    changes: list[Change] = []
    best = ""
    for piece, (start, stop) in enumerate(zip(starts.tolist(), ends, strict=True)):
        lines = {
            name: (float(line[piece][0]), float(line[piece][1])) for name, line in means.items()
        }
        for place, name in _walk(lines, stop - start, best):
            if best:
                ranges = _find_ranges(starts.tolist(), ends, plays[best], plays[name])
                height = lines[name][0] + place * lines[name][1]
                changes.append(Change(best, name, start + place, height, ranges))
            best = name
    return Totals(starts, means, changes)


def _walk(
    lines: Mapping[str, tuple[float, float]], length: float, best: str
) -> list[tuple[float, str]]:
    """Find where another line becomes the lowest, given the lowest so far, and which."""
    if not lines:
        return []
    found: list[tuple[float, str]] = []
    here = 0.0
    if not best:
        best = min(lines, key=lambda name: lines[name])
        found.append((here, best))
    while True:
        height, slope = lines[best]
        crossings = [
            (max((start - height) / (slope - other), here), other, name)
            for name, (start, other) in lines.items()
            if other < slope
        ]
        if not crossings or (first := min(crossings))[0] >= length:
            return found
        here, best = first[0], first[2]
        found.append((here, best))


def _find_ranges(
    starts: Sequence[float], ends: Sequence[float], first: _Lines, second: _Lines
) -> Ranges:
    """Find all prices at which a paired t test does not tell two lines apart."""
    shared = first.keys() & second.keys()
    gaps = np.array([first[key] - second[key] for key in sorted(shared)])
    found: list[tuple[float, float]] = []
    for piece, (start, end) in enumerate(zip(starts, ends, strict=True)):
        pairs = gaps[:, piece] if len(gaps) else np.empty((0, 2))
        for low, high in find_roots_in_mean(pairs):
            low, high = start + low, min(start + high, end)
            if low > end:
                continue
            if found and found[-1][1] >= low:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
    return tuple(found)
