"""Measuring: what a node reads, which takes time and energy, and how far it may be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sparq_experts.wireless.battery import Cause
from sparq_experts.wireless.node import Node
from sparq_experts.wireless.seconds_clock import SecondsClock
from sparq_sim.messages import Estimate
from sparq_sim.plugin.contract import World

__all__ = ["Measuring", "OnReading", "Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a node has measured."""

    value: float
    """In reward units; NaN where the record has a gap."""
    std: float
    """The std of its noise, in reward units."""
    measured_at: float
    """In clock units."""

    def to_estimate(self) -> Estimate:
        """Return the reading as a message about one point."""
        return Estimate(np.array([self.value]), stds=self.std, measured_at=self.measured_at)


OnReading: TypeAlias = Callable[[Node, Reading], None]
"""Takes a reading that a gateway has received."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Has nodes measure the reward where they are."""

    world: World
    """Of the play."""
    clock: SecondsClock
    """Of the play, in seconds."""
    time: float
    """How long a measurement takes, in seconds."""
    energy: float
    """What it takes, in joules."""
    computing_time: float
    """How long a node computes for each packet with a reading, in seconds."""
    noise: float
    """The std of the error of a measurement, in reward units."""

    def joules(self, node: Node) -> float:
        """Return what a measurement takes with the computing for it.

        Args:
            node: Who measures.
        """
        return self.energy + self.computing_time * node.radio.compute

    async def measure(self, node: Node) -> Reading:
        """Have a node measure.

        Args:
            node: Who measures; whoever calls this holds its gate.

        Returns:
            The reading; the value is that of the end of the measurement.
        """
        if self.time or self.energy:
            await self._work(node, "measure", self.time, self.energy)
        now = self.world.clock.now
        value = float(self.world.rewards(node.point, now)[0]) + node.bias_rate * now
        if self.noise:
            value += self.noise * float(node.rng.standard_normal())
        if computing := self.computing_time:
            await self._work(node, "compute", computing, computing * node.radio.compute)
        return Reading(value, self.noise, now)

    async def _work(self, node: Node, cause: Cause, time: float, energy: float) -> None:
        """Have a node use energy for some time, or at once."""
        start = self.clock.now
        if time:
            # The radio goes on meanwhile: it may receive a query.
            node.work(start, ((cause, energy / time),))
            await self.clock.until(start + time)
            node.work(self.clock.now, ())
        elif node.is_alive(start):
            node.battery.spend(cause, energy)
