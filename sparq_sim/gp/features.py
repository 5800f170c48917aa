"""The exact posterior at a finite set of candidates, in as many features as the kernel has rank."""

from __future__ import annotations

from functools import partial
from math import log1p
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack, qr
from scipy.linalg.blas import dsymv, dsyr, dtrsm

from sparq_sim.gp.cholesky import CholeskyPosterior, factor, forward
from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.observations import (
    RESOLUTION,
    Candidates,
    Observations,
    Positions,
    checked_mean,
    checked_points,
    checked_values,
    checked_variances,
)
from sparq_sim.messages import Matrix, Point, Points, Values

Places = NDArray[np.intp]

TOLERANCE = 1e-14  # of the prior variance: what the features may leave unexplained
FEW = 8  # up to so many updates of rank one cost less than starting afresh
FRESH = 512  # after so many updates of rank one, start afresh: their rounding errors add up
PRECISE = 1e6  # prior variance over noise variance from which updates of rank one lose digits
STIFF = 1e6  # the same, summed over the observations, from which normal equations do


class Features:
    """Features Phi (g, r) of the candidates with Phi Phi' = K to rounding, by pivoted Cholesky.

    A reward at the candidates is mean + Phi w, w ~ N(0, I). Features never change and may serve
    many posteriors. They cost O(g r^2), where an eigendecomposition of K costs O(g^3) to save a
    few of the r features.
    """

    def __init__(self, kernel: Kernel, candidates: Candidates, matrix: Matrix) -> None:
        self.kernel = kernel
        self.candidates = candidates
        self.matrix = matrix
        self.priors = kernel.diagonal(candidates.points)

    @classmethod
    def of(cls, kernel: Kernel, candidates: ArrayLike) -> Self:
        """Find as many features as the kernel has rank on *candidates* (g, d)."""
        known = Candidates(candidates)
        return cls(kernel, known, _features(kernel, known.points, len(known))[0])

    @classmethod
    def within(cls, kernel: Kernel, candidates: ArrayLike, *, rank: int) -> Self | None:
        """Find the features if *rank* of them are enough."""
        known = Candidates(candidates)
        matrix, complete = _features(kernel, known.points, rank)
        return cls(kernel, known, matrix) if complete else None

    @property
    def rank(self) -> int:
        """How many features there are."""
        return int(self.matrix.shape[1])


def _features(kernel: Kernel, points: Points, limit: int) -> tuple[Matrix, bool]:
    """Factor the kernel matrix of *points*, the worst explained point first."""
    unexplained = kernel.diagonal(points)
    enough = TOLERANCE * unexplained.max()
    matrix = np.zeros((len(points), 0), order="F")
    for rank in range(limit):
        worst = int(unexplained.argmax())
        if unexplained[worst] <= enough:
            break
        if rank == matrix.shape[1]:
            matrix = np.asfortranarray(np.pad(matrix, ((0, 0), (0, max(32, rank)))))
        column = kernel(points, points[worst : worst + 1])[:, 0]
        column -= matrix[:, :rank] @ matrix[worst, :rank]
        column /= np.sqrt(unexplained[worst])
        matrix[:, rank] = column
        unexplained -= column**2
        unexplained[worst] = 0.0
    else:
        rank = limit
    return np.asfortranarray(matrix[:, :rank]), bool(unexplained.max() <= enough)


