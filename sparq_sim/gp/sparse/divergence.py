"""Divergence: how far inference through a few points is from inference from all.

The notation is that of the paper's appendix: n observations y with noise covariance
Sigma = diag(s_1^2, .., s_n^2) at points with kernel matrix K, inducing points Z among them, and
Q = K_nZ K_ZZ^-1 K_Zn.
"""

from collections.abc import Sequence
from functools import cached_property
from math import log, pi

import numpy as np

from sparq_sim.arrays import Matrix, Values
from sparq_sim.gp.sparse.greedy import (
    RANK_TOLERANCE,
    Rows,
    check_covariance,
    pivoted_cholesky,
)

# Of tr(Sigma^-1 K): beyond it, rounding in I + K would pass 1e-4.
LARGEST_SIGNAL = 1e12


class SparseFit:
    """Inference through the points *rows* beside the pretend posterior, which has all points.

    *matrix* is K (n, n), repeats allowed; *noise_variances* one number or (n,). The sparse
    posterior is the variational one, P^E in the paper: inducing points Z = *rows*, and the best
    Gaussian over f(Z) given all of y. `subset_divergence` alone is about another posterior, the
    one that has been told y at *rows* and nothing else.

    Rows that depend on other rows are left out, which leaves Q as it is. Cost O(n^3), once.
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
        if np.trace(self._kernel) > LARGEST_SIGNAL:
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
        """tr(K - Q) / min_i s_i^2: the paper's bound on the expected divergence, given Z.

        It is the equation before the approximate M-DPP enters, E[KL | X, Z] <= tr(K - Q) / sigma^2.
        """
        return float(
            (np.diagonal(self._left) * self._variances).sum() / self._variances.min(initial=np.inf)
        )

    @property
    def weighted_trace_bound(self) -> float:
        """tr(Sigma^-1 (K - Q)): as `trace_bound`, before the noise is bounded by its smallest."""
        return float(np.trace(self._left))

    @property
    def expected_divergence(self) -> float:
        """E[KL[P^E || P^v] | X, Z], the mean over y ~ N(0, Sigma + K), in nats.

        kl(K, Q) + tr(Sigma^-1 (K - Q)) / 2 with
        kl(K, Q) = KL[N(0, Sigma + K) || N(0, Sigma + Q)]. It needs no values.
        """
        extra, _ = self._excess
        return float((extra - np.log1p(extra)).sum() + self.weighted_trace_bound) / 2

    def divergence(self, values: Values) -> float:
        """KL[P^E || P^v] for the observations *values* (n,): log p(y) - L(Z), in nats."""
        extra, modes = self._excess
        parts = modes.T @ self._whitened(values)
        fit = (parts**2 * extra / (1 + extra) - np.log1p(extra)).sum()
        return float(fit + self.weighted_trace_bound) / 2

    def divergence_bound(self, values: Values) -> float:
        """Bound `divergence` whatever the *values*: t/2 (1 + y' Sigma^-1 y / (1 + t)).

        t = tr(Sigma^-1 (K - Q)). With equal noise it is the bound of Burt, Rasmussen and van der
        Wilk 2019; the paper's own bounds hold in the mean over y only.
        """
        trace = self.weighted_trace_bound
        scaled = self._scaled(values)
        return float(trace * (1 + scaled @ scaled / (1 + trace)) / 2)

    def evidence_bound(self, values: Values) -> float:
        """L(Z) = log N(y | 0, Sigma + Q) - tr(Sigma^-1 (K - Q)) / 2, the paper's ELBO.

        It is the heteroscedastic evidence lower bound, with the best distribution of f(Z).
        """
        whitened = self._whitened(values)
        log_density = self._log_density(float(whitened @ whitened), log_volume=self._log_volume)
        return log_density - self.weighted_trace_bound / 2

    def log_evidence(self, values: Values) -> float:
        """Log p(y) = log N(y | 0, Sigma + K), the log marginal likelihood."""
        extra, modes = self._excess
        parts = modes.T @ self._whitened(values)
        log_volume = self._log_volume + float(np.log1p(extra).sum())
        return self._log_density(float((parts**2 / (1 + extra)).sum()), log_volume=log_volume)

    @property
    def subset_divergence(self) -> float:
        """E[KL[P^S || P^v] | X, Z], P^S being the posterior given y at *rows* and nothing else.

        tr(A) - log det(I + A) / 2, A = S^-1/2 C S^-1/2, where C is the covariance of the other
        points given y at *rows* and S their noise. Algorithm 1 updates with P^S, while the
        propositions bound P^E; `trace_bound` does not bound this, and repeats make it grow.
        """
        others = np.setdiff1d(np.arange(len(self._kernel)), self._rows)
        told = self._kernel[np.ix_(self._rows, self._rows)] + np.eye(len(self._rows))
        seen = np.linalg.solve(np.linalg.cholesky(told), self._kernel[np.ix_(self._rows, others)])
        left = self._kernel[np.ix_(others, others)] - seen.T @ seen
        extra = np.maximum(np.linalg.eigvalsh(left), 0.0)
        return float((extra - np.log1p(extra) / 2).sum())

    @cached_property
    def _factor(self) -> Matrix:
        """The Cholesky factor C of I + Q."""
        inner = np.eye(len(self._left)) + self._features.T @ self._features
        return np.linalg.cholesky(inner).astype(np.float64, copy=False)

    @cached_property
    def _excess(self) -> tuple[Values, Matrix]:
        """Eigenvalues and eigenvectors of C^-1 (K - Q) C^-T, by which I + K exceeds I + Q.

        Every divergence is a sum of small positive terms over them, so nothing cancels.
        """
        half = np.linalg.solve(self._factor, self._left)
        values, vectors = np.linalg.eigh(np.linalg.solve(self._factor, half.T))
        return np.maximum(values, 0.0), vectors

    @property
    def _log_volume(self) -> float:
        """Log det(Sigma + Q)."""
        return float(2 * np.log(np.diagonal(self._factor)).sum() + np.log(self._variances).sum())

    def _log_density(self, distance: float, *, log_volume: float) -> float:
        return float(-(distance + log_volume + len(self._left) * log(2 * pi)) / 2)

    def _scaled(self, values: Values) -> Values:
        values = np.asarray(values, dtype=np.float64)
        if values.shape != self._variances.shape or not np.isfinite(values).all():
            raise ValueError(
                f"values of shape {values.shape} do not fit: give {len(self._left)} finite numbers"
            )
        return values / np.sqrt(self._variances)

    def _whitened(self, values: Values) -> Values:
        whitened = np.linalg.solve(self._factor, self._scaled(values))
        return whitened.astype(np.float64, copy=False)


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
