"""Features of candidates, and the belief about their weights that follows from observations."""

from __future__ import annotations

from collections.abc import Callable
from math import log1p
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack, qr
from scipy.linalg.blas import daxpy, dsymv, dsyr, dtrmm, dtrsm

from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.gp.candidates import Candidates
from sparq_sim.gp.kernels import Kernel

__all__ = [
    "FeatureState",
    "Features",
    "NormalEquations",
    "Places",
    "compute_log_determinant",
    "factor_precision",
]

Places = NDArray[np.intp]
"""Rows among the candidates, (n,)."""

_TOLERANCE = 1e-14  # of the prior variance: what the features may leave unexplained
_STIFF = 1e6  # the same, summed over the observations, from which normal equations do


class Features:
    """Features Phi (g, r) of the candidates with Phi Phi' = K to rounding, by pivoted Cholesky.

    A reward at the candidates is mean + Phi w, w ~ N(0, I). Features never change and may serve
    many posteriors. They cost O(g r^2), where an eigendecomposition of K costs O(g^3) to save a
    few of the r features.

    Args:
        kernel: The kernel of the reward.
        candidates: The candidates.
        matrix: Phi, (g, r), in Fortran order. `of` and `within` compute it.
    """

    def __init__(self, kernel: Kernel, candidates: Candidates, matrix: Matrix) -> None:
        self.kernel = kernel
        self.candidates = candidates
        self.matrix = matrix
        self.priors = kernel.diagonal(candidates.points)
        self._solved: tuple[tuple[bytes, bytes], _Regression] | None = None

    @classmethod
    def of(cls, kernel: Kernel, candidates: ArrayLike) -> Self:
        """Compute as many features as the kernel has rank on the candidates.

        Args:
            kernel: The kernel of the reward.
            candidates: The candidates, (g, d).

        Returns:
            The features.
        """
        known = Candidates(candidates)
        return cls(kernel, known, _features(kernel, known.points, len(known))[0])

    @classmethod
    def within(cls, kernel: Kernel, candidates: ArrayLike, *, rank: int) -> Self | None:
        """Compute the features, if not too many are needed.

        Args:
            kernel: The kernel of the reward.
            candidates: The candidates, (g, d).
            rank: How many features there may be.

        Returns:
            The features; None if *rank* of them are not enough.
        """
        known = Candidates(candidates)
        matrix, complete = _features(kernel, known.points, rank)
        return cls(kernel, known, matrix) if complete else None

    @property
    def rank(self) -> int:
        """The number of features, r."""
        return int(self.matrix.shape[1])

    def condition(self, places: Places, values: Values, precisions: Values) -> FeatureState:
        """Return what is believed given one observation at each of some candidates.

        Where the last places and precisions come again, only what the values change is computed.

        Args:
            places: Rows among the candidates, each once, (n,).
            values: What was observed, counted from the prior mean, in reward units, (n,).
            precisions: 1 / variance of each, (n,).

        Returns:
            The state, which the caller may change.
        """
        if precisions @ self.priors[places] > _STIFF:
            return _by_least_squares(self, places, values, precisions)
        key, solved = (places.tobytes(), precisions.tobytes()), self._solved
        if solved is None or solved[0] != key:
            self._solved = solved = key, _Regression(self, places, precisions)
        return solved[1].solve(values)

    def weigh(self, places: Places, weights: Values) -> Matrix:
        """Return the features of some candidates, each row multiplied by a weight, (n, r).

        Args:
            places: Rows among the candidates, (n,).
            weights: The factor of each row, (n,).
        """
        return self.matrix[places] * weights[:, None]


def _features(kernel: Kernel, points: Points, limit: int) -> tuple[Matrix, bool]:
    """Factor the kernel matrix of *points*, the worst explained point first."""
    unexplained = kernel.diagonal(points)
    enough = _TOLERANCE * unexplained.max()
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


