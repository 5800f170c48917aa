"""Capture: which of several overlapping LoRa signals a receiver can still read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

from sparq_experts.wireless.signals import Signal, to_dbm, to_milliwatts

__all__ = ["CAPTURES", "Capture", "CaptureName"]

CaptureName: TypeAlias = Literal["goursaud", "flora", "none", "sinr"]
"""How overlapping signals are judged: by a matrix of LoRa, not at all, or by their power."""

_FIRST = 7
"""The spreading factor of the first row and column of each matrix."""
_ROUNDING = 1e-9
"""dB by which a sum of powers may be off."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A named rule of when a LoRa packet survives others on the same frequency.

    A packet survives if its power exceeds that of all others of one spreading factor by the
    threshold for these two spreading factors, for each spreading factor. Powers of signals that are
    on the air at the same time are added in mW, and the worst moment counts. A signal that ends
    before the receiver needs the preamble does no harm.

    LoRaSim and FLoRa judge each pair of signals alone, so that many weak ones do no harm together;
    ns-3 lorawan spreads the energy of an overlap over the whole packet, so that a short one does
    little.
    """

    name: CaptureName
    """How it is called in a scenario."""
    thresholds: tuple[tuple[float, ...], ...]
    """dB by which a packet must exceed others: a row for its own spreading factor, 7 to 12, a
    column for theirs."""
    needed: float
    """How many symbols at the end of the preamble the receiver needs."""
    source: str
    """Where the matrix comes from."""
    standing: str
    """Where it was read."""

    def threshold(self, own: int, other: int) -> float:
        """Return by how much a packet must be stronger than another to survive, in dB.

        Args:
            own: The spreading factor of the packet, 7 to 12.
            other: The spreading factor of the other.
        """
        return self.thresholds[own - _FIRST][other - _FIRST]

    def survives(
        self, own: Signal, others: Sequence[Signal], *, symbol: float, preamble: int
    ) -> bool:
        """Return whether a packet survives what else is on the air.

        Args:
            own: The packet.
            others: What else the receiver hears on the same frequency, in any order; those that
                do not overlap do no harm.
            symbol: How long one symbol of the packet lasts, in seconds.
            preamble: How many symbols its preamble has.
        """
        critical = own.start + max(preamble - self.needed, 0.0) * symbol
        to = own.end
        harmful = [each for each in others if each.start < to and each.end > critical]
        if not harmful:
            return True
        row = self.thresholds[own.rate - _FIRST]
        sums: dict[int, float] = {}
        for each in harmful:
            if own.power - each.power < row[each.rate - _FIRST]:
                return False
            sums[each.rate] = sums.get(each.rate, 0.0) + to_milliwatts(each.power)
        if len(harmful) == 1:
            return True
        for rate, total in sums.items():
            threshold = row[rate - _FIRST] - _ROUNDING
            # All of them at once are the worst; only where that matters, it is looked at by moment.
            if total > 0 and own.power - to_dbm(total) < threshold:
                alike = [each for each in harmful if each.rate == rate]
                if own.power - _find_worst(alike, critical) < threshold:
                    return False
        return True


def _find_worst(signals: Sequence[Signal], start: float) -> float:
    """Return the largest power that signals have together at any time from *start* on, in dBm."""
    powers = [(each.start, each.end, to_milliwatts(each.power)) for each in signals]
    # The sum is largest at a moment when one of them begins.
    largest = 0.0
    for moment in {max(begun, start) for begun, _, _ in powers}:
        together = sum(power for begun, ended, power in powers if begun <= moment < ended)
        largest = max(largest, together)
    return to_dbm(largest) if largest > 0 else -inf


_ANY_OVERLAP = ((inf,) * 6,) * 6

CAPTURES: Mapping[str, Capture] = {
    "goursaud": Capture(
        "goursaud",
        (
            (6, -16, -18, -19, -19, -20),
            (-24, 6, -20, -22, -22, -22),
            (-27, -27, 6, -23, -25, -25),
            (-30, -30, -30, 6, -26, -28),
            (-33, -33, -33, -33, 6, -29),
            (-36, -36, -36, -36, -36, 6),
        ),
        5,
        "Goursaud and Gorce (2015), Dedicated networks for IoT: PHY/MAC state of the art and "
        "challenges; 6 dB and the last 5 symbols as in LoRaSim",
        "read in ns-3 lorawan, lora-interference-helper.cc, and in LoRaSim, loraDir.py; the paper "
        "quoted from memory",
    ),
    "flora": Capture(
        "flora",
        (
            (1, -8, -9, -9, -9, -9),
            (-11, 1, -11, -12, -13, -13),
            (-15, -13, 1, -13, -14, -15),
            (-19, -18, -17, 1, -17, -18),
            (-22, -22, -21, -20, 1, -20),
            (-25, -25, -25, -24, -23, 1),
        ),
        6,
        "Croce et al. (2018), Impact of LoRa imperfect orthogonality: analysis of link-level "
        "performance; the last 6 symbols as in FLoRa",
        "read in FLoRa, LoRaReceiver.h and LoRaReceiver.cc; the paper quoted from memory",
    ),
    "none": Capture(
        "none",
        _ANY_OVERLAP,
        inf,
        "Pure ALOHA: any overlap destroys both",
        "definition; ns-3 lorawan has the same matrix in a comment",
    ),
}
"""The rules for LoRa, by name."""
