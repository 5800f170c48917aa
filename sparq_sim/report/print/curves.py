"""Figures for print: regret or reward and other quantities over the rounds, and against cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from sparq_sim.analysis.curves import ROUND_REGRET, Series
from sparq_sim.analysis.summary import Summary
from sparq_sim.arrays import Values
from sparq_sim.report.curves import (
    RegretCurve,
    draw_levels,
    find_curves,
    find_end,
    find_longest,
)
from sparq_sim.report.data import (
    ChartData,
    curve_name,
    describe_curve,
    describe_series,
    pareto_front,
)
from sparq_sim.report.palette import INK
from sparq_sim.report.print.layout import Artists, Panel, make_panel, setting_titles
from sparq_sim.report.print.marks import (
    Lines,
    draw_band,
    draw_curve,
    draw_lines,
    draw_reference,
    find_look,
)
from sparq_sim.report.print.style import literal
from sparq_sim.report.uncertainty import find_reaches
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
    label = describe_curve(data.criterion, average=average, units=data.units).label
    panels = []
    for setting, title in zip(data.settings, setting_titles(data), strict=True):
        curves = find_curves(data, setting, average=average)
        levels = draw_levels(data, setting, curves, average=average)
        panels.append(
            Panel(
                ("round", label),
                partial(
                    _paint_regret,
                    data=data,
                    setting=setting,
                    lines=lines,
                    curves=curves,
                    levels=levels,
                ),
                title,
                data.criterion.from_zero,
                shown=[
                    *(part for each in curves for part in each.shown),
                    *map(np.ravel, lines.values()),
                ],
                ends=[each.end for each in curves],
                levels=[(name, float(heights[-1])) for name, (_, heights) in levels.items()],
            )
        )
    return panels


def _paint_regret(
    axes: Axes,
    *,
    data: ChartData,
    setting: Setting,
    lines: Lines,
    curves: Sequence[RegretCurve],
    levels: Mapping[str, tuple[Values, Values]],
) -> Artists:
    artists: Artists = {}
    for each in curves:
        name = curve_name(each.band, setting)
        line = draw_curve(axes, data, each.band, each.mean, name)
        artists[name] = line
        alpha = 0.2 if each.best else 0.05
        draw_band(axes, each.band.rounds, each.low, each.high, line.get_color(), alpha=alpha)
        if len(each.singles) > 1:
            style = {
                "color": line.get_color(),
                "linewidth": 0.4,
                "alpha": 0.6 if each.best else 0.2,
            }
            axes.plot(each.band.rounds, each.singles.T, **style)
    for name, (rounds, heights) in levels.items():
        draw_reference(axes, name, rounds, heights)
    return artists | draw_lines(axes, lines, (1, find_longest(curves)))


def series_panels(data: ChartData, name: str, lines: Lines) -> list[Panel]:
    """Return a panel of another quantity over the rounds, per setting that has it.

    Args:
        data: What is drawn.
        name: Of the series.
        lines: What a user adds.
    """
    shown = [series for series in data.series if series.name == name]
    from_zero = name != "reward" and all((series.means >= 0).all() for series in shown)
    label = describe_series(name, data.units).label
    panels = []
    for setting, title in zip(data.settings, setting_titles(data), strict=True):
        if here := [series for series in shown if agree(series.setting, setting)]:
            paint = partial(_paint_series, data=data, setting=setting, lines=lines, shown=here)
            panels.append(
                Panel(
                    ("round", label),
                    paint,
                    title,
                    from_zero,
                    # Only regrets differ by decades, and may be shown so.
                    shown=[series.means for series in here] if name == ROUND_REGRET else (),
                    ends=[find_end(series.means) for series in here],
                )
            )
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
    rows = [each for each in data.summaries if isfinite(each.judged.mean)]
    paint = partial(_paint_cost, data=data, rows=rows, lines=lines)
    return make_panel(data, rows, "spent per play", paint, lines.values())


def _paint_cost(axes: Axes, *, data: ChartData, rows: Sequence[Summary], lines: Lines) -> Artists:
    artists: Artists = {}
    for name in data.optimizers:
        own = [each for each in rows if each.optimizer == name]
        if own:
            style = {**find_look(data, name), "linestyle": "", "elinewidth": 0.6}
            artists[name] = axes.errorbar(
                [each.spent.mean for each in own],
                [each.judged.mean for each in own],
                xerr=find_reaches([each.spent for each in own], positive=True),
                yerr=find_reaches([each.judged for each in own], positive=data.criterion.from_zero),
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
        draw_reference(axes, name, [0, most], [level, level])
    return artists | draw_lines(axes, lines, (0, most))
