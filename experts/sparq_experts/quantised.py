"""The expert `quantised`: the reward, rounded to a coarse scale."""

from __future__ import annotations

from math import sqrt

import numpy as np

from sparq_sim.fields import Positive
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World

__all__ = ["Quantised"]


class Quantised(Expert):
    """Reads the current reward from a scale: value = step round(reward / step), half to even.

    It claims the std of a rounding error, step / sqrt(12): that of an error that is uniform
    within half a step (Bennett 1948, Spectra of quantized signals). This is right where rewards
    vary over many steps.
    """

    step: Positive = 0.1
    """The distance between two marks of the scale, in reward units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        rewards = world.rewards(query.points, world.clock.now)
        marks = self.step * np.rint(rewards / self.step)
        return Estimate(marks, stds=self.step / sqrt(12))
