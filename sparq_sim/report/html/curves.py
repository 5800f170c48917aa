"""Curves of a page: regret or reward and other quantities over the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from sparq_sim.analysis.averages import thin_rounds
from sparq_sim.analysis.curves import ROUND_REGRET, Series
from sparq_sim.report.curves import RegretCurve, draw_levels, find_curves, find_end, tell_beyond
from sparq_sim.report.data import (
    ChartData,
    curve_name,
    describe_curve,
    describe_series,
    kind_of_curve,
)
from sparq_sim.report.html.figure import (
    FROM_ZERO,
    Chart,
    Figure,
    PlotlyTrace,
    add_scales,
    escape_text,
    line_style,
    make_figure,
    mark,
    reference_line,
    round_digits,
)
from sparq_sim.report.scales import differ_much
from sparq_sim.study.settings import Setting, agree

__all__ = ["regret_charts", "series_charts"]

_MOST_SINGLE = 100
"""Points of the curve of a single play."""


def regret_charts(data: ChartData) -> list[Chart]:
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


# Regret or reward


def _regret_chart(data: ChartData, *, average: bool) -> Chart:
    words = describe_curve(data.criterion, average=average)
    curves = [find_curves(data, setting, average=average) for setting in data.settings]
    few = any(len(curve.singles) > 1 for here in curves for curve in here)
    bands = any(np.isfinite(curve.low).any() for here in curves for curve in here)
    ends = [[curve.end for curve in here] for here in curves]
    beyond = [tell_beyond(here, from_zero=data.criterion.from_zero) for here in curves]
    return Chart(
        name=kind_of_curve(data.criterion, average=average),
        title=words.title,
        caption=words.caption
        + next((f" {told}" for told in beyond if told), "")
        + " Shaded: 95 % interval of the mean, of the best; choose a name to see another's." * bands
        + " Thin: single plays, too few for an interval." * few
        + " Dashed: simple policies that know all." * bool(data.levels),
        figures=[_regret_figure(data, setting, average) for setting in data.settings],
        by="setting",
        regret=data.criterion.from_zero,
        logarithmic=data.criterion.from_zero and any(map(differ_much, ends)),
    )


def _regret_figure(data: ChartData, setting: Setting, average: bool) -> Figure:
    curves = find_curves(data, setting, average=average)
    around: list[PlotlyTrace] = []
    lines: list[PlotlyTrace] = []
    for curve in curves:
        name = curve_name(curve.band, setting)
        line = line_style(data.look(curve.band.optimizer))
        around += _spread(curve, name, line["color"])
        lines.append(
            {
                **mark(name),
                "x": curve.band.rounds.tolist(),
                "y": round_digits(curve.mean),
                "mode": "lines",
                "name": escape_text(name),
                "line": line,
            }
        )
    levels = draw_levels(data, setting, curves, average=average)
    lines += [reference_line(name, x.tolist(), y.tolist()) for name, (x, y) in levels.items()]
    label = describe_curve(data.criterion, average=average, units=data.units).label
    return add_scales(
        make_figure([*around, *lines], x="round", y=label),
        [part for curve in curves for part in curve.shown],
        [(name, float(heights[-1])) for name, (_, heights) in levels.items()],
        from_zero=data.criterion.from_zero,
    )


def _spread(curve: RegretCurve, name: str, colour: str) -> list[PlotlyTrace]:
    """Return what is around a curve: its interval, or the plays where they are few."""
    alike = {**mark(name, "spread"), "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    rounds = curve.band.rounds
    if np.isfinite(curve.low).any():
        edge = {**alike, "x": rounds.tolist(), "line": {"width": 0, "color": colour}}
        fill = {"fill": "tonexty", "fillcolor": f"{colour}/{0.18 if curve.best else 0.03}"}
        ends = round_digits(curve.low), round_digits(curve.high)
        return [{**edge, "y": ends[0]}, {**edge, "y": ends[1], **fill}]
    if len(curve.singles) < 2:
        return []
    places = thin_rounds(len(rounds), _MOST_SINGLE)
    # All plays are one trace, with a gap after each.
    gapped = np.pad(curve.singles[:, places], ((0, 0), (0, 1)), constant_values=nan)
    x = [*map(int, rounds[places]), None] * len(curve.singles)
    line = {"width": 1, "color": f"{colour}/{0.5 if curve.best else 0.12}"}
    return [{**alike, "x": x, "y": round_digits(gapped.ravel()), "line": line}]


# Other quantities


def _series_chart(data: ChartData, name: str, place: int) -> Chart:
    words = describe_series(name, data.units)
    own = [series for series in data.series if series.name == name]
    own.sort(key=lambda series: list(data.optimizers).index(series.optimizer))
    regret = name == ROUND_REGRET
    ends = [
        [find_end(each.means) for each in own if agree(each.setting, setting)]
        for setting in data.settings
    ]
    return Chart(
        name if regret else f"series-{place}",
        words.title,
        words.caption + _describe_window(own),
        [
            _series_figure(
                data, [each for each in own if agree(each.setting, setting)], setting, words.label
            )
            for setting in data.settings
        ],
        by="setting",
        regret=regret,
        logarithmic=regret and any(map(differ_much, ends)),
    )


def _describe_window(series: Sequence[Series]) -> str:
    windows = {each.window for each in series}
    if windows == {1}:
        return ""
    over = f"{windows.pop()} rounds" if len(windows) == 1 else "a twentieth of the rounds"
    return f" The mean over the plays, moving over {over}."


def _series_figure(
    data: ChartData, shown: Sequence[Series], setting: Setting, label: str
) -> Figure:
    regret = any(series.name == ROUND_REGRET for series in shown)
    traces: list[PlotlyTrace] = [
        {
            **mark(name := curve_name(series, setting)),
            "x": round_digits(series.rounds),
            "y": round_digits(series.means),
            "mode": "lines",
            "name": escape_text(name),
            "line": line_style(data.look(series.optimizer)),
        }
        for series in shown
    ]
    axis = {} if any(series.name == "reward" for series in shown) else FROM_ZERO
    figure = make_figure(traces, x="round", y=label, showlegend=True, yaxis=axis)
    return (
        add_scales(figure, [series.means for series in shown], [], from_zero=True)
        if regret
        else figure
    )
