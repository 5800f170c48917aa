"""The expert `drifting-bias`: a sensor whose calibration changes with time."""

from __future__ import annotations

from math import pi, sin

from pydantic import FiniteFloat

from sparq_sim.fields import Amount, Positive
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Expert, World

__all__ = ["DriftingBias"]


class DriftingBias(Expert):
    """A sensor that loses its calibration: its error depends on time, and it does not know of it.

        value = reward + bias(t),  bias(t) = offset + rate t + amplitude sin(2 pi t / cycle)

    The three terms are an offset from the factory, steady wear, and the influence of the
    surroundings, such as the temperature of the day. It claims to be exact (a std of 0).

    Systematic errors, signal drift and dependence on the surroundings are among the sources of
    error in Maag, Zhou and Thiele (2018), A survey on sensor calibration in air pollution
    monitoring deployments. The default sizes are chosen for this package.
    """

    offset: FiniteFloat = 0.0
    """The bias at time 0, in reward units."""
    rate: FiniteFloat = 0.005
    """How fast the bias grows, in reward units per clock unit."""
    amplitude: Amount = 0.05
    """The amplitude of the periodic part of the bias, in reward units."""
    cycle: Positive = 24.0
    """The period of the periodic part of the bias, in clock units."""

    async def answer(self, query: Query, world: World) -> Estimate:
        now = world.clock.now
        rewards = world.rewards(query.points, now)
        return Estimate(rewards + self.bias(now))

    def bias(self, time: float) -> float:
        """Return the bias at a time.

        Args:
            time: The time, in clock units.

        Returns:
            What an answer measured at that time is too high by, in reward units.
        """
        periodic = self.amplitude * sin(2 * pi * time / self.cycle)
        return self.offset + self.rate * time + periodic