class Belief:
    """What is believed of the reward at the candidates: means (g,), variances (g,), and w.

    Means are counted from the prior mean. The covariance C (r, r) of w is computed when it is
    first needed; its upper triangle is kept.
    """

    def __init__(
        self,
        features: Features,
        *,
        means: Values,
        variances: Values,
        covariance: partial[Matrix],
        log_determinant: float,
    ) -> None:
        self.features = features
        self.means = means
        self.variances = variances
        self.log_determinant = log_determinant
        self._covariance_later = covariance
        self._covariance: Matrix | None = None

    @classmethod
    def prior(cls, features: Features) -> Self:
        """Believe what holds before any observation."""
        return cls(
            features,
            means=np.zeros(len(features.candidates)),
            variances=features.priors.copy(),
            covariance=partial(np.eye, features.rank, order="F"),
            log_determinant=0.0,
        )

    @classmethod
    def given(
        cls, features: Features, *, places: Places, values: Values, precisions: Values
    ) -> Self:
        """Believe what follows from *values* of *precisions* 1 / variance, one at each place."""
        roots = np.sqrt(precisions)
        rows = features.matrix[places] * roots[:, None]
        targets = values * roots
        if precisions @ features.priors[places] > STIFF:
            return cls._by_least_squares(features, rows=rows, targets=targets)
        if len(rows) < features.rank:
            return cls._by_few(features, rows=rows, targets=targets)
        root, _ = lapack.dpotrf(rows.T @ rows + np.eye(features.rank), overwrite_a=1)
        weights, _ = lapack.dpotrs(root, rows.T @ targets)
        return cls._by_root(features, root=root, weights=weights)

    @classmethod
    def _by_few(cls, features: Features, *, rows: Matrix, targets: Values) -> Self:
        """Use that C = I - E' E, E = L^-1 rows, where there are fewer rows than features."""
        lower = factor(rows @ rows.T, np.ones(len(rows)))
        explained = forward(lower, rows)
        projected = explained @ features.matrix.T
        return cls(
            features,
            means=projected.T @ forward(lower, targets),
            variances=features.priors - np.einsum("ij,ij->j", projected, projected),
            covariance=partial(_remainder, explained),
            log_determinant=2 * float(np.log(np.diagonal(lower)).sum()),
        )

    @classmethod
    def _by_least_squares(cls, features: Features, *, rows: Matrix, targets: Values) -> Self:
        """Use that w minimises |rows w - targets|^2 + |w|^2, by QR, which squares no condition."""
        rank = features.rank
        # Heavy rows first: then Householder's errors stay small against each row, not the largest.
        order = np.argsort(-np.square(rows).sum(axis=1))
        system = np.zeros((len(rows) + rank, rank + 1), order="F")
        system[: len(rows), :rank] = rows[order]
        system[: len(rows), rank] = targets[order]
        system[len(rows) :, :rank] = np.eye(rank)
        triangle = qr(system, mode="r", overwrite_a=True, check_finite=False)[0]
        root = np.array(triangle[:rank, :rank], dtype=np.float64, order="F")
        weights, _ = lapack.dtrtrs(root, triangle[:rank, rank])
        return cls._by_root(features, root=root, weights=weights)

    @classmethod
    def _by_root(cls, features: Features, *, root: Matrix, weights: Values) -> Self:
        """Use the upper triangular R with R' R = C^-1."""
        halves = dtrsm(1.0, root, features.matrix, side=1)
        return cls(
            features,
            means=features.matrix @ weights,
            variances=np.einsum("ij,ij->i", halves, halves),
            covariance=partial(_inverse, root),
            log_determinant=2 * float(np.log(np.abs(np.diagonal(root))).sum()),
        )

    def learn(self, place: int, value: float, *, variance: float) -> None:
        """Take one observation in, by an update of rank one in O(r^2 + g r)."""
        features, covariance = self.features, self._own_covariance()
        direction = dsymv(1.0, covariance, features.matrix[place])
        reach = features.matrix @ direction
        latent = max(float(reach[place]), 0.0)
        total = latent + variance
        surprise = value - float(self.means[place])
        self._covariance = dsyr(-1.0 / total, direction, a=covariance, overwrite_a=1)
        self.means += reach * (surprise / total)
        self.variances -= reach * reach / total
        self.log_determinant += log1p(latent / variance)

    def drift(self, keep: float, inject: float) -> None:
        """Let the reward f become keep * f + sqrt(inject) * g, g a fresh draw of the prior."""
        covariance = self._own_covariance()
        covariance *= keep * keep
        covariance[np.diag_indices_from(covariance)] += inject
        self.means *= keep
        self.variances *= keep * keep
        self.variances += inject * self.features.priors

    def _own_covariance(self) -> Matrix:
        if self._covariance is None:
            self._covariance = self._covariance_later()
        return self._covariance


def _inverse(root: Matrix) -> Matrix:
    inverse: Matrix = lapack.dpotri(root)[0]
    return inverse


def _remainder(explained: Matrix) -> Matrix:
    return np.asfortranarray(np.eye(explained.shape[1]) - explained.T @ explained)


