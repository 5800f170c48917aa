"""Points played: those that an expert may be asked about, and what a few of them tell of all."""

from __future__ import annotations

import numpy as np

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.sparse.divergence import SparseFit
from sparq_sim.gp.sparse.greedy import Rows

__all__ = ["PlayedPoints", "measure_divergences"]


class PlayedPoints:
    """The distinct points played so far, how often and when each was, and their kernel matrix.

    Args:
        kernel: The kernel of the reward.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._rows: dict[bytes, int] = {}
        self.points: Points = np.empty((0, 0))
        """Where, (n, d), in the order of first play."""
        self._counts: list[float] = []
        self._last_plays: list[int] = []
        self._plays = 0
        self._matrix: Matrix = np.empty((16, 16))

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def counts(self) -> Values:
        """How often each point was played, (n,)."""
        return np.array(self._counts)

    @property
    def matrix(self) -> Matrix:
        """The kernel matrix K of the distinct points, (n, n)."""
        return self._matrix[: len(self), : len(self)]

    def add(self, point: Point) -> None:
        """Count one play.

        Args:
            point: The point that is played, (d,).
        """
        self._plays += 1
        self._last_plays[self._count(point)] = self._plays

    def offer(self, point: Point) -> None:
        """Count a point as if it had been played once, because it may be asked about anyway.

        Args:
            point: The point, (d,).
        """
        self._count(point)

    def find_newest(self, size: int) -> Rows:
        """Return the rows of the distinct points played last, the newest first, (m,).

        Points that were only offered are not among them.

        Args:
            size: How many there may be.
        """
        newest = np.argsort(self._last_plays)[::-1][:size]
        return newest[np.array(self._last_plays, dtype=np.intp)[newest] > 0]

    def _count(self, point: Point) -> int:
        """Count a point once more, and return its row."""
        key = (point + 0.0).tobytes()
        if key in self._rows:
            row = self._rows[key]
            self._counts[row] += 1.0
            return row
        row = self._rows[key] = len(self)
        self.points = np.vstack([self.points, point]) if row else point[None]
        self._counts.append(1.0)
        self._last_plays.append(0)
        if row == len(self._matrix):
            larger = np.empty((2 * row, 2 * row))
            larger[:row, :row] = self._matrix
            self._matrix = larger
        covariances = self._kernel(point[None], self.points)[0]
        self._matrix[row, : row + 1] = self._matrix[: row + 1, row] = covariances
        return row


def measure_divergences(played: PlayedPoints, rows: Rows, variance: float) -> dict[str, float]:
    """Measure how far inference through a few points is from that through all plays.

    It is as if the expert had answered all plays. `kl_bound` is tr(Sigma^-1 (K - Q)), which bounds
    `kl`, the expected divergence of the variational posterior that the paper's proposition is
    about; `kl_subset` is that of the posterior given the answers at *rows* and nothing else, as the
    algorithm's is. Means are over the answers. Plays at one point are one observation of *variance*
    divided by their count.

    Args:
        played: The points played.
        rows: The rows of those that are asked about, (m,).
        variance: The noise variance of an answer, in squared reward units.

    Returns:
        The three numbers in nats, by name.
    """
    # A queried point was told once; its other plays are pretend observations beside that.
    others = rows[played.counts[rows] > 1]
    index = np.concatenate([np.arange(len(played)), others])
    variances = variance / played.counts
    variances[rows] = variance
    beside = variance / (played.counts[others] - 1)
    fit = SparseFit(
        played.matrix[np.ix_(index, index)],
        rows,
        noise_variances=np.concatenate([variances, beside]),
    )
    return {
        "kl_bound": fit.trace_bound,
        "kl": fit.expected_divergence,
        "kl_subset": fit.subset_divergence,
    }
