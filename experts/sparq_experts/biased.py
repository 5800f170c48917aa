"""Experts who are off: always by the same, or by more and more."""

from __future__ import annotations

from pydantic import FiniteFloat

from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World


class Biased(Expert):
    """Knows the reward plus a constant: reward + bias. It claims to be exact."""

    bias: FiniteFloat = 0.1
    """What is added to the reward, in reward units; the same at every point and time."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the reward of now, shifted."""
        rewards = world.rewards(query.points, world.clock.now)
        return Estimate(rewards + self.bias)