class FeaturePosterior:
    """A Gaussian process at candidates, given observations at candidates, in r features.

    Observations at one candidate are merged, each weighted by its precision, so the cost of any
    change is O((g + n) r^2) at most, however many rounds went before. One observation more
    costs O(g r).
    """

    def __init__(self, features: Features, *, mean: float = 0.0) -> None:
        self.features = features
        self.kernel = features.kernel
        self.prior_mean = checked_mean(mean)
        self.observations = Observations(features.kernel)
        self._dense: CholeskyPosterior | None = None
        self._learn_nothing()

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def candidates(self) -> Points:
        """The candidates (g, d)."""
        return self.features.candidates.points

    def add(self, points: ArrayLike, values: ArrayLike, *, variances: ArrayLike) -> None:
        """Add observations of *values* (n,) at *points* (n, d), or one at a point (d,)."""
        rows = checked_points(points)
        places = self.features.candidates.known_places(rows)
        self.observations.add(rows, values, variances=variances, places=places)
        self._dense = None

    def replace(self, position: int, value: float, *, variance: float) -> None:
        """Put another value and variance in the place of an observation, at the same point."""
        self.observations.replace(position, value, variance=variance)
        self._learn_nothing()

    def remove(self, positions: Positions) -> None:
        """Take observations out; later ones move up, as in a list."""
        self.observations.remove(positions)
        self._learn_nothing()

    def set_variances(self, variances: ArrayLike) -> None:
        """Give all observations other variances, as when they age."""
        self.observations.set_variances(variances)
        self._learn_nothing()

    def mean(self, points: ArrayLike | None = None) -> Values:
        """Give the mean of the reward at *points* (n, d), or at the candidates."""
        if points is not None:
            return self._anywhere().mean(points)
        return self.prior_mean + self._current().means

    def std(self, points: ArrayLike | None = None) -> Values:
        """Give the std of the reward at *points* (n, d), or at the candidates."""
        if points is not None:
            return self._anywhere().std(points)
        return np.sqrt(np.maximum(self._current().variances, 0.0))

    def mean_gradient(self, point: Point) -> Point:
        """Give the derivative (d,) of the mean by *point*."""
        return self._anywhere().mean_gradient(point)

    def std_gradient(self, point: Point) -> Point:
        """Give the derivative (d,) of the std by *point*; 0 where the std is 0."""
        return self._anywhere().std_gradient(point)

    @property
    def log_determinant(self) -> float:
        """Log det(I + S^-1/2 K S^-1/2), S = diag(variances)."""
        return self._current().log_determinant

    @property
    def information_gain(self) -> float:
        """What the observations tell of the reward, in nats: half the log determinant."""
        return 0.5 * self.log_determinant

    def _learn_nothing(self) -> None:
        self._belief = Belief.prior(self.features)
        self._learned = 0
        self._updates = 0
        self._dense = None

    def _current(self) -> Belief:
        """Take in the observations that are new."""
        seen, count = self.observations, len(self.observations)
        fresh = count - self._learned
        if not fresh:
            return self._belief
        new = slice(self._learned, count)
        precise = (seen.priors[new] > PRECISE * seen.variances[new]).any()
        if precise or fresh > FEW or self._updates + fresh > FRESH:
            places, values, precisions = self._merged()
            self._belief = Belief.given(
                self.features, places=places, values=values, precisions=precisions
            )
            self._updates = 0
        else:
            for position in range(self._learned, count):
                value = seen.values[position] - self.prior_mean
                place, variance = int(seen.places[position]), float(seen.variances[position])
                self._belief.learn(place, value, variance=variance)
            self._updates += fresh
        self._learned = count
        return self._belief

    def _merged(self) -> tuple[Places, Values, Values]:
        """Give one observation for each place seen: place, value from the prior mean, precision."""
        seen = self.observations
        precisions = cast(Values, np.bincount(seen.places, 1 / seen.variances))
        weighted = np.bincount(seen.places, (seen.values - self.prior_mean) / seen.variances)
        places = np.flatnonzero(precisions)
        return places, weighted[places] / precisions[places], precisions[places]

    def _anywhere(self) -> CholeskyPosterior:
        """Give the same posterior for any points, from the merged observations."""
        if self._dense is None:
            self._dense = CholeskyPosterior(self.kernel, mean=self.prior_mean)
            if len(self):
                places, values, precisions = self._merged()
                self._dense.add(
                    self.candidates[places], self.prior_mean + values, variances=1 / precisions
                )
        return self._dense


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
        self.kernel = features.kernel
        self.prior_mean = checked_mean(mean)
        self._belief = Belief.prior(features)

    @property
    def candidates(self) -> Points:
        """The candidates (g, d)."""
        return self.features.candidates.points

    def add(self, points: ArrayLike, values: ArrayLike, *, variances: ArrayLike) -> None:
        """Add observations, made now, of *values* (n,) at *points* (n, d), or at a point (d,)."""
        rows = checked_points(points)
        places = self.features.candidates.known_places(rows)
        values = checked_values(values, len(rows)) - self.prior_mean
        floors = RESOLUTION * self.features.priors[places]
        variances = np.maximum(checked_variances(variances, len(rows)), floors)
        for place, value, variance in zip(places, values, variances, strict=True):
            self._belief.learn(place, float(value), variance=float(variance))

    def drift(self, keep: float, inject: float) -> None:
        """Let the reward f, counted from the prior mean, become keep * f + sqrt(inject) * g.

        g is a fresh draw of the prior; *keep* from 0 to 1, *inject* >= 0.
        """
        if not (0 <= keep <= 1 and 0 <= inject < np.inf):
            raise ValueError(
                f"a drift of keep={keep}, inject={inject}: keep a share from 0 to 1, "
                "and inject a finite share >= 0 of the prior variance"
            )
        self._belief.drift(keep, inject)

    def mean(self) -> Values:
        """Give the mean of the reward at the candidates, now."""
        return self.prior_mean + self._belief.means

    def std(self) -> Values:
        """Give the std of the reward at the candidates, now."""
        return np.sqrt(np.maximum(self._belief.variances, 0.0))

    @property
    def log_determinant(self) -> float:
        """Log det(I + S^-1/2 K S^-1/2), S = diag(variances), K in space and time."""
        return self._belief.log_determinant

    @property
    def information_gain(self) -> float:
        """What the observations tell of the reward through time, in nats."""
        return 0.5 * self.log_determinant
