"""A kernel to test with."""

from dataclasses import dataclass

import numpy as np

from sparq_sim.arrays import Matrix, Points, Values


@dataclass(frozen=True)
class SquaredExponential:
    """v exp(-|a - b|^2 / (2 l^2))."""

    length: float = 1.0
    variance: float = 1.0

    def __call__(self, a: Points, b: Points, /) -> Matrix:
        squares = ((a[:, None] - b[None]) ** 2).sum(axis=-1)
        covariances: Matrix = self.variance * np.exp(-squares / (2 * self.length**2))
        return covariances

    def diagonal(self, points: Points, /) -> Values:
        return np.full(len(points), self.variance)
