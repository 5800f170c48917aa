"""The reporter: nodes that send readings, or signs of life, at times of their own."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, isnan, nan

from sparq_experts.wireless.listening import Windows
from sparq_experts.wireless.measuring import Measuring, OnReading, Reading
from sparq_experts.wireless.node import SLACK, Node
from sparq_experts.wireless.reporting import AnyReporting
from sparq_experts.wireless.seconds_clock import SecondsClock
from sparq_experts.wireless.traffic import Errand, Traffic

__all__ = ["Reporter"]


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
            node: Which one.
        """
        silence = node.listening.every if isinstance(node.listening, Windows) else inf
        next_reading = inf if self.push is None else node.phase
        next_heartbeat = inf if silence == inf else node.phase % silence
        last_value, last_report = nan, -inf
        jitter = 0.0 if self.push is None else self.push.jitter
        while True:
            moment = min(next_reading, next_heartbeat)
            delay = jitter * node.rng.random() if jitter and moment == next_reading else 0.0
            await self.clock.until(moment + delay)
            async with node.gate:
                if not node.is_alive(self.clock.now):
                    return
                is_sent = False
                if self.push is not None and next_reading <= moment + SLACK:
                    reading = await self.measuring.measure(node)
                    silent = moment - last_report + SLACK
                    if not isnan(reading.value) and self.push.is_due(
                        reading.value, last_value, silent
                    ):
                        is_sent, last_value, last_report = True, reading.value, moment
                        await self._send(node, reading)
                    # What was missed because the node was busy is left out.
                    missed = floor((self.clock.now - moment) / self.push.every)
                    next_reading = moment + (1 + max(0, missed)) * self.push.every
                if not is_sent and next_heartbeat <= moment + SLACK:
                    is_sent = True
                    await self.traffic.send_up(node, Errand("heartbeat", 0))
            if is_sent:
                next_heartbeat = max(moment + silence, self.clock.now)

    async def _send(self, node: Node, reading: Reading) -> None:
        errand = Errand("report", self.payload)
        await self.traffic.send_up(node, errand, lambda: self.on_reading(node, reading))
