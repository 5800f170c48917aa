"""Prices: who is best at which price of what is asked, and where it breaks even."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparq_sim.analysis.intervals import Ranges
from sparq_sim.analysis.prices import PRICE_FIELDS
from sparq_sim.analysis.summary import group
from sparq_sim.analysis.totals import Totals, total_along, total_at_prices
from sparq_sim.arrays import Values
from sparq_sim.report.data import ChartData, curve_name
from sparq_sim.report.phrases import add_unit, describe_ranges, format_number, quote
from sparq_sim.report.scales import Scale, fit
from sparq_sim.report.sweeps import SweptAxis, find_axes
from sparq_sim.study.settings import Setting, agree, shorten_path
from sparq_sim.study.store import StoredSummary

__all__ = ["PriceLines", "PricePicture", "describe_set", "find_prices"]

_BEYOND = 1.6
"""How far beyond the last break-even price an axis goes, as a multiple of it."""
_ROW = 0.09
"""The height of what is written of a break-even price, as a share of an axis."""
_NEAR = 2.0
"""Lines that come to more than so many times the best are not shown whole."""


@dataclass(frozen=True)
class PriceLines:
    """What optimizers come to by the price, in a setting."""

    totals: Totals
    """Their lines, and where the best changes."""
    optimizers: Mapping[str, str]
    """The optimizer of each line."""
    prices: Values
    """Where lines begin, bend and end, (n,)."""
    sign: float = 1.0
    """-1 where more is better: then reward minus price is shown."""
    from_zero: bool = True
    """Whether what is shown cannot be negative."""

    def find_heights(self, name: str) -> Values:
        """Return how high a line is at each of the prices, as it is shown.

        Args:
            name: Of the line.
        """
        heights = [self.totals.find_height(name, price) for price in self.prices.tolist()]
        return self.sign * np.array(heights)

    def find_scale(self) -> Scale | None:
        """Return the axis to the left: it shows the best at every price, and what is near it."""
        heights = [self.find_heights(name) for name in self.totals.lines]
        if not heights:
            return None
        lowest = self.sign * np.min(self.sign * np.array(heights), axis=0)
        best = [*lowest.tolist(), *(self.sign * change.height for change in self.totals.changes)]
        room = _NEAR * (max(best) if self.from_zero else max(best) - min(best))
        near = np.concatenate(heights)
        scale = fit([best, near[np.abs(near - np.mean(best)) <= room]], from_zero=self.from_zero)
        if scale is None or self.from_zero:
            return scale
        # Below rewards there is no room yet for break-even prices.
        below = min(_ROW * (len(self.totals.changes) + 1), 0.5) * (scale.high - scale.low)
        return Scale(scale.low - below, scale.high)

    def list_rows(self, scale: Scale) -> list[float]:
        """Return how high each break-even price is marked, below where lines cross.

        Args:
            scale: The axis to the left.
        """
        count = len(self.totals.changes)
        step = min(_ROW, 0.5 / max(count, 1)) * (scale.high - scale.low)
        return [scale.low + step * (place + 0.5) for place in range(count)]


@dataclass(frozen=True)
class PricePicture:
    """What rounds come to by the price: lines per setting, or those along swept prices."""

    label: str
    """Of the axis below."""
    height_label: str
    """Of the axis to the left."""
    settings: Sequence[PriceLines]
    """For each setting that is shown over the rounds; where the price is swept, only one."""
    swept: bool = False
    """Whether the price itself is swept."""

    @property
    def caption(self) -> str:
        """What the picture shows; of one setting, also who is best at which price."""
        first = self.settings[0]
        said = (
            "What a round came to at each swept price, which optimizers knew and paid."
            if self.swept
            else "What a round would come to at each price, if no optimizer asked less for it."
        )
        best = "highest" if first.sign < 0 else "lowest"
        said += f" The {best} line is best; dots are break-even prices, with 95 % intervals "
        said += "(Fieller)."
        told = _describe_changes(first) if len(self.settings) == 1 else ""
        return f"{said} {told}".rstrip()


def describe_set(ranges: Ranges) -> str:
    """Return the confidence set of a price on one line.

    Args:
        ranges: Its pieces; there may be none.
    """
    return " or ".join(describe_ranges(ranges)) or "at no price by chance"


def _describe_changes(lines: PriceLines) -> str:
    """Return, in words, who is best up to which price; nothing where one is best at all."""
    changes = lines.totals.changes
    if not changes:
        return ""
    parts = [
        f"{quote(change.before)} up to {format_number(change.price)} "
        f"({describe_set(change.ranges)})"
        for change in changes
    ]
    return f"Best in the mean: {', '.join(parts)}, then {quote(changes[-1].after)}."


def find_prices(data: ChartData) -> PricePicture | None:
    """Find what rounds come to by the price of what is asked.

    Args:
        data: What is drawn.

    Returns:
        What is shown; None where no price is swept, and who does best spends no more than others,
        and so is best at every price.
    """
    if data.has_nothing_to_judge or not data.spends:
        return None
    axis = _find_price_axis(data)
    if axis is not None:
        return _find_along(data, axis)
    rows = [
        {
            curve_name(plays[0], setting): plays
            for plays in group(data.found).values()
            if agree(plays[0].setting, setting)
        }
        for setting in data.settings
    ]
    totals = [total_at_prices(each, data.criterion) for each in rows]
    last = max((change.price for each in totals for change in each.changes), default=0.0)
    if not last:
        return None
    ends = np.array([0.0, _BEYOND * last])
    shown = [_show(data, *each, ends) for each in zip(totals, rows, strict=True)]
    return PricePicture("price of a unit of cost", _label(data), shown)


def _find_price_axis(data: ChartData) -> SweptAxis | None:
    """Return the one axis of a sweep, if it is that of a price."""
    axes = find_axes(data)
    if len(axes) != 1 or len(axes[0].numbers) < 2:
        return None
    return axes[0] if shorten_path(next(iter(axes[0].points[0]))) in PRICE_FIELDS else None


def _find_along(data: ChartData, axis: SweptAxis) -> PricePicture | None:
    def choose(name: str, point: Setting) -> list[StoredSummary]:
        return [p for p in data.found if p.optimizer == name and agree(p.setting, point)]

    rows = {name: [choose(name, point) for point in axis.points] for name in data.optimizers}
    totals = total_along(axis.numbers, rows, data.criterion)
    if not totals.lines:
        return None
    first = {name: [play for at in plays for play in at] for name, plays in rows.items()}
    shown = _show(data, totals, first, np.array(axis.numbers))
    return PricePicture(axis.label, _label(data), [shown], swept=True)


def _show(
    data: ChartData,
    totals: Totals,
    rows: Mapping[str, Sequence[StoredSummary]],
    prices: Values,
) -> PriceLines:
    optimizers = {name: rows[name][0].optimizer for name in totals.lines}
    order = sorted(optimizers, key=lambda name: list(data.optimizers).index(optimizers[name]))
    criterion = data.criterion
    return PriceLines(
        totals,
        {name: optimizers[name] for name in order},
        prices,
        criterion.to_loss(1.0),
        criterion.from_zero,
    )


def _label(data: ChartData) -> str:
    criterion = data.criterion
    joined = "minus" if criterion.more_is_better else "plus"
    return add_unit(f"{criterion.word} {joined} price, per round", data.units.reward)
