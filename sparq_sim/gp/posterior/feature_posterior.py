"""The exact posterior at a finite set of candidates, from their features."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.gp.observations import Observations, Positions, check_mean, check_points
from sparq_sim.gp.posterior.cholesky import CholeskyPosterior
from sparq_sim.gp.posterior.features import Features, FeatureState, Places
from sparq_sim.gp.predictor import Posterior

__all__ = ["FeaturePosterior"]

_FEW = 8  # updates of rank one that cost less than computing all again
_FRESH = 512  # updates of rank one after which all is computed again: rounding errors add up
_PRECISE = 1e6  # prior variance over noise variance from which updates of rank one lose digits
_TAME = 300  # prior variance over what is left of it, up to which taking out loses at most 1e-9


class FeaturePosterior(Posterior):
    """A Gaussian process at candidates, given observations at candidates, in r features.

    Observations at one candidate are merged, each weighted by its precision, so the cost of any
    change is O((g + n) r^2) at most, however many rounds went before. One observation more
    costs O(g r).

    Args:
        features: The features of the candidates.
        mean: The prior mean, in reward units.
    """

    def __init__(self, features: Features, *, mean: float = 0.0) -> None:
        self.features = features
        self.kernel = features.kernel
        self.prior_mean = check_mean(mean)
        self.observations = Observations(features.kernel)
        self._dense: CholeskyPosterior | None = None
        self._learn_nothing()

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def candidates(self) -> Points:
        return self.features.candidates.points

    def add(self, points: ArrayLike, values: ArrayLike, *, variances: ArrayLike) -> None:
        rows = check_points(points)
        places = self.features.candidates.require_places(rows)
        self._newest = len(self)
        self.observations.add(rows, values, variances=variances, places=places)
        self._dense = None

    def replace(self, position: int, value: float, *, variance: float) -> None:
        self.observations.replace(position, value, variance=variance)
        self._learn_nothing()

    def remove(self, positions: Positions) -> None:
        gone = set(np.arange(len(self))[positions].ravel().tolist())
        few = len(gone) <= min(_FEW, len(self) - len(gone), _FRESH - self._updates)
        if not (few and all(map(self._tame, gone))):
            self.observations.remove(positions)
            self._learn_nothing()
            return
        for position in gone:
            self._state.forget(*self._seen(position))
        self.observations.remove(positions)
        self._dense = None
        self._updates += len(gone)
        self._learned -= len(gone)
        self._newest -= len(gone)

    def set_variances(self, variances: ArrayLike) -> None:
        self.observations.set_variances(variances)
        self._learn_nothing()

    def mean(self, points: ArrayLike | None = None) -> Values:
        if points is not None:
            return self._anywhere().mean(points)
        return self.prior_mean + self._current().means

    def std(self, points: ArrayLike | None = None) -> Values:
        if points is not None:
            return self._anywhere().std(points)
        variances = np.maximum(self._current().variances, 0.0)
        return np.sqrt(variances, out=variances)

    def mean_gradient(self, point: Point) -> Point:
        return self._anywhere().mean_gradient(point)

    def std_gradient(self, point: Point) -> Point:
        return self._anywhere().std_gradient(point)

    @property
    def log_determinant(self) -> float:
        return self._current().log_determinant

    def _learn_nothing(self) -> None:
        self._state = FeatureState.prior(self.features)
        self._learned = 0
        self._newest = 0
        self._updates = 0
        self._dense = None

    def _current(self) -> FeatureState:
        """Learn what is new; what was added last comes by itself, after all before it."""
        if self._learned < len(self):
            if self._learned < self._newest:
                self._take(self._newest)
            self._take(len(self))
        return self._state

    def _take(self, end: int) -> None:
        """Learn observations up to *end*: one by one, or all again where that is quicker."""
        new = range(self._learned, end)
        self._learned = end
        self._updates += len(new)
        if len(new) <= _FEW and self._updates <= _FRESH and not any(map(self._precise, new)):
            for position in new:
                self._state.learn(*self._seen(position))
        else:
            self._state = self.features.condition(*self._merged(end))
            self._updates = 0

    def _precise(self, position: int) -> bool:
        seen = self.observations
        return seen.priors.item(position) > _PRECISE * seen.variances.item(position)

    def _tame(self, position: int) -> bool:
        """Return whether an observation can be removed by itself without losing digits."""
        seen = self.observations
        left = self._state.variances.item(seen.places.item(position))
        return position < self._learned and seen.priors.item(position) <= _TAME * left

    def _seen(self, position: int) -> tuple[int, float, float]:
        """Return one observation: its place, value from the prior mean, and variance."""
        seen = self.observations
        value = seen.values.item(position) - self.prior_mean
        return seen.places.item(position), value, seen.variances.item(position)

    def _merged(self, end: int) -> tuple[Places, Values, Values]:
        """Return one observation for each place seen up to *end*, and its precision."""
        seen = self.observations
        places, each = seen.places[:end], 1 / seen.variances[:end]
        precisions = cast(Values, np.bincount(places, each))
        each *= seen.values[:end] - self.prior_mean
        weighted = np.bincount(places, each)
        (where,) = precisions.nonzero()
        precisions = precisions[where]
        return where, weighted[where] / precisions, precisions

    def _anywhere(self) -> CholeskyPosterior:
        """Return the same posterior for any points, from the merged observations."""
        if self._dense is None:
            self._dense = CholeskyPosterior(self.kernel, mean=self.prior_mean)
            if len(self):
                places, values, precisions = self._merged(len(self))
                self._dense.add(
                    self.candidates[places], self.prior_mean + values, variances=1 / precisions
                )
        return self._dense
