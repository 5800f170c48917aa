"""Forecasts: what is believed at candidates at one time, carried on to a later time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sparq_sim.arrays import Point, Values
from sparq_sim.gp.predictor import Predictor

if TYPE_CHECKING:
    from sparq_sim.gp.posterior.cholesky import CholeskyPosterior
    from sparq_sim.gp.posterior.drifting import FadingPosterior, KalmanPosterior

__all__ = ["Forecast"]


class Forecast(Predictor):
    """What is believed when f has become keep * f + sqrt(inject) * g, g a fresh draw of the prior.

    It knows the candidates only: predictions elsewhere raise `NotImplementedError`.

    Args:
        belief: What is believed before the change.
        priors: The prior variances at the candidates, in squared reward units, (g,).
        keep: The factor of f, from 0 to 1.
        inject: The new variance, as a share of the prior variance.
    """

    def __init__(
        self,
        belief: FadingPosterior | KalmanPosterior | CholeskyPosterior,
        priors: Values,
        *,
        keep: float = 1.0,
        inject: float,
    ) -> None:
        self._belief = belief
        self._priors = priors
        self._keep = keep
        self._inject = inject

    def mean(self, points: ArrayLike | None = None) -> Values:
        self._refuse_points(points)
        mean = self._belief.mean()
        if self._keep != 1.0:
            mean *= self._keep
            mean += (1 - self._keep) * self._belief.prior_mean
        return mean

    def std(self, points: ArrayLike | None = None) -> Values:
        self._refuse_points(points)
        stds = self._belief.std()
        if self._keep != 1.0 or self._inject:
            stds *= stds
            stds *= self._keep**2
            stds += self._inject * self._priors
            np.maximum(stds, 0.0, out=stds)
            np.sqrt(stds, out=stds)
        return stds

    def mean_gradient(self, point: Point) -> Point:
        raise NotImplementedError("a filter predicts at its candidates only, not at other points")

    def std_gradient(self, point: Point) -> Point:
        raise NotImplementedError("a filter predicts at its candidates only, not at other points")

    @property
    def log_determinant(self) -> float:
        return self._belief.log_determinant

    def _refuse_points(self, points: ArrayLike | None) -> None:
        if points is not None:
            raise NotImplementedError(
                "a filter predicts at its candidates only, not at other points"
            )
