"""What one sees in a row of place over time, in words: who follows, who sticks, who jumps."""

from __future__ import annotations

from math import floor, log10

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Domain, Sites
from sparq_sim.errors import mask_invisible
from sparq_sim.report.phrases import format_number

__all__ = ["describe_play"]

_NEAR, _OF_MOVEMENT = 0.05, 0.25
"""What is near: at most a share of the domain's diagonal, and of how far the best point moves."""
_FAR = 0.2
"""What is a jump, as a share of the diagonal."""
_MOSTLY, _NEARLY_ALL = 0.6, 0.95
"""Shares of the rounds."""
_MUCH = 0.3
"""The share of rounds near the best up to which who jumps about finds it by chance."""
_LATEST = 0.1
"""The longest lag that is sought, as a share of the rounds."""
_NEARER = 0.8
"""How much nearer a player must be to where the best was than to where it is, to be late."""


def describe_play(
    points: Points, rounds: NDArray[np.int64], best: Points | None, domain: Domain | None
) -> str:
    """Return in a sentence how a player moved, and in how many rounds it was near the best.

    Args:
        points: Where it played: (k, d).
        rounds: The numbers of these rounds: (k,).
        best: The best points then: (k, d); None where they are not known.
        domain: Where points may lie; None where that is not known.
    """
    if not len(points):
        return "Never played."
    measure = _Measure(points, best, domain)
    settled = _find_settled(points, measure)
    if best is None:
        if _is_everywhere(points, measure):
            return "Goes everywhere."
        if settled is None:
            return "Moves on and on."
        return f"Stays {_name_stay(points, rounds, settled, measure)}."
    near = float((measure.between(points, best) <= measure.near).mean())
    share = f"{measure.name_near('the best')} in {100 * near:.0f} % of the rounds"
    if measure.is_sites:
        share += f", by chance in {100 * measure.chance:.0f} %"
    if near <= measure.much and _is_everywhere(points, measure):
        told = "Goes everywhere"
    elif settled is not None:
        told = "Finds the best and stays" if near >= _MOSTLY else "Sticks"
        told += f" {_name_stay(points, rounds, settled, measure)}"
    elif (lag := _find_lag(points, best, measure)) > 1:
        told = f"Follows, about {lag} rounds late"
    elif near >= _MOSTLY:
        told = "Follows the best"
    else:
        told = "Mostly elsewhere" if near <= measure.much else "Finds the best at times"
    return f"{told}: {share}."


class _Measure:
    """Measures distances as shares of the domain's diagonal, and names what is near."""

    def __init__(self, points: Points, best: Points | None, domain: Domain | None) -> None:
        self.domain = domain
        least, most = points.min(axis=0), points.max(axis=0)
        if isinstance(domain, Sites):
            least, most = domain.points.min(axis=0), domain.points.max(axis=0)
        elif domain is not None:
            least, most = domain.lower, domain.upper
        width = np.where(most > least, most - least, 1.0)
        self._scale = width * np.sqrt(len(width))
        self.near = _NEAR
        if best is not None:
            moved = float(self.between(best, np.median(best, axis=0)).max())
            self.near = max(_NEAR / 10, min(_NEAR, 2 * _OF_MOVEMENT * moved)) if moved else _NEAR
        if len(width) == 1:
            self.near = _round_down(self.near * float(width[0])) / float(width[0])
        if self.is_sites:
            self.near = 0.0
        self._width = float(width[0])

    @property
    def is_sites(self) -> bool:
        """Whether places are sites on a map, which are the same or not."""
        return isinstance(self.domain, Sites) and self.domain.dimensions > 1

    @property
    def chance(self) -> float:
        """The share of rounds in which a player who plays any site is at the best one."""
        return 1 / len(self.domain.points) if isinstance(self.domain, Sites) else 0.0

    @property
    def much(self) -> float:
        """The share of rounds near the best up to which it is mere chance."""
        return 2 * self.chance if self.is_sites else _MUCH

    def between(self, some: Points, others: Points) -> Values:
        """Return how far points are from others: (k,)."""
        return np.asarray(np.sqrt((((some - others) / self._scale) ** 2).sum(axis=-1)))

    def name_near(self, what: str) -> str:
        """Return, in words, that something is near."""
        if self.is_sites:
            return f"at {what}"
        if len(self._scale) == 1:
            return f"within {format_number(self.near * self._width)} of {what}"
        return f"within {format_number(self.near)} of {what}"

    def name(self, point: Points) -> str:
        """Return, in words, what a point is called."""
        if isinstance(self.domain, Sites) and self.is_sites:
            (number,) = self.domain.index(point[None])
            return mask_invisible(self.domain.site_names[number])
        numbers = ", ".join(format_number(float(each)) for each in point)
        return numbers if len(point) == 1 else f"({numbers})"


def _round_down(number: float) -> float:
    """Return a number of one digit, 1, 2 or 5, that is at most *number*."""
    power = 10.0 ** floor(log10(number))
    return next(digit for digit in (5, 2, 1) if digit * power <= number * (1 + 1e-9)) * power


def _is_everywhere(points: Points, measure: _Measure) -> bool:
    """Return whether most steps are jumps, and many places are visited."""
    if len(points) < 3:
        return False
    steps = measure.between(points[1:], points[:-1])
    if isinstance(measure.domain, Sites) and measure.is_sites:
        visited = len(np.unique(measure.domain.index(points)))
        possible = min(len(points), len(measure.domain.points))
        return bool((steps > 0).mean() >= _MOSTLY and visited >= _MOSTLY * possible)
    return bool((steps > _FAR).mean() >= 0.75 * _MOSTLY)


def _find_settled(points: Points, measure: _Measure) -> int | None:
    """Return from which row on nearly all points are near one place; None if for less than half."""
    count = len(points)
    for start in np.unique(np.linspace(0, count // 2, 60).astype(int)).tolist():
        centre = _find_centre(points[start:], measure)
        near = measure.between(points[start:], centre) <= measure.near
        if count - start > 2 and near.mean() >= _NEARLY_ALL and near[0]:
            return int(start)
    return None


def _find_centre(points: Points, measure: _Measure) -> Points:
    if not measure.is_sites:
        return np.asarray(np.median(points, axis=0))
    unique, counts = np.unique(points, axis=0, return_counts=True)
    return np.asarray(unique[counts.argmax()])


def _name_stay(points: Points, rounds: NDArray[np.int64], start: int, measure: _Measure) -> str:
    place = measure.name_near(measure.name(_find_centre(points[start:], measure)))
    return f"{place} from round {rounds[start]} on" if start else f"{place} all along"


def _find_lag(points: Points, best: Points, measure: _Measure) -> int:
    """Return how many rounds ago the best was where the player is now; 0 if it is not late."""

    def away(lag: int) -> float:
        distances = measure.between(points[lag:], best[: len(best) - lag])
        return float(np.mean(distances > 0) if measure.is_sites else np.median(distances))

    lags = range(int(_LATEST * len(points)) + 1)
    found = min(lags, key=away)
    return found if away(found) < _NEARER * away(0) else 0
