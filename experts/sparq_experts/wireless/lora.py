"""LoRa: airtime, sensitivity and rates of LoRa radios as LoRaWAN uses them.

Long because each field of `LoraRadio` has a unit, a source and a sentence beside its default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, log10
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt

from sparq_experts.wireless.capture import CAPTURES
from sparq_experts.wireless.radio import Radio, Side, Signal
from sparq_sim.fields import Amount, Positive, Quantity

__all__ = [
    "LARGEST_PAYLOADS",
    "SENSITIVITIES",
    "LoraRadio",
    "Sensitivities",
    "compute_airtime",
    "needs_low_data_rate",
]

Sensitivities: TypeAlias = tuple[
    FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat
]
"""dBm for spreading factors 7 to 12 at 125 kHz."""

SENSITIVITIES: Mapping[str, Sensitivities] = {
    "sx1272": (-124.0, -127.0, -130.0, -133.0, -135.0, -137.0),
    "sx1301": (-130.0, -132.5, -135.0, -137.5, -140.0, -142.5),
    "lorasim": (-126.5, -127.25, -131.25, -132.75, -134.5, -133.25),
}
"""Tables of the weakest signal that is read, in dBm, for spreading factors 7 to 12 at 125 kHz.

`sx1272` is the chip of a node, from its data sheet (table 10), as FLoRa and ns-3 lorawan have it;
`sx1301` that of a gateway, as ns-3 lorawan has it; `lorasim` was measured by Bor et al. (2016), Do
LoRa low-power wide-area networks scale?, table 3. They differ by up to 9 dB.
"""

LARGEST_PAYLOADS: Mapping[int, int] = {12: 51, 11: 51, 10: 51, 9: 115, 8: 242, 7: 242}
"""Bytes of payload that EU868 allows, by spreading factor; data rates 0 to 5 are SF12 to SF7.

