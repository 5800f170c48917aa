"""The medium: packets on the air, which disturb each other, and what receivers make of them.

`Medium` is long because up and down are judged by the same air.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from numpy.random import Generator

from sparq_experts.wireless.node import Gateway, Node
from sparq_experts.wireless.propagation import PathLoss
from sparq_experts.wireless.radio import Signal

__all__ = ["Medium", "Packet", "PacketFate", "Purpose"]

Purpose: TypeAlias = Literal["report", "answer", "heartbeat", "query", "acknowledgement"]
"""What a packet is sent for."""


class PacketFate(StrEnum):
    """All that can become of a packet."""

    DELIVERED = "delivered"
    """It was received."""
    FADED = "faded"
    """It was too weak, or had bit errors, without any other packet's fault."""
    COLLIDED = "collided"
    """Other packets on the air destroyed it."""
    GATEWAY_FULL = "gateway full"
    """The gateway was receiving as many others as it can."""
    GATEWAY_SENDING = "gateway sending"
    """The gateway was sending, and so heard nothing."""
    NODE_BUSY = "node busy"
    """The node did not listen."""
    NODE_DEAD = "node dead"
    """The node's battery was empty, or became so while it sent."""
    DUTY_CYCLE = "duty cycle"
    """It was not sent: the duty cycle was used up."""
    CHANNEL_BUSY = "channel busy"
    """It was not sent: the channel was found busy too often."""


REFUSED = (PacketFate.DUTY_CYCLE, PacketFate.CHANNEL_BUSY)
"""What was never on the air."""


@dataclass(slots=True, eq=False)
class Packet:
    """A packet on the air; times are in seconds."""

    node: Node
    """Who sends it, or whom it is for."""
    gateway: Gateway | None
    """Who sends it down; None where the node sends it up."""
    payload: int
    """In bytes, headers not included."""
    channel: int
    """The frequency channel, from 0."""
    start: float
    """When it begins."""
    end: float
    """When it ends."""
    powers: Sequence[float]
    """In dBm, fading included: at each gateway for one that goes up, else at the node alone."""
    luck: Sequence[float]
    """Uniform on 0 to 1 at each receiver: bit errors destroy it where this exceeds its chance of
    success."""
    chances: list[float] = field(default_factory=list)
    """The probability of success without other packets, at each receiver."""
    heard_by: list[int] = field(default_factory=list)
    """The gateways that receive it."""
    missed: PacketFate = PacketFate.FADED
    """Why a gateway does not receive it that could."""
    others: list[Packet] = field(default_factory=list)
    """All that were on the air on its channel at some time of its own."""

    @property
    def rate(self) -> int:
        """The data rate of the node, which gateways answer at."""
        return self.node.radio.rate


