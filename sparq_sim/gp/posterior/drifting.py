"""Posteriors at candidates that change with time: what was seen fades, or the reward drifts."""

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
    Normal,
    log_determinant,
    precision_root,
)

_FADES = 1e4  # prior variance over noise variance up to which sums of precisions keep their digits


class FadingPosterior:
    """A Gaussian process at candidates whose observations all lose precision at one pace.

    Observations of precisions p add p phi phi' to the precision I of w, so to let all fade by one
    share is to multiply a matrix: a round costs O(r^3 + g r^2), however many went before. What was
    seen cannot be changed or taken out. Sums of precisions lose digits where observations are
    very precise: see `accepts`.
    """

    def __init__(self, features: Features, *, mean: float = 0.0) -> None:
        self.features = features
        self.prior_mean = check_mean(mean)
        rank = features.rank
        self._precision: Matrix = np.zeros((rank, rank), order="F")  # upper triangles
        self._twice: Matrix = np.zeros((rank, rank), order="F")
        self._target: Values = np.zeros(rank)
        self._solution: Normal | None = None

    def accepts(self, points: Points, variances: Values) -> bool:
        """Tell whether observations can be added: at candidates, and not too precise."""
        priors = self.features.priors
        return all(
            place >= 0 and priors.item(place) <= _FADES * variance
            for place, variance in zip(
                self.features.candidates.find_places(points + 0.0), variances.tolist(), strict=True
            )
        )

    def add(self, points: Points, values: Values, *, variances: Values, share: float) -> None:
        """Add observations that have faded to a *share* of their precision already."""
        places = self.features.candidates.require_places(points + 0.0)
        for place, value, variance in zip(places, values, variances, strict=True):
            row, precision = self.features.matrix[place], share / float(variance)
            self._precision = dsyr(precision, row, a=self._precision, overwrite_a=1)
            self._twice = dsyr(share * precision, row, a=self._twice, overwrite_a=1)
            self._target += (precision * (float(value) - self.prior_mean)) * row
        self._solution = None

    def fade(self, share: float) -> None:
        """Let all observations keep a *share* of their precision."""
        self._precision *= share
        self._twice *= share * share
        self._target *= share
        self._solution = None

    def mean(self) -> Values:
        """Give the mean of the reward at the candidates."""
        return self.prior_mean + self._current().means(self._target)

    def std(self) -> Values:
        """Give the std of the reward at the candidates."""
        stds: Values = np.sqrt(self._current().variances)
        return stds

    @property
    def log_determinant(self) -> float:
        """That of I + S^-1/2 K S^-1/2, had all faded twice as fast."""
        return log_determinant(precision_root(self._twice.copy(order="F")))

    def _current(self) -> Normal:
        if self._solution is None:
            self._solution = Normal(self.features, self._precision.copy(order="F"))
        return self._solution


class KalmanPosterior:
    """A Gaussian process at candidates whose reward drifts between observations.

    With keep = sqrt(1 - epsilon) and inject = epsilon a round this is TV-GP-UCB exactly, the
    kernel `SpaceTime(space, Forgetting)` (Bogunovic et al. 2016); with keep = 1 and
    inject = rate it is UI-TVBO, `SpaceTime(space, Wiener)` (Brunzema et al. 2022). A round costs
    O(r^2 + g r), however many went before. What was seen cannot be changed or taken out.
    Each update rounds at 1e-16 of the prior variance, so observations should not be more precise
    than some 1e-10 of it.
    """

    def __init__(self, features: Features, *, mean: float = 0.0) -> None:
        self.features = features
        self.prior_mean = check_mean(mean)
        self._state = FeatureState.prior(features)

    def add(self, points: ArrayLike, values: ArrayLike, *, variances: ArrayLike) -> None:
        """Add observations, made now, of *values* (n,) at *points* (n, d), or at a point (d,)."""
        rows = check_points(points)
        places = self.features.candidates.require_places(rows)
        values = check_values(values, len(rows)) - self.prior_mean
        floors = RESOLUTION * self.features.priors[places]
        variances = np.maximum(check_variances(variances, len(rows)), floors)
        for place, value, variance in zip(places, values, variances, strict=True):
            self._state.learn(place, float(value), float(variance))

    def drift(self, keep: float, inject: float) -> None:
        """Let the reward f, counted from the prior mean, become keep * f + sqrt(inject) * g.

        g is a fresh draw of the prior; *keep* from 0 to 1, *inject* >= 0.
        """
        if not (0 <= keep <= 1 and 0 <= inject < np.inf):
            raise ValueError(
                f"a drift of keep={keep}, inject={inject}: keep a share from 0 to 1, "
                "and inject a finite share >= 0 of the prior variance"
            )
        self._state.drift(keep, inject)

    def mean(self) -> Values:
        """Give the mean of the reward at the candidates, now."""
        return self.prior_mean + self._state.means

    def std(self) -> Values:
        """Give the std of the reward at the candidates, now."""
        variances = np.maximum(self._state.variances, 0.0)
        return np.sqrt(variances, out=variances)

    @property
    def log_determinant(self) -> float:
        """Log det(I + S^-1/2 K S^-1/2), S = diag(variances), K in space and time."""
        return self._state.log_determinant
