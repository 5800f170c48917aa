"""Reporting: when a node sends a reading that nobody asked for."""

from __future__ import annotations

from abc import abstractmethod
from math import inf, isnan
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, PositiveFloat, model_validator

from sparq_experts.wireless.battery import Period
from sparq_sim.fields import Amount, Positive, Quantity
from sparq_sim.plugin.model import Model

__all__ = ["AnyReporting", "OnDelta", "Periodic"]


class _Reporting(Model):
    """What all kinds have: regular times, at which a node measures."""

    every: Annotated[Period, Quantity("s")]
    """From one measurement to the next, in seconds; each node begins at a moment of its own."""
    jitter: Annotated[Amount, Quantity("s")] = 0.0
    """By how much later, at most, each of them is; in seconds, drawn each time. With 0, nodes whose
    packets overlap once overlap in every period."""

    @model_validator(mode="after")
    def _in_time(self) -> Self:
        if self.jitter >= self.every:
            raise ValueError(
                f"jitter {self.jitter:g} s: would reach the next one, {self.every:g} s later; "
                "give less"
            )
        return self

    @abstractmethod
    def is_due(self, value: float, last: float, silent: float) -> bool:
        """Return whether a reading is sent.

        Args:
            value: What was measured.
            last: What was sent last; NaN if nothing.
            silent: How long ago, in seconds.
        """


class Periodic(_Reporting):
    """Measures and sends a reading at regular times."""

    kind: Literal["periodic"] = "periodic"
    """The name of this kind."""

    def is_due(self, value: float, last: float, silent: float) -> bool:
        return True


class OnDelta(_Reporting):
    """Measures at regular times, and sends a reading that differs enough from the last one sent."""

    kind: Literal["on-delta"] = "on-delta"
    """The name of this kind."""
    delta: Positive
    """By how much a reading must differ from the last one sent to be sent, in reward units."""
    silence: Annotated[PositiveFloat, Quantity("s")] = inf
    """After how long without sending a reading is sent whatever it is, in seconds; by default
    never."""

    @model_validator(mode="after")
    def _longer(self) -> Self:
        if self.silence < self.every:
            raise ValueError(
                f"silence {self.silence:g} s ends before the next measurement, after "
                f'{self.every:g} s; give a longer silence, or take kind = "periodic"'
            )
        return self

    def is_due(self, value: float, last: float, silent: float) -> bool:
        return isnan(last) or abs(value - last) >= self.delta or silent >= self.silence


AnyReporting: TypeAlias = Annotated[Periodic | OnDelta, Field(discriminator="kind")]
"""When a node sends a reading that nobody asked for."""
