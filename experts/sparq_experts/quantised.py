"""The expert with a coarse scale."""

from __future__ import annotations

from math import sqrt

import numpy as np

from sparq_sim.fields import Positive
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World


class Quantised(Expert):
    """Reads the reward off a scale: rounded to a multiple of *step*, half a step to the even one.

    It claims the std of rounding, step / sqrt(12): that of an error uniform within half a step
    (Bennett 1948, Spectra of quantized signals), which holds where rewards vary over many steps.
    """

    step: Positive = 0.1
    """The distance between two marks of the scale, in reward units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the nearest mark to the reward of now."""
        rewards = world.rewards(query.points, world.clock.now)
        marks = self.step * np.rint(rewards / self.step)
        return Estimate(marks, stds=self.step / sqrt(12))