LoRaWAN Regional Parameters 1.0.3: N without a repeater, read there for EU433, which has the same.
"""

_SLOW_SYMBOL = 0.016
"""Symbols longer than this, in seconds, need the low-data-rate setting: SF11 and SF12 at 125 kHz.
"""


@lru_cache(maxsize=4096)
def compute_airtime(
    payload: int,
    spreading_factor: int,
    *,
    implicit_header: bool = False,
    code_rate: int = 1,
    bandwidth: float = 125_000,
    preamble: int = 8,
    crc: bool = True,
    low_data_rate: bool | None = None,
) -> float:
    """Compute how long a LoRa packet is on the air.

        symbol = 2^SF / bandwidth
        n = ceil((8 PL - 4 SF + 28 + 16 CRC - 20 IH) / (4 (SF - 2 DE))) (CR + 4)
        airtime = (preamble + 4.25 + 8 + max(n, 0)) symbol

    Semtech, SX1272/73 LoRa modem designer's guide, as ns-3 lorawan has it.

    Args:
        payload: PL, bytes of the whole packet, headers of LoRaWAN included.
        spreading_factor: SF, 7 to 12.
        implicit_header: IH, whether the header of the modem is left out.
        code_rate: CR, 1 to 4 for the code rates 4/5 to 4/8.
        bandwidth: Of the signal, in Hz.
        preamble: How many symbols the preamble has.
        crc: CRC, whether a checksum follows.
        low_data_rate: DE, whether symbols carry two bits less; by default where the chip needs it.

    Returns:
        The time in seconds.

    Raises:
        ValueError: The code rate is not 1, 2, 3 or 4.
    """
    if not 1 <= code_rate <= 4:
        raise ValueError(
            f"code_rate: {code_rate}: should be 1, 2, 3 or 4, for 4/5, 4/6, 4/7 or 4/8"
        )
    symbol = (1 << spreading_factor) / bandwidth
    if low_data_rate is None:
        low_data_rate = needs_low_data_rate(spreading_factor, bandwidth)
    bits = 8 * payload - 4 * spreading_factor + 28 + 16 * crc - 20 * implicit_header
    blocks = ceil(bits / (4 * (spreading_factor - 2 * low_data_rate)))
    return (preamble + 4.25 + 8 + max(blocks * (code_rate + 4), 0)) * symbol


def needs_low_data_rate(spreading_factor: int, bandwidth: float) -> bool:
    """Return whether symbols are so long that the chip needs its low-data-rate setting.

    Args:
        spreading_factor: 7 to 12.
        bandwidth: Of the signal, in Hz.
    """
    return (1 << spreading_factor) / bandwidth > _SLOW_SYMBOL


class LoraRadio(Radio):
    """A LoRa radio as LoRaWAN uses it: long range, slow, no listening before talking.

    A packet is read if its power reaches the sensitivity for its spreading factor, and if it
    survives what else is on the air, by the rule that `capture` names.
    """

    spreading_factor: Annotated[
        Literal["auto", 7, 8, 9, 10, 11, 12],
        Quantity("", "the lowest that closes the link, as adaptive data rate would find"),
    ] = "auto"
    """7 (fast) to 12 (far); "auto" takes, for each node, the lowest that closes its link."""
    link_margin: Annotated[
        Amount,
        Quantity("dB", "10 dB, as network servers keep for adaptive data rate", "from memory"),
    ] = 10.0
    """How far above the sensitivity of the gateway "auto" keeps the mean power of a node."""
    bandwidth: Annotated[
        Literal[125_000, 250_000, 500_000],
        Quantity("Hz", "EU868, data rates 0 to 5", "read in LoRaWAN Regional Parameters 1.0.3"),
    ] = 125_000
    """Of the signal; twice as much costs 3 dB of sensitivity and halves the airtime."""
    code_rate: Annotated[int, Field(ge=1, le=4), Quantity("", "4/5: LoRaWAN", "from memory")] = 1
    """1, 2, 3 or 4 for the code rates 4/5, 4/6, 4/7 and 4/8; 5 is none of them."""
    preamble: Annotated[
        PositiveInt, Quantity("symbols", "EU868", "read in LoRaWAN Regional Parameters 1.0.3")
    ] = 8
    """Length of the preamble, without the 4.25 symbols that the modem adds."""
    crc: bool = True
    """Whether a checksum follows the payload."""
    implicit_header: bool = False
    """Whether the header of the modem is left out; LoRaWAN has it."""
    listen_symbols: Annotated[
        PositiveInt,
        Quantity(
            "symbols",
            "as many as LoRaSim holds necessary to lock on a preamble",
            "read in LoRaSim, loraDir.py; that a window may be as short is an assumption",
        ),
    ] = 5
    """For how many symbols a node listens before it knows that nothing comes."""
    node_sensitivity: Annotated[
        Sensitivities,
        Quantity(
            "dBm", "SX1272 data sheet, table 10, SF7 to SF12", "read in FLoRa, LoRaReceiver.cc"
        ),
    ] = SENSITIVITIES["sx1272"]
    """The weakest signal that a node can read, for spreading factors 7 to 12 at 125 kHz."""
    gateway_sensitivity: Annotated[
        Sensitivities,
        Quantity(
            "dBm",
            "SX1301 data sheet, SF7 to SF12",
            "read in ns-3 lorawan, gateway-lora-phy.cc; an older version has 3 dB less",
        ),
    ] = SENSITIVITIES["sx1301"]
    """The weakest signal that a gateway can read, for spreading factors 7 to 12 at 125 kHz."""
    overhead: Annotated[
        NonNegativeInt, Quantity("bytes", "LoRaWAN: 9 of headers and 4 of integrity code")
    ] = 13
    capture: Annotated[
        Literal["goursaud", "flora", "none"],
        Quantity("", CAPTURES["goursaud"].source, CAPTURES["goursaud"].standing),
    ] = "goursaud"
    """How overlapping packets are judged: by the matrix `goursaud` (6 dB at the same spreading
    factor) or `flora` (1 dB), or `none`: any overlap destroys both."""
    receptions: Annotated[
        PositiveInt | None,
        Quantity("", "SX1301", "read in LoRaSim and in ns-3 lorawan, gateway-lora-phy.cc"),
    ] = 8
    acknowledged: Annotated[bool, Quantity("", "LoRaWAN: unconfirmed uplinks")] = False
    retransmissions: Annotated[int, Field(ge=0, le=100), Quantity("", "LoRaWAN: unconfirmed")] = 0
    backoff: Annotated[
        Amount,
        Quantity(
            "s",
            "LoRaWAN: ACK_TIMEOUT, drawn there from 1 to 3 s, here from 0 to 3 s",
            "read in LoRaWAN Regional Parameters 1.0.3",
        ),
    ] = 3.0
    ack_delay: Annotated[
        Amount,
        Quantity("s", "LoRaWAN: RECEIVE_DELAY1", "read in LoRaWAN Regional Parameters 1.0.3"),
    ] = 1.0
    duty_window: Annotated[Positive, Quantity("s", "ETSI EN 300 220: one hour", "from memory")] = (
        3600.0
    )

    @property
    def rate(self) -> int:
        """The spreading factor; 12 where it is "auto" and no link is known."""
        return 12 if self.spreading_factor == "auto" else self.spreading_factor

    @property
    def symbol(self) -> float:
        """How long one symbol lasts, in seconds."""
        return (1 << self.rate) / self.bandwidth

    @property
    def largest_payload(self) -> int:
        return LARGEST_PAYLOADS[self.rate]

    @property
    def shortest_listen(self) -> float:
        return self.listen_symbols * self.symbol

    @property
    def acknowledgement(self) -> int:
        return 0

    @property
    def inverted_downlinks(self) -> bool:
        """LoRaWAN sends downlinks with inverted chirps, so that nodes do not hear each other."""
        return True

    def airtime(self, payload: int) -> float:
        return compute_airtime(
            payload + self.overhead,
            self.rate,
            implicit_header=self.implicit_header,
            code_rate=self.code_rate,
            bandwidth=self.bandwidth,
            preamble=self.preamble,
            crc=self.crc,
        )

    def sensitivity(self, at: Side) -> float:
        return self._sensitivity(self.rate, at)

    def success(self, power: float, payload: int, at: Side) -> float:
        """Return 1 where the power reaches the sensitivity, and 0 below."""
        del payload
        return 1.0 if power >= self._sensitivity(self.rate, at) else 0.0

    def survival(self, own: Signal, others: Sequence[Signal]) -> float:
        """Return 1 where the packet survives by the rule that `capture` names, otherwise 0."""
        symbol = (1 << own.rate) / self.bandwidth
        rule = CAPTURES[self.capture]
        return float(rule.survives(own, others, symbol=symbol, preamble=self.preamble))

    def for_link(self, loss: float) -> LoraRadio:
        """Return the radio with the lowest spreading factor that closes a link; 12 if none does."""
        if self.spreading_factor != "auto":
            return self
        power = self.transmit_power - loss - self.link_margin
        rates = (rate for rate in range(7, 13) if power >= self._sensitivity(rate, "gateway"))
        return self.model_copy(update={"spreading_factor": next(rates, 12)})

    def _sensitivity(self, rate: int, at: Side) -> float:
        table = self.node_sensitivity if at == "node" else self.gateway_sensitivity
        found = table[rate - 7]
        if self.bandwidth == 125_000:
            return found
        return found + 10 * log10(self.bandwidth / 125_000)
