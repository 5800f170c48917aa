"""M-DPP exactly: independent sets of points, drawn in proportion to their determinant.

An M-DPP draws sets Z of M points with Pr(Z) proportional to det L_ZZ. Here and in `exchange` the
points are distinct, and L_ij = sqrt(w_i w_j) k(x_i, x_j). With w_i the number of times that x_i
was played this is the M-DPP on all plays, repeats included: a set with a repeat has determinant
0, and each set of distinct points stands for prod w_i sets of plays.
"""

from math import exp, sqrt

import numpy as np

from sparq_sim.arrays import Matrix, Values
from sparq_sim.gp.sparse.greedy import Rows
from sparq_sim.gp.sparse.matrices import RANK_TOLERANCE, mark_known, spectrum

__all__ = ["ExactSampler", "check_weights", "eigenfeatures"]


class ExactSampler:
    """Independent draws from the M-DPP, by the eigenvectors of the dual matrix.

    The dual matrix is sum_j w_j phi_j phi_j' (r, r). A draw chooses M eigenvectors with probability
    proportional to the product of their eigenvalues, by elementary symmetric polynomials in
    logarithms, and then M points from the projection onto them (Kulesza and Taskar 2012).

    Args:
        features: The columns phi_j with k(x_i, x_j) = phi_i' phi_j, (r, n), as `eigenfeatures`
            computes them once for a grid of candidates; take the columns of the distinct points.
        size: M, how many points to draw. Fewer are drawn where fewer eigenvalues are above
            *tolerance* times the largest.
        weights: w_j, above 0, (n,); by default 1 for all.
        tolerance: Below this share of the largest, an eigenvalue counts as 0.

    Raises:
        ValueError: If an argument is out of its range.
    """

    def __init__(
        self,
        features: Matrix,
        size: int,
        *,
        weights: Values | None = None,
        tolerance: float = RANK_TOLERANCE,
    ) -> None:
        features = np.asarray(features, dtype=np.float64)
        if features.ndim != 2 or not np.isfinite(features).all():
            raise ValueError(
                f"features of shape {features.shape} are no use: give finite numbers (r, n)"
            )
        if size < 0:
            raise ValueError(f"size is {size}: ask for 0 points or more")
        points = features.shape[1]
        self._features = features * np.sqrt(check_weights(weights, points=points))
        values, vectors = np.linalg.eigh(self._features @ self._features.T)
        kept = mark_known(values, tolerance=tolerance)
        self._values, self._vectors = values[kept], vectors[:, kept]
        self._size = min(size, len(self._values), points)
        self._logs = np.log(self._values)
        self._polynomials = _log_polynomials(self._logs, self._size)

    def sample(self, rng: np.random.Generator) -> Rows:
        """Draw one set.

        Args:
            rng: The generator to draw with.

        Returns:
            The rows of the points drawn, each once, (m,).
        """
        chosen = self._modes(rng)
        basis = self._vectors[:, chosen].T @ self._features
        basis /= np.sqrt(self._values[chosen])[:, None]
        return _project(basis, rng)

    def _modes(self, rng: np.random.Generator) -> list[int]:
        """Draw the eigenvectors, from the last to the first.

        With l still to be chosen among the first m, the m-th is chosen with probability
        lambda_m e_{l-1}(lambda_1..lambda_{m-1}) / e_l(lambda_1..lambda_m).
        """
        chosen: list[int] = []
        open_ = self._size
        uniform = rng.random(len(self._logs))
        for m in range(len(self._logs), 0, -1):
            if not open_:
                break
            without, whole = self._polynomials[m - 1, open_ - 1], self._polynomials[m, open_]
            if uniform[m - 1] < exp(self._logs[m - 1] + without - whole):
                chosen.append(m - 1)
                open_ -= 1
        return chosen


def eigenfeatures(matrix: Matrix, *, tolerance: float = RANK_TOLERANCE) -> Matrix:
    """Compute features Phi of candidates from their kernel matrix K = Phi'Phi.

    Args:
        matrix: K, (n, n).
        tolerance: Eigenvalues of at most this share of the largest are left out.

    Returns:
        Phi, (r, n), r being the numerical rank of K.

    Raises:
        ValueError: If *matrix* is no covariance.
    """
    values, vectors = spectrum(matrix)
    kept = mark_known(values, tolerance=tolerance)
    features: Matrix = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    return features


def _log_polynomials(logs: Values, size: int) -> Matrix:
    """Tabulate log e_l(lambda_1..lambda_m) at [m, l], from e_l += lambda_m e_{l-1}."""
    table = np.full((len(logs) + 1, size + 1), -np.inf)
    table[:, 0] = 0.0
    for m, value in enumerate(logs):
        np.logaddexp(table[m, 1:], value + table[m, :-1], out=table[m + 1, 1:])
    return table


def _project(basis: Matrix, rng: np.random.Generator) -> Rows:
    """Draw one point for each of the orthonormal rows of *basis* (m, n).

    Each point is drawn in proportion to what is left of its column once the directions of the
    points before it are taken out.
    """
    size = len(basis)
    rows = np.empty(size, dtype=np.intp)
    directions = np.empty((size, size))
    whole = np.einsum("ij,ij->j", basis, basis)
    left = whole.copy()
    uniform = rng.random(size)
    for m in range(size):
        cumulative = left.cumsum()
        row = int(cumulative.searchsorted(uniform[m] * cumulative[-1], side="right"))
        rows[m] = row
        direction = basis[:, row]
        direction = direction - (directions[:m] @ direction) @ directions[:m]
        if left[row] < whole[row] / 10:  # where little is left, once is not enough
            direction -= (directions[:m] @ direction) @ directions[:m]
        direction /= sqrt(direction @ direction)
        directions[m] = direction
        shadow = direction @ basis
        shadow *= shadow
        left -= shadow
        np.maximum(left, 0.0, out=left)
        left[row] = 0.0
    return rows


def check_weights(weights: Values | None, *, points: int) -> Values:
    """Return weights as an array, after checking them.

    Args:
        weights: One for each point, above 0; None for 1 each.
        points: How many points there are.

    Returns:
        The weights, (points,).

    Raises:
        ValueError: If there is not one positive, finite number for each point.
    """
    if weights is None:
        return np.ones(points)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (points,) or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError(
            f"weights of shape {weights.shape}, the least {weights.min(initial=np.inf):.3g}, do "
            f"not fit {points} points: give one positive number a point, none for absent points"
        )
    return weights
