"""Sparse inference: choose the few points through which many can be known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Points, Values

if TYPE_CHECKING:
    from sparq_sim.gp.kernels import Kernel

__all__ = [
    "Distinct",
    "GreedySelector",
    "merge",
    "pivoted_cholesky",
    "select_greedily",
    "select_points_greedily",
    "spectrum",
    "tail_sum",
]

Rows = NDArray[np.intp]

# A conditional variance this small beside the point's own variance adds nothing to a regression
# with noise, and stopping there keeps the condition number of the chosen block below about 2e9.
SCHUR_TOLERANCE = 1e-8
# Below it no float64 method knows an eigenvalue, the largest being 1.
RANK_TOLERANCE = 1e-13
LEAST_TOLERANCE = 1e-14
# Two exact ways to compute one number differ by less than this, relatively.
TIE = 1e-9
# A kernel matrix may be indefinite by rounding, never by this much, relatively.
INDEFINITE = 1e-6

NOT_FINITE = "a kernel value is not finite: mend the kernel or the points"


@dataclass(frozen=True, slots=True)
class Distinct:
    """Points without their repeats, in the order in which they first came."""

    points: Points  # (n, d)
    counts: Values  # (n,): how often each came
    firsts: Rows  # (n,): the row where each first came
    members: Rows  # (N,): which distinct point each original row is


def merge(points: Points) -> Distinct:
    """Merge points (N, d) that are equal in every coordinate, and count them."""
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or not np.isfinite(points).all():
        raise ValueError(
            f"points of shape {points.shape} cannot be merged: give finite numbers of shape (N, d)"
        )
    # A stable sort, so that the first of equals is the one that came first.
    order = np.lexsort(points.T) if points.shape[1] else np.arange(len(points))
    ordered = points[order]
    opens = np.ones(len(points), dtype=np.bool_)
    opens[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    firsts = order[opens]
    groups = np.empty(len(points), dtype=np.intp)
    groups[order] = np.cumsum(opens) - 1
    age = np.argsort(firsts)
    place = np.empty_like(age)
    place[age] = np.arange(len(age))
    members = place[groups]
    firsts = firsts[age]
    counts = np.bincount(members, minlength=len(firsts)).astype(np.float64)
    return Distinct(points[firsts], counts, firsts, members)


def pivoted_cholesky(
    column: Callable[[int], Values],
    variances: Values,
    *,
    size: int,
    tolerance: float,
    weights: Values | None = None,
    start: Sequence[int] | Rows = (),
    rng: np.random.Generator | None = None,
) -> tuple[Rows, Matrix]:
    """Factor K ~ F'F with at most *size* pivots; give the pivots (m,) and F (m, n).

    *column(j)* is K[:, j] and *variances* the diagonal of K. The next pivot is
    argmax_i w_i S(x_i, Z), with S(x, Z) = k(x, x) - k(x, Z) K_ZZ^-1 k(Z, x) the Schur complement.
    A point with S <= *tolerance* k(x, x) is never a pivot. The rows of *start* come before all
    others, those that depend on earlier ones left out. Ties within a relative 1e-9 are broken by
    *rng*, or to the lowest row without one.
    """
    if size < 0:
        raise ValueError(f"size is {size}: ask for 0 points or more")
    _check_tolerance(tolerance)
    if not (np.isfinite(variances).all() and (variances >= 0).all()):
        raise ValueError("a variance k(x, x) is negative or not finite: mend the kernel")
    limit = min(size, len(variances))
    schur, floor = variances.copy(), tolerance * variances
    factor = np.empty((limit, len(variances)))
    pivots: list[int] = []
    waiting = list(start)
    while len(pivots) < limit:
        if waiting:
            pivot = int(waiting.pop(0))
            if schur[pivot] <= floor[pivot]:
                continue
        else:
            scores = schur if weights is None else weights * schur
            pivot = _largest(scores, rng)
            if scores[pivot] <= 0:
                break
            if schur[pivot] <= floor[pivot]:
                schur[schur <= floor] = 0.0
                continue
        m = len(pivots)
        root = sqrt(schur[pivot])
        row = factor[m]
        np.subtract(column(pivot), factor[:m, pivot] @ factor[:m], out=row)
        row /= root
        row[pivot] = root  # exactly, or the factor and its pivots would part
        schur -= row * row
        schur[pivot] = 0.0
        pivots.append(pivot)
    factor = factor[: len(pivots)]
    if not np.isfinite(factor).all():
        raise ValueError(NOT_FINITE)
    if (variances - np.einsum("ij,ij->j", factor, factor) < -INDEFINITE * variances).any():
        raise ValueError(
            "the kernel matrix is not symmetric and positive semidefinite: give k(X, X) of one set "
            "of points, or mend the kernel"
        )
    return np.array(pivots, dtype=np.intp), factor


def _largest(scores: Values, rng: np.random.Generator | None) -> int:
    """Find the largest of *scores*, drawing among equals where there is an *rng*.

    Where one is not a number, any will do: what is made of it is found out.
    """
    (equals,) = (~(scores < scores[scores.argmax()] * (1 - TIE))).nonzero()
    return int(equals[0 if rng is None or len(equals) == 1 else rng.integers(len(equals))])


class GreedySelector:
    """The greedy choice among points that come one after another.

    Each choice is made anew, ties drawn again, so that where not all can be chosen it is not always
    the same that are left out. But a choice that explains all points is kept for as long as it
    does, and as newcomers would not have been chosen before any of them.
    """

    def __init__(
        self, *, tolerance: float = SCHUR_TOLERANCE, rng: np.random.Generator | None = None
    ) -> None:
        _check_tolerance(tolerance)
        self._tolerance = tolerance
        self._rng = rng
        self._rows: Rows = np.empty(0, dtype=np.intp)
        self._root: Matrix = np.empty((0, 0))  # R with R' R = K of the rows
        self._seen = 0
        self._explains_all = False

    def choose(self, matrix: Matrix, size: int) -> Rows:
        """Give up to *size* rows of the kernel *matrix* (n, n) of all points that have come."""
        kept = self._explains_all and 0 < len(self._rows) <= size
        new = range(self._seen, len(matrix))
        if not (kept and all(self._explains(matrix, row) for row in new)):
            self._rows, factor = pivoted_cholesky(
                matrix.__getitem__,
                np.diagonal(matrix),
                size=size,
                tolerance=self._tolerance,
                rng=self._rng,
            )
            self._root = factor[:, self._rows]
            self._explains_all = len(self._rows) < size
        self._seen = len(matrix)
        return self._rows

    def _explains(self, matrix: Matrix, row: int) -> bool:
        """Tell whether a newcomer is explained, and would have been chosen at no step."""
        from scipy.linalg.lapack import dtrtrs  # A scenario is checked without scipy.

        variance, halves = matrix[row, row], dtrtrs(self._root, matrix[row, self._rows], trans=1)[0]
        left = variance - np.concatenate([[0.0], np.cumsum(halves * halves)])
        chosen = np.diagonal(self._root) ** 2
        explained = -INDEFINITE * variance <= left[-1] <= self._tolerance * variance
        return bool(explained and (left[:-1] <= chosen * (1 + TIE)).all())


def select_greedily(
    matrix: Matrix,
    size: int,
    *,
    tolerance: float = SCHUR_TOLERANCE,
    rng: np.random.Generator | None = None,
) -> Rows:
    """Choose up to *size* rows of a kernel *matrix* (n, n), each of the largest Schur complement.

    This is the paper's greedy sampling of Z_0, stopped where S <= *tolerance* k(x, x): what is
    left depends on what is chosen, to rounding. Repeated points stop it likewise.
    """
    matrix = check_matrix(matrix)
    rows, _ = pivoted_cholesky(
        matrix.__getitem__, np.diagonal(matrix), size=size, tolerance=tolerance, rng=rng
    )
    return rows


def select_points_greedily(
    kernel: Kernel,
    points: Points,
    *,
    size: int,
    tolerance: float = SCHUR_TOLERANCE,
    rng: np.random.Generator | None = None,
) -> Rows:
    """Choose up to *size* rows of *points* (N, d), as `greedy`, from kernel columns alone.

    Repeats are merged first; a chosen row is the first of its equals. O(N size) memory.
    """
    distinct = merge(points)

    def column(row: int) -> Values:
        return kernel(distinct.points, distinct.points[row : row + 1])[:, 0]

    rows, _ = pivoted_cholesky(
        column, kernel.diagonal(distinct.points), size=size, tolerance=tolerance, rng=rng
    )
    return distinct.firsts[rows]


def check_matrix(matrix: Matrix) -> Matrix:
    """Refuse what is no square matrix."""
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a kernel matrix of shape {matrix.shape} is not square: give (n, n)")
    return matrix


def check_covariance(matrix: Matrix) -> Matrix:
    """Refuse what is no finite symmetric matrix, beyond rounding."""
    matrix = check_matrix(matrix)
    if not np.isfinite(matrix).all():
        raise ValueError(NOT_FINITE)
    largest = np.abs(matrix).max(initial=0.0)
    if (np.abs(matrix - matrix.T) > TIE * largest).any():
        raise ValueError("the kernel matrix is not symmetric: give k(X, X) of one set of points")
    return matrix


def spectrum(matrix: Matrix) -> tuple[Values, Matrix]:
    """Give the eigenvalues of a kernel *matrix*, ascending and clipped at 0, and eigenvectors."""
    values, vectors = np.linalg.eigh(check_covariance(matrix))
    if len(values) and values[0] < -INDEFINITE * values[-1]:
        raise ValueError(
            f"the kernel matrix has the eigenvalue {values[0]:.3g}: mend the kernel, "
            "which must be positive semidefinite"
        )
    return np.maximum(values, 0.0), vectors


def mark_known(values: Values, *, tolerance: float) -> NDArray[np.bool_]:
    """Mark the eigenvalues above *tolerance* times the largest, the others being as good as 0."""
    _check_tolerance(tolerance)
    marks: NDArray[np.bool_] = values > tolerance * values.max(initial=0.0)
    return marks


def tail_sum(matrix: Matrix, size: int) -> float:
    """Sum all but the *size* largest eigenvalues: Lambda_Q = sum_{m>Q} lambda_m of the paper.

    E[tr(K - Q)] <= (Q + 1) Lambda_Q for Q points drawn from the Q-DPP (Corollary 8 there).
    """
    if size < 0:
        raise ValueError(f"size is {size}: give 0 or more")
    values, _ = spectrum(matrix)
    return float(values[: max(len(values) - size, 0)].sum())


def _check_tolerance(tolerance: float) -> None:
    if not LEAST_TOLERANCE <= tolerance < 1:
        raise ValueError(
            f"tolerance is {tolerance}: give at least {LEAST_TOLERANCE}, below which rounding "
            "decides, and less than 1"
        )
