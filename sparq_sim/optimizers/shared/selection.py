"""Selection: of all points that may be asked about, the few to ask an expert about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.random import Generator

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.sparse.divergence import SparseFit
from sparq_sim.gp.sparse.dpp import ExactSampler, eigenfeatures
from sparq_sim.gp.sparse.exchange import ExchangeChain, mixing_steps
from sparq_sim.gp.sparse.greedy import GreedySelector, Rows

if TYPE_CHECKING:
    from sparq_sim.gp.posterior.features import Features

__all__ = ["PlayedPoints", "Selector", "Way", "measure_divergences"]

Way: TypeAlias = Literal["greedy", "chain", "exact"]
"""How points are selected: greedily, by the exchange chain, or by an exact draw of the M-DPP."""


class PlayedPoints:
    """The distinct points played so far, how often each was played, and their kernel matrix.

    Args:
        kernel: The kernel of the reward.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._rows: dict[bytes, int] = {}
        self.points: Points = np.empty((0, 0))
        """Where, (n, d), in the order of first play."""
        self._counts: list[float] = []
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
        key = (point + 0.0).tobytes()
        if key in self._rows:
            self._counts[self._rows[key]] += 1.0
            return
        row = self._rows[key] = len(self)
        self.points = np.vstack([self.points, point]) if row else point[None]
        self._counts.append(1.0)
        if row == len(self._matrix):
            larger = np.empty((2 * row, 2 * row))
            larger[:row, :row] = self._matrix
            self._matrix = larger
        covariances = self._kernel(point[None], self.points)[0]
        self._matrix[row, : row + 1] = self._matrix[: row + 1, row] = covariances


class Selector:
    """A choice of points to ask about, by one of three ways.

    `greedy` chooses each with the largest variance given those before. `chain` is the lazy exchange
    chain, which goes on from where the last round left it. `exact` is an independent draw of the
    M-DPP on all plays. None chooses more points than the numerical rank.

    Args:
        way: Which of the three.
        steps: How many steps the chain makes in a round at most.
        epsilon: The total variation from the M-DPP at which the chain may stop before; None to make
            all steps.
        rng: The source of chance.
        keep: Whether a greedy choice that explains all points played is kept.
    """

    def __init__(
        self, way: Way, *, steps: int, epsilon: float | None, rng: Generator, keep: bool = True
    ) -> None:
        self._way = way
        self._steps = steps
        self._epsilon = epsilon
        self._rng = rng
        self._greedy = GreedySelector(keep=keep, rng=rng)
        self._last: Rows = np.empty(0, dtype=np.intp)

    def choose(self, played: PlayedPoints, size: int, features: Features | None) -> Rows:
        """Return the rows of the points to ask about, (m,).

        Args:
            played: The points played.
            size: How many to choose; fewer where there are fewer, or fewer are independent.
            features: The features of the candidates, where there are any; `exact` draws by them.
        """
        size = min(size, len(played))
        if size < 1:
            return np.empty(0, dtype=np.intp)
        match self._way:
            case "greedy":
                rows = self._greedy.choose(played.matrix, size)
            case "chain":
                chain = ExchangeChain(
                    played.matrix, size, rng=self._rng, weights=played.counts, start=self._last
                )
                steps = self._steps
                if self._epsilon is not None:
                    steps = mixing_steps(len(played), size, epsilon=self._epsilon, most=steps)
                rows = chain.run(steps)
            case "exact":
                columns = _choose_columns(played, features)
                rows = ExactSampler(columns, size, weights=played.counts).sample(self._rng)
        self._last = rows
        return rows


def _choose_columns(played: PlayedPoints, features: Features | None) -> Matrix:
    if features is None:
        return eigenfeatures(played.matrix)
    return features.matrix[features.candidates.require_places(played.points)].T


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
