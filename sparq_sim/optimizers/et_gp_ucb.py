"""ET-GP-UCB: GP-UCB that starts again when an observation contradicts what it believes."""

from __future__ import annotations

from math import log, pi, sqrt

import numpy as np
from numpy.random import Generator

from sparq_sim.fields import Share
from sparq_sim.gp.candidates import Candidates
from sparq_sim.messages import Answer, Notes
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer
from sparq_sim.plugin.briefing import Briefing

__all__ = ["ETGPUCB"]


class ETGPUCB(AskingGPOptimizer):
    """GP-UCB that takes the reward to stand still until an observation is too surprising.

    Brunzema, von Rohr, Solowjow and Trimpe 2025. All observations but y_t are forgotten when

        |y_t - mu(x_t)| > sqrt(rho_t) sigma(x_t) + w_t,
        rho_t = 2 log(2 pi_t / delta),  w_t^2 = 2 s^2 log(2 pi_t / delta),  pi_t = pi^2 t^2 / 6,

    where mu and sigma do not know y_t yet and t counts from the last reset. On a reward that stands
    still, as the prior says it may, that happens with probability *delta* at most. No rate of
    change and no budget need be known.

    What was measured before the last reset and arrives after it is forgotten too.
    """

    delta: Share = 0.1
    """The probability of ever forgetting without a cause, above 0 and below 1; the smaller, the
    less is noticed."""

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        return _EventMemory(prior, briefing.period, self.delta)


class _EventMemory(Memory):
    """A memory of what was measured since the last reset."""

    def __init__(self, prior: GPPrior, period: float, delta: float) -> None:
        super().__init__(prior, period)
        self._delta = delta
        self._candidates = Candidates(prior.candidates)
        self._began = 0.0
        self._tests = 0
        self._resets = 0

    def learn(self, answer: Answer) -> None:
        if answer.measured_at < self._began:
            return
        # Each value is a test: of a batch all are held to the limit of the last, the widest.
        self._tests += len(answer.values)
        surprised = self._is_surprising(answer)
        super().learn(answer)
        if surprised:
            self.keep(self.times.array >= answer.measured_at)
            self._began = answer.measured_at
            self._tests = 0
            self._resets += 1

    def _is_surprising(self, answer: Answer) -> bool:
        """Return whether any value lies farther from the mean than sqrt(rho_t) (sigma + s)."""
        rho = 2 * log(2 * (pi * self._tests) ** 2 / 6 / self._delta)
        places = self._candidates.find_places(answer.points)
        if -1 in places:
            mean, std = self.posterior.mean(answer.points), self.posterior.std(answer.points)
        else:  # What is known at the candidates costs nothing.
            mean, std = self.posterior.mean()[places], self.posterior.std()[places]
        limits = sqrt(rho) * (std + np.sqrt(self.prior.variances(answer)))
        return bool((np.abs(answer.values - mean) > limits).any())

    def notes(self) -> Notes:
        return {**super().notes(), "resets": float(self._resets)}
