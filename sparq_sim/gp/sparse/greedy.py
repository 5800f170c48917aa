"""Greedy selection: of many points, the few that explain most of the others' variance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.gp.sparse.matrices import INDEFINITE, NOT_FINITE, TIE, check_matrix, check_tolerance

if TYPE_CHECKING:
    from sparq_sim.gp.kernels import Kernel

__all__ = [
    "SCHUR_TOLERANCE",
    "Distinct",
    "GreedySelector",
    "Rows",
    "merge",
    "pivoted_cholesky",
    "select_greedily",
    "select_points_greedily",
]

Rows = NDArray[np.intp]
"""Rows among points, (m,)."""

SCHUR_TOLERANCE = 1e-8
"""The share of its own variance at which a point counts as explained by others.

What is left adds nothing to a regression with noise, and stopping there keeps the condition number
of the chosen block below about 2e9.
"""


@dataclass(frozen=True, slots=True)
class Distinct:
    """Points without their repeats, in the order in which they first came."""

    points: Points
    """The distinct points, (n, d)."""
    counts: Values
    """How often each came, (n,)."""
    firsts: Rows
    """The row where each first came, (n,)."""
    members: Rows
    """Which distinct point each original row is, (N,)."""


def merge(points: Points) -> Distinct:
    """Merge points that are equal in every coordinate, and count them.

    Args:
        points: Points, (N, d).

    Returns:
        The distinct points, in the order in which they first came.

    Raises:
        ValueError: If the shape is another, or a coordinate is not finite.
    """
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
    """Factor a kernel matrix K ~ F'F through a few pivots, each the point explained least so far.

    The next pivot is argmax_i w_i S(x_i, Z), with S(x, Z) = k(x, x) - k(x, Z) K_ZZ^-1 k(Z, x) the
    Schur complement. Ties within a relative 1e-9 are broken by *rng*.

    Args:
        column: Returns K[:, j] for a row j, (n,).
        variances: The diagonal of K, (n,).
        size: How many pivots there may be.
        tolerance: A point with S <= tolerance * k(x, x) is never a pivot.
        weights: w_i, (n,); by default 1 for all.
        start: Rows that come before all others; those that depend on earlier ones are left out.
        rng: Breaks ties; by default the lowest row wins.

    Returns:
        The pivots in their order, (m,), and F, (m, n).

    Raises:
        ValueError: If an argument is out of its range, or the matrix is not finite or not positive
            semidefinite.
    """
    if size < 0:
        raise ValueError(f"size is {size}: ask for 0 points or more")
    check_tolerance(tolerance)
    if not (np.isfinite(variances).all() and (variances >= 0).all()):
        raise ValueError("a variance k(x, x) is negative or not finite: fix the kernel")
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
            "of points, or fix the kernel"
        )
    return np.array(pivots, dtype=np.intp), factor


def _largest(scores: Values, rng: np.random.Generator | None) -> int:
    """Return the place of the largest of *scores*, drawing among equals where there is an *rng*.

    Where one is not a number, any will do: the caller checks what comes of it.
    """
    (equals,) = (~(scores < scores[scores.argmax()] * (1 - TIE))).nonzero()
    return int(equals[0 if rng is None or len(equals) == 1 else rng.integers(len(equals))])


class GreedySelector:
    """The greedy choice among points that come one after another.

    Each choice starts from nothing and draws ties again, so that where not all points can be chosen
    it is not always the same that are left out. But a choice that explains all points may be kept
    as long as it does, and as no new point would have been chosen before one of them: ties, such as
    that of all points for the first place, are then decided once for many choices.

    Args:
        keep: Whether a choice that explains all points is kept, which takes about half the time.
        tolerance: A point whose variance given the others is at most this share of its own counts
            as explained.
        rng: Breaks ties; by default the lowest row wins.
    """

    def __init__(
        self,
        *,
        keep: bool = True,
        tolerance: float = SCHUR_TOLERANCE,
        rng: np.random.Generator | None = None,
    ) -> None:
        check_tolerance(tolerance)
        self._keep = keep
        self._tolerance = tolerance
        self._rng = rng
        self._rows: Rows = np.empty(0, dtype=np.intp)
        self._root: Matrix = np.empty((0, 0))  # R with R' R = K of the rows
        self._seen = 0
        self._explains_all = False

    def choose(self, matrix: Matrix, size: int) -> Rows:
        """Choose rows of a kernel matrix, each with the largest variance given those before.

        Args:
            matrix: The kernel matrix of all points so far, (n, n); earlier points keep their rows.
            size: How many rows to choose; fewer where fewer explain all points.

        Returns:
            The rows, in the order of their choice, (m,).
        """
        kept = self._keep and self._explains_all and 0 < len(self._rows) <= size
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
        """Return whether a newcomer is explained, and would have been chosen at no step."""
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
    """Choose rows of a kernel matrix, each with the largest Schur complement given those before.

    This is the paper's greedy sampling of Z_0, stopped where S <= tolerance * k(x, x): what is
    left depends on what is chosen, to rounding. Repeated points stop it too.

    Args:
        matrix: The kernel matrix of the points, (n, n).
        size: How many rows to choose; fewer where fewer explain all points.
        tolerance: The share of its own variance at which a point counts as explained.
        rng: Breaks ties; by default the lowest row wins.

    Returns:
        The rows, in the order of their choice, (m,).

    Raises:
        ValueError: If *matrix* is not square, finite and positive semidefinite, or *size* or
            *tolerance* is out of its range.
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
    """Choose points as `select_greedily` does, without the whole kernel matrix.

    It evaluates only columns of the matrix, and takes O(N size) memory.

    Args:
        kernel: The kernel of the reward.
        points: The points to choose from, (N, d). Repeats are merged; a chosen row is the first of
            its equals.
        size: How many points to choose; fewer where fewer explain all.
        tolerance: The share of its own variance at which a point counts as explained.
        rng: Breaks ties; by default the lowest row wins.

    Returns:
        The rows of the chosen points, in the order of their choice, (m,).

    Raises:
        ValueError: If points are not finite, the kernel is no covariance of them, or *size* or
            *tolerance* is out of its range.
    """
    distinct = merge(points)

    def column(row: int) -> Values:
        return kernel(distinct.points, distinct.points[row : row + 1])[:, 0]

    rows, _ = pivoted_cholesky(
        column, kernel.diagonal(distinct.points), size=size, tolerance=tolerance, rng=rng
    )
    return distinct.firsts[rows]
