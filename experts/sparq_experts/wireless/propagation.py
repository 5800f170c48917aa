"""Propagation: how much of a signal is lost between sender and receiver."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import Field, FiniteFloat

from sparq_sim.arrays import Matrix, Values
from sparq_sim.fields import Amount, Positive, Quantity
from sparq_sim.plugin.model import Model

__all__ = ["AnyPathLoss", "CastaliaLoss", "LorasimLoss", "OuluLoss", "PathLoss"]

_NEAREST = 1.0
"""Nearer than this, in metres, the formula has no meaning: the loss is that at this distance."""


class PathLoss(Model):
    """Loss that grows with the logarithm of the distance d.

        loss = reference_loss + 10 exponent log10(d / reference_distance) + shadowing

    The logarithm is to the base 10. Distances below 1 m count as 1 m.
    """

    reference_distance: Annotated[Positive, Quantity("m")]
    """The distance at which the loss is `reference_loss`."""
    reference_loss: Annotated[FiniteFloat, Quantity("dB")]
    """The mean loss at that distance."""
    exponent: Annotated[Positive, Quantity("")]
    """How fast the loss grows: 10 times this in dB for ten times the distance; 2 is free space."""
    shadowing: Annotated[Amount, Quantity("dB")]
    """Standard deviation of the loss of a link about the mean, drawn once for each link."""
    fading: Annotated[
        Literal["none", "rayleigh"],
        Quantity("", "none: as in LoRaSim", "read in LoRaSim, loraDir.py"),
    ] = "none"
    """Whether the power of each packet varies: `rayleigh` multiplies it by an Exp(1) number."""

    def loss(self, distances: Values) -> Values:
        """Compute the mean loss at distances, without shadowing.

        Args:
            distances: Distances in metres, of any shape; those below 1 m count as 1 m.

        Returns:
            The loss in dB, of the same shape.
        """
        ratio = np.maximum(distances, _NEAREST) / self.reference_distance
        lost: Values = self.reference_loss + 10 * self.exponent * np.log10(ratio)
        return lost

    def draw_shadowing(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Matrix:
        """Draw what is added to the mean loss of each link.

        Args:
            rng: Where the numbers come from.
            shape: The shape of the result.

        Returns:
            Normal numbers in dB.
        """
        return rng.normal(0.0, self.shadowing, shape)

    def draw_fading(self, rng: np.random.Generator) -> float:
        """Draw what is added to the received power of one packet.

        Args:
            rng: Where the number comes from; not used without fading.

        Returns:
            The number in dB.
        """
        if self.fading == "none":
            return 0.0
        # A number of 0 is possible, though hardly: no power at all.
        return float(10 * np.log10(max(rng.exponential(), 1e-300)))

    def range(self, budget: float) -> float:
        """Compute at which distance the mean loss equals a link budget.

        Args:
            budget: Transmit power less sensitivity, in dB.

        Returns:
            The distance in metres.
        """
        decades = (budget - self.reference_loss) / (10 * self.exponent)
        return float(self.reference_distance * 10**decades)


_BOR = "Bor et al. (2016), Do LoRa low-power wide-area networks scale?"
_LORASIM = "read in LoRaSim, loraDir.py"
_OULU = (
    "Petajajarvi et al. (2015), doi 10.1109/ITST.2015.7377400, measured in Oulu at 868 MHz, on land"
)
_CASTALIA = "Castalia, its default at 2.4 GHz"
_CHANNEL = "read in Castalia, WirelessChannel.ned"


class LorasimLoss(PathLoss):
    """Path loss of LoRa as in LoRaSim: at 14 dBm, ranges of 170 m (SF7) to 360 m (SF12).

    These ranges hold with the sensitivities that LoRaSim has.
    """

    kind: Literal["lorasim"] = "lorasim"
    reference_distance: Annotated[Positive, Quantity("m", _BOR, _LORASIM)] = 40.0
    reference_loss: Annotated[FiniteFloat, Quantity("dB", _BOR, _LORASIM)] = 127.41
    exponent: Annotated[Positive, Quantity("", _BOR, _LORASIM)] = 2.08
    shadowing: Annotated[Amount, Quantity("dB", _BOR, "the code of LoRaSim has 0 in its place")] = (
        3.57
    )


class OuluLoss(PathLoss):
    """Path loss of LoRa as measured in Oulu: at 14 dBm, ranges of 3.1 km (SF7) to 6.1 km (SF12).

    These ranges hold with the sensitivities that LoRaSim has; with those of the data sheet of the
    SX1272 they are 2.5 and 8.9 km.
    """

    kind: Literal["oulu"] = "oulu"
    reference_distance: Annotated[Positive, Quantity("m", _OULU)] = 1000.0
    reference_loss: Annotated[FiniteFloat, Quantity("dB", _OULU)] = 128.95
    exponent: Annotated[Positive, Quantity("", _OULU)] = 2.32
    shadowing: Annotated[Amount, Quantity("dB", _OULU)] = 7.8


class CastaliaLoss(PathLoss):
    """Path loss at 2.4 GHz as in Castalia: a range of 46 m for 0 dBm and -95 dBm."""

    kind: Literal["castalia-2.4ghz"] = "castalia-2.4ghz"
    reference_distance: Annotated[Positive, Quantity("m", _CASTALIA, _CHANNEL)] = 1.0
    reference_loss: Annotated[FiniteFloat, Quantity("dB", _CASTALIA, _CHANNEL)] = 55.0
    exponent: Annotated[Positive, Quantity("", _CASTALIA, _CHANNEL)] = 2.4
    shadowing: Annotated[Amount, Quantity("dB", _CASTALIA, _CHANNEL)] = 4.0


AnyPathLoss: TypeAlias = Annotated[
    LorasimLoss | OuluLoss | CastaliaLoss, Field(discriminator="kind")
]
"""Path loss by its `kind`: lorasim, oulu or castalia-2.4ghz."""
