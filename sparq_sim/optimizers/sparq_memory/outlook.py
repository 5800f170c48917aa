"""Outlook: what is believed of the reward at the moment of a decision, and what is hoped."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.hypothesis import Foresight

__all__ = ["Coverage", "Hope", "Outlook", "Places", "spread"]

_ROUNDING = 1e-9
"""A share that is this near to 1 is 1."""


class Places:
    """Points with their features: the candidates, which are used again and again, or any others.

    Args:
        features: The features of points.
        candidates: The points at which predictions are wanted, (g, d).
    """

    def __init__(self, features: SpatialFeatures, candidates: Points) -> None:
        self.features = features
        self.at_candidates = features.at(candidates)
        self._left = features.unexplained(candidates, self.at_candidates)

    def find(self, points: ArrayLike | None) -> tuple[Matrix, Values]:
        """Return features, (n, r), and what they leave of the prior variance, (n,).

        Args:
            points: The points, (n, d); None for the candidates.
        """
        if points is None:
            return self.at_candidates, self._left
        rows = np.asarray(points)
        features = self.features.at(rows)
        return features, self.features.unexplained(rows, features)


class Outlook:
    """What is believed of the reward at candidates, or anywhere, at one moment: a `Predictor`.

    Args:
        foresight: What is believed of the weights of the features then.
        places: The candidates and their features.
        prior_mean: The prior mean, in reward units.
    """

    def __init__(self, foresight: Foresight, places: Places, prior_mean: float) -> None:
        self._foresight = foresight
        self._places = places
        self._prior_mean = prior_mean

    def mean(self, points: ArrayLike | None = None) -> Values:
        features, _ = self._places.find(points)
        means: Values = self._prior_mean + features @ self._foresight.mean
        return means

    def std(self, points: ArrayLike | None = None) -> Values:
        features, left = self._places.find(points)
        return np.sqrt(np.maximum(spread(features, self._foresight.covariance) + left, 0.0))

    def mean_gradient(self, point: Point) -> Point:
        gradient: Point = self._places.features.slope(point) @ self._foresight.mean
        return gradient

    def std_gradient(self, point: Point) -> Point:
        std = float(self.std(point[None])[0])
        if std == 0:
            return np.zeros(len(point))
        features = self._places.features
        feature, slope = features.at(point[None])[0], features.slope(point)
        # What the features leave shrinks where what they explain grows.
        gradient: Point = slope @ (self._foresight.covariance @ feature)
        gradient -= slope[:, :-1] @ feature[:-1]
        return gradient / std

    @property
    def log_determinant(self) -> float:
        """Log det of the weights' covariance before any observation over that of now."""
        _, log_determinant = np.linalg.slogdet(self._foresight.covariance)
        return -float(log_determinant)


class Coverage:
    """How far the points at which experts may be asked tell the reward elsewhere.

    Only what they do not tell is worth a play that explores: the rest can be asked.

    Args:
        places: The candidates and their features.
        variance: The noise variance of an answer, in squared reward units.
    """

    def __init__(self, places: Places, variance: float) -> None:
        self._places = places
        self._variance = variance
        rank = places.features.rank
        self._uncovered: Matrix = np.eye(rank)
        self._at_candidates: Values | None = None

    def add(self, point: Point) -> None:
        """Add a point at which experts may be asked from now on.

        Args:
            point: The point, (d,).
        """
        feature = self._places.features.at(point[None])[0]
        reached = self._uncovered @ feature
        total = float(feature @ reached) + self._variance
        self._uncovered -= np.outer(reached, reached / total)
        self._at_candidates = None

    def share(self, points: ArrayLike | None = None) -> Values:
        """Return which share of the prior variance at some points is not covered, (n,).

        Args:
            points: The points, (n, d); None for the candidates.
        """
        if points is None and self._at_candidates is not None:
            return self._at_candidates
        features, _ = self._places.find(points)
        size = np.maximum(np.square(features).sum(axis=1), 1e-300)
        share: Values = np.clip(spread(features, self._uncovered) / size, 0.0, 1.0)
        share[share > 1 - _ROUNDING] = 1.0  # The root of a rounding error would break ties.
        if points is None:
            self._at_candidates = share
        return share

    def gradient(self, point: Point) -> Point:
        """Return the derivatives of the share at a point by its coordinates, (d,).

        Args:
            point: The point, (d,).
        """
        features = self._places.features
        feature, slope = features.at(point[None])[0], features.slope(point)
        size = max(float(feature @ feature), 1e-300)
        reached = self._uncovered @ feature
        gradient: Point = 2 * (slope @ reached) / size
        gradient -= 2 * float(feature @ reached) / size**2 * (slope @ feature)
        return gradient


class Hope:
    """An outlook in which what experts can be asked about is worth less exploring: a `Predictor`.

    Its std is that of the outlook times new sqrt(u) + asked sqrt(1 - u), where u is the share that
    no expert can be asked about.

    Args:
        outlook: What is believed.
        coverage: What experts can be asked about.
        new: How much of the std counts where nothing can be asked.
        asked: How much of the std counts where all can be asked.
    """

    def __init__(self, outlook: Outlook, coverage: Coverage, *, new: float, asked: float) -> None:
        self._outlook = outlook
        self._coverage = coverage
        self._new = new
        self._asked = asked

    def mean(self, points: ArrayLike | None = None) -> Values:
        return self._outlook.mean(points)

    def std(self, points: ArrayLike | None = None) -> Values:
        return self._outlook.std(points) * self._factor(self._coverage.share(points))

    def mean_gradient(self, point: Point) -> Point:
        return self._outlook.mean_gradient(point)

    def std_gradient(self, point: Point) -> Point:
        share = self._coverage.share(point[None])
        clear = np.clip(share, 1e-9, 1 - 1e-9)
        slope = 0.5 * self._new / np.sqrt(clear) - 0.5 * self._asked / np.sqrt(1 - clear)
        gradient: Point = self._outlook.std_gradient(point) * self._factor(share)
        gradient += self._outlook.std(point[None]) * slope * self._coverage.gradient(point)
        return gradient

    @property
    def log_determinant(self) -> float:
        """That of the outlook."""
        return self._outlook.log_determinant

    def _factor(self, share: Values) -> Values:
        factor: Values = self._new * np.sqrt(share) + self._asked * np.sqrt(1 - share)
        return factor


def spread(features: Matrix, covariance: Matrix) -> Values:
    """Return phi' C phi for the features phi of each point, (n,).

    Args:
        features: The features, (n, r).
        covariance: C, (r, r).
    """
    spreads: Values = np.einsum("nr,nr->n", features @ covariance, features)
    return spreads
