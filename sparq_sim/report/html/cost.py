"""Cost in a page: regret or reward against what was spent."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from sparq_sim.analysis.intervals import FEWEST
from sparq_sim.analysis.summary import Summary, group
from sparq_sim.report.data import ChartData, pareto_front
from sparq_sim.report.html.figure import (
    Chart,
    Figure,
    PlotlyTrace,
    add_scales,
    error_bars,
    escape_text,
    make_figure,
    mark,
    marker_style,
    reference_line,
    round_digits,
)
from sparq_sim.report.scales import differ_much
from sparq_sim.report.uncertainty import find_interval
from sparq_sim.study.settings import format_setting

__all__ = ["cost_charts"]

_MOST_NAMED = 12
"""Points that have their names beside them; of more, there is a legend."""


def cost_charts(data: ChartData) -> list[Chart]:
    """Return the chart of regret or reward against what was spent, if anything was.

    Args:
        data: What it shows.
    """
    rows = [each for each in data.summaries if isfinite(each.judged.mean)]
    if not any(each.spent.mean > 0 for each in rows):
        return []
    criterion = data.criterion
    word = criterion.word
    caption = (
        f"Each point is an optimizer in one setting. On the line, {criterion.comparative} {word} "
        "costs more; what lies off it is beaten in both."
    )
    if any(_list_few(data, name) for name in data.optimizers):
        caption += " Dots are single plays, too few for an interval."
    return [
        Chart(
            "plane",
            f"{word[:1].upper()}{word[1:]} and cost",
            caption,
            [_draw_plane(data, rows)],
            regret=criterion.from_zero,
            logarithmic=criterion.from_zero and differ_much(each.judged.mean for each in rows),
        )
    ]


def _draw_plane(data: ChartData, rows: Sequence[Summary]) -> Figure:
    positive, most = data.criterion.from_zero, max(each.spent.mean for each in rows)
    few = {name: _list_few(data, name) for name in data.optimizers}
    dots = [dot for name in few for dot in few[name]]
    reaches = [find_interval(each.spent, positive=True)[1] for each in rows]
    reaches += [spent for spent, _ in dots]
    ends = [rows[i] for i in pareto_front([(each.spent.mean, each.loss) for each in rows])]
    traces: list[PlotlyTrace] = [
        {
            "x": round_digits(each.spent.mean for each in ends),
            "y": round_digits(each.judged.mean for each in ends),
            "mode": "lines",
            "line": {"color": "--muted", "width": 1.2, "shape": "hv"},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]
    named = len(rows) <= _MOST_NAMED
    for name in data.optimizers:
        own = [each for each in rows if each.optimizer == name]
        look = data.look(name)
        # Names lie within the figure: to the right of what spends little.
        sides = ["left" if each.spent.mean > most / 2 else "right" for each in own]
        traces.append(
            {
                **mark(name, "spread"),
                "x": round_digits(spent for spent, _ in few[name]),
                "y": round_digits(judged for _, judged in few[name]),
                "mode": "markers",
                "marker": {**marker_style(look, size=5), "opacity": 0.45},
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
        traces.append(
            {
                **mark(name),
                "x": round_digits(each.spent.mean for each in own),
                "y": round_digits(each.judged.mean for each in own),
                "error_x": error_bars([each.spent for each in own], look.series, positive=True),
                "error_y": error_bars(
                    [each.judged for each in own], look.series, positive=positive
                ),
                "text": [escape_text(_name(each, alone=named)) for each in own],
                "textposition": [f"top {side}" for side in sides],
                "textfont": {"color": look.series},
                "mode": "markers+text" if named else "markers",
                "marker": marker_style(look, size=9),
                "name": escape_text(name),
                "showlegend": not named,
            }
        )
    levels = data.levels_in({})
    traces += [reference_line(name, [0, most], [level] * 2) for name, level in levels]
    figure = make_figure(
        traces,
        x="spent per play",
        y=data.judged_label,
        hovermode="closest",
        # What spends nothing is not to be cut in half.
        xaxis={
            "range": [-0.04 * most, 1.04 * max([most, *filter(isfinite, reaches)])],
            "zeroline": False,
        },
    )
    shown = [
        np.array([each.judged.mean, *find_interval(each.judged, positive=positive)])
        for each in rows
    ]
    shown.append(np.array([judged for _, judged in dots]))
    return add_scales(figure, shown, levels, from_zero=positive)


def _list_few(data: ChartData, optimizer: str) -> list[tuple[float, float]]:
    """Return what plays spent and came to, of rows with too few for an interval."""
    found: list[tuple[float, float]] = []
    for plays in group(data.found).values():
        pairs = [(play.measures["spent"], data.criterion.of(play)) for play in plays]
        known = [(x, y) for x, y in pairs if x is not None and y is not None]
        if plays[0].optimizer == optimizer and len(known) < FEWEST:
            found += known
    return found


def _name(row: Summary, *, alone: bool) -> str:
    """Return what a point is called: with its optimizer, where no legend tells that."""
    setting = format_setting(row.setting)
    return ", ".join(filter(None, [row.optimizer, setting])) if alone else setting
