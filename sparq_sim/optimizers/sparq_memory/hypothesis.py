"""Hypotheses: Gaussian beliefs of how the reward is and changes, each under another assumption."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi
from typing import Self, TypeAlias

import numpy as np

from sparq_sim.arrays import Matrix, Values

__all__ = ["Foresight", "Hypothesis", "Prediction", "Transition"]

_OUTLIER = 16.0
"""The squared standardised residual beyond which a value is no stronger evidence than there."""
_LEAK = 1e-6
"""What is added to the variance of what stays in each round, as a share of the prior variance, so
that rounding never makes it negative."""

Transition: TypeAlias = Callable[[Matrix], Matrix]
"""Multiplies the rows of a matrix, (n, k), by what a state becomes after some time."""


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """What was foretold of some values before they were learnt, and how well."""

    means: Values
    """The expected values, (m,)."""
    variances: Values
    """Their variances, without the noise of the measurement, (m,)."""
    log_likelihood: float
    """The log density of the values, in which a single one counts as no worse than 4 stds away."""


@dataclass(frozen=True, slots=True, eq=False)
class Foresight:
    """What is believed of the weights of the features at two moments to come."""

    mean: Values
    """The mean of the weights at the later moment, (r,)."""
    covariance: Matrix
    """Their covariance at the later moment, (r, r)."""
    first_mean: Values
    """The mean of the weights at the earlier moment, (r,)."""
    first_covariance: Matrix
    """Their covariance at the earlier moment, (r, r)."""
    cross: Matrix
    """The covariance of the weights at the later moment with those at the earlier, (r, r)."""


class Hypothesis(ABC):
    """A Gaussian belief of a state whose first 2 r numbers are weights of the features.

    The reward at a point of features phi is phi' (what stays + what changes), r weights each. What
    follows them in the state, and how it moves, differs between hypotheses.

    Args:
        rank: The number of features, r.
        extra: How many numbers follow the weights.
        staying: The prior variance of the weights that stay.
    """

    def __init__(self, rank: int, extra: int, staying: float) -> None:
        self.rank = rank
        self.staying = staying
        self.mean: Values = np.zeros(2 * rank + extra)
        self.covariance: Matrix = np.zeros((len(self.mean), len(self.mean)))

    @abstractmethod
    def reset(self) -> None:
        """Forget what was learnt of the reward."""

    @abstractmethod
    def remember(self, rounds: float) -> float:
        """Return how alike the reward at a point is to itself some rounds later, from 0 to 1.

        Args:
            rounds: How much later.
        """

    @abstractmethod
    def _move(self, rounds: float) -> Transition:
        """Move mean and covariance, and return the transition."""

    @abstractmethod
    def _seed_rest(self) -> None:
        """Set what follows the weights, and has just been cut off from them, to its prior."""

    def copy(self) -> Self:
        """Return a hypothesis that learns on its own from here."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.mean = self.mean.copy()
        other.covariance = self.covariance.copy()
        return other

    def seed(self, other: Hypothesis) -> None:
        """Go on from what another hypothesis believes of the weights.

        Args:
            other: The other one, of the same features.
        """
        weights = 2 * self.rank
        self.mean[:] = 0.0
        self.covariance[:] = 0.0
        self.mean[:weights] = other.mean[:weights]
        self.covariance[:weights, :weights] = other.covariance[:weights, :weights]
        self._seed_rest()

    def advance(self, rounds: float) -> None:
        """Advance the belief in time.

        Args:
            rounds: How long, in rounds.
        """
        while rounds > 1e-9:
            step = min(rounds, 1.0)
            self._move(step)
            self._leak(step)
            rounds -= step

    def learn(self, features: Matrix, values: Values, variances: Values) -> Prediction:
        """Learn some values that were measured now.

        Args:
            features: The features of the points, (m, r).
            values: What was measured, counted from the prior mean, in reward units, (m,).
            variances: Their noise variances, in squared reward units, (m,).

        Returns:
            What was foretold of the values before.
        """
        weights = 2 * self.rank
        rows = np.concatenate([features, features], axis=1)
        reached = self.covariance[:, :weights] @ rows.T
        foretold = rows @ reached[:weights]
        means = rows @ self.mean[:weights]
        try:
            root = np.linalg.cholesky(foretold + np.diag(variances))
        except np.linalg.LinAlgError:  # Linearised too far from the truth, it may go astray.
            self.reset()
            return self.learn(features, values, variances)
        inverse = np.linalg.inv(root)
        scaled = reached @ inverse.T
        misses = inverse @ (values - means)
        self.mean += scaled @ misses
        self.covariance -= scaled @ scaled.T
        surprise = float(np.minimum(misses * misses, _OUTLIER).sum())
        determinant = 2 * float(np.log(np.diagonal(root)).sum())
        return Prediction(
            means,
            np.maximum(np.diagonal(foretold), 0.0),
            -0.5 * (surprise + determinant + len(values) * log(2 * pi)),
        )

    def foresee(self, until: float, later: float) -> Foresight:
        """Return what is believed of the weights some time ahead, and some more time ahead.

        Args:
            until: How far ahead the earlier moment is, in rounds, 0 or more.
            later: How much further ahead the later moment is, in rounds, 0 or more.
        """
        if until <= 0 and later <= 0:
            mean, covariance = self._read()
            return Foresight(mean, covariance, mean, covariance, covariance)
        ahead = self.copy()
        ahead.advance(until)
        first_mean, first = ahead._read()
        crossed = ahead.covariance[:, : 2 * self.rank]
        while later > 1e-9:
            step = min(later, 1.0)
            crossed = ahead._move(step)(crossed)
            later -= step
        mean, covariance = ahead._read()
        return Foresight(mean, covariance, first_mean, first, self._sum(crossed))

    def _read(self) -> tuple[Values, Matrix]:
        """Return mean and covariance of the weights of the reward."""
        rank = self.rank
        mean: Values = self.mean[:rank] + self.mean[rank : 2 * rank]
        return mean, self._sum(self.covariance)

    def _sum(self, blocks: Matrix) -> Matrix:
        rank = self.rank
        rows = blocks[:rank, : 2 * rank] + blocks[rank : 2 * rank, : 2 * rank]
        summed: Matrix = rows[:, :rank] + rows[:, rank:]
        return summed

    def _leak(self, rounds: float) -> None:
        staying = np.arange(self.rank)
        self.covariance[staying, staying] += _LEAK * self.staying * rounds
