"""Tracks: where numbers lie on a strip of the page, in per cent of its width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from sparq_sim.report.phrases import format_number
from sparq_sim.report.scales import Scale, differ_much, fit

__all__ = ["Track", "make_track"]

_FAR = 4.0
"""How many times the range of the means what is drawn around them may make a track longer."""
_NOTHING = 1e-9
"""A share that is as good as 0."""
_MOST_TICKS = 6
"""Below a track, where there is little room."""


@dataclass(frozen=True)
class Track:
    """A scale on which places are told in per cent, and none lies beyond the ends."""

    scale: Scale
    """From where to where the track goes."""

    def place(self, number: float) -> float:
        """Return where a number lies; beyond an end, it lies there.

        Args:
            number: Any.
        """
        return min(max(self.extend(number), 0.0), 100.0)

    def extend(self, number: float) -> float:
        """Return where a number would lie if the track went on beyond its ends.

        Args:
            number: Any; on a logarithmic scale, 0 lies left of all others.
        """
        return 100.0 * self.scale.place(number)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Where round numbers lie, and how they are written."""
        low, high = self.scale.low, self.scale.high
        numbers = self.scale.ticks if self.scale.logarithmic else _round_steps(low, high)
        some = numbers[:: ceil(len(numbers) / _MOST_TICKS) or 1]
        return [(self.place(number), format_number(number)) for number in some]


def make_track(extents: Sequence[tuple[float, float, float]], *, from_zero: bool) -> Track:
    """Make a track that fits some means, and what is drawn around them if it is not far off.

    Args:
        extents: Of each mean: itself, and the least and most that is drawn around it.
        from_zero: Whether no number is below 0.

    Returns:
        The track: logarithmic where the means differ much.
    """
    means = [mean for mean, _, _ in extents]
    least, most = min(means), max(means)
    low, high = min(low for _, low, _ in extents), max(high for _, _, high in extents)
    logarithmic = from_zero and differ_much(means)
    if logarithmic:
        low, high = max(low, least / _FAR), min(high, most * _FAR)
    else:
        span = most - least or abs(most) or 1.0
        low, high = max(low, least - _FAR * span), min(high, most + _FAR * span)
        if high - low <= _NOTHING * max(abs(low), abs(high)):
            low, high = low - span / 2, high + span / 2
        low = max(low, 0.0) if from_zero else low
    scale = fit([[low, high]], from_zero=False, logarithmic=logarithmic)
    if scale is None or not isfinite(scale.high - scale.low):
        scale = Scale(0.0, 1.0)
    return Track(scale)


def _round_steps(low: float, high: float) -> list[float]:
    """Return round numbers at equal distances."""
    rough = (high - low) / (_MOST_TICKS - 1)
    unit = 10.0 ** floor(log10(rough))
    step = next((unit * k for k in (1, 2, 2.5, 5) if unit * k >= rough), 10 * unit)
    return [k * step for k in range(ceil(low / step), floor(high / step) + 1)]