class FeatureState:
    """What is believed of the reward at the candidates: means (g,), variances (g,), and w.

    Means are counted from the prior mean. The covariance C (r, r) of w is computed when it is
    first needed; its upper triangle is kept.

    Args:
        features: The features of the candidates.
        means: The means at the candidates, in reward units, (g,).
        variances: The variances at the candidates, in squared reward units, (g,).
        covariance: Computes C, in Fortran order, when it is needed.
        log_determinant: Log det(I + S^-1/2 K S^-1/2) of what was observed.
    """

    def __init__(
        self,
        features: Features,
        *,
        means: Values,
        variances: Values,
        covariance: Callable[[], Matrix],
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
        """Return what is believed before any observation.

        Args:
            features: The features of the candidates.
        """
        return cls(
            features,
            means=np.zeros(len(features.candidates)),
            variances=features.priors.copy(),
            covariance=lambda: np.eye(features.rank, order="F"),
            log_determinant=0.0,
        )

    def forget(self, place: int, value: float, variance: float) -> None:
        """Remove one observation again, by learning one of the opposite precision.

        Args:
            place: The candidate, by its row.
            value: What was observed, counted from the prior mean, in reward units.
            variance: Its noise variance, in squared reward units.
        """
        self.learn(place, value, -variance)

    def learn(self, place: int, value: float, variance: float) -> None:
        """Add one observation, by an update of rank one in O(r^2 + g r).

        Args:
            place: The candidate, by its row.
            value: What was observed, counted from the prior mean, in reward units.
            variance: Its noise variance, in squared reward units.
        """
        features, covariance = self.features, self._own_covariance()
        direction = dsymv(1.0, covariance, features.matrix[place])
        reach = features.matrix @ direction
        latent = max(float(reach[place]), 0.0)
        total = latent + variance
        surprise = value - float(self.means[place])
        self._covariance = dsyr(-1.0 / total, direction, a=covariance, overwrite_a=1)
        self.means = daxpy(reach, self.means, a=surprise / total)
        reach *= reach
        self.variances = daxpy(reach, self.variances, a=-1.0 / total)
        self.log_determinant += log1p(latent / variance)

    def drift(self, keep: float, inject: float) -> None:
        """Change the reward f to keep * f + sqrt(inject) * g, g a fresh draw of the prior.

        Args:
            keep: The factor of f, from 0 to 1.
            inject: The new variance, as a share of the prior variance, 0 or more.
        """
        covariance = self._own_covariance()
        covariance *= keep * keep
        _diagonal(covariance)[:] += inject
        self.means *= keep
        self.variances *= keep * keep
        self.variances += inject * self.features.priors

    def _own_covariance(self) -> Matrix:
        if self._covariance is None:
            self._covariance = self._covariance_later()
        return self._covariance


class _Regression:
    """All that follows from observations at some places, of some precisions, but for their values.

    Where the same places are observed round after round, nothing else is new.
    """

    def __init__(self, features: Features, places: Places, precisions: Values) -> None:
        self._features = features
        self._weights = np.sqrt(precisions)
        rows = features.weigh(places, self._weights)
        few = len(rows) < features.rank
        self._solution: _Solution = (_FewRows if few else _ManyRows)(features, rows)
        self._covariance: Matrix | None = None

    def solve(self, values: Values) -> FeatureState:
        """Return what is believed given *values*, counted from the prior mean."""
        return FeatureState(
            self._features,
            means=self._solution.means(values * self._weights),
            variances=self._solution.variances.copy(),
            covariance=self._copied_covariance,
            log_determinant=self._solution.log_determinant,
        )

    def _copied_covariance(self) -> Matrix:
        if self._covariance is None:
            self._covariance = self._solution.covariance()
        return self._covariance.copy(order="F")


class _Solution(Protocol):
    """How w follows from rows w = targets, with unit noise and the prior N(0, I)."""

    variances: Values

    @property
    def log_determinant(self) -> float: ...

    def means(self, targets: Values) -> Values: ...

    def covariance(self) -> Matrix: ...


class _FewRows:
    """By C = I - E' E, E = L^-1 rows, where there are fewer rows than features."""

    def __init__(self, features: Features, rows: Matrix) -> None:
        self._root = factor_precision(rows @ rows.T)
        self._explained = dtrsm(1.0, self._root, rows, trans_a=1)
        self._projected = self._explained @ features.matrix.T
        self.variances = features.priors - np.einsum("ij,ij->j", self._projected, self._projected)
        self.log_determinant = compute_log_determinant(self._root)

    def means(self, targets: Values) -> Values:
        means: Values = lapack.dtrtrs(self._root, targets, trans=1)[0] @ self._projected
        return means

    def covariance(self) -> Matrix:
        explained = self._explained
        return np.asfortranarray(np.eye(explained.shape[1]) - explained.T @ explained)


class NormalEquations:
    """The solution of C^-1 w = target by the upper triangular R with R' R = C^-1 = gram + I.

    Args:
        features: The features of the candidates.
        gram: The sum of p phi phi' over observations of precision p, (r, r), upper triangle, in
            Fortran order; it is overwritten.
    """

    def __init__(self, features: Features, gram: Matrix) -> None:
        self._features = features
        self._root = factor_precision(gram)
        halves = dtrmm(1.0, lapack.dtrtri(self._root)[0], features.matrix, side=1)
        self.variances = np.einsum("ij,ij->i", halves, halves)

    @property
    def log_determinant(self) -> float:
        """Log det C^-1."""
        return compute_log_determinant(self._root)

    def means(self, target: Values) -> Values:
        """Return the means at the candidates, counted from the prior mean, in reward units, (g,).

        Args:
            target: The sum of p y phi over observations y, (r,).
        """
        weights: Values = lapack.dpotrs(self._root, target)[0]
        return self._features.matrix @ weights

    def covariance(self) -> Matrix:
        """Return C, (r, r)."""
        return _inverse(self._root)


class _ManyRows(NormalEquations):
    """By the normal equations: gram = rows' rows, target = rows' targets."""

    def __init__(self, features: Features, rows: Matrix) -> None:
        super().__init__(features, rows.T @ rows)
        self._rows = rows

    def means(self, targets: Values) -> Values:
        return super().means(self._rows.T @ targets)


def _by_least_squares(
    features: Features, places: Places, values: Values, precisions: Values
) -> FeatureState:
    """Use that w minimises |rows w - targets|^2 + |w|^2, by QR, which squares no condition."""
    rank, weights = features.rank, np.sqrt(precisions)
    rows, targets = features.weigh(places, weights), values * weights
    # Heavy rows first: then Householder's errors stay small against each row, not the largest.
    order = np.argsort(-np.square(rows).sum(axis=1))
    system = np.zeros((len(rows) + rank, rank + 1), order="F")
    system[: len(rows), :rank] = rows[order]
    system[: len(rows), rank] = targets[order]
    system[len(rows) :, :rank] = np.eye(rank)
    triangle = qr(system, mode="r", overwrite_a=True, check_finite=False)[0]
    root = np.array(triangle[:rank, :rank], dtype=np.float64, order="F")
    # Solved, where an inverse would lose digits.
    halves = dtrsm(1.0, root, features.matrix, side=1)
    return FeatureState(
        features,
        means=features.matrix @ lapack.dtrtrs(root, triangle[:rank, rank])[0],
        variances=np.einsum("ij,ij->i", halves, halves),
        covariance=lambda: _inverse(root),
        log_determinant=compute_log_determinant(root),
    )


def factor_precision(gram: Matrix) -> Matrix:
    """Return the upper triangular R with R' R = gram + I, which is never near singular.

    Args:
        gram: A positive semidefinite matrix, (r, r), in Fortran order; it is overwritten.
    """
    _diagonal(gram)[:] += 1.0
    root: Matrix = lapack.dpotrf(gram, overwrite_a=1)[0]
    return root


def _diagonal(matrix: Matrix) -> Values:
    """Return the diagonal of a contiguous square *matrix*, as a view to be changed."""
    return matrix.reshape(-1, order="A")[:: len(matrix) + 1]


def compute_log_determinant(root: Matrix) -> float:
    """Return log det R' R.

    Args:
        root: R, triangular, (r, r).
    """
    return 2 * float(np.log(np.abs(np.diagonal(root))).sum())


def _inverse(root: Matrix) -> Matrix:
    inverse: Matrix = lapack.dpotri(root)[0]
    return inverse
