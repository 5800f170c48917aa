"""Fates for print: a stacked bar per optimizer of what became of the points asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sparq_sim.errors import SparqError
from sparq_sim.report.data import ChartData
from sparq_sim.report.fates import FateRow, choose_fate_colours, find_fates
from sparq_sim.report.palette import GREY, SHARES
from sparq_sim.report.print.layout import Artists, Panel, setting_titles
from sparq_sim.report.print.style import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["fate_panels"]


def fate_panels(data: ChartData) -> list[Panel]:
    """Return a panel of what became of the points asked, per setting.

    Args:
        data: What is drawn.

    Raises:
        SparqError: All points were answered, or nothing was asked.
    """
    panels = [
        Panel(
            ("share of the points asked (%)", ""),
            partial(_paint, data=data, rows=rows),
            title,
            from_zero=False,
        )
        for setting, title in zip(data.settings, setting_titles(data), strict=True)
        if (rows := find_fates(data, setting))
    ]
    if not panels:
        raise SparqError("all points asked were answered, or none was asked: fates are all alike")
    return panels


def _paint(axes: Axes, *, data: ChartData, rows: Sequence[FateRow]) -> Artists:
    places = range(len(rows))
    ends = [0.0] * len(rows)
    artists: Artists = {}
    for heading, colour in choose_fate_colours(data).items():
        widths = [row.shares[heading] for row in rows]
        artists[heading] = axes.barh(
            places,
            widths,
            left=ends,
            height=0.6,
            color=SHARES[colour - 1],
            label=heading,
            # White lines tell neighbours apart, in grey too.
            edgecolor="white",
            linewidth=0.4,
        )
        ends = [end + width for end, width in zip(ends, widths, strict=True)]
    for place, row in zip(places, rows, strict=True):
        axes.annotate(
            row.told, (100, place - 0.32), ha="right", va="bottom", fontsize=6, color=GREY
        )
    axes.set_yticks(places, [literal(row.name) for row in rows])
    axes.set_xlim(0, 100)
    axes.set_ylim(len(rows) - 0.5, -0.7)
    return artists
