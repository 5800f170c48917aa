"""The expert `adversary`: bounded errors that mislead on purpose."""

from __future__ import annotations

import numpy as np

from sparq_sim.errors import Unavailable
from sparq_sim.fields import Amount
from sparq_sim.messages import NO_READING, Estimate, Query
from sparq_sim.plugin.contract import Expert, World

__all__ = ["Adversary"]

_COVER = 64
"""How many points, evenly spread, the average reward is estimated from."""


class Adversary(Expert):
    """Makes good points look bad and bad points look good, with an error of at most *bound*.

    It mirrors the reward about the average over the domain:

        value = reward + clip(2 (average - reward), -bound, bound)

    Use it to test how an optimizer copes with a hostile or badly wrong source. Errors that are
    bounded but may depend on everything are the model of Bogunovic, Krause and Scarlett (2020),
    Corruption-tolerant Gaussian process bandit optimization.
    """

    bound: Amount = 0.2
    """The largest error of an answer, in reward units."""
    claimed: Amount = 0.0
    """The std that it claims for its answers, in reward units; it need not be true."""

    async def answer(self, query: Query, world: World) -> Estimate:
        now = world.clock.now
        rewards = world.rewards(query.points, now)
        cover = world.rewards(world.domain.cover(_COVER), now)
        known = cover[~np.isnan(cover)]
        if not known.size:
            raise Unavailable(NO_READING)
        errors = np.clip(2 * (known.mean() - rewards), -self.bound, self.bound)
        return Estimate(rewards + errors, stds=self.claimed)
