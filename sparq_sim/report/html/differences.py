"""Differences in a page: how much worse each optimizer is than the best, with intervals."""

from __future__ import annotations

from sparq_sim.analysis.intervals import FEWEST
from sparq_sim.analysis.standings import Place, Ranking
from sparq_sim.report.data import ChartData
from sparq_sim.report.differences import (
    DIFFERENCES,
    describe_place,
    find_rankings,
    label_axis,
    name_place,
)
from sparq_sim.report.html.figure import (
    Chart,
    Figure,
    PlotlyTrace,
    error_bars,
    escape_text,
    make_figure,
    mark,
    marker_style,
    round_digits,
)

__all__ = ["difference_charts"]


def difference_charts(data: ChartData) -> list[Chart]:
    """Return the chart of differences from the best, if there are optimizers to compare.

    Args:
        data: What it shows.
    """
    rankings = find_rankings(data)
    if not any(rankings):
        return []
    low = all(ranking is None or len(ranking.rivals) <= 2 for ranking in rankings)
    figures = [_draw(data, ranking) for ranking in rankings]
    return [Chart("differences", "Behind the best", DIFFERENCES, figures, by="setting", low=low)]


def _draw(data: ChartData, ranking: Ranking | None) -> Figure:
    if ranking is None:
        return make_figure([], x="", y="")
    # From above to below: the nearest rival first.
    rivals = list(reversed(ranking.rivals))
    traces = [
        trace for row, place in enumerate(rivals, 1) for trace in _mark(data, place, row, ranking)
    ]
    return make_figure(
        traces,
        x=label_axis(data, ranking),
        y="",
        hovermode="closest",
        showlegend=False,
        xaxis={
            "rangemode": "tozero",
            "zeroline": True,
            "zerolinecolor": "--muted",
            "zerolinewidth": 1.5,
        },
        yaxis={
            "tickvals": list(range(1, len(rivals) + 1)),
            "ticktext": [escape_text(name_place(place, ranking)) for place in rivals],
            "range": [0.4, len(rivals) + 0.7],
            "showgrid": False,
            "zeroline": False,
        },
    )


def _mark(data: ChartData, place: Place, row: int, ranking: Ranking) -> list[PlotlyTrace]:
    name, look = name_place(place, ranking), data.look(place.row.optimizer)
    marker = marker_style(look, size=10)
    if place.verdict == "unclear":
        marker["symbol"] = f"{marker['symbol']}-open"
    pairs: list[PlotlyTrace] = [
        {
            **mark(name, "spread"),
            "x": round_digits(place.gaps),
            "y": [row] * len(place.gaps),
            "mode": "markers",
            "marker": {**marker_style(look, size=5), "opacity": 0.5},
            "hoverinfo": "skip",
        }
    ]
    return (pairs if len(place.gaps) < FEWEST else []) + [
        {
            **mark(name),
            "x": round_digits([place.behind.mean]),
            "y": [row],
            "mode": "markers+text",
            "marker": marker,
            "error_x": error_bars([place.behind], look.series, positive=False),
            "text": [describe_place(place)],
            "textposition": "top center",
            "textfont": {"color": "--muted", "size": 12},
            "cliponaxis": False,
            "name": escape_text(name),
            "hovertemplate": "%{x:.4g}<extra>%{text}</extra>",
        }
    ]
