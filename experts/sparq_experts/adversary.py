"""The expert who means harm."""

from __future__ import annotations

import numpy as np

from sparq_sim.errors import Unavailable
from sparq_sim.fields import Amount
from sparq_sim.messages import NO_READING, Estimate, Query
from sparq_sim.plugin.contract import Expert, World

_COVER = 64
"""At so many points it looks how high the reward is on average."""


class Adversary(Expert):
    """Makes good points look bad and bad ones good, as far as *bound* lets it.

    It mirrors the reward about its average over the domain, and errs by at most *bound*:
    value = reward + clip(2 (average - reward), -bound, bound). Errors that are bounded but may
    depend on everything are those of Bogunovic, Krause and Scarlett (2020), Corruption-tolerant
    Gaussian process bandit optimization.
    """

    bound: Amount = 0.2
    """The largest error of an answer, in reward units."""
    claimed: Amount = 0.0
    """The std that it claims, in reward units; it may be a lie as well."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the reward of now, distorted."""
        now = world.clock.now
        rewards = world.rewards(query.points, now)
        cover = world.rewards(world.domain.cover(_COVER), now)
        known = cover[~np.isnan(cover)]
        if not known.size:
            raise Unavailable(NO_READING)
        errors = np.clip(2 * (known.mean() - rewards), -self.bound, self.bound)
        return Estimate(rewards + errors, stds=self.claimed)
