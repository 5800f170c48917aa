"""Optima: a search for the best point of a landscape, at each time once.

`OptimumSearch` is long because it searches a line and a space, on the same candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain

if TYPE_CHECKING:
    from scipy.spatial import KDTree

__all__ = ["Best", "OptimumSearch", "Rewards", "Slopes", "Starts", "build_search"]

Rewards: TypeAlias = Callable[[Points, float], Values]
"""The reward at each row of points (n, d), at a time: (n,)."""
Slopes: TypeAlias = Callable[[Points, float], Points]
"""Its gradient at each row: (n, d)."""
Starts: TypeAlias = Callable[[float], Points]
"""Points near which the best one is likely, at a time: (n, d)."""

Best: TypeAlias = Callable[[float], tuple[Point, float]]
"""Returns a point of the highest reward at a time, and that reward."""

_ON_A_LINE, _IN_SPACE = 513, 1024
_SITES_KEPT = 4096  # times of which the best site is remembered


def build_search(domain: Domain, rewards: Rewards, *, cover: int | None = None) -> Best:
    """Return a function that finds the best point at a time, and remembers it.

    In a box it is found by an `OptimumSearch`; of sites, all are compared.

    Args:
        domain: Where to search.
        rewards: What is to be highest.
        cover: How many points of a box are looked at first; by default as for `OptimumSearch`.
    """
    if isinstance(domain, Box):
        return OptimumSearch(domain, rewards, cover=cover).best
    sites = domain.points

    def best_site(time: float) -> tuple[Point, float]:
        values = rewards(sites, time)
        return sites[values.argmax()], float(values.max())

    return lru_cache(maxsize=_SITES_KEPT)(best_site)


class OptimumSearch:
    """A search for the highest reward in a box, done once for each time.

    Candidates are points spread evenly over the box, and those of *starts*. From the highest of
    those that are higher than all around them, a local search climbs to a maximum: in one
    dimension by finer and finer grids, beyond by L-BFGS-B. The value is right to about 1e-9 of the
    reward's range if one of these climbs begins near the highest maximum. That is certain only for
    a reward that is smooth on the scale of the candidates: 1/513 of a line, and *cover* points in
    space.

    Args:
        domain: Where to search.
        rewards: What is to be highest.
        slopes: Its gradient; by default it is found by differences.
        starts: Points near which the best one must be, if the landscape knows such.
        cover: How many points are spread over the box; by default 513 on a line and 1,024 in
            space.
        climbs: From how many candidates the local search begins.
    """

    def __init__(
        self,
        domain: Box,
        rewards: Rewards,
        *,
        slopes: Slopes | None = None,
        starts: Starts | None = None,
        cover: int | None = None,
        climbs: int = 5,
    ) -> None:
        self._domain = domain
        self._rewards = rewards
        self._slopes = slopes
        self._starts = starts
        self._size = cover or (_ON_A_LINE if domain.dimensions == 1 else _IN_SPACE)
        self._climbs = climbs
        self._found: dict[float, tuple[Point, float]] = {}

    @cached_property
    def _cover(self) -> Points:
        if self._domain.dimensions == 1:
            return self._domain.grid(self._size)
        return self._domain.cover(self._size)

    def best(self, time: float) -> tuple[Point, float]:
        """Return the highest point at *time*, and its reward.

        Args:
            time: When, in clock units.
        """
        found = self._found.get(time)
        if found is None:
            point = (
                self._search_line(time)
                if self._domain.dimensions == 1
                else self._search_space(time)
            )
            found = point, float(self._rewards(point[None], time)[0])
            self._found[time] = found
        return found

    def _search_line(self, time: float) -> Point:
        """Lay a grid of 17 points around each of the best candidates, then finer and finer ones."""
        low, high = float(self._domain.lower[0]), float(self._domain.upper[0])
        x = self._cover[:, 0]
        if self._starts is not None:
            x = np.sort(np.append(x, np.clip(self._starts(time)[:, 0], low, high)))
        values = self._rewards(x[:, None], time)
        tops = np.flatnonzero(
            (values >= np.append(values[1:], -np.inf)) & (values >= np.append(-np.inf, values[:-1]))
        )
        tops = tops[np.argsort(values[tops])[-self._climbs :]]
        best = x[tops]
        reach = (high - low) / (self._size - 1)
        steps = np.linspace(-1.0, 1.0, 17)
        while reach > 1e-9 * (high - low):
            finer = np.clip(best[:, None] + reach * steps, low, high)
            values = self._rewards(finer.reshape(-1, 1), time).reshape(finer.shape)
            best = finer[np.arange(len(finer)), values.argmax(axis=1)]
            reach /= 8
        return best[[self._rewards(best[:, None], time).argmax()]]

    def _search_space(self, time: float) -> Point:
        """Climb from the best candidates that are higher than all cover points around them."""
        # Loaded when a landscape is asked, not when it is imported.
        from scipy.optimize import minimize

        candidates, around = self._candidates(time)
        values = self._rewards(candidates, time)
        spread = float(np.ptp(values))
        lower, width = self._domain.lower, self._domain.upper - self._domain.lower
        tops = np.flatnonzero(values >= values[around].max(axis=1))
        tops = tops[np.argsort(values[tops])[: -self._climbs - 1 : -1]]
        ends: list[Point] = [candidates[tops[0]]]
        if not spread:
            return ends[0]

        # In units of the box and of the spread, so that no tolerance depends on either.
        def place(unit: Point) -> Point:
            return np.clip(lower + unit * width, lower, self._domain.upper)

        def depth(unit: Point) -> float:
            return -float(self._rewards(place(unit)[None], time)[0]) / spread

        def descent(unit: Point) -> Point:
            return -self._slope(place(unit), time) * width / spread

        for top in tops:
            climbed = minimize(
                depth,
                (candidates[top] - lower) / width,
                jac=descent,
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * len(width),
                options={"ftol": 1e-15, "gtol": 1e-10},
            )
            ends.append(place(climbed.x))
        heights = self._rewards(np.array(ends), time)
        return ends[int(heights.argmax())]

    def _candidates(self, time: float) -> tuple[Points, NDArray[np.intp]]:
        """Return all candidates, and the numbers of the cover points nearest to each: (n, 4 d)."""
        if self._starts is None:
            return self._cover, self._neighbours
        starts = np.clip(self._starts(time), self._domain.lower, self._domain.upper)
        near = self._find_nearest(starts)
        return np.concatenate([self._cover, starts]), np.concatenate([self._neighbours, near])

    @cached_property
    def _neighbours(self) -> NDArray[np.intp]:
        return self._find_nearest(self._cover)

    def _find_nearest(self, points: Points) -> NDArray[np.intp]:
        count = min(4 * self._domain.dimensions, len(self._cover))
        width = self._domain.upper - self._domain.lower
        return np.asarray(self._tree.query(points / width, count)[1]).reshape(len(points), count)

    @cached_property
    def _tree(self) -> KDTree:
        from scipy.spatial import KDTree

        return KDTree(self._cover / (self._domain.upper - self._domain.lower))

    def _slope(self, point: Point, time: float) -> Point:
        if self._slopes is not None:
            slope: Point = self._slopes(point[None], time)[0]
            return slope
        # Central differences, all in one call, and one-sided at the bounds.
        steps = np.diag(1e-6 * (self._domain.upper - self._domain.lower))
        above = np.minimum(point + steps, self._domain.upper)
        below = np.maximum(point - steps, self._domain.lower)
        values = self._rewards(np.concatenate([above, below]), time)
        differences: Point = (values[: len(point)] - values[len(point) :]) / np.diag(above - below)
        return differences
