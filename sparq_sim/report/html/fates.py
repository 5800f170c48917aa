"""Fates in a page: a stacked bar per optimizer of what became of the points asked."""

from __future__ import annotations

from sparq_sim.report.data import ChartData
from sparq_sim.report.fates import FATES, choose_fate_colours, find_fates
from sparq_sim.report.html.figure import Chart, Figure, escape_text, make_figure, round_digits
from sparq_sim.study.settings import Setting

__all__ = ["fate_charts"]


def fate_charts(data: ChartData) -> list[Chart]:
    """Return the chart of what became of the points asked, if not all were answered.

    Args:
        data: What it shows.
    """
    counts = [len(find_fates(data, setting)) for setting in data.settings]
    if not any(counts):
        return []
    low = max(counts) <= 2
    figures = [_draw(data, setting) for setting in data.settings]
    return [
        Chart("fates", "What became of the points asked", FATES, figures, by="setting", low=low)
    ]


def _draw(data: ChartData, setting: Setting) -> Figure:
    # From above to below.
    rows = list(reversed(find_fates(data, setting)))
    names = [escape_text(row.name) for row in rows]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "x": round_digits(row.shares[heading] for row in rows),
            "y": names,
            "name": heading,
            "marker": {
                "color": f"--share-{colour}",
                # Lines of the colour of the paper tell neighbours apart, in grey too.
                "line": {"color": "--paper", "width": 1},
            },
            "hovertemplate": "%{x:.3g} %",
        }
        for heading, colour in choose_fate_colours(data).items()
    ]
    figure = make_figure(
        traces,
        x="share of the points asked",
        y="",
        barmode="stack",
        bargap=0.35,
        hovermode="y unified",
        showlegend=True,
        xaxis={"range": [0, 100], "ticksuffix": " %"},
        yaxis={"type": "category", "showgrid": False, "ticksuffix": "  "},
        annotations=[
            {
                "x": 100,
                "y": name,
                "xanchor": "right",
                "yshift": 22,
                "text": row.told,
                "showarrow": False,
                "font": {"size": 11, "color": "--muted"},
            }
            for name, row in zip(names, rows, strict=True)
            if row.told
        ],
    )
    figure["layout"]["legend"]["traceorder"] = "normal"
    return figure
