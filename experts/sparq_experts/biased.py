"""The expert `biased`: a constant error."""

from __future__ import annotations

from pydantic import FiniteFloat

from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World

__all__ = ["Biased"]


class Biased(Expert):
    """Answers with the current reward plus a constant: value = reward + bias.

    It claims to be exact (a std of 0). Use it for a sensor with a wrong zero point.
    """

    bias: FiniteFloat = 0.1
    """The constant that is added to the reward, in reward units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        rewards = world.rewards(query.points, world.clock.now)
        return Estimate(rewards + self.bias)
