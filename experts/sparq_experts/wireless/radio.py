"""Radio: what every radio of a node has, whatever its modulation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt, model_validator

from sparq_experts.wireless.capture import CaptureName
from sparq_experts.wireless.signals import Signal
from sparq_sim.fields import Amount, Positive, Quantity
from sparq_sim.plugin.model import Model

__all__ = ["CarrierSense", "DutyShare", "Radio", "SendDraws", "Side", "Signal"]

Side: TypeAlias = Literal["node", "gateway"]
"""Who receives."""
DutyShare: TypeAlias = Annotated[float, Field(gt=0, le=1)]
"""A share of time, above 0 and at most 1."""
SendDraws: TypeAlias = Annotated[tuple[tuple[FiniteFloat, Positive], ...], Field(min_length=1)]
"""Pairs of an output power in dBm and what a node then draws in W."""


@dataclass(frozen=True, slots=True)
class CarrierSense:
    """How a sender listens before it talks: unslotted CSMA-CA of IEEE 802.15.4.

    Before attempt k = 0, 1, ... it waits a whole number of units, drawn uniformly from 0 to
    2^min(min_exponent + k, max_exponent) - 1, and listens. After *backoffs* further attempts with
    the channel busy it gives up.
    """

    min_exponent: int
    """The exponent of the first wait."""
    max_exponent: int
    """The largest exponent."""
    backoffs: int
    """How often it tries again where the channel was busy."""
    unit: float
    """The unit of a wait, in seconds."""
    sensing: float
    """How long it listens, in seconds."""
    turnaround: float
    """How long a radio takes to turn from listening to sending, in seconds."""
    threshold: float
    """The power from which the channel counts as busy, in dBm."""

    @property
    def longest(self) -> float:
        """The longest that it can take until the channel is found free, in seconds."""
        exponents = range(self.min_exponent, self.min_exponent + self.backoffs + 1)
        units = sum((1 << min(each, self.max_exponent)) - 1 for each in exponents)
        return units * self.unit + (self.backoffs + 1) * self.sensing + self.turnaround


class Radio(Model):
    """What a radio sends with, hears and draws; all in seconds, bytes, dBm and W.

    A radio computes; it keeps no state. What it draws is that of a whole node or of the chip alone:
    the preset states which.
    """

    transmit_power: Annotated[FiniteFloat, Quantity("dBm")]
    """Output power of a node; one of those in `send`."""
    gateway_power: Annotated[FiniteFloat, Quantity("dBm")]
    """Output power of a gateway."""
    send: Annotated[SendDraws, Quantity("dBm, W")]
    """What sending draws at each output power: pairs of dBm and W."""
    receive: Annotated[Positive, Quantity("W")]
    """What receiving a packet draws."""
    listen: Annotated[Positive, Quantity("W")]
    """What waiting for a packet draws."""
    sleep: Annotated[Amount, Quantity("W")]
    """What a node at rest draws."""
    compute: Annotated[Amount, Quantity("W")]
    """What processing draws."""
    overhead: Annotated[NonNegativeInt, Quantity("bytes")]
    """How much headers add to each payload."""
    duty_limit: Annotated[DutyShare, Quantity("")]
    """The largest share of time that a node may send; 1 is no limit."""
    gateway_duty_limit: Annotated[DutyShare, Quantity("")]
    """The largest share of time that a gateway may send; 1 is no limit."""
    duty_window: Annotated[Positive, Quantity("s")] = 3600.0
    """The time over which that share is counted, up to any moment."""
    channels: Annotated[PositiveInt, Quantity("")]
    """How many frequencies there are; one is drawn for each packet."""
    receptions: Annotated[PositiveInt | None, Quantity("")]
    """How many packets a gateway can receive at once; none is no limit."""
    capture: CaptureName
    """How overlapping packets are judged."""
    acknowledged: bool
    """Whether each packet of a node is acknowledged."""
    retransmissions: Annotated[int, Field(ge=0, le=100), Quantity("")]
    """How often a packet without acknowledgement is sent again."""
    backoff: Annotated[Amount, Quantity("s")]
    """The longest wait before the first retransmission, drawn uniformly from 0; doubled each time.
    """
    ack_delay: Annotated[Amount, Quantity("s")]
    """The time from the end of a packet to the start of its acknowledgement."""

    @model_validator(mode="after")
    def _check_power(self) -> Self:
        known = [power for power, _ in self.send]
        if self.transmit_power not in known:
            there = ", ".join(f"{power:g}" for power in known)
            raise ValueError(
                f"transmit_power {self.transmit_power:g} dBm has no entry in send, which gives "
                f"the draw at {there} dBm: use one of these, or add the pair "
                f"({self.transmit_power:g}, W) to send"
            )
        return self

    @property
    def send_draw(self) -> float:
        """What sending draws at `transmit_power`, in W."""
        wanted = self.transmit_power
        return next(draw for power, draw in self.send if power == wanted)

    @property
    @abstractmethod
    def rate(self) -> int:
        """The spreading factor of LoRa; 0 for IEEE 802.15.4."""

    @property
    @abstractmethod
    def largest_payload(self) -> int:
        """The largest payload, without headers, in bytes."""

    @property
    @abstractmethod
    def shortest_listen(self) -> float:
        """How long a node must listen to notice that nothing comes, in seconds."""

    @property
    @abstractmethod
    def acknowledgement(self) -> int:
        """The payload of an acknowledgement, in bytes."""

    @property
    def ack_airtime(self) -> float:
        """How long an acknowledgement is on the air, in seconds."""
        return self.airtime(self.acknowledgement)

    @property
    def inverted_downlinks(self) -> bool:
        """Whether packets that go up and packets that go down cannot disturb each other."""
        return False

    @property
    def carrier_sense(self) -> CarrierSense | None:
        """How a sender listens before it talks; None if it does not."""
        return None

    @abstractmethod
    def airtime(self, payload: int) -> float:
        """Compute how long a packet is on the air.

        Args:
            payload: Bytes of payload; headers are added.

        Returns:
            The time in seconds.
        """

    @abstractmethod
    def sensitivity(self, at: Side) -> float:
        """Return the weakest signal that a receiver can read, in dBm.

        Args:
            at: Who receives.
        """

    @abstractmethod
    def success(self, power: float, payload: int, at: Side) -> float:
        """Return the probability that a packet is read where nothing else is on the air.

        Args:
            power: The power at the receiver, in dBm.
            payload: Bytes of payload; headers are added.
            at: Who receives.
        """

    @abstractmethod
    def survival(self, own: Signal, others: Sequence[Signal]) -> float:
        """Return the probability that other signals do not destroy a packet.

        It is what remains once `success` is counted: the probability of a packet being read is the
        product of the two.

        Args:
            own: The packet, as the receiver hears it.
            others: What else the receiver hears on the same frequency, in any order; those that
                do not overlap in time do no harm.
        """

    def for_link(self, loss: float) -> Radio:
        """Return the radio as a node with this link to its gateway uses it.

        Args:
            loss: The path loss to the gateway, in dB.

        Returns:
            This radio, or one with another rate.
        """
        del loss
        return self
