"""Listening: when a node can be asked, and what waiting to be asked costs it."""

from __future__ import annotations

from math import floor
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from sparq_experts.wireless.battery import Period
from sparq_sim.fields import Positive, Quantity
from sparq_sim.plugin.model import Model

__all__ = ["AlwaysOn", "AnyListening", "WakeUps", "Windows"]


class AlwaysOn(Model):
    """Listens at all times but while it sends, as LoRaWAN's class C: asked at once, and thirsty."""

    kind: Literal["always"] = "always"
    """The name of this kind."""


class Windows(Model):
    """Listens twice after each packet of its own, as LoRaWAN's class A, and sleeps otherwise.

    It cannot be asked on demand: a query waits at the gateway until the node has sent something.
    """

    kind: Literal["windows"] = "windows"
    """The name of this kind."""
    every: Annotated[Period, Quantity("s")] = 3600.0
    """After how long without sending a node sends an empty packet, so that it can be asked, in
    seconds."""
    first: Annotated[
        Positive,
        Quantity("s", "LoRaWAN: RECEIVE_DELAY1", "read in LoRaWAN Regional Parameters 1.0.3"),
    ] = 1.0
    """When the first window opens, in seconds after the end of the node's packet."""
    second: Annotated[
        Positive,
        Quantity("s", "LoRaWAN: RECEIVE_DELAY2", "read in LoRaWAN Regional Parameters 1.0.3"),
    ] = 2.0
    """When the second window opens, in seconds after the end of the node's packet."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.second <= self.first:
            raise ValueError(
                f"the second window, {self.second:g} s after a packet, must open after the first, "
                f"{self.first:g} s after it"
            )
        return self


class WakeUps(Model):
    """Wakes up at regular times to listen for a while; the gateway knows when."""

    kind: Literal["wake-ups"] = "wake-ups"
    """The name of this kind."""
    every: Annotated[Period, Quantity("s")]
    """From one wake-up to the next, in seconds."""
    lasting: Annotated[Positive, Quantity("s")]
    """How long a node listens at each, in seconds; longer where its radio needs longer to notice
    a packet, as at a high spreading factor."""

    @model_validator(mode="after")
    def _sleeps(self) -> Self:
        if self.lasting >= self.every:
            raise ValueError(
                f"lasting {self.lasting:g} s of every {self.every:g} s is no duty cycle; "
                'listen for less, or take kind = "always"'
            )
        return self

    def lengthen(self, shortest: float) -> WakeUps:
        """Return the same wake-ups, long enough for a radio to notice a packet.

        Args:
            shortest: What the radio needs for that, in seconds.
        """
        if shortest <= self.lasting:
            return self
        return self.model_copy(update={"lasting": min(shortest, self.every)})

    @property
    def share(self) -> float:
        """The share of time that is spent listening."""
        return self.lasting / self.every

    def next(self, time: float, phase: float) -> tuple[float, float]:
        """Return from when until when a node listens: now, or at its next wake-up.

        Args:
            time: Now, in seconds.
            phase: The first wake-up of the node, in seconds.
        """
        count = max(0, floor((time - phase) / self.every))
        begun = phase + count * self.every
        if time >= begun + self.lasting:
            begun = phase + (count + 1) * self.every
        return max(begun, time), begun + self.lasting


AnyListening: TypeAlias = Annotated[AlwaysOn | Windows | WakeUps, Field(discriminator="kind")]
"""When a node can be asked."""
