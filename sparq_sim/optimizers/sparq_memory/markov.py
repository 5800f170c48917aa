"""Weights that change each on its own: with a jitter, or with a velocity."""

from __future__ import annotations

from functools import cache
from math import exp, sqrt
from typing import Literal, Self

import numpy as np

from sparq_sim.arrays import Matrix, Values
from sparq_sim.optimizers.sparq_memory.hypothesis import Hypothesis, Transition

__all__ = ["Markov"]

_RATE = 0.1
"""How fast the sizes of changes are learnt, a round."""
_SIZES = (0.05, 30.0)
"""The smallest and the largest size of changes, in units of its prior."""


class Markov(Hypothesis):
    """Each weight is a part that stays and one that changes as a Markov process of its own.

    An Ornstein-Uhlenbeck process jitters; a Matern 3/2 process has a velocity, so that what rises
    goes on rising for a while. How much a weight changes is learnt for each: the reward may stand
    still at one place while it moves at another. By the step of expectation maximisation, the
    variance of a changing part becomes a running average of its expected square.

    Args:
        rank: The number of features, r.
        kind: Whether changes jitter or have a velocity.
        time_scale: Within how many rounds what changes is forgotten.
        changing: The share of the prior variance that changes; the rest stays.
        local: Whether the size of changes is learnt for each weight; otherwise it is 1.
    """

    def __init__(
        self,
        rank: int,
        *,
        kind: Literal["jitter", "velocity"],
        time_scale: float,
        changing: float,
        local: bool,
    ) -> None:
        super().__init__(rank, rank if kind == "velocity" else 0, 1.0 - changing)
        self._kind = kind
        self._time_scale = time_scale
        self._changing = changing
        self._local = local
        self._fresh = True
        self.sizes: Values = np.ones(rank)
        self.reset()

    def copy(self) -> Self:
        other = super().copy()
        other.sizes = self.sizes.copy()
        return other

    def reset(self) -> None:
        self.mean[:] = 0.0
        self.covariance[:] = 0.0
        self._fresh = True
        staying = np.arange(self.rank)
        self.covariance[staying, staying] = self.staying
        self.covariance[staying + self.rank, staying + self.rank] = self._changing * self.sizes
        self._seed_rest()

    def _seed_rest(self) -> None:
        if self._kind == "velocity":
            rest = np.arange(2 * self.rank, 3 * self.rank)
            rate = sqrt(3.0) / self._time_scale
            self.covariance[rest, rest] = self._changing * rate**2 * self.sizes

    def remember(self, rounds: float) -> float:
        moved, _ = _compute_step(self._kind, self._time_scale, rounds)
        kept = float(moved[0, 0])
        moving = self._changing * float(self.sizes.sum()) / self.rank
        return (self.staying + moving * kept) / (self.staying + moving)

    def _move(self, rounds: float) -> Transition:
        if self._local:
            self._learn_sizes(rounds)
        moved, new = _compute_step(self._kind, self._time_scale, rounds)
        rank = self.rank

        def transition(rows: Matrix) -> Matrix:
            carried = np.array(rows)
            if len(moved) == 1:
                carried[rank:] *= moved[0, 0]
            else:
                carried[rank:] = (moved @ rows[rank:].reshape(2, -1)).reshape(2 * rank, -1)
            return carried

        self.mean = transition(self.mean[:, None])[:, 0]
        self.covariance = transition(transition(self.covariance).T)
        for row in range(len(moved)):
            for column in range(len(moved)):
                rows = np.arange(rank * (row + 1), rank * (row + 2))
                self.covariance[rows, rows + rank * (column - row)] += (
                    self._changing * new[row, column] * self.sizes
                )
        return transition

    def _learn_sizes(self, rounds: float) -> None:
        if self._fresh:  # Before any value nothing is to be learnt.
            self._fresh = False
            return
        changing = np.arange(self.rank, 2 * self.rank)
        squares = self.mean[changing] ** 2 + self.covariance[changing, changing]
        rate = 1 - (1 - _RATE) ** rounds
        sizes = self.sizes + rate * (squares / self._changing - self.sizes)
        self.sizes = np.clip(sizes, *_SIZES)


@cache
def _compute_step(kind: str, time_scale: float, rounds: float) -> tuple[Matrix, Matrix]:
    """Return the transition of a unit process and the covariance of what is new after a time."""
    if kind == "jitter":
        kept = exp(-rounds / time_scale)
        return np.array([[kept]]), np.array([[1 - kept * kept]])
    rate = sqrt(3.0) / time_scale
    run = rate * rounds
    moved = exp(-run) * np.array([[1 + run, rounds], [-run * rate, 1 - run]])
    start = np.diag([1.0, rate * rate])
    new: Matrix = start - moved @ start @ moved.T
    return moved, new
