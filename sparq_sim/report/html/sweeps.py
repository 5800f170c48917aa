"""Charts of a page: regret or reward against what is swept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np

from sparq_sim.analysis.intervals import FEWEST
from sparq_sim.arrays import Matrix
from sparq_sim.report.data import ChartData
from sparq_sim.report.html.figure import (
    Chart,
    Figure,
    PlotlyTrace,
    add_scales,
    error_bars,
    escape_text,
    line_style,
    make_figure,
    mark,
    marker_style,
    reference_line,
    round_digits,
)
from sparq_sim.report.palette import REGRETS
from sparq_sim.report.scales import differ_much
from sparq_sim.report.sweeps import (
    Along,
    SweptAxis,
    find_along,
    find_axes,
    find_grid,
    list_levels,
)
from sparq_sim.report.uncertainty import find_interval
from sparq_sim.study.settings import format_value

__all__ = ["sweep_charts"]

_MOST_MAPS = 24
"""Pairs of swept parameters times optimizers, of which heat maps are drawn."""


def sweep_charts(data: ChartData) -> list[Chart]:
    """Return charts of regret or reward against each swept axis, and where two of them cross.

    Args:
        data: What they show.
    """
    axes, criterion = find_axes(data), data.criterion
    if data.has_nothing_to_judge or not axes:
        return []
    others = " Where several things are swept, means are over the others." * (len(axes) > 1)
    shown = {axis.label: find_along(data, axis) for axis in axes}
    every = list(chain.from_iterable(shown.values()))
    few = any(0 < len(numbers) < FEWEST for each in every for numbers in each.numbers)
    around = "dots are single plays" if few else "bars are 95 % intervals of the mean"
    means = [each.mean for along in every for each in along.spreads]
    charts = [
        Chart(
            "swept",
            "Regret against what is swept"
            if criterion.is_regret
            else f"{_capital(criterion.word)} by what is swept",
            f"{_capital(criterion.label)}; {around}.{others}",
            [_against(data, axis, shown[axis.label]) for axis in axes],
            regret=criterion.from_zero,
            logarithmic=criterion.from_zero and differ_much(means),
        )
    ]
    pairs = list(combinations(axes, 2))
    for place, (one, other) in enumerate(pairs[: _MOST_MAPS // max(1, len(data.optimizers))]):
        if figures := _maps(data, one, other):
            title = f"{_capital(criterion.word)} by {one.label} and {other.label}"
            caption = f"{_capital(criterion.label)}; bright is good."
            charts.append(Chart(f"map-{place}", title, caption, figures))
    return charts


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def _place(axis: SweptAxis) -> tuple[list[Any], dict[str, Any]]:
    """Return where values lie on an axis, and what that needs of the axis."""
    if axis.numbers:
        return axis.numbers, {"type": "log"} if axis.is_wide else {}
    return [escape_text(format_value(value)) for value in axis.values], {"type": "category"}


def _against(data: ChartData, axis: SweptAxis, along: Sequence[Along]) -> Figure:
    x, kind = _place(axis)
    positive = data.criterion.from_zero
    traces: list[PlotlyTrace] = []
    for each in along:
        look = data.look(each.optimizer)
        single = [
            (here, number)
            for here, numbers in zip(x, each.numbers, strict=True)
            if len(numbers) < FEWEST
            for number in numbers
        ]
        if single:
            traces.append(
                {
                    **mark(each.optimizer, "spread"),
                    "x": [here for here, _ in single],
                    "y": round_digits(number for _, number in single),
                    "mode": "markers",
                    "marker": {**marker_style(look, size=4), "opacity": 0.45},
                    "hoverinfo": "skip",
                    "showlegend": False,
                }
            )
        traces.append(
            {
                **mark(each.optimizer),
                "x": x,
                "y": round_digits(point.mean for point in each.spreads),
                "error_y": error_bars(each.spreads, look.series, positive=positive),
                "mode": "lines+markers",
                "line": line_style(look),
                "marker": marker_style(look, size=7),
                "name": escape_text(each.optimizer),
            }
        )
    levels = list_levels(data, axis)
    traces += [reference_line(name, x, heights) for name, heights in levels.items()]
    spreads = [point for each in along for point in each.spreads]
    return add_scales(
        make_figure(traces, x=axis.label, y=data.judged_label, xaxis=kind, showlegend=True),
        [
            np.array([each.mean, *find_interval(each, positive=positive)], dtype=float)
            for each in spreads
        ],
        [(name, heights[-1]) for name, heights in levels.items() if heights[-1] == heights[-1]],
        from_zero=positive,
    )


def _maps(data: ChartData, one: SweptAxis, other: SweptAxis) -> list[Figure]:
    grids = {
        name: grid
        for name in data.optimizers
        if (grid := find_grid(data, name, one, other)) is not None
    }
    if not grids:
        return []
    known = np.concatenate([grid[np.isfinite(grid)] for grid in grids.values()])
    low_is_bright = not data.criterion.more_is_better
    return [
        _map(name, grid, (one, other), (known.min(), known.max()), reversed_scale=low_is_bright)
        for name, grid in grids.items()
    ]


def _map(
    name: str,
    grid: Matrix,
    axes: tuple[SweptAxis, SweptAxis],
    ends: tuple[float, float],
    *,
    reversed_scale: bool,
) -> Figure:
    # As categories: swept values are seldom evenly spaced, and cells are best of one size.
    trace = {
        "type": "heatmap",
        "x": [escape_text(format_value(value)) for value in axes[0].values],
        "y": [escape_text(format_value(value)) for value in axes[1].values],
        "z": [round_digits(row) for row in grid],
        "zmin": round_digits(ends)[0],
        "zmax": round_digits(ends)[1],
        "colorscale": REGRETS.capitalize(),
        "reversescale": reversed_scale,
        "texttemplate": "%{z:.3g}",
        "hovertemplate": "%{z:.4g}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "tickfont": {"color": "--muted"}},
    }
    category = {"type": "category", "showgrid": False}
    return make_figure(
        [trace],
        x=axes[0].label,
        y=axes[1].label,
        hovermode="closest",
        xaxis=category,
        yaxis=category,
        title={"text": escape_text(name), "font": {"size": 14, "color": "--ink"}, "x": 0.02},
        margin={"l": 56, "r": 12, "t": 36, "b": 48},
    )
