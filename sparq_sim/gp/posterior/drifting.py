"""Posteriors at candidates that change with time: observations fade, or the reward drifts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.blas import dsyr

from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.gp.observations import (
    RESOLUTION,
    check_mean,
    check_points,
    check_values,
    check_variances,
)
from sparq_sim.gp.posterior.features import (
    Features,
    FeatureState,
    NormalEquations,
    compute_log_determinant,
    factor_precision,
)

__all__ = ["FadingPosterior", "KalmanPosterior"]

_FADES = 1e4  # prior variance over noise variance up to which sums of precisions keep their digits


class FadingPosterior:
    """A Gaussian process at candidates whose observations all lose precision at one pace.

    Observations of precisions p add p phi phi' to the precision I of w, so letting all of them
    lose the same share multiplies one matrix: a round costs O(r^3 + g r^2), however many went
    before. Observations cannot be changed or removed. Sums of precisions lose digits where
    observations are very precise: see `accepts`.

    Args:
        features: The features of the candidates.
        mean: The prior mean, in reward units.
    """

    def __init__(self, features: Features, *, mean: float = 0.0) -> None:
        self.features = features
        self.prior_mean = check_mean(mean)
        rank = features.rank
        self._precision: Matrix = np.zeros((rank, rank), order="F")  # upper triangles
        self._twice: Matrix = np.zeros((rank, rank), order="F")
        self._target: Values = np.zeros(rank)
        self._solution: NormalEquations | None = None

    def accepts(self, points: Points, variances: Values) -> bool:
        """Return whether observations can be added: made at candidates, and not too precise.

        Args:
            points: Where they were made, (n, d).
            variances: Their noise variances, in squared reward units, (n,).
        """
        priors = self.features.priors
        return all(
            place >= 0 and priors.item(place) <= _FADES * variance
            for place, variance in zip(
                self.features.candidates.find_places(points + 0.0), variances.tolist(), strict=True
            )
        )

    def add(self, points: Points, values: Values, *, variances: Values, share: float) -> None:
        """Add observations.

        Args:
            points: Where they were made, all candidates, (n, d).
            values: What was observed, in reward units, (n,).
            variances: Their noise variances when they were made, in squared reward units, (n,).
            share: The share of their precision that is left by now.

        Raises:
            OffCandidatesError: If a point is none of the candidates.
        """
        places = self.features.candidates.require_places(points + 0.0)
        for place, value, variance in zip(places, values, variances, strict=True):
            row, precision = self.features.matrix[place], share / float(variance)
            self._precision = dsyr(precision, row, a=self._precision, overwrite_a=1)
            self._twice = dsyr(share * precision, row, a=self._twice, overwrite_a=1)
            self._target += (precision * (float(value) - self.prior_mean)) * row
        self._solution = None

    def fade(self, share: float) -> None:
        """Reduce the precision of all observations.

        Args:
            share: The share of it that is kept, from 0 to 1.
        """
        self._precision *= share
        self._twice *= share * share
        self._target *= share
        self._solution = None

    def mean(self) -> Values:
        """Return the mean of the reward at the candidates, in reward units, (g,)."""
        return self.prior_mean + self._current().means(self._target)

    def std(self) -> Values:
        """Return the std of the reward at the candidates, in reward units, (g,)."""
        stds: Values = np.sqrt(self._current().variances)
        return stds

    @property
    def log_determinant(self) -> float:
        """Log det(I + S^-1/2 K S^-1/2), as if all observations had faded twice as fast."""
        return compute_log_determinant(factor_precision(self._twice.copy(order="F")))

    def _current(self) -> NormalEquations:
        if self._solution is None:
            self._solution = NormalEquations(self.features, self._precision.copy(order="F"))
        return self._solution


class KalmanPosterior:
    """A Gaussian process at candidates whose reward drifts between observations.

    With keep = sqrt(1 - epsilon) and inject = epsilon a round this is TV-GP-UCB exactly, the
    kernel `SpaceTime(space, Forgetting)` (Bogunovic et al. 2016); with keep = 1 and
    inject = rate it is UI-TVBO, `SpaceTime(space, Wiener)` (Brunzema et al. 2022). A round costs
    O(r^2 + g r), however many went before. Observations cannot be changed or removed.
    Each update rounds at 1e-16 of the prior variance, so observations should not be more precise
    than some 1e-10 of it.

    Args:
        features: The features of the candidates.
        mean: The prior mean, in reward units.
    """

    def __init__(self, features: Features, *, mean: float = 0.0) -> None:
        self.features = features
        self.prior_mean = check_mean(mean)
        self._state = FeatureState.prior(features)

    def add(self, points: ArrayLike, values: ArrayLike, *, variances: ArrayLike) -> None:
        """Add observations that are made now.

        Args:
            points: Where they are made, all candidates, (n, d), or one point, (d,).
            values: What is observed, in reward units, (n,).
            variances: The noise variance of all, or one for each, in squared reward units.

        Raises:
            OffCandidatesError: If a point is none of the candidates.
            ValueError: If points, values or variances are not good.
        """
        rows = check_points(points)
        places = self.features.candidates.require_places(rows)
        values = check_values(values, len(rows)) - self.prior_mean
        floors = RESOLUTION * self.features.priors[places]
        variances = np.maximum(check_variances(variances, len(rows)), floors)
        for place, value, variance in zip(places, values, variances, strict=True):
            self._state.learn(place, float(value), float(variance))

    def drift(self, keep: float, inject: float) -> None:
        """Change the reward f, counted from the prior mean, to keep * f + sqrt(inject) * g.

        g is a fresh draw of the prior.

        Args:
            keep: The factor of f, from 0 to 1.
            inject: The new variance, as a share of the prior variance, 0 or more.

        Raises:
            ValueError: If a number is outside its range.
        """
        if not (0 <= keep <= 1 and 0 <= inject < np.inf):
            raise ValueError(
                f"a drift of keep={keep}, inject={inject}: keep a share from 0 to 1, "
                "and inject a finite share >= 0 of the prior variance"
            )
        self._state.drift(keep, inject)

    def mean(self) -> Values:
        """Return the mean of the reward at the candidates now, in reward units, (g,)."""
        return self.prior_mean + self._state.means

    def std(self) -> Values:
        """Return the std of the reward at the candidates now, in reward units, (g,)."""
        variances = np.maximum(self._state.variances, 0.0)
        return np.sqrt(variances, out=variances)

    @property
    def log_determinant(self) -> float:
        """Log det(I + S^-1/2 K S^-1/2), S = diag(variances), K in space and time."""
        return self._state.log_determinant
