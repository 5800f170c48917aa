"""Kernel matrices: what they must be, and what their eigenvalues say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Values

__all__ = [
    "INDEFINITE",
    "NOT_FINITE",
    "RANK_TOLERANCE",
    "TIE",
    "check_covariance",
    "check_matrix",
    "check_tolerance",
    "mark_known",
    "spectrum",
    "tail_sum",
]

RANK_TOLERANCE = 1e-13
"""Below this share of the largest eigenvalue, no method in float64 knows an eigenvalue."""
TIE = 1e-9
"""Two exact ways to compute one number differ by less than this, relatively."""
INDEFINITE = 1e-6
"""A kernel matrix may be indefinite by rounding, never by this much, relatively."""
NOT_FINITE = "a kernel value is not finite: fix the kernel or the points"
"""The message where a kernel matrix is not finite."""

_LEAST_TOLERANCE = 1e-14


def check_matrix(matrix: Matrix) -> Matrix:
    """Return a kernel matrix as an array of float64, after checking its shape.

    Args:
        matrix: The matrix, (n, n).

    Raises:
        ValueError: If it is not square.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a kernel matrix of shape {matrix.shape} is not square: give (n, n)")
    return matrix


def check_covariance(matrix: Matrix) -> Matrix:
    """Return a kernel matrix as an array of float64, after checking that it may be a covariance.

    Args:
        matrix: The matrix, (n, n).

    Raises:
        ValueError: If it is not square, not finite, or not symmetric to rounding.
    """
    matrix = check_matrix(matrix)
    if not np.isfinite(matrix).all():
        raise ValueError(NOT_FINITE)
    largest = np.abs(matrix).max(initial=0.0)
    if (np.abs(matrix - matrix.T) > TIE * largest).any():
        raise ValueError("the kernel matrix is not symmetric: give k(X, X) of one set of points")
    return matrix


def spectrum(matrix: Matrix) -> tuple[Values, Matrix]:
    """Compute eigenvalues and eigenvectors of a kernel matrix.

    Args:
        matrix: The matrix, (n, n).

    Returns:
        The eigenvalues, ascending and clipped at 0, (n,), and the eigenvectors as columns, (n, n).

    Raises:
        ValueError: If *matrix* is not finite, not symmetric, or not positive semidefinite.
    """
    values, vectors = np.linalg.eigh(check_covariance(matrix))
    if len(values) and values[0] < -INDEFINITE * values[-1]:
        raise ValueError(
            f"the kernel matrix has the eigenvalue {values[0]:.3g}: fix the kernel, "
            "which must be positive semidefinite"
        )
    return np.maximum(values, 0.0), vectors


def mark_known(values: Values, *, tolerance: float) -> NDArray[np.bool_]:
    """Return which eigenvalues are large enough to be known in float64, (n,).

    Args:
        values: Eigenvalues, (n,).
        tolerance: Those of at most this share of the largest count as 0.

    Raises:
        ValueError: If *tolerance* is out of its range.
    """
    check_tolerance(tolerance)
    marks: NDArray[np.bool_] = values > tolerance * values.max(initial=0.0)
    return marks


def tail_sum(matrix: Matrix, size: int) -> float:
    """Compute Lambda_Q = sum_{m>Q} lambda_m, the sum of all but the largest eigenvalues.

    E[tr(K - Q)] <= (Q + 1) Lambda_Q for Q points drawn from the Q-DPP (Corollary 8 of the paper).

    Args:
        matrix: The kernel matrix, (n, n).
        size: Q, how many of the largest eigenvalues to leave out.

    Returns:
        The sum, in squared reward units.

    Raises:
        ValueError: If *size* is below 0, or *matrix* is no covariance.
    """
    if size < 0:
        raise ValueError(f"size is {size}: give 0 or more")
    values, _ = spectrum(matrix)
    return float(values[: max(len(values) - size, 0)].sum())


def check_tolerance(tolerance: float) -> None:
    """Check a relative tolerance.

    Args:
        tolerance: From 1e-14, below which rounding decides, to below 1.

    Raises:
        ValueError: If it is outside that range.
    """
    if not _LEAST_TOLERANCE <= tolerance < 1:
        raise ValueError(
            f"tolerance is {tolerance}: give at least {_LEAST_TOLERANCE}, below which rounding "
            "decides, and less than 1"
        )
