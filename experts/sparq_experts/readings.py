"""Readings: the reward as it can be known, which a record with gaps is not everywhere."""

from __future__ import annotations

import numpy as np

from sparq_sim.messages import Points, Values
from sparq_sim.models import World

NO_READING = "no reading"
"""Why an expert knows nothing where a record has a gap."""


def readings(world: World, points: Points, time: float) -> Values:
    """Give the reward at each point as of a *time*, and NaN where there is no reading of it.

    What fills a gap in a record may be made of later readings, so nobody may know it.
    """
    rewards = world.rewards(points, time)
    return np.where(world.available(points, time), rewards, np.nan)
