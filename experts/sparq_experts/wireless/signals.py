"""Signals: transmissions as a receiver hears them, and powers in dBm."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log10

__all__ = ["Signal", "to_dbm", "to_milliwatts"]

_PER_DECIBEL = 0.23025850929940458
"""ln(10) / 10."""


@dataclass(slots=True, eq=False)
class Signal:
    """One transmission as one receiver hears it."""

    power: float
    """Power at that receiver, fading included, in dBm."""
    rate: int
    """The spreading factor of LoRa; 0 for IEEE 802.15.4."""
    start: float
    """When it begins, in seconds."""
    end: float
    """When it ends, in seconds."""


def to_milliwatts(power: float) -> float:
    """Return a power in mW.

    Args:
        power: The power in dBm.
    """
    return exp(power * _PER_DECIBEL)


def to_dbm(power: float) -> float:
    """Return a power in dBm.

    Args:
        power: The power in mW, above 0.
    """
    return 10 * log10(power)
