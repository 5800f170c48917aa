"""The exact posterior at any points, by a Cholesky factor that grows with the observations.

`CholeskyPosterior` is long because all of it works on that one factor.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack, solve_triangular
from scipy.linalg.blas import daxpy, dgemv

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.gp.candidates import Candidates
from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.observations import Observations, Positions, check_mean, check_points
from sparq_sim.gp.predictor import Posterior

__all__ = ["CholeskyPosterior", "factor", "solve_backward", "solve_forward"]


_GROWTH, _MOST_GROWTH = 4, 4096  # Memory that is not touched costs little; copying does.
_BLOCK = 8  # new observations from which on a blocked update is quicker
_FAINT = 1e-13  # of the prior variance: pivots below are rounding, and rows after them noise


def factor(covariance: Matrix, variances: Values) -> Matrix:
    """Factor a covariance plus noise, whatever their condition.

    Args:
        covariance: K, (n, n), positive semidefinite to rounding.
        variances: The noise variances, (n,) or one number as an array.

    Returns:
        The lower triangular L with L L' = K + diag(variances), (n, n).
    """
    lower = _quick_factor(covariance, variances, floors=_FAINT * np.diagonal(covariance))
    return _careful_factor(covariance, variances) if lower is None else lower


def _quick_factor(covariance: Matrix, variances: Values, *, floors: Values) -> Matrix | None:
    """Return L if no pivot falls below its floor."""
    lower, failed = lapack.dpotrf(covariance + np.diag(variances), lower=1, overwrite_a=1)
    if failed or (np.diagonal(lower) ** 2 < floors).any():
        return None
    result: Matrix = lower
    return result


def _careful_factor(covariance: Matrix, variances: Values) -> Matrix:
    """Return L without ever adding what rounding would lose, for noise that is almost absent.

    With covariance = H H', QR of [H, S]' gives R' R = H H' + S^2, S^2 = diag(variances), to the
    rounding of S instead of S^2. Eigenvalues below 0 are rounding, and taken as 0.
    """
    eigenvalues, vectors = np.linalg.eigh(covariance)
    halves = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    stacked = np.vstack([halves.T[::-1], np.diag(np.sqrt(variances))])
    triangle: Matrix = np.linalg.qr(stacked).R
    lower: Matrix = triangle.T * np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
    return lower


def solve_forward(lower: Matrix, right: Matrix) -> Matrix:
    """Solve L x = right.

    Args:
        lower: L, lower triangular, (n, n).
        right: The right side, (n,) or (n, m).

    Returns:
        x, in the shape of *right*.
    """
    solved: Matrix = solve_triangular(lower, right, lower=True, check_finite=False)
    return solved


def solve_backward(lower: Matrix, right: Matrix) -> Matrix:
    """Solve L' x = right.

    Args:
        lower: L, lower triangular, (n, n).
        right: The right side, (n,) or (n, m).

    Returns:
        x, in the shape of *right*.
    """
    if not len(lower):
        return right
    solved: Matrix = solve_triangular(lower, right, lower=True, trans="T", check_finite=False)
    return solved


class CholeskyPosterior(Posterior):
    """A Gaussian process given observations at X: L L' = K(X, X) + diag(variances).

    One observation more costs O(n^2). One that changes or goes costs a new factor from its row on.
    All is computed when a prediction is asked for, so several changes in a row cost as one.

    Args:
        kernel: The kernel of the reward.
        candidates: Points at which predictions are kept up to date, (g, d); by default none.
            Observations may be made anywhere.
        mean: The prior mean, in reward units.
    """

    def __init__(
        self, kernel: Kernel, *, candidates: ArrayLike | None = None, mean: float = 0.0
    ) -> None:
        self.kernel = kernel
        self.prior_mean = check_mean(mean)
        self.observations = Observations(kernel)
        self._rows = 0
        self._lower: Matrix = np.zeros((16, 16))
        self._whitened: Values = np.zeros(16)  # L^-1 (values - mean)
        self._cache = None if candidates is None else _Cache(kernel, Candidates(candidates))

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def candidates(self) -> Points | None:
        return None if self._cache is None else self._cache.candidates.points

    def add(self, points: ArrayLike, values: ArrayLike, *, variances: ArrayLike) -> None:
        rows = check_points(points)
        places = (
            [-1] * len(rows) if self._cache is None else self._cache.candidates.find_places(rows)
        )
        self.observations.add(rows, values, variances=variances, places=places)

    def replace(self, position: int, value: float, *, variance: float) -> None:
        self._keep(self.observations.replace(position, value, variance=variance))

    def remove(self, positions: Positions) -> None:
        self._keep(self.observations.remove(positions))

    def set_variances(self, variances: ArrayLike) -> None:
        self._keep(self.observations.set_variances(variances))

    def mean(self, points: ArrayLike | None = None) -> Values:
        self._catch_up()
        if points is None:
            return self.prior_mean + self._require_cache().means
        projected = self._project(check_points(points))
        return self.prior_mean + projected.T @ self._whitened[: self._rows]

    def std(self, points: ArrayLike | None = None) -> Values:
        self._catch_up()
        if points is None:
            at_candidates = np.maximum(self._require_cache().variances, 0.0)
            return np.sqrt(at_candidates, out=at_candidates)
        rows = check_points(points)
        projected = self._project(rows)
        variances: Values = self.kernel.diagonal(rows) - np.einsum("ij,ij->j", projected, projected)
        return np.sqrt(np.maximum(variances, 0.0))

    def mean_gradient(self, point: Point) -> Point:
        self._catch_up()
        return self._slopes(point).T @ self._backward(self._whitened[: self._rows])

    def std_gradient(self, point: Point) -> Point:
        std = self.std(point)[0]
        if std == 0:
            return np.zeros(len(point))
        # The prior variance k(x, x) varies with both arguments alike: this is half of its gradient.
        prior = self.kernel.gradient(point, point[None])[0]
        explained = self._slopes(point).T @ self._backward(self._project(point[None])[:, 0])
        gradient: Point = (prior - explained) / std
        return gradient

    @property
    def log_determinant(self) -> float:
        self._catch_up()
        pivots = np.diagonal(self._lower)[: self._rows]
        return float(2 * np.log(pivots).sum() - np.log(self.observations.variances).sum())

    def _require_cache(self) -> _Cache:
        if self._cache is None:
            raise ValueError("this posterior has no candidates: say at which points to predict")
        return self._cache

    def _slopes(self, point: Point) -> Matrix:
        if not self._rows:
            return np.empty((0, len(point)))
        return self.kernel.gradient(point, self.observations.points)

    def _project(self, points: Points) -> Matrix:
        """Return L^-1 K(X, points)."""
        if not self._rows:
            return np.empty((0, len(points)))
        return self._forward(self.kernel(self.observations.points[: self._rows], points))

    def _forward(self, right: Matrix) -> Matrix:
        return solve_forward(self._lower[: self._rows, : self._rows], right)

    def _backward(self, right: Matrix) -> Matrix:
        return solve_backward(self._lower[: self._rows, : self._rows], right)

    def _keep(self, rows: int) -> None:
        if rows < self._rows:
            self._rows = rows
            if self._cache is not None:
                self._cache.keep(rows, self._whitened)

    def _catch_up(self) -> None:
        """Factor the observations that are new."""
        count = len(self.observations)
        if count > len(self._lower):
            room = _choose_room(len(self._lower), count)
            self._lower = _enlarge(self._lower, (room, room))
            self._whitened = _enlarge(self._whitened, (room,))
        if count - self._rows >= _BLOCK:
            self._extend(count)
        while self._rows < count:
            self._append()

    def _append(self) -> None:
        """Factor the next observation."""
        row, seen, cache = self._rows, self.observations, self._cache
        point, value, variance, prior, place = seen.at(row)
        if cache is not None and place >= 0:
            cross = cache.projected[:row, place].copy()
        else:
            cross = self._project(point)[:, 0]
        total = prior - float(cross.dot(cross)) + variance
        if total < _FAINT * prior:
            self._start_over()
            return
        pivot = sqrt(total)
        surprise = value - self.prior_mean - float(cross.dot(self._whitened[:row]))
        self._lower[row, :row] = cross
        self._lower[row, row] = pivot
        self._whitened[row] = surprise / pivot
        self._rows = row + 1
        if cache is not None:
            cache.append(point, place, cross=cross, pivot=pivot, whitened=surprise / pivot)

    def _extend(self, count: int) -> None:
        """Factor all new observations at once."""
        old, new, seen = slice(self._rows), slice(self._rows, count), self.observations
        points, variances = seen.points[new], seen.variances[new]
        cross = self._project(points)
        latent = self.kernel(points, points) - cross.T @ cross
        lower = _quick_factor(latent, variances, floors=_FAINT * seen.priors[new])
        if lower is None:
            if self._rows:
                self._start_over()
                return
            lower = _careful_factor(latent, variances)
        surprises = seen.values[new] - self.prior_mean - cross.T @ self._whitened[old]
        self._lower[new, old] = cross.T
        self._lower[new, new] = lower
        self._whitened[new] = solve_forward(lower, surprises)
        self._rows = count
        if self._cache is not None:
            self._cache.extend(points, cross=cross, lower=lower, whitened=self._whitened)

    def _start_over(self) -> None:
        """Factor all observations again, where the old factor has too few digits to go on from."""
        self._keep(0)
        self._extend(len(self.observations))


class _Cache:
    """Predictions at g candidates G, kept up to date through V = L^-1 K(X, G), in O(n g)."""

    def __init__(self, kernel: Kernel, candidates: Candidates) -> None:
        self.kernel = kernel
        self.candidates = candidates
        self.projected: Matrix = np.zeros((16, len(candidates)))
        self._rows = 0
        self._priors = kernel.diagonal(candidates.points)
        self._scratch: Values = np.empty(len(candidates))
        # The covariance of all candidates with one, given the first rows: on its next visit only
        # the rows since then count, which is most of the saving where points are played again.
        self._columns: dict[int, tuple[int, Values]] = {}
        self.keep(0, np.zeros(0))

    def keep(self, rows: int, whitened: Values) -> None:
        """Keep the first rows only."""
        self._rows = rows
        self._columns = {place: kept for place, kept in self._columns.items() if kept[0] <= rows}
        projected = self.projected[:rows]
        self.means: Values = projected.T @ whitened[:rows]
        self.variances: Values = self._priors - np.einsum("ij,ij->j", projected, projected)

    def append(
        self, point: Points, place: int, *, cross: Values, pivot: float, whitened: float
    ) -> None:
        """Add the row of one observation."""
        row = self._rows
        self._make_room(row + 1)
        first, column = self._columns.pop(place, (0, None))
        if column is None:
            column = self.kernel(point, self.candidates.points)[0]
        if first < row:
            since = self.projected[first:row].T
            column = dgemv(-1.0, since, cross[first:], beta=1.0, y=column, overwrite_y=1)
        added = self.projected[row]
        np.divide(column, pivot, out=added)
        daxpy(added, self.means, a=whitened)  # In place, at half the time of numpy's two passes.
        self.variances -= np.multiply(added, added, out=self._scratch)
        if place >= 0:
            daxpy(added, column, a=-added.item(place))
            self._columns[place] = (row + 1, column)
        self._rows = row + 1

    def extend(self, points: Points, *, cross: Matrix, lower: Matrix, whitened: Values) -> None:
        """Add the rows of many observations."""
        old, new = slice(self._rows), slice(self._rows, self._rows + len(points))
        self._make_room(new.stop)
        covariances = self.kernel(points, self.candidates.points)
        self.projected[new] = solve_forward(lower, covariances - cross.T @ self.projected[old])
        self.keep(new.stop, whitened)

    def _make_room(self, rows: int) -> None:
        if rows > len(self.projected):
            room = _choose_room(len(self.projected), rows)
            self.projected = _enlarge(self.projected, (room, len(self.candidates)))


def _choose_room(rows: int, wanted: int) -> int:
    """Return how many rows to make room for, when *rows* are not enough for those *wanted*."""
    return max(min(_GROWTH * rows, rows + _MOST_GROWTH), wanted)


def _enlarge(array: Matrix, shape: tuple[int, ...]) -> Matrix:
    larger = np.empty(shape)
    larger[tuple(slice(length) for length in array.shape)] = array
    return larger
