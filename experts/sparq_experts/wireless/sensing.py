"""Sensing: how senders listen before they talk."""

from __future__ import annotations

from collections.abc import Callable

from numpy.random import Generator

from sparq_experts.wireless.medium import Medium
from sparq_experts.wireless.node import Gateway, Node
from sparq_experts.wireless.radio import CarrierSense
from sparq_experts.wireless.seconds_clock import SecondsClock

__all__ = ["Sensing"]


class Sensing:
    """Has senders wait until they find the air free: unslotted CSMA-CA of IEEE 802.15.4.

    Args:
        clock: In seconds.
        medium: What they listen to.
    """

    def __init__(self, clock: SecondsClock, medium: Medium) -> None:
        self._clock = clock
        self._medium = medium

    async def is_clear(self, node: Node, sense: CarrierSense) -> bool:
        """Sense the air as a node.

        Args:
            node: Who senses, and pays for it.
            sense: How its radio does that.

        Returns:
            Whether the air was found free in time.
        """

        def is_busy() -> bool:
            now = self._clock.now
            if node.incoming is None:  # The end of the back-off is spent listening.
                node.switch(now - sense.sensing, node.listen_draws)
                node.rest(now)
            return self._medium.is_busy_at(node, sense.threshold)

        return await self._sense(node.rng, sense, is_busy)

    async def is_clear_at_gateway(self, gateway: Gateway, sense: CarrierSense) -> bool:
        """Sense the air as a gateway.

        Args:
            gateway: Who senses.
            sense: How its radio does that.

        Returns:
            Whether the air was found free in time.
        """
        return await self._sense(
            gateway.rng,
            sense,
            lambda: self._medium.is_busy_at_gateway(gateway, sense.threshold),
        )

    async def _sense(
        self, rng: Generator, sense: CarrierSense, is_busy: Callable[[], bool]
    ) -> bool:
        """Back off and listen, until the air is free or the attempts are used up."""
        exponent = sense.min_exponent
        for _ in range(sense.backoffs + 1):
            wait = int(rng.integers(2**exponent)) * sense.unit
            await self._clock.until(self._clock.now + wait + sense.sensing)
            if not is_busy():
                # Others may begin to send while the radio turns from listening to sending.
                await self._clock.until(self._clock.now + sense.turnaround)
                return True
            exponent = min(exponent + 1, sense.max_exponent)
        return False
