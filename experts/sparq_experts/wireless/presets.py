"""Presets: radios with the constants of real ones, each with its source."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, FiniteFloat, PositiveInt

from sparq_experts.wireless.ieee802154 import Ieee802154Radio
from sparq_experts.wireless.lora import LoraRadio
from sparq_experts.wireless.radio import DutyShare, SendDraws
from sparq_sim.fields import Amount, Positive, Quantity

__all__ = ["AnyRadio", "Ieee802154Cc2420", "LoraSx1272Eu868", "LoraWholeNode"]

_HELPER = "read in ns-3 lorawan, lorawan-mac-helper.cc"
_EU868 = f"{_HELPER}, and in LoRaWAN Regional Parameters 1.0.3"
_RX2 = "EU868, 869.4 to 869.65 MHz, where nodes listen for answers in their second window"
_MEASURED = "measured on a whole node: Callebaut et al. (2019), arXiv 1806.08624"


class _Eu868(LoraRadio):
    """What EU868 allows."""

    transmit_power: Annotated[
        FiniteFloat, Quantity("dBm", "EU868, 868.0 to 868.6 MHz: at most 14 dBm", _HELPER)
    ] = 14.0
    gateway_power: Annotated[FiniteFloat, Quantity("dBm", f"{_RX2}: at most 27 dBm", _HELPER)] = (
        27.0
    )
    duty_limit: Annotated[DutyShare, Quantity("", "EU868, 868.0 to 868.6 MHz: 1 %", _EU868)] = 0.01
    gateway_duty_limit: Annotated[DutyShare, Quantity("", f"{_RX2}: 10 %", _HELPER)] = 0.1
    channels: Annotated[PositiveInt, Quantity("", "EU868: 868.1, 868.3 and 868.5 MHz", _EU868)] = 3


class LoraSx1272Eu868(_Eu868):
    """LoRaWAN in Europe with the chip SX1272 at 3.3 V: draws of the chip alone.

    A microcontroller and a sensor draw more: raise `sleep` and `compute` by what they need, or use
    `lora-whole-node`.
    """

    kind: Literal["lora-sx1272-eu868"] = "lora-sx1272-eu868"
    send: Annotated[
        SendDraws,
        Quantity(
            "dBm, W",
            "24 mA at 2 to 4 dBm, 31 mA at 10 dBm, 44 mA at 14 dBm, at 3.3 V: FLoRa, SX127x",
            "read in the parameters of FLoRa",
        ),
    ] = ((2.0, 0.0792), (3.0, 0.0792), (4.0, 0.0792), (10.0, 0.1023), (14.0, 0.1452))
    receive: Annotated[
        Positive,
        Quantity(
            "W",
            "11.2 mA at 3.3 V: SX1272",
            "read in ns-3 lorawan, lora-radio-energy-model.cc; FLoRa has 9.7 mA",
        ),
    ] = 0.03696
    listen: Annotated[
        Positive, Quantity("W", "as receive: the receiver is on", "read in ns-3 lorawan")
    ] = 0.03696
    sleep: Annotated[
        Amount,
        Quantity(
            "W", "1.5 uA at 3.3 V: SX1272", "read in ns-3 lorawan, lora-radio-energy-model.cc"
        ),
    ] = 4.95e-6
    compute: Annotated[Amount, Quantity("W", "none: the chip has no processor")] = 0.0


class LoraWholeNode(_Eu868):
    """LoRaWAN in Europe with the draws of a whole node, as measured."""

    kind: Literal["lora-whole-node"] = "lora-whole-node"
    send: Annotated[SendDraws, Quantity("dBm, W", _MEASURED)] = (
        (2.0, 0.0918),
        (5.0, 0.0959),
        (8.0, 0.1016),
        (11.0, 0.1208),
        (14.0, 0.1465),
    )
    receive: Annotated[
        Positive, Quantity("W", f"{_MEASURED}: 34 to 39 mW, the middle is taken")
    ] = 0.0365
    listen: Annotated[Positive, Quantity("W", "as receive: the receiver is on")] = 0.0365
    sleep: Annotated[Amount, Quantity("W", _MEASURED)] = 5.7e-6
    compute: Annotated[Amount, Quantity("W", _MEASURED)] = 0.015


class Ieee802154Cc2420(Ieee802154Radio):
    """IEEE 802.15.4 at 2.4 GHz with the chip CC2420 at 3.3 V: draws of the chip alone.

    Its sleep is the power-down mode (20 uA), not the idle mode (426 uA) that Castalia calls sleep.
    """

    kind: Literal["ieee802154-cc2420"] = "ieee802154-cc2420"
    transmit_power: Annotated[
        FiniteFloat, Quantity("dBm", "CC2420: its largest", "read in Castalia, CC2420.txt")
    ] = 0.0
    gateway_power: Annotated[FiniteFloat, Quantity("dBm", "as a node")] = 0.0
    send: Annotated[
        SendDraws,
        Quantity(
            "dBm, W",
            "17.4 mA at 0 dBm to 8.5 mA at -25 dBm, at 3.3 V: CC2420",
            "read in Castalia, CC2420.txt, which has 29.04 mW (8.8 mA) at -25 dBm",
        ),
    ] = (
        (0.0, 0.05742),
        (-1.0, 0.05518),
        (-3.0, 0.05069),
        (-5.0, 0.0462),
        (-7.0, 0.04224),
        (-10.0, 0.0363),
        (-15.0, 0.03267),
        (-25.0, 0.02805),
    )
    receive: Annotated[
        Positive, Quantity("W", "18.8 mA at 3.3 V: CC2420", "read in the CC2420 data sheet")
    ] = 0.06204
    listen: Annotated[
        Positive, Quantity("W", "as receive: the receiver is on", "read in Castalia")
    ] = 0.06204
    sleep: Annotated[
        Amount, Quantity("W", "20 uA at 3.3 V: CC2420 in power-down; idle would be 426 uA")
    ] = 66e-6
    compute: Annotated[Amount, Quantity("W", "none: the chip has no processor")] = 0.0
    noise_floor: Annotated[
        FiniteFloat,
        Quantity(
            "dBm",
            "so that at the sensitivity 1 % of packets with 20 bytes of frame are lost, which is "
            "how the standard defines it",
            "computed; Castalia has -100 dBm, with which a packet 4 dB below the sensitivity would "
            "still be read",
        ),
    ] = -95.51
    chip_sensitivity: Annotated[
        FiniteFloat, Quantity("dBm", "CC2420", "read in Castalia, CC2420.txt")
    ] = -95.0
    busy_threshold: Annotated[
        FiniteFloat,
        Quantity("dBm", "CC2420: its value after reset", "from memory; Castalia has -95 dBm"),
    ] = -77.0


AnyRadio: TypeAlias = Annotated[
    LoraSx1272Eu868 | LoraWholeNode | Ieee802154Cc2420, Field(discriminator="kind")
]
"""A radio by its `kind`: lora-sx1272-eu868, lora-whole-node or ieee802154-cc2420."""
