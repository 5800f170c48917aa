"""The bank: hypotheses side by side, weighed by how well they foretold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple

import numpy as np

from sparq_sim.arrays import Matrix, Values
from sparq_sim.optimizers.sparq_memory.hypothesis import Foresight, Hypothesis

__all__ = ["Bank", "Residuals"]

_KEPT = 0.99
"""The share of the evidence that is kept from one round to the next."""
_ASLEEP, _AWAKE = log(1e-4), log(1e-2)
"""The log weights, beside the most likely, at which a hypothesis falls asleep and wakes up."""
_COUNTED = log(1e-3)
"""The log weight, beside the most likely, below which a hypothesis has no say in a decision."""


class Residuals(NamedTuple):
    """How far some values were from what was foretold."""

    misses: Values
    """The values less what was foretold, in reward units, (m,)."""
    variances: Values
    """The variances of what was foretold, without the noise of the values, (m,)."""


@dataclass(slots=True, eq=False)
class _Member:
    hypothesis: Hypothesis
    evidence: float = 0.0
    """The log weight, less that of the most likely member."""
    awake: bool = True


class Bank:
    """Hypotheses at one time, averaged by the evidence for each, which is forgotten slowly.

    A hypothesis that has become very unlikely sleeps: it learns nothing, and costs nothing. As
    evidence is forgotten it wakes up, and goes on from what the most likely one believes; so a
    reward that begins to change in another way is noticed, and one that has gone astray returns.

    Values are asked where they matter to the likeliest hypotheses, so that these are seldom tested
    elsewhere. One hypothesis, the *sentinel*, never sleeps; what matters to it is asked now and
    then.

    Args:
        hypotheses: The hypotheses, before any observation.
        sentinel: Which of them never sleeps.
    """

    def __init__(self, hypotheses: Sequence[Hypothesis], sentinel: int = 0) -> None:
        self.time = 0.0
        self._sentinel = sentinel
        self.restarts = 0
        """How often what was learnt was forgotten."""
        self._members = [_Member(each) for each in hypotheses]

    def copy(self) -> Bank:
        """Return a bank that learns on its own from here."""
        other = Bank((), self._sentinel)
        other.time, other.restarts = self.time, self.restarts
        # Those asleep are not changed before they are seeded.
        other._members = [
            _Member(
                each.hypothesis.copy() if each.awake else each.hypothesis,
                each.evidence,
                each.awake,
            )
            for each in self._members
        ]
        return other

    @property
    def weights(self) -> Values:
        """How much each hypothesis is believed, (members,); they sum to 1."""
        weights = np.exp([each.evidence for each in self._members])
        share: Values = weights / weights.sum()
        return share

    def advance(self, time: float) -> None:
        """Advance the belief in time.

        Args:
            time: The time to go to, in rounds; earlier than now, nothing is done.
        """
        if (rounds := time - self.time) <= 0:
            return
        self.time = time
        for each in self._awake():
            each.hypothesis.advance(rounds)
        for each in self._members:
            each.evidence *= _KEPT**rounds
            if not each.awake and each.evidence > _AWAKE:
                each.hypothesis = each.hypothesis.copy()
                each.hypothesis.seed(self._likeliest().hypothesis)
                each.awake = True

    def learn(self, features: Matrix, values: Values, variances: Values) -> Residuals:
        """Learn some values that were measured now.

        Args:
            features: The features of the points, (m, r).
            values: What was measured, counted from the prior mean, in reward units, (m,).
            variances: Their noise variances, in squared reward units, (m,).

        Returns:
            How far the values were from what was foretold.
        """
        middles, spreads, total = np.zeros(len(values)), np.zeros(len(values)), 0.0
        for each in self._awake():
            weight = exp(each.evidence)
            foretold = each.hypothesis.learn(features, values, variances)
            each.evidence += foretold.log_likelihood
            middles += weight * foretold.means
            spreads += weight * (foretold.variances + foretold.means**2)
            total += weight
        self._compare()
        middles /= total
        return Residuals(values - middles, np.maximum(spreads / total - middles**2, 0.0))

    def restart(self) -> None:
        """Forget what was learnt of the reward, and half of what was learnt of how it changes."""
        self.restarts += 1
        for each in self._members:
            if not each.awake:
                each.hypothesis = each.hypothesis.copy()
            each.hypothesis.reset()
            each.awake = True
            each.evidence *= 0.5

    def foresee(self, *, measured: float, used: float) -> Foresight:
        """Return what all together believe of the weights when a decision takes effect.

        Args:
            measured: When a further answer would be measured, in rounds, not before now.
            used: When the decision takes effect, in rounds, not before *measured*.
        """
        until, later = max(measured - self.time, 0.0), max(used - measured, 0.0)
        counted = [
            (exp(each.evidence), each.hypothesis.foresee(until, later)) for each in self._counted()
        ]
        if len(counted) == 1:
            return counted[0][1]
        shares = np.array([weight for weight, _ in counted])
        shares /= shares.sum()
        means = np.array([each.mean for _, each in counted])
        first_means = np.array([each.first_mean for _, each in counted])
        mean, first_mean = shares @ means, shares @ first_means
        apart, first_apart = means - mean, first_means - first_mean
        covariance = (apart.T * shares) @ apart
        first = (first_apart.T * shares) @ first_apart
        cross = (apart.T * shares) @ first_apart
        for share, (_, each) in zip(shares, counted, strict=True):
            covariance += share * each.covariance
            first += share * each.first_covariance
            cross += share * each.cross
        return Foresight(mean, covariance, first_mean, first, cross)

    def foresee_widely(self, *, measured: float, used: float) -> Foresight:
        """Return what the sentinel alone believes of the weights when a decision takes effect.

        Args:
            measured: As for `foresee`.
            used: As for `foresee`.
        """
        until, later = max(measured - self.time, 0.0), max(used - measured, 0.0)
        return self._members[self._sentinel].hypothesis.foresee(until, later)

    def remember(self, rounds: float) -> float:
        """Return how alike the reward at a point is to itself some rounds later, from 0 to 1.

        Args:
            rounds: How much later.
        """
        shares = [(exp(each.evidence), each.hypothesis) for each in self._counted()]
        remembered = sum(share * hypothesis.remember(rounds) for share, hypothesis in shares)
        return remembered / sum(share for share, _ in shares)

    def _awake(self) -> Iterator[_Member]:
        return (each for each in self._members if each.awake)

    def _counted(self) -> Iterator[_Member]:
        return (each for each in self._awake() if each.evidence > _COUNTED)

    def _likeliest(self) -> _Member:
        return max(self._awake(), key=lambda each: each.evidence)

    def _compare(self) -> None:
        """Count evidence from the most likely, and let those sleep that are very unlikely."""
        most = max(each.evidence for each in self._awake())
        for each in self._awake():
            each.evidence -= most
        for place, each in enumerate(self._members):
            if each.awake and each.evidence < _ASLEEP:
                each.awake, each.evidence = place == self._sentinel, _ASLEEP
