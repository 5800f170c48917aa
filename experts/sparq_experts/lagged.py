"""The expert `lagged`: the exact reward of some time ago."""

from __future__ import annotations

from sparq_sim.fields import Amount
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World

__all__ = ["Lagged"]


class Lagged(Expert):
    """Knows the reward as it was *lag* ago, and dates it so: measured_at = max(0, now - lag).

    This is a delay in the source itself, which no faster channel removes: a daily bulletin, or an
    image that takes time to process.
    """

    lag: Amount = 2.0
    """The age of what it knows, in clock units; never from before time 0."""

    async def answer(self, query: Query, world: World) -> Estimate:
        then = max(0.0, world.clock.now - self.lag)
        rewards = world.rewards(query.points, then)
        return Estimate(rewards, measured_at=then)
