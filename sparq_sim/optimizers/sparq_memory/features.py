"""Features of space: a few numbers by which the reward at any point is expressed."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.sparse.greedy import select_points_greedily

__all__ = ["SpatialFeatures"]

_MOST = 80
"""The largest number of anchors."""
_LEFT = 1e-3
"""The share of the prior variance that the features may leave unexplained."""
_LEVEL = 0.25
"""The prior variance of the level that all points share, as a share of the kernel's."""
_SMALLEST = 1e-9
"""The smallest eigenvalue of the kernel matrix that is inverted, as a share of the largest."""


class SpatialFeatures:
    """Features phi(x), (r,), with phi(x)' phi(y) close to k(x, y); the last one is the level.

    With anchors A, which are chosen greedily among the candidates, phi(x) = K_AA^-1/2 k(A, x): each
    feature is large near one anchor, so that weights can drift at one place and stand still at
    another. What the features leave of the variance at a point is known, and counts as independent
    from point to point.

    Args:
        kernel: The covariance of the reward in space.
        candidates: The points at which predictions are wanted, (g, d).
    """

    def __init__(self, kernel: Kernel, candidates: Points) -> None:
        self._kernel = kernel
        size = min(_MOST, len(candidates))
        chosen = select_points_greedily(kernel, candidates, size=size, tolerance=_LEFT)
        self.anchors: Points = candidates[chosen]
        covariance = kernel(self.anchors, self.anchors)
        self.variance = float(np.diagonal(covariance).max())
        eigenvalues, vectors = np.linalg.eigh(covariance)
        roots = np.sqrt(np.maximum(eigenvalues, _SMALLEST * eigenvalues[-1]))
        self._whiten: Matrix = (vectors / roots) @ vectors.T
        self._level = sqrt(_LEVEL * self.variance)

    @property
    def rank(self) -> int:
        """The number of features, r."""
        return len(self.anchors) + 1

    def at(self, points: Points) -> Matrix:
        """Return the features of some points, (n, r).

        Args:
            points: The points, (n, d).
        """
        features: Matrix = np.empty((len(points), self.rank))
        features[:, :-1] = self._kernel(points, self.anchors) @ self._whiten
        features[:, -1] = self._level
        return features

    def unexplained(self, points: Points, features: Matrix) -> Values:
        """Return the prior variance at some points that the features leave, (n,).

        Args:
            points: The points, (n, d).
            features: Their features, (n, r).
        """
        explained = np.square(features[:, :-1]).sum(axis=1)
        left: Values = np.maximum(self._kernel.diagonal(points) - explained, 0.0)
        return left

    def slope(self, point: Point) -> Matrix:
        """Return the derivatives of the features by the coordinates of a point, (d, r).

        Args:
            point: The point, (d,).
        """
        slope: Matrix = np.zeros((len(point), self.rank))
        slope[:, :-1] = self._kernel.gradient(point, self.anchors).T @ self._whiten
        return slope

    def derivatives(self) -> NDArray[np.float64]:
        """Return, for each coordinate, the weights of the derivative of a function, (d, r-1, r-1).

        Where w are the weights of a function without its level, D_k w are those of its derivative
        by coordinate k, as far as the features can express it.
        """
        at_anchors = self.at(self.anchors)[:, :-1]
        slopes = np.array([self.slope(anchor)[:, :-1] for anchor in self.anchors])
        # Stable where anchors are nearly redundant, as the features themselves are.
        inverse = np.linalg.pinv(at_anchors, rcond=sqrt(_SMALLEST))
        return np.array([inverse @ slopes[:, axis] for axis in range(slopes.shape[1])])

    def lengths(self) -> Values:
        """Return over which length the reward changes along each coordinate, (d,).

        For a squared exponential this is the length scale.
        """
        slopes = np.array([self.slope(anchor)[:, :-1] for anchor in self.anchors])
        steepness = np.square(slopes).sum(axis=(0, 2))
        size = np.square(self.at(self.anchors)[:, :-1]).sum()
        # A reward that is flat along a coordinate is carried along it without effect.
        lengths: Values = np.sqrt(size / np.maximum(steepness, 1e-12 * max(size, 1e-300)))
        return lengths
