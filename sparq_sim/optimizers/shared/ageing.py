"""Ageing: memories in which observations become less certain with time."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Values
from sparq_sim.gp.observations import GrowingArray
from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import Answer
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior

__all__ = ["AgeingMemory"]

_WORTHLESS = 1e12
"""An observation whose variance has grown by this factor says nothing that float64 could hold."""


class AgeingMemory(Memory):
    """A memory that keeps all observations, each with a noise variance that grows with its age.

    Subclasses define `age`. An observation whose variance has grown by a factor of 1e12 is
    dropped.

    Args:
        prior: What is believed before any observation.
        period: The length of a round, in clock units.
    """

    def __init__(self, prior: GPPrior, period: float) -> None:
        super().__init__(prior, period)
        self._fresh = GrowingArray()

    @abstractmethod
    def age(self, variances: Values, ages: Values) -> Values:
        """Return the noise variances that observations have at some age.

        Args:
            variances: Their noise variances when they were made, in squared reward units, (n,).
            ages: Their ages, in rounds, (n,).

        Returns:
            The grown variances, in squared reward units, (n,).
        """

    def learn(self, answer: Answer) -> None:
        super().learn(answer)
        self._fresh.extend(self.prior.variances(answer), len(answer.values))

    def predictor(self, now: float) -> Predictor:
        worthless = _WORTHLESS * self._fresh.array
        aged = np.minimum(self.age(self._fresh.array, self.ages(now)), worthless)
        if not np.array_equal(aged, self.posterior.observations.variances):
            self.posterior.set_variances(aged)
            self.keep(aged < worthless)
        return self.posterior

    def keep(self, kept: NDArray[np.bool_]) -> None:
        super().keep(kept)
        self._fresh.keep(kept)
