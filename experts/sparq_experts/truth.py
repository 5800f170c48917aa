"""The expert `truth`: the exact reward."""

from __future__ import annotations

from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World

__all__ = ["Truth"]


class Truth(Expert):
    """Knows the current reward exactly; noise, delay and loss come from the channel alone.

    Where a record has no reading, the point fails.
    """

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.rewards(query.points, world.clock.now))
