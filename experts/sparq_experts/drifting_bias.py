"""The expert `drifting-bias`: a sensor whose calibration changes with time."""

from __future__ import annotations

from math import pi, sin

from pydantic import FiniteFloat

from sparq_sim.fields import Amount, Positive
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World

__all__ = ["DriftingBias"]


class DriftingBias(Expert):
    """A sensor that loses its calibration: its bias is a function of time, and it knows nothing.

    bias(t) = offset + rate t + amplitude sin(2 pi t / cycle): an offset from the factory, steady
    wear, and what a surrounding such as the day's temperature does. Systematic error, signal
    drift and dependence on the surroundings are among the error sources that Maag, Zhou and
    Thiele (2018) find in A survey on sensor calibration in air pollution monitoring deployments;
    the sizes are ours.
    """

    offset: FiniteFloat = 0.0
    """The bias at time 0, in reward units."""
    rate: FiniteFloat = 0.005
    """How fast the bias grows, in reward units per clock unit."""
    amplitude: Amount = 0.05
    """How far the bias goes to and fro, in reward units."""
    cycle: Positive = 24.0
    """How long the bias takes to go to and fro once, in clock units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the reward of now, shifted by the bias of now."""
        now = world.clock.now
        rewards = world.rewards(query.points, now)
        return Estimate(rewards + self.bias(now))

    def bias(self, time: float) -> float:
        """Give the bias at *time*."""
        periodic = self.amplitude * sin(2 * pi * time / self.cycle)
        return self.offset + self.rate * time + periodic
