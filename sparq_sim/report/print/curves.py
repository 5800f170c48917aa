"""Figures for print: regret or reward and other quantities over the rounds, and against cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from sparq_sim.analysis.curves import Series
from sparq_sim.analysis.summary import Spread
from sparq_sim.report.data import (
    ChartData,
    curve_name,
    describe_curve,
    describe_series,
    pareto_front,
)
from sparq_sim.report.palette import INK
from sparq_sim.report.print.layout import Artists, Panel, setting_titles
from sparq_sim.report.print.marks import (
    Lines,
    draw_band,
    draw_curve,
    draw_lines,
    draw_reference,
    find_look,
)
from sparq_sim.report.print.style import literal
from sparq_sim.study.settings import Setting, agree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["cost_panel", "regret_panels", "series_panels"]


# Over the rounds


def regret_panels(data: ChartData, lines: Lines, *, average: bool) -> list[Panel]:
    """Return a panel of regret, or of mean reward, per setting.

    Args:
        data: What is drawn.
        lines: What a user adds.
        average: Whether regret is average or cumulative.
    """
    label = describe_curve(data.criterion, average=average).label
    return [
        Panel(
            ("round", label),
            partial(_paint_regret, data=data, setting=setting, lines=lines, average=average),
            title,
            data.criterion.from_zero,
        )
        for setting, title in zip(data.settings, setting_titles(data), strict=True)
    ]


def _paint_regret(
    axes: Axes, *, data: ChartData, setting: Setting, lines: Lines, average: bool
) -> Artists:
    artists: Artists = {}
    longest = 1
    for band in data.bands:
        if not agree(band.setting, setting):
            continue
        longest = max(longest, int(band.rounds[-1]))
        scale = 1 / band.rounds if average else np.ones(len(band.rounds))
        name = curve_name(band, setting)
        line = draw_curve(axes, data, band, band.mean * scale, name)
        artists[name] = line
        draw_band(axes, band.rounds, band.low * scale, band.high * scale, line.get_color())
    for name, level in data.levels_in(setting):
        heights = [level, level] if average else [level, level * longest]
        artists[name] = draw_reference(axes, name, [1, longest], heights)
    return artists | draw_lines(axes, lines, (1, longest))


def series_panels(data: ChartData, name: str, lines: Lines) -> list[Panel]:
    """Return a panel of another quantity over the rounds, per setting that has it.

    Args:
        data: What is drawn.
        name: Of the series.
        lines: What a user adds.
    """
    shown = [series for series in data.series if series.name == name]
    from_zero = name != "reward" and all((series.means >= 0).all() for series in shown)
    label = describe_series(name).label
    panels = []
    for setting, title in zip(data.settings, setting_titles(data), strict=True):
        if here := [series for series in shown if agree(series.setting, setting)]:
            paint = partial(_paint_series, data=data, setting=setting, lines=lines, shown=here)
            panels.append(Panel(("round", label), paint, title, from_zero))
    return panels


def _paint_series(
    axes: Axes, *, data: ChartData, setting: Setting, lines: Lines, shown: Sequence[Series]
) -> Artists:
    artists: Artists = {}
    for series in shown:
        name = curve_name(series, setting)
        artists[name] = draw_curve(axes, data, series, series.means, name)
    longest = max(float(series.rounds[-1]) for series in shown)
    return artists | draw_lines(axes, lines, (1, longest))


# Cost


def cost_panel(data: ChartData, lines: Lines) -> Panel:
    """Return the panel of regret or reward against what was spent, with the Pareto front.

    Args:
        data: What is drawn.
        lines: What a user adds, as levels.
    """
    return Panel(
        ("spent per play", data.criterion.label),
        partial(_paint_cost, data=data, lines=lines),
        from_zero=data.criterion.from_zero,
    )


def _paint_cost(axes: Axes, *, data: ChartData, lines: Lines) -> Artists:
    rows = [each for each in data.summaries if isfinite(each.judged.mean)]
    artists: Artists = {}
    for name in data.optimizers:
        own = [each for each in rows if each.optimizer == name]
        if own:
            style = {**find_look(data, name), "linestyle": "", "elinewidth": 0.6}
            artists[name] = axes.errorbar(
                [each.spent.mean for each in own],
                [each.judged.mean for each in own],
                xerr=_reaches([each.spent for each in own]),
                yerr=_reaches([each.judged for each in own]),
                label=literal(name),
                **style,
            )
    most = max(each.spent.mean for each in rows)
    front = [rows[i] for i in pareto_front([(e.spent.mean, e.loss) for e in rows])]
    name = "Pareto front"
    (artists[name],) = axes.step(
        [*(each.spent.mean for each in front), most],
        [*(each.judged.mean for each in front), front[-1].judged.mean],
        where="post",
        label=name,
        color=INK,
        linewidth=0.8,
        zorder=2,
    )
    for name, level in data.levels_in({}):
        artists[name] = draw_reference(axes, name, [0, most], [level, level])
    return artists | draw_lines(axes, lines, (0, most))


def _reaches(spreads: Sequence[Spread]) -> list[float]:
    return [each.high - each.mean if isfinite(each.high) else 0.0 for each in spreads]
