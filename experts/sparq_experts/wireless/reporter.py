"""The reporter: nodes that send readings, or signs of life, at times of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, inf, isnan, nan
from typing import TypeAlias

from sparq_experts.wireless.listening import Windows
from sparq_experts.wireless.measuring import Measuring, Reading
from sparq_experts.wireless.node import Node
from sparq_experts.wireless.reporting import AnyReporting
from sparq_experts.wireless.traffic import Errand, SecondsClock, Traffic

__all__ = ["OnReading", "Reporter"]

OnReading: TypeAlias = Callable[[Node, Reading], None]
"""Takes a reading that a gateway has received."""

_SLACK = 1e-6
"""Seconds by which clocks may differ from rounding alone."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """Has nodes send what nobody asked for."""

    clock: SecondsClock
    """In seconds."""
    traffic: Traffic
    """Sends packets."""
    measuring: Measuring
    """Has nodes measure."""
    push: AnyReporting | None
    """When a node sends a reading; None for never."""
    payload: int
    """Bytes of a reading, headers not included."""
    on_reading: OnReading
    """What takes the readings that arrive."""

    async def run(self, node: Node) -> None:
        """Have a node measure and send at its own times, until its battery is empty.

        Args:
            node: Which one; it has a tick.
        """
        heartbeat = node.listening.every if isinstance(node.listening, Windows) else inf
        last_value, last_sent = nan, -inf
        moment = node.phase
        while True:
            await self.clock.until(moment)
            async with node.gate:
                if not node.is_alive(self.clock.now):
                    return
                silent = moment - last_sent + _SLACK
                reading = None
                if self.push is not None:
                    reading = await self.measuring.measure(node)
                    value = reading.value
                    if isnan(value) or not self.push.is_due(value, last_value, silent):
                        reading = None
                if reading is not None:
                    last_value, last_sent = reading.value, moment
                    await self._send(node, reading)
                elif silent >= heartbeat:
                    last_sent = moment
                    await self.traffic.send_up(node, Errand("heartbeat", 0))
            # What was missed because the node was busy is left out.
            missed = floor((self.clock.now - moment) / node.tick)
            moment += (1 + max(0, missed)) * node.tick

    async def _send(self, node: Node, reading: Reading) -> None:
        errand = Errand("report", self.payload)
        await self.traffic.send_up(node, errand, lambda: self.on_reading(node, reading))
