"""The expert who knows."""

from __future__ import annotations

from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World


class Truth(Expert):
    """Knows the reward as it is; whatever noise there is comes from the channel."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the reward of now, where there is a reading of it."""
        return Estimate(world.rewards(query.points, world.clock.now))
