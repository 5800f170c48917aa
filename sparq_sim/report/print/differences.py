"""Differences for print: how much worse each optimizer is than the best, with intervals."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sparq_sim.analysis.intervals import FEWEST
from sparq_sim.analysis.standings import Ranking
from sparq_sim.errors import SparqError
from sparq_sim.report.data import ChartData
from sparq_sim.report.differences import describe_place, find_rankings, label_axis, name_place
from sparq_sim.report.palette import GREY
from sparq_sim.report.print.layout import Artists, Panel, setting_titles
from sparq_sim.report.print.style import literal
from sparq_sim.report.uncertainty import find_reaches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["difference_panels"]


def difference_panels(data: ChartData) -> list[Panel]:
    """Return a panel of differences from the best, per setting.

    Args:
        data: What is drawn.

    Raises:
        SparqError: There are no two optimizers to compare.
    """
    panels = [
        Panel(
            (label_axis(data, ranking), ""),
            partial(_paint, data=data, ranking=ranking),
            title,
            from_zero=False,
        )
        for ranking, title in zip(find_rankings(data), setting_titles(data), strict=True)
        if ranking is not None
    ]
    if not panels:
        raise SparqError(
            "there is one optimizer only, so that it differs from no other; play several"
        )
    return panels


def _paint(axes: Axes, *, data: ChartData, ranking: Ranking) -> Artists:
    rivals = list(reversed(ranking.rivals))
    for row, place in enumerate(rivals):
        look = data.look(place.row.optimizer)
        if len(place.gaps) < FEWEST:
            axes.plot(place.gaps, [row] * len(place.gaps), ".", color=look.ink, alpha=0.4, zorder=2)
        axes.errorbar(
            place.behind.mean,
            row,
            xerr=find_reaches([place.behind], positive=False),
            color=look.ink,
            marker=look.print_marker,
            markerfacecolor="white" if place.verdict == "unclear" else look.ink,
            elinewidth=0.8,
            zorder=3,
        )
        axes.annotate(
            literal(describe_place(place)),
            (place.behind.mean, row),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=6,
            color=GREY,
        )
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    axes.set_yticks(range(len(rivals)), [literal(name_place(place, ranking)) for place in rivals])
    axes.set_ylim(-0.6, len(rivals) - 0.3)
    axes.margins(x=0.15)
    return {}
