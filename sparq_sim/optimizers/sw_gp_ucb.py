"""SW-GP-UCB: GP-UCB on the observations of a sliding window."""

from __future__ import annotations

from numpy.random import Generator

from sparq_sim.gp.predictor import Predictor
from sparq_sim.optimizers.shared.lengths import AnyLength, VariationLength
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer
from sparq_sim.plugin.briefing import Briefing

__all__ = ["SWGPUCB"]


class SWGPUCB(AskingGPOptimizer):
    """GP-UCB with the observations of the last W rounds only.

    Zhou and Shroff 2021.
    """

    window: AnyLength = VariationLength()
    """W, how many rounds back observations count: a number, or a table with a `kind`."""

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        return _WindowMemory(prior, briefing.period, self.window(prior.kernel, briefing))


class _WindowMemory(Memory):
    """A memory of the last W rounds."""

    def __init__(self, prior: GPPrior, period: float, window: int) -> None:
        super().__init__(prior, period)
        self._window = window

    def predictor(self, now: float) -> Predictor:
        self.keep(self.ages(now) < self._window - 1e-6)
        return self.posterior
