"""IEEE 802.15.4 at 2.4 GHz: airtime, bit errors and packet success."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import comb, exp, log1p
from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt, model_validator

from sparq_experts.wireless.radio import CarrierSense, DutyShare, Radio, Side, Signal
from sparq_experts.wireless.signals import to_milliwatts
from sparq_sim.fields import Amount, Positive, Quantity

__all__ = [
    "BIT_RATE",
    "LARGEST_FRAME",
    "Ieee802154Radio",
    "compute_airtime",
    "compute_bit_error",
    "compute_success",
]

BIT_RATE = 250_000.0
"""Bits per second at 2.4 GHz."""
LARGEST_FRAME = 127
"""The longest frame, with headers and checksum, in bytes."""
_BEFORE_FRAME = 6
"""Bytes before the frame: 4 of preamble, 1 of start, 1 of length; 127 + 6 bytes are 4.256 ms."""
_ACKNOWLEDGEMENT = 5
"""Bytes of the frame of an acknowledgement."""
_SYMBOL = 16e-6
"""Seconds that a symbol of 4 bits lasts."""
_TERMS = tuple((8 / 15 / 16 * (-1) ** k * comb(16, k), 20.0 * (1 / k - 1)) for k in range(2, 17))
"""Factor and exponent of each term of the bit-error formula."""
_CLEAR = 4.0
"""The ratio from which the probability of a wrong bit is below 1e-16, and counts as 0."""
_MAC = "read in ns-3 lr-wpan"


def compute_airtime(frame: int) -> float:
    """Compute how long a frame is on the air: (6 + n) 8 / 250,000 s.

    Args:
        frame: n, bytes of the frame, with headers and checksum.

    Returns:
        The time in seconds.
    """
    return (_BEFORE_FRAME + frame) * 8 / BIT_RATE


def compute_bit_error(ratio: float) -> float:
    """Compute the probability that a bit is read wrongly.

        (8 / 15) (1 / 16) sum over k = 2 .. 16 of (-1)^k C(16, k) exp(20 snr (1 / k - 1))

    IEEE 802.15.4 (2006), annex E, for 2.4 GHz.

    Args:
        ratio: snr, the power of the signal over that of noise and interference, not in dB.

    Returns:
        A probability of at most 0.5.
    """
    if ratio > _CLEAR:
        return 0.0
    total = 0.0
    for factor, exponent in _TERMS:
        total += factor * exp(exponent * ratio)
    # Terms of both signs cancel, which may leave a rounding error below 0.
    return min(max(total, 0.0), 0.5)


def compute_success(ratio: float, size: int) -> float:
    """Compute the probability that a packet is read: (1 - bit error)^bits.

    Args:
        ratio: The power of the signal over that of noise and interference, not in dB.
        size: Bytes on the air.

    Returns:
        A probability.
    """
    return exp(8 * size * log1p(-compute_bit_error(ratio)))


@lru_cache(maxsize=64)
def _make_carrier_sense(
    min_exponent: int, max_exponent: int, backoffs: int, threshold: float
) -> CarrierSense:
    """Return the same object each time, as senders ask for each packet."""
    return CarrierSense(
        min_exponent=min_exponent,
        max_exponent=max_exponent,
        backoffs=backoffs,
        unit=20 * _SYMBOL,
        sensing=8 * _SYMBOL,
        turnaround=12 * _SYMBOL,
        threshold=threshold,
    )


class Ieee802154Radio(Radio):
    """A radio of IEEE 802.15.4 at 2.4 GHz: short range, quick, it listens before it talks.

    A packet is read with the probability (1 - bit error)^bits, over all bits on the air. While
    other signals overlap, their power is added to the noise.
    """

    noise_floor: Annotated[FiniteFloat, Quantity("dBm")]
    """Power of the noise at a receiver."""
    chip_sensitivity: Annotated[FiniteFloat, Quantity("dBm")]
    """The weakest signal that the chip is said to read; for link budgets."""
    busy_threshold: Annotated[FiniteFloat, Quantity("dBm")]
    """The power from which a sender that listens takes the channel for busy."""
    min_exponent: Annotated[
        int, Field(ge=0, le=16), Quantity("", "IEEE 802.15.4: macMinBE", f"{_MAC}; Castalia has 5")
    ] = 3
    """The exponent of the first wait: 0 to 2^exponent - 1 units of 320 us."""
    max_exponent: Annotated[
        int, Field(ge=0, le=16), Quantity("", "IEEE 802.15.4: macMaxBE", f"{_MAC}; Castalia has 7")
    ] = 5
    """The largest exponent of a wait."""
    backoffs: Annotated[
        int, Field(ge=0, le=100), Quantity("", "IEEE 802.15.4: macMaxCSMABackoffs", _MAC)
    ] = 4
    """How often a sender tries again where the channel was busy, before it gives up."""
    overhead: Annotated[
        NonNegativeInt,
        Field(le=LARGEST_FRAME - 1),
        Quantity(
            "bytes",
            "IEEE 802.15.4: 9 of header with short addresses in one network, 2 of checksum",
            "from memory",
        ),
    ] = 11
    duty_limit: Annotated[DutyShare, Quantity("", "no limit at 2.4 GHz")] = 1.0
    gateway_duty_limit: Annotated[DutyShare, Quantity("", "no limit at 2.4 GHz")] = 1.0
    channels: Annotated[
        PositiveInt, Quantity("", "a network uses one of 16", "read in the CC2420 data sheet")
    ] = 1
    receptions: Annotated[
        PositiveInt | None, Quantity("", "the gateway has one chip like that of a node")
    ] = 1
    capture: Annotated[
        Literal["sinr", "none"],
        Quantity("", "signals add to the noise: Castalia's collision model 2", "read in Castalia"),
    ] = "sinr"
    """How overlapping packets are judged: by signal over noise and interference (`sinr`), or
    `none`: any overlap destroys both."""
    acknowledged: Annotated[bool, Quantity("", "IEEE 802.15.4 with acknowledgement")] = True
    retransmissions: Annotated[
        int,
        Field(ge=0, le=100),
        Quantity("", "IEEE 802.15.4: macMaxFrameRetries", f"{_MAC}; Castalia has 2"),
    ] = 3
    backoff: Annotated[
        Amount, Quantity("s", "none of its own: a retransmission listens and waits as any packet")
    ] = 0.0
    ack_delay: Annotated[
        Amount, Quantity("s", "IEEE 802.15.4: aTurnaroundTime, 12 symbols of 16 us", "from memory")
    ] = 192e-6
    duty_window: Annotated[Positive, Quantity("s", "of no effect without a limit")] = 3600.0

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.min_exponent > self.max_exponent:
            raise ValueError(
                f"min_exponent {self.min_exponent} exceeds max_exponent {self.max_exponent}: waits "
                "grow from the one to the other; raise max_exponent, or lower min_exponent"
            )
        return self

    @property
    def rate(self) -> int:
        return 0

    @property
    def largest_payload(self) -> int:
        return LARGEST_FRAME - self.overhead

    @property
    def shortest_listen(self) -> float:
        """The longest first wait of a sender, its listening, turnaround and preamble, in seconds.

        With the defaults 7 x 320 us + 128 us + 192 us + 160 us = 2.72 ms, computed from the
        standard; real nodes need some more to start their oscillator.
        """
        sense = self.carrier_sense
        wait = ((1 << self.min_exponent) - 1) * sense.unit
        return wait + sense.sensing + self.ack_delay + 10 * _SYMBOL

    @property
    def acknowledgement(self) -> int:
        """The payload of an acknowledgement, below 0 because it lacks most of the headers."""
        return _ACKNOWLEDGEMENT - self.overhead

    @property
    def carrier_sense(self) -> CarrierSense:
        return _make_carrier_sense(
            self.min_exponent, self.max_exponent, self.backoffs, self.busy_threshold
        )

    def airtime(self, payload: int) -> float:
        return compute_airtime(payload + self.overhead)

    def sensitivity(self, at: Side) -> float:
        """Return what the chip is said to read; node and gateway have the same chip."""
        del at
        return self.chip_sensitivity

    def success(self, power: float, payload: int, at: Side) -> float:
        del at
        ratio = to_milliwatts(power - self.noise_floor)
        return compute_success(ratio, _BEFORE_FRAME + self.overhead + payload)

    def survival(self, own: Signal, others: Sequence[Signal]) -> float:
        """Return the success with interference over that without, over the time of the overlap."""
        start, end = own.start, own.end
        harmful = [each for each in others if each.start < end and each.end > start]
        if not harmful:
            return 1.0
        if self.capture == "none":
            return 0.0
        noise = to_milliwatts(self.noise_floor)
        signal = to_milliwatts(own.power)
        alone = log1p(-compute_bit_error(signal / noise))
        moments = {start, end}
        moments.update(each.start for each in harmful if each.start > start)
        moments.update(each.end for each in harmful if each.end < end)
        ordered = sorted(moments)
        exponent = 0.0
        for begun, ended in pairwise(ordered):
            added = sum(
                to_milliwatts(each.power)
                for each in harmful
                if each.start <= begun and each.end >= ended
            )
            if added:
                bits = (ended - begun) * BIT_RATE
                together = log1p(-compute_bit_error(signal / (noise + added)))
                exponent += bits * (together - alone)
        return min(exp(exponent), 1.0)
