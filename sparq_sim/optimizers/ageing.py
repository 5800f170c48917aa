"""Ageing: memories in which observations grow less certain with time."""

from __future__ import annotations

from abc import abstractmethod
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import Answer, Values
from sparq_sim.optimizers.ucb import Memory, Prior

WORTHLESS = 1e12
"""An observation whose variance has grown by this factor says nothing that float64 could hold."""


class AgeingMemory(Memory):
    """Remembers all, each with a noise variance that grows with its age in rounds."""

    def __init__(self, prior: Prior, period: float) -> None:
        super().__init__(prior, period)
        self._fresh: list[float] = []

    @abstractmethod
    def aged(self, variances: Values, ages: Values) -> Values:
        """Give what has become of *variances*."""

    def learn(self, answer: Answer) -> None:
        super().learn(answer)
        self._fresh.extend(self.prior.variances(answer))

    def predictor(self, now: float) -> Predictor:
        fresh = np.array(self._fresh)
        aged = self.aged(fresh, self.ages(now))
        worth = aged < WORTHLESS * fresh
        self.keep(worth)
        if len(self.times) and not np.array_equal(
            aged[worth], self.posterior.observations.variances
        ):
            self.posterior.set_variances(aged[worth])
        return self.posterior

    def keep(self, kept: NDArray[np.bool_]) -> None:
        super().keep(kept)
        self._fresh = list(compress(self._fresh, kept))