class Medium:
    """All that is on the air of one network.

    Packets on different frequency channels do not disturb each other. Where downlinks are sent
    with inverted chirps, as in LoRaWAN, up and down do not disturb each other either.

    Args:
        gateways: All of them.
        between: The mean power of each node's packets at each node, in dBm: rows send.
        path_loss: Of which fading is drawn for each packet.
    """

    def __init__(
        self, gateways: Sequence[Gateway], between: Sequence[Sequence[float]], path_loss: PathLoss
    ) -> None:
        self._gateways = gateways
        self._between = between
        self._path_loss = path_loss
        self._fades = path_loss.fading != "none"
        self._on_air: list[Packet] = []

    def begin_up(self, node: Node, payload: int, start: float, airtime: float) -> Packet:
        """Put a packet of a node on the air.

        Args:
            node: Who sends it.
            payload: In bytes, headers not included.
            start: Now, in seconds.
            airtime: How long it takes, in seconds.

        Returns:
            The packet, which must be ended by `end` when its time is over.
        """
        radio, rng = node.radio, node.rng
        packet = Packet(
            node,
            None,
            payload,
            channel=int(rng.random() * radio.channels),  # A tenth of the time of rng.integers.
            start=start,
            end=start + airtime,
            powers=self._fade(node.up, rng),
            luck=[rng.random() for _ in self._gateways],
        )
        for gateway, power in zip(self._gateways, packet.powers, strict=True):
            chance = radio.success(power, payload, "gateway")
            packet.chances.append(chance)
            if chance < _FAINTEST:
                continue
            if gateway.sending:
                packet.missed = PacketFate.GATEWAY_SENDING
            elif radio.receptions is not None and gateway.receiving >= radio.receptions:
                # With one receiver, what comes second is no different from what collides.
                alone = radio.receptions == 1
                packet.missed = PacketFate.COLLIDED if alone else PacketFate.GATEWAY_FULL
            else:
                gateway.receiving += 1
                gateway.busiest = max(gateway.busiest, gateway.receiving)
                packet.heard_by.append(gateway.index)
        self._add(packet)
        return packet

    def begin_down(
        self, gateway: Gateway, node: Node, payload: int, start: float, airtime: float
    ) -> Packet:
        """Put a packet of a gateway on the air; it receives nothing meanwhile.

        Args:
            gateway: Who sends it.
            node: Whom it is for.
            payload: In bytes, headers not included.
            start: Now, in seconds.
            airtime: How long it takes, in seconds.

        Returns:
            The packet, which must be ended by `end` when its time is over.
        """
        radio, rng = node.radio, gateway.rng
        (power,) = self._fade((node.down[gateway.index],), rng)
        packet = Packet(
            node,
            gateway,
            payload,
            channel=int(rng.random() * radio.channels),
            start=start,
            end=start + airtime,
            powers=(power,),
            luck=(rng.random(),),
            chances=[radio.success(power, payload, "node")],
        )
        gateway.sending = True
        for other in self._on_air:
            if gateway.index in other.heard_by:
                other.heard_by.remove(gateway.index)
                gateway.receiving -= 1
                other.missed = PacketFate.GATEWAY_SENDING
        self._add(packet)
        return packet

    def _fade(self, powers: Sequence[float], rng: Generator) -> Sequence[float]:
        """Return the powers of one packet where its mean powers are given, in dBm."""
        if not self._fades:
            return powers
        return [power + self._path_loss.draw_fading(rng) for power in powers]

    def _add(self, packet: Packet) -> None:
        for other in self._on_air:
            if other.channel == packet.channel:
                other.others.append(packet)
                packet.others.append(other)
        self._on_air.append(packet)

    def end(self, packet: Packet) -> PacketFate:
        """Take a packet off the air that ends now.

        Args:
            packet: Which one.

        Returns:
            What became of it on the air; whether somebody listened is not known here.
        """
        self._on_air.remove(packet)
        # What ends at the very moment at which another begins does not disturb it.
        others = [
            other
            for other in packet.others
            if min(other.end, packet.end) - max(other.start, packet.start) > _INSTANT
        ]
        packet.others.clear()  # They refer to each other: a chain that would never be freed.
        if packet.gateway is not None:
            packet.gateway.sending = False
            disturbing = [self._at_node(packet.node, other) for other in others]
            return _judge(packet, 0, disturbing)
        for index in packet.heard_by:
            self._gateways[index].receiving -= 1
        fate = packet.missed
        for index in packet.heard_by:
            fate = _judge(packet, index, [_at_gateway(index, other) for other in others])
            if fate is PacketFate.DELIVERED:
                break
        return fate

    def _at_node(self, node: Node, other: Packet) -> Signal | None:
        """Return another packet as a node hears it; None where it does not disturb."""
        if other.gateway is not None:
            power = node.down[other.gateway.index]
        elif node.radio.inverted_downlinks or other.node is node:
            return None
        else:
            power = self._between[other.node.index][node.index]
        return Signal(power, other.rate, other.start, other.end)

    def is_busy_at(self, node: Node, threshold: float) -> bool:
        """Return whether a node finds the air busy now.

        Args:
            node: Who senses.
            threshold: The least power that counts, in dBm.
        """
        return any(
            (
                node.down[other.gateway.index]
                if other.gateway is not None
                else self._between[other.node.index][node.index]
            )
            >= threshold
            for other in self._on_air
        )

    def is_busy_at_gateway(self, gateway: Gateway, threshold: float) -> bool:
        """Return whether a gateway finds the air busy now.

        Args:
            gateway: Who senses.
            threshold: The least power that counts, in dBm.
        """
        return gateway.sending or any(
            other.gateway is None and other.powers[gateway.index] >= threshold
            for other in self._on_air
        )


_FAINTEST = 1e-4
"""The probability of success below which a gateway does not notice a packet at all."""
_INSTANT = 1e-6
"""Seconds of overlap that rounding alone may make."""


def _at_gateway(index: int, other: Packet) -> Signal | None:
    """Return another packet as a gateway hears it; None for those that gateways send.

    Gateways are taken not to disturb each other: of their own packets they hear nothing anyway.
    """
    if other.gateway is not None:
        return None
    return Signal(other.powers[index], other.rate, other.start, other.end)


def _judge(packet: Packet, receiver: int, others: Sequence[Signal | None]) -> PacketFate:
    """Return what one receiver makes of a packet that ends, beside others on the air."""
    chance = packet.chances[receiver]
    luck = packet.luck[receiver]
    if luck >= chance:
        return PacketFate.FADED
    if disturbing := [other for other in others if other is not None]:
        own = Signal(packet.powers[receiver], packet.rate, packet.start, packet.end)
        if luck >= chance * packet.node.radio.survival(own, disturbing):
            return PacketFate.COLLIDED
    return PacketFate.DELIVERED
