"""The expert who knows."""

from __future__ import annotations

import numpy as np

from sparq_sim.messages import Estimate, Query
from sparq_sim.models import Expert, World


class Truth(Expert):
    """Knows the reward as it is; whatever noise there is comes from the channel."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the reward of now, where there is a reading of it."""
        now = world.clock.now
        values = world.rewards(query.points, now)
        there = world.available(query.points, now)
        return Estimate(np.where(there, values, np.nan), absent="no reading")
