"""Selection: of all points that may be asked about, the few to ask an expert about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.random import Generator

from sparq_sim.arrays import Matrix, Points
from sparq_sim.domain import Box, Domain
from sparq_sim.gp.sparse.dpp import ExactSampler, eigenfeatures
from sparq_sim.gp.sparse.exchange import ExchangeChain, mixing_steps
from sparq_sim.gp.sparse.greedy import GreedySelector, Rows
from sparq_sim.optimizers.shared.played import PlayedPoints

if TYPE_CHECKING:
    from sparq_sim.gp.posterior.features import Features

__all__ = ["ANYWHERE", "CandidateSelector", "Selector", "Way"]

Way: TypeAlias = Literal["greedy", "chain", "exact", "random", "newest", "uniform", "grid"]
"""How points are selected.

Of the points played: greedily, by the exchange chain, by an exact draw of the M-DPP, at random, or
the newest. Anywhere in the domain: at random (`uniform`), or evenly spaced (`grid`).
"""

ANYWHERE: frozenset[Way] = frozenset({"uniform", "grid"})
"""The ways that select points whether they were played or not."""


class Selector:
    """A choice among the points played.

    `greedy` chooses each with the largest variance given those before. `chain` is the lazy exchange
    chain, which goes on from where the last round left it. `exact` is an independent draw of the
    M-DPP on all plays. None of these chooses more points than the numerical rank. `random` draws
    distinct points, each with the same probability; `newest` takes those played last.

    Args:
        way: Which of these.
        steps: How many steps the chain makes in a round at most.
        epsilon: The total variation from the M-DPP at which the chain may stop before; None to make
            all steps.
        rng: The source of chance.
        keep: Whether a greedy choice that explains all points played is kept.

    Raises:
        ValueError: If the way is not one among points played.
    """

    def __init__(
        self, way: Way, *, steps: int, epsilon: float | None, rng: Generator, keep: bool = True
    ) -> None:
        if way in ANYWHERE:
            raise ValueError(f"{way!r} does not choose among points played: use CandidateSelector")
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
            case "chain":
                chain = ExchangeChain(
                    played.matrix, size, rng=self._rng, weights=played.counts, start=self._last
                )
                steps = self._steps
                if self._epsilon is not None:
                    steps = mixing_steps(len(played), size, epsilon=self._epsilon, most=steps)
                rows = self._last = chain.run(steps)
            case "exact":
                columns = _choose_columns(played, features)
                rows = ExactSampler(columns, size, weights=played.counts).sample(self._rng)
            case "random":
                rows = self._rng.choice(len(played), size, replace=False)
            case "newest":
                rows = played.find_newest(size)
            case _:
                rows = self._greedy.choose(played.matrix, size)
        return rows


def _choose_columns(played: PlayedPoints, features: Features | None) -> Matrix:
    if features is None:
        return eigenfeatures(played.matrix)
    return features.matrix[features.candidates.require_places(played.points)].T


class CandidateSelector:
    """A choice among the candidates of the whole domain, whatever was played.

    `uniform` draws distinct candidates, each with the same probability. `grid` takes candidates at
    equal distances, the ends included, on an interval. On sites, and in more dimensions, it begins
    in the middle and takes the candidate farthest from those taken, again and again; distances are
    in units of the range of each coordinate.

    Args:
        way: `uniform` or `grid`.
        candidates: The points to choose from, (g, d).
        domain: Where they lie.
        rng: The source of chance.

    Raises:
        ValueError: If the way is another.
    """

    def __init__(self, way: Way, candidates: Points, domain: Domain, *, rng: Generator) -> None:
        if way not in ANYWHERE:
            raise ValueError(f"{way!r} chooses among points played: use Selector")
        self._way = way
        self._candidates = candidates
        self._interval = isinstance(domain, Box) and domain.dimensions == 1
        self._rng = rng
        self._spread: list[int] = []
        reach = np.ptp(candidates, axis=0)
        self._scaled: Points = (candidates - candidates.min(axis=0)) / np.where(reach > 0, reach, 1)
        self._squares = np.square(self._scaled - 0.5).sum(axis=1)

    def choose(self, size: int) -> Points:
        """Return the points to ask about, all different, (m, d).

        Args:
            size: How many to choose; fewer where there are fewer.
        """
        size = min(size, len(self._candidates))
        if size < 1:
            return self._candidates[:0]
        if self._way == "uniform":
            return self._candidates[self._rng.choice(len(self._candidates), size, replace=False)]
        if self._interval:
            return self._candidates[_space_evenly(len(self._candidates), size)]
        return self._candidates[self._find_spread(size)]

    def _find_spread(self, size: int) -> list[int]:
        """Find so many rows that are far apart; fewer if some candidates are equal."""
        while len(self._spread) < size:
            if not self._spread:
                row = int(np.argmin(self._squares))
                self._squares[:] = np.inf
            else:
                row = int(np.argmax(self._squares))
                if self._squares[row] == 0:
                    break
            self._spread.append(row)
            squares = np.square(self._scaled - self._scaled[row]).sum(axis=1)
            np.minimum(self._squares, squares, out=self._squares)
        return self._spread[:size]


def _space_evenly(count: int, size: int) -> Rows:
    """Return *size* of *count* rows at nearly equal distances; one row is that in the middle."""
    if size == 1:
        return np.array([(count - 1) // 2])
    return np.rint(np.linspace(0, count - 1, size)).astype(np.intp)
