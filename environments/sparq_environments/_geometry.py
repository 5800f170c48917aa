"""Distances between points, and reflection at bounds: what environments of moving shapes share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Points

__all__ = ["compute_squared_distances", "reflect"]


def compute_squared_distances(points: Points, places: Points) -> Matrix:
    """Compute |x - p|^2 for each pair of a point and a place.

    Args:
        points: The x, (n, d).
        places: The p, (m, d).

    Returns:
        The squared distances, (n, m), exactly 0 where two are the same.
    """
    # By coordinates: an array of three axes takes six times as long.
    squares: Matrix = (points[:, :1] - places[:, 0]) ** 2
    for axis in range(1, places.shape[1]):
        squares += (points[:, axis, None] - places[:, axis]) ** 2
    return squares


def reflect(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Reflect values at two bounds, as often as it takes to bring them between.

    Args:
        values: Numbers of any size and shape.
        low: The lower bound.
        high: The upper bound; where it equals the lower, all values become it.

    Returns:
        The values between the bounds, in the same shape.
    """
    width = high - low
    if not width:
        return np.full_like(values, low)
    return np.clip(high - np.abs((values - low) % (2 * width) - width), low, high)
