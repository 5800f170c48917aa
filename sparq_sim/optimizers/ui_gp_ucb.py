"""UI-GP-UCB: uncertainty injection alone, without an expert."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sparq_sim.arrays import Values
from sparq_sim.fields import Amount
from sparq_sim.optimizers.shared.ageing import AgeingMemory
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer
from sparq_sim.plugin.briefing import Briefing

__all__ = ["UIGPUCB"]


class UIGPUCB(AskingGPOptimizer):
    """GP-UCB where an observation of age a has the noise variance s^2 + rate a^2.

    The first step of SparQ-GP-UCB (Mauduit, Berthier and Simonetto 2025), who take rate = s^2, as
    if the reward changed by one std of the noise each round. Nothing is discarded or asked.
    """

    rate: Amount | None = None
    """How fast observations age, in squared reward units per squared round; by default their noise
    variance s^2."""

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        return _InjectingMemory(prior, briefing.period, self.rate)


class _InjectingMemory(AgeingMemory):
    """A memory of all observations, whose variances grow with the square of their age."""

    def __init__(self, prior: GPPrior, period: float, rate: float | None) -> None:
        super().__init__(prior, period)
        self._rate = rate

    def age(self, variances: Values, ages: Values) -> Values:
        rate = variances if self._rate is None else self._rate
        injected: Values = variances + rate * np.square(ages)
        return injected
