"""Divergence: how far inference through a few points is from inference from all.

The notation is that of the paper's appendix: n observations y with noise covariance
Sigma = diag(s_1^2, .., s_n^2) at points with kernel matrix K, inducing points Z among them, and
Q = K_nZ K_ZZ^-1 K_Zn.
"""

from collections.abc import Sequence

import numpy as np

from sparq_sim.arrays import Matrix, Values
from sparq_sim.gp.sparse.greedy import Rows, pivoted_cholesky
from sparq_sim.gp.sparse.matrices import RANK_TOLERANCE, check_covariance

__all__ = ["SparseFit"]


# Of tr(Sigma^-1 K): beyond it, rounding in I + K would pass 1e-4.
_LARGEST_SIGNAL = 1e12


class SparseFit:
    """Inference through a few points Z, compared with the pretend posterior, which has all points.

    The sparse posterior is the variational one, P^E in the paper: inducing points Z, and the best
    Gaussian over f(Z) given all of y. `subset_divergence` alone is about another posterior, P^S,
    given y at Z and nothing else. The cost is O(n^3), once.

    Args:
        matrix: K, (n, n); points may be repeated.
        rows: The rows of Z. Rows that depend on other rows are left out, which leaves Q as it is.
        noise_variances: s_i^2 in squared reward units, one for all or one for each point, (n,).

    Raises:
        ValueError: If *matrix* is no covariance, a row is none of its rows, or a noise variance is
            not positive or vanishes beside the kernel in float64.
    """

    def __init__(
        self, matrix: Matrix, rows: Sequence[int] | Rows, *, noise_variances: float | Values
    ) -> None:
        matrix = check_covariance(matrix)
        count = len(matrix)
        self._rows = _check_rows(rows, points=count)
        self._variances = _check_noise(noise_variances, points=count)
        # In units of the noise, so that Sigma is the identity from here on.
        scales = 1 / np.sqrt(self._variances)
        self._kernel = matrix * scales * scales[:, None]
        if np.trace(self._kernel) > _LARGEST_SIGNAL:
            raise ValueError(
                f"noise variances down to {self._variances.min():.3g} vanish beside the kernel's "
                f"{np.diagonal(matrix).max():.3g} in float64: give larger ones"
            )
        _, features = pivoted_cholesky(
            self._kernel.__getitem__,
            np.diagonal(self._kernel),
            size=len(self._rows),
            tolerance=RANK_TOLERANCE,
            weights=np.isin(np.arange(count), self._rows).astype(np.float64),
        )
        self._features = features  # (m, n), Q = F'F
        left = self._kernel - features.T @ features
        left[:, self._rows] = left[self._rows] = 0.0  # K and Q agree there; rounding does not
        np.fill_diagonal(left, np.maximum(np.diagonal(left), 0.0))
        self._left = left  # K - Q

    @property
    def trace_bound(self) -> float:
        """tr(Sigma^-1 (K - Q)), in nats: the bound on `expected_divergence`.

        With equal noise it is the paper's tr(K - Q) / sigma^2, before the approximate M-DPP enters.
        """
        return float(np.trace(self._left))

    @property
    def expected_divergence(self) -> float:
        """E[KL[P^E || P^v] | X, Z], the mean over y ~ N(0, Sigma + K), in nats.

        kl(K, Q) + tr(Sigma^-1 (K - Q)) / 2 with
        kl(K, Q) = KL[N(0, Sigma + K) || N(0, Sigma + Q)]. It needs no values.
        """
        # The eigenvalues of C^-1 (K - Q) C^-T, C C' = I + Q, by which I + K exceeds I + Q. Terms
        # are small and positive: nothing cancels. `eigvalsh` would change the last digits of
        # what traces hold.
        inner = np.eye(len(self._left)) + self._features.T @ self._features
        factor = np.linalg.cholesky(inner)
        half = np.linalg.solve(factor, self._left)
        extra = np.maximum(np.linalg.eigh(np.linalg.solve(factor, half.T)).eigenvalues, 0.0)
        return float((extra - np.log1p(extra)).sum() + self.trace_bound) / 2

    @property
    def subset_divergence(self) -> float:
        """E[KL[P^S || P^v] | X, Z], P^S being the posterior given y at Z and nothing else, in nats.

        tr(A) - log det(I + A) / 2, A = S^-1/2 C S^-1/2, where C is the covariance of the other
        points given y at Z and S their noise. Algorithm 1 updates with P^S, while the propositions
        bound P^E; `trace_bound` does not bound this, and repeats make it grow.
        """
        others = np.setdiff1d(np.arange(len(self._kernel)), self._rows)
        told = self._kernel[np.ix_(self._rows, self._rows)] + np.eye(len(self._rows))
        seen = np.linalg.solve(np.linalg.cholesky(told), self._kernel[np.ix_(self._rows, others)])
        left = self._kernel[np.ix_(others, others)] - seen.T @ seen
        extra = np.maximum(np.linalg.eigvalsh(left), 0.0)
        return float((extra - np.log1p(extra) / 2).sum())


def _check_rows(rows: Sequence[int] | Rows, *, points: int) -> Rows:
    checked = np.asarray(rows, dtype=np.intp)
    if checked.ndim != 1 or ((checked < 0) | (checked >= points)).any():
        raise ValueError(f"rows {rows} are not among the {points} points: number them from 0")
    return np.unique(checked)


def _check_noise(noise_variances: float | Values, *, points: int) -> Values:
    noise = np.asarray(noise_variances, dtype=np.float64)
    if noise.shape not in {(), (points,)} or not (np.isfinite(noise).all() and (noise > 0).all()):
        raise ValueError(
            f"noise variances {noise_variances} do not fit {points} points: give one positive "
            "number, or one a point"
        )
    return np.broadcast_to(noise, points).astype(np.float64)
