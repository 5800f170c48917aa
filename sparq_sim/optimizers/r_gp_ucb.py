"""R-GP-UCB: GP-UCB that starts again with each block of rounds."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from pydantic import NonNegativeInt

from sparq_sim.gp.predictor import Predictor
from sparq_sim.optimizers.shared.lengths import AnyLength, VariationLength
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer
from sparq_sim.plugin.briefing import Briefing

__all__ = ["RGPUCB"]


class RGPUCB(AskingGPOptimizer):
    """GP-UCB in blocks of N rounds: when t mod N = 1, all observations are forgotten.

    Bogunovic, Scarlett and Cevher 2016, with a `forgetting` length; Zhou and Shroff 2021, with a
    `variation` one.
    """

    block: AnyLength = VariationLength()
    """N, after how many rounds all is forgotten: a number, or a table with a `kind`."""
    carry: NonNegativeInt = 0
    """With how many of the newest observations a new block begins; with none, as published, each
    block begins with a blind play."""

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        return _BlockMemory(self, prior, briefing)


class _BlockMemory(Memory):
    """A memory of the present block."""

    def __init__(self, model: RGPUCB, prior: GPPrior, briefing: Briefing) -> None:
        super().__init__(prior, briefing.period)
        self._block = model.block(prior.kernel, briefing)
        self._carry = model.carry

    def predictor(self, now: float) -> Predictor:
        number = round(now / self.period, 6) // 1
        first = (number - 1) // self._block * self._block + 1
        # A late answer from an earlier block is forgotten like all others of that block.
        times = self.times.array
        kept = times >= (first - 1e-6) * self.period
        if self._carry and first > 1:
            kept[np.flatnonzero(~kept)[np.argsort(times[~kept], kind="stable")][-self._carry :]] = (
                True
            )
        self.keep(kept)
        return self.posterior
