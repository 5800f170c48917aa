"""Opening: the first plays of an agent that knows no kernel yet, spread over the domain."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sparq_sim.arrays import Point, Points
from sparq_sim.domain import Box

__all__ = ["Opening"]


class Opening:
    """Plays spread evenly over what is allowed, shifted by chance and in an order of chance.

    A kernel is found from few such plays better than from as many independent ones, which leave
    gaps and come in clusters.

    Args:
        candidates: The points to choose from, (g, d).
        size: How many plays are to cover the domain; after these comes another cover.
        rng: Draws the shift and the order.
    """

    def __init__(self, candidates: Points, size: int, rng: Generator) -> None:
        self._candidates = candidates
        self._cover = Box(np.zeros(candidates.shape[1]), np.ones(candidates.shape[1])).cover(size)
        self._rng = rng
        self._ahead: list[Point] = []
        self._played = np.zeros(len(candidates), dtype=bool)

    def choose(self, bounds: Box | None = None) -> Point:
        """Return the next point to play, (d,): a candidate that was not played, if there is one.

        Args:
            bounds: Within which to play, where candidates lie within them; by default anywhere.
        """
        if not self._ahead:
            shifted = (self._cover + self._rng.random(self._cover.shape[1])) % 1.0
            self._ahead = list(self._rng.permutation(shifted))
        allowed = np.ones(len(self._candidates), dtype=bool)
        # Where bounds lie between candidates, the play brings the point within.
        if bounds is not None and (inside := bounds.contains(self._candidates)).any():
            allowed = inside
        if not self._played[allowed].all():
            allowed = allowed & ~self._played
        (rows,) = allowed.nonzero()
        points = self._candidates[rows]
        low = points.min(axis=0)
        reach = points.max(axis=0) - low
        shares = (points - low) / np.where(reach > 0, reach, 1.0)
        row = rows[np.square(shares - self._ahead.pop()).sum(axis=1).argmin()]
        self._played[row] = True
        point: Point = self._candidates[row]
        return point
