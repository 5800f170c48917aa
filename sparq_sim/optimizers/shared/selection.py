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

Way: TypeAlias = Literal["greedy", "chain", "exact"]


class Played:
    """The distinct points played so far, how often each, and their kernel matrix."""

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
        """How often, (n,)."""
        return np.array(self._counts)

    @property
    def matrix(self) -> Matrix:
        """K of the distinct points, (n, n)."""
        return self._matrix[: len(self), : len(self)]

    def add(self, point: Point) -> None:
        """Count one play more."""
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
    """Chooses rows of the points played, by one of three ways.

    *greedy*: each with the largest variance given those before. *chain*: the lazy exchange chain,
    of so many *steps* a round, or fewer where those bring it within *epsilon* of the M-DPP, from
    where the last round left it. *exact*: an independent draw of the M-DPP on all plays. None
    exceeds the numerical rank.
    """

    def __init__(self, way: Way, *, steps: int, epsilon: float | None, rng: Generator) -> None:
        self._way = way
        self._steps = steps
        self._epsilon = epsilon
        self._rng = rng
        self._greedy = GreedySelector(rng=rng)
        self._last: Rows = np.empty(0, dtype=np.intp)

    def choose(self, played: Played, size: int, features: Features | None) -> Rows:
        """Give up to *size* rows; *features* of a grid that holds all points save computing."""
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
                columns = _columns(played, features)
                rows = ExactSampler(columns, size, weights=played.counts).sample(self._rng)
        self._last = rows
        return rows


def _columns(played: Played, features: Features | None) -> Matrix:
    if features is None:
        return eigenfeatures(played.matrix)
    return features.matrix[features.candidates.require_places(played.points)].T


def measure_divergences(played: Played, rows: Rows, variance: float) -> dict[str, float]:
    """Say how near inference through *rows* is to that from all plays, answered by the expert.

    `kl_bound` is tr(Sigma^-1 (K - Q)), which bounds the mean of `kl`, the divergence of the
    variational posterior that the paper's proposition is about; `kl_subset` is that of the
    posterior which knows the answers at *rows* and nothing else, as the algorithm's does. Means are
    over the answers. Plays at one point are one observation of *variance* over their count.
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
