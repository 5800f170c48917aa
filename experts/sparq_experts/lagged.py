"""The expert who is behind."""

from __future__ import annotations

from sparq_sim.fields import Amount
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World


class Lagged(Expert):
    """Knows the reward as it was *lag* ago, and says so: measured_at = max(0, now - lag).

    It is the reporting delay that no faster road removes: a daily bulletin, a processed image.
    """

    lag: Amount = 2.0
    """How long ago, in clock units; before time 0 nothing was known, so never before 0."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the reward of then."""
        then = max(0.0, world.clock.now - self.lag)
        rewards = world.rewards(query.points, then)
        return Estimate(rewards, measured_at=then)
