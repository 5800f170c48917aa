"""Scales: axes that fit what is drawn, and labels of reference levels at their edge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, inf, isfinite, log, log10

import numpy as np
from numpy.typing import NDArray

__all__ = ["EdgeLabel", "Scale", "differ_much", "fit", "label_levels"]

_MUCH = 5.0
"""How many times the least mean the largest must be for a logarithmic axis."""
_DECADES = 1e4
"""How many times its least value the largest of a logarithmic axis may be."""
_ROOM = 0.05
"""Between what is drawn and the ends of an axis, as a share of it."""
_NEAR = 0.07
"""Levels nearer to each other than this share of an axis have one label."""


@dataclass(frozen=True)
class Scale:
    """An axis: from where to where it goes."""

    low: float
    """Its lower end; above 0 where it is logarithmic."""
    high: float
    """Its upper end."""
    logarithmic: bool = False
    """Whether equal ratios have equal lengths."""

    def place(self, value: float) -> float:
        """Return where a value lies: 0 at the lower end, 1 at the upper one.

        Args:
            value: May lie beyond the ends.
        """
        if not self.logarithmic:
            return (value - self.low) / (self.high - self.low)
        ratio = value / self.low  # Of the smallest numbers that there are, 0.
        return log(ratio) / log(self.high / self.low) if ratio > 0 else -inf

    @property
    def ticks(self) -> list[float]:
        """Where a logarithmic axis has numbers: 1, 2 and 5 of each decade, of many only 1."""
        decades = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        steps = (1, 2, 5) if self.high < 500 * self.low else (1,)
        numbers = [float(f"{step}e{decade}") for decade in decades for step in steps]
        return [number for number in numbers if self.low <= number <= self.high]


@dataclass(frozen=True)
class EdgeLabel:
    """What stands at the right edge of a chart, beside one or several levels."""

    names: Sequence[str]
    """Of the levels."""
    heights: Sequence[float]
    """Of the levels, in units of the axis."""
    beyond: int
    """-1 where they lie below the axis, 1 above it, 0 within."""

    @property
    def text(self) -> str:
        """What it says; an arrow points to levels beyond the axis."""
        arrow = {-1: "\N{DOWNWARDS ARROW} ", 0: "", 1: "\N{UPWARDS ARROW} "}[self.beyond]
        pairs = zip(self.names, self.heights, strict=True)
        return arrow + ", ".join(f"{name} {height:.3g}" for name, height in pairs)


def differ_much(ends: Iterable[float]) -> bool:
    """Return whether means differ by more than 5 times, so that a logarithmic axis shows more.

    Args:
        ends: The means; those that are not finite are left out. A logarithmic axis cannot show
            what is not above 0.
    """
    known = [end for end in ends if isfinite(end)]
    return bool(known) and min(known) > 0 and max(known) > _MUCH * min(known)


def fit(
    curves: Iterable[NDArray[np.float64] | Sequence[float]],
    *,
    from_zero: bool,
    logarithmic: bool = False,
) -> Scale | None:
    """Return the axis that shows all curves and little else.

    Args:
        curves: What is drawn; what is not finite, or on a logarithmic axis not above 0, is left
            out.
        from_zero: Whether a linear axis begins at 0.
        logarithmic: Whether the axis is.

    Returns:
        The axis, of at most four decades; None where nothing can be shown.
    """
    values = np.concatenate([np.empty(0), *(np.asarray(curve, dtype=float) for curve in curves)])
    values = values[np.isfinite(values) & ((values > 0) | (not logarithmic))]
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    if logarithmic:
        low = max(low, high / _DECADES)
        room = exp(_ROOM * max(log(high / low), 0.5))
        return Scale(low / room, high * room, logarithmic=True)
    low = min(low, 0.0) if from_zero else low
    room = max(_ROOM * ((high - low) or abs(high) or 1.0), 1e-300)
    return Scale(low if low == 0 and from_zero else low - room, high + room)


def label_levels(levels: Iterable[tuple[str, float]], scale: Scale) -> list[EdgeLabel]:
    """Return the labels of levels; those that would cover each other are one.

    Args:
        levels: Their names and heights.
        scale: The axis, which they do not change.

    Returns:
        The labels from below to above.
    """
    groups: list[list[tuple[float, int, str, float]]] = []
    for name, height in sorted(levels, key=lambda level: level[1]):
        place = scale.place(height)
        beyond = int(place > 1) - int(place < 0)
        last = groups[-1][-1] if groups else None
        if last and last[1] == beyond and (beyond or place - last[0] < _NEAR):
            groups[-1].append((place, beyond, name, height))
        else:
            groups.append([(place, beyond, name, height)])
    return [
        EdgeLabel([each[2] for each in group], [each[3] for each in group], group[0][1])
        for group in groups
    ]
