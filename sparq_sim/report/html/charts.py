"""Charts of a page: regret or reward and other quantities over the rounds, and against cost."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import numpy as np

from sparq_sim.report.data import (
    ChartData,
    curve_name,
    describe_curve,
    describe_series,
    kind_of_curve,
    pareto_front,
)
from sparq_sim.report.html.figure import (
    FROM_ZERO,
    Chart,
    Figure,
    PlotlyTrace,
    error_bars,
    escape_text,
    line_style,
    make_figure,
    marker_style,
    reference_line,
    round_digits,
)
from sparq_sim.report.html.shares import share_charts
from sparq_sim.report.html.sweeps import sweep_charts
from sparq_sim.study.settings import Setting, agree, format_setting

__all__ = ["all_charts", "cost_charts", "series_charts"]


def all_charts(data: ChartData) -> Mapping[str, list[Chart]]:
    """Return all charts for which there are data, by section of the page.

    Args:
        data: What they show.
    """
    return {
        "regret": _regret_charts(data),
        "series": series_charts(data),
        "shares": share_charts(data),
        "cost": cost_charts(data),
        "sweep": sweep_charts(data),
    }


# Over the rounds


def _regret_charts(data: ChartData) -> list[Chart]:
    """Return the charts of average and cumulative regret, or the one of mean reward.

    Args:
        data: What they show.
    """
    kinds = (True,) if data.criterion.more_is_better else (True, False)
    return [_regret_chart(data, average=average) for average in kinds if data.bands]


def series_charts(data: ChartData) -> list[Chart]:
    """Return a chart of each other quantity that is known of each round.

    Args:
        data: What they show.
    """
    names = list(dict.fromkeys(series.name for series in data.series))
    return [_series_chart(data, name, place) for place, name in enumerate(names)]


def _regret_chart(data: ChartData, *, average: bool) -> Chart:
    words = describe_curve(data.criterion, average=average)
    intervals = any((band.plays > 1).any() for band in data.bands)
    return Chart(
        name=kind_of_curve(data.criterion, average=average),
        title=words.title,
        caption=words.caption
        + (" Bands are 95 % intervals of the mean over replications." if intervals else "")
        + (" Dashed: what simple policies with full knowledge would get." * bool(data.levels)),
        figures=[_regret_figure(data, setting, average) for setting in data.settings],
        by="setting",
        regret=data.criterion.from_zero,
    )


def _regret_figure(data: ChartData, setting: Setting, average: bool) -> Figure:
    traces: list[PlotlyTrace] = []
    longest = 1
    for band in data.bands:
        if not agree(band.setting, setting):
            continue
        longest = max(longest, int(band.rounds[-1]))
        scale = 1 / band.rounds if average else np.ones(len(band.rounds))
        line = line_style(data.look(band.optimizer))
        alike = {"x": band.rounds.tolist(), "legendgroup": escape_text(curve_name(band, setting))}
        low, high = round_digits(band.low * scale), round_digits(band.high * scale)
        if any(value is not None for value in low):
            edge = {
                **alike,
                "mode": "lines",
                "line": {"width": 0, "color": line["color"]},
                "hoverinfo": "skip",
                "showlegend": False,
            }
            fill = {"fill": "tonexty", "fillcolor": f"{line['color']}/0.13"}
            traces += [{**edge, "y": low}, {**edge, "y": high, **fill}]
        traces.append(
            {
                **alike,
                "y": round_digits(band.mean * scale),
                "mode": "lines",
                "name": escape_text(curve_name(band, setting)),
                "line": line,
            }
        )
    for name, level in data.levels_in(setting):
        ends = [1, longest]
        heights = [level, level] if average else [level, level * longest]
        traces.append(reference_line(name, ends, heights))
    return make_figure(
        traces,
        x="round",
        y=describe_curve(data.criterion, average=average).label,
        yaxis=FROM_ZERO if data.criterion.from_zero else {},
    )


def _series_chart(data: ChartData, name: str, place: int) -> Chart:
    words = describe_series(name)
    figures = []
    for setting in data.settings:
        traces = [
            {
                "x": round_digits(series.rounds),
                "y": round_digits(series.means),
                "mode": "lines",
                "name": escape_text(curve_name(series, setting)),
                "line": line_style(data.look(series.optimizer)),
            }
            for series in data.series
            if series.name == name and agree(series.setting, setting)
        ]
        figures.append(
            make_figure(
                traces,
                x="round",
                y=words.label,
                showlegend=True,
                yaxis={} if name == "reward" else FROM_ZERO,
            )
        )
    return Chart(f"series-{place}", words.title, words.caption, figures, by="setting")


# Cost


def cost_charts(data: ChartData) -> list[Chart]:
    """Return the chart of regret or reward against what was spent, if anything was.

    Args:
        data: What it shows.
    """
    criterion = data.criterion
    rows = [each for each in data.summaries if isfinite(each.judged.mean)]
    if not any(each.spent.mean > 0 for each in rows):
        return []
    traces: list[PlotlyTrace] = []
    front = pareto_front([(each.spent.mean, each.loss) for each in rows])
    ends = [rows[i] for i in front]
    traces.append(
        {
            "x": round_digits(each.spent.mean for each in ends),
            "y": round_digits(each.judged.mean for each in ends),
            "mode": "lines",
            "line": {"color": "--muted", "width": 1.2, "shape": "hv"},
            "name": "Pareto front",
            "hoverinfo": "skip",
        }
    )
    for name in data.optimizers:
        own = [each for each in rows if each.optimizer == name]
        look = data.look(name)
        traces.append(
            {
                "x": round_digits(each.spent.mean for each in own),
                "y": round_digits(each.judged.mean for each in own),
                "error_x": error_bars([each.spent for each in own], look.series),
                "error_y": error_bars([each.judged for each in own], look.series),
                "text": [escape_text(format_setting(each.setting)) for each in own],
                "mode": "markers",
                "marker": marker_style(look, size=9),
                "name": escape_text(name),
            }
        )
    most = max(each.spent.mean for each in rows)
    traces += [reference_line(name, [0, most], [level] * 2) for name, level in data.levels_in({})]
    figure = make_figure(
        traces,
        x="spent per play",
        y=criterion.label,
        hovermode="closest",
        yaxis=FROM_ZERO if criterion.from_zero else {},
    )
    word = criterion.word
    caption = (
        "Each point is an optimizer in one setting; bars are 95 % intervals. On the front, "
        f"{criterion.comparative} {word} costs more."
    )
    title = f"{word[:1].upper()}{word[1:]} and cost"
    return [Chart("plane", title, caption, [figure], regret=criterion.from_zero)]
