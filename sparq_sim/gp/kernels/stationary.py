"""Kernels of the distance between two points, in units of a length scale."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal, cast

import numpy as np
from pydantic import Field

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.fields import Positive
from sparq_sim.gp.kernels.base import Kernel

__all__ = [
    "LengthScale",
    "Matern12",
    "Matern32",
    "Matern52",
    "RationalQuadratic",
    "SquaredExponential",
    "Stationary",
]

LengthScale = Positive | Annotated[tuple[Positive, ...], Field(min_length=1)]
"""A length scale, in units of the points: one number, or one for each coordinate."""


class Stationary(Kernel):
    """A kernel of the scaled distance, k = variance * c(s), s = sum_j ((a_j - b_j) / l_j)^2.

    l is *length_scale*. Subclasses define the correlation c(s) and its slope.
    """

    variance: Positive = 1.0
    """The variance of the reward at a point, in squared reward units."""
    length_scale: LengthScale = 1.0
    """The distance over which rewards stay alike, in units of the points: one number, or one for
    each coordinate."""

    @abstractmethod
    def _correlation(self, squares: Matrix) -> Matrix:
        """Return c(s)."""

    @abstractmethod
    def _slope(self, squares: Matrix) -> Matrix:
        """Return -2 c'(s)."""

    def __call__(self, a: Points, b: Points) -> Matrix:
        return self.variance * self._correlation(self._squares(a, b))

    def diagonal(self, points: Points) -> Values:
        variances = np.empty(len(points))
        variances.fill(self.variance)  # In a third of the time of np.full.
        return variances

    def gradient(self, point: Point, points: Points) -> Matrix:
        slope = self._slope(self._squares(point[None], points))[0]
        steps = (points - point) / np.square(self.length_scale)
        return cast(Matrix, self.variance * slope[:, None] * steps)

    def derivatives(self, points: Points) -> list[Matrix]:
        squares = self._squares(points, points)
        slope = self.variance * self._slope(squares)
        if isinstance(self.length_scale, float):
            by_scale = [slope * squares]
        else:
            columns = (points / self.length_scale).T
            by_scale = [slope * np.subtract.outer(column, column) ** 2 for column in columns]
        return [self.variance * self._correlation(squares), *by_scale]

    def _squares(self, a: Points, b: Points) -> Matrix:
        scale = self.length_scale
        if isinstance(scale, tuple) and len(scale) != a.shape[1]:
            raise ValueError(
                f"length_scale has {len(scale)} entries and the points have {a.shape[1]} "
                "coordinates: give one number, or one for each coordinate"
            )
        # Column by column: the expansion a^2 - 2ab + b^2 would lose half the digits of small s.
        total = np.zeros((len(a), len(b)))
        for ours, theirs in zip((a / scale).T, (b / scale).T, strict=True):
            total += np.subtract.outer(ours, theirs) ** 2
        return total

    def _scale(self, factor: float) -> Kernel:
        return type(self)(**{**dict(self), "variance": factor * self.variance})


class SquaredExponential(Stationary):
    """A kernel of infinitely smooth rewards: k = variance * exp(-s / 2)."""

    kind: Literal["squared-exponential"] = "squared-exponential"

    def _correlation(self, squares: Matrix) -> Matrix:
        return np.exp(-0.5 * squares)

    def _slope(self, squares: Matrix) -> Matrix:
        return np.exp(-0.5 * squares)


class Matern12(Stationary):
    """A kernel of rough rewards: k = variance * exp(-r), r = sqrt(s).

    In time this is the Ornstein-Uhlenbeck process, and may be called so.
    """

    kind: Literal["matern-1/2", "ornstein-uhlenbeck"] = "matern-1/2"

    def _correlation(self, squares: Matrix) -> Matrix:
        return np.exp(-np.sqrt(squares))

    def _slope(self, squares: Matrix) -> Matrix:
        distances = np.sqrt(squares)
        apart = distances > 0
        # The slope is infinite at distance 0; the mean over all directions there is 0.
        return np.where(apart, np.exp(-distances) / np.where(apart, distances, 1.0), 0.0)


class Matern32(Stationary):
    """A kernel of rewards with one derivative: k = variance * (1 + r) exp(-r), r = sqrt(3 s)."""

    kind: Literal["matern-3/2"] = "matern-3/2"

    def _correlation(self, squares: Matrix) -> Matrix:
        distances = np.sqrt(3 * squares)
        return cast(Matrix, (1 + distances) * np.exp(-distances))

    def _slope(self, squares: Matrix) -> Matrix:
        return cast(Matrix, 3 * np.exp(-np.sqrt(3 * squares)))


class Matern52(Stationary):
    """A kernel of rewards with two derivatives.

    k = variance * (1 + r + r^2 / 3) exp(-r), r = sqrt(5 s).
    """

    kind: Literal["matern-5/2"] = "matern-5/2"

    def _correlation(self, squares: Matrix) -> Matrix:
        distances = np.sqrt(5 * squares)
        return (1 + distances + distances**2 / 3) * np.exp(-distances)

    def _slope(self, squares: Matrix) -> Matrix:
        distances = np.sqrt(5 * squares)
        return 5 / 3 * (1 + distances) * np.exp(-distances)


class RationalQuadratic(Stationary):
    """A kernel that mixes length scales: k = variance * (1 + s / (2 alpha))^-alpha."""

    kind: Literal["rational-quadratic"] = "rational-quadratic"
    alpha: Positive = 1.0
    """How alike the mixed length scales are; the larger, the nearer to a squared exponential."""

    def _correlation(self, squares: Matrix) -> Matrix:
        return np.exp(-self.alpha * np.log1p(squares / (2 * self.alpha)))

    def _slope(self, squares: Matrix) -> Matrix:
        return np.exp(-(self.alpha + 1) * np.log1p(squares / (2 * self.alpha)))

    def derivatives(self, points: Points) -> list[Matrix]:
        squares = self._squares(points, points)
        ratio = squares / (2 * self.alpha)
        growth = self.alpha * (ratio / (1 + ratio) - np.log1p(ratio))
        by_alpha = self.variance * self._correlation(squares) * growth
        return [*super().derivatives(points), by_alpha]
