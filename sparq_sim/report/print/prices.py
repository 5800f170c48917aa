"""Prices for print: regret plus the price of what is spent, and where it breaks even."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sparq_sim.errors import SparqError
from sparq_sim.report.data import ChartData
from sparq_sim.report.palette import GREY, INK
from sparq_sim.report.phrases import format_number
from sparq_sim.report.prices import PriceLines, find_prices
from sparq_sim.report.print.layout import Artists, Panel, setting_titles
from sparq_sim.report.print.marks import find_look
from sparq_sim.report.print.style import literal
from sparq_sim.report.scales import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["price_panels"]


def price_panels(data: ChartData) -> list[Panel]:
    """Return a panel of regret plus price, per setting; where the price is swept, only one.

    Args:
        data: What is drawn.

    Raises:
        SparqError: One optimizer is best at every price.
    """
    picture = find_prices(data)
    if picture is None:
        raise SparqError(
            "one optimizer is best at every price here, as it spends no more than those that do "
            "worse; draw 'cost' instead"
        )
    titles = [""] if picture.swept else setting_titles(data)
    return [
        Panel(
            (picture.label, picture.height_label),
            partial(_paint, data=data, lines=lines, scale=scale, markers=picture.swept),
            title,
            from_zero=data.criterion.from_zero,
            shown=[np.array([scale.low, scale.high])],
        )
        for lines, title in zip(picture.settings, titles, strict=True)
        if (scale := lines.find_scale()) is not None
    ]


def _paint(
    axes: Axes, *, data: ChartData, lines: PriceLines, scale: Scale, markers: bool
) -> Artists:
    artists: Artists = {}
    for name, optimizer in lines.optimizers.items():
        style = find_look(data, optimizer) | ({} if markers else {"marker": ""})
        heights = lines.find_heights(name)
        (artists[name],) = axes.plot(lines.prices, heights, label=literal(name), **style)
    low, high = float(lines.prices[0]), float(lines.prices[-1])
    for change, height in zip(lines.totals.changes, lines.list_rows(scale), strict=True):
        price = change.price
        crossing = lines.sign * change.height
        axes.plot([price, price], [height, crossing], ":", color=GREY, linewidth=0.6)
        for start, end in change.ranges:
            if start <= high:
                axes.plot([start, min(end, high)], [height] * 2, "-", color=GREY, linewidth=0.8)
        axes.plot(price, height, "o", color=INK, markersize=2.5)
        left = price < (low + high) / 2
        axes.annotate(
            literal(f"from {format_number(price)}: {change.after}"),
            (price, height),
            xytext=(3 if left else -3, 1.5),
            textcoords="offset points",
            ha="left" if left else "right",
            fontsize=6,
            color=GREY,
        )
    if not markers:
        axes.set_xlim(low, high)
    return artists
