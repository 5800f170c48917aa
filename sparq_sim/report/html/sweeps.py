"""Charts of a page: regret or reward against what is swept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import isfinite, nan
from typing import Any

from sparq_sim.fields import is_number
from sparq_sim.report.data import REFERENCES, ChartData, pool
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
from sparq_sim.report.palette import REGRETS
from sparq_sim.study.settings import format_value, shorten_paths
from sparq_sim.study.store import StoredSummary, canonical

__all__ = ["sweep_charts"]

_MOST_MAPS = 24
"""Pairs of swept parameters times optimizers, of which heat maps are drawn."""


def sweep_charts(data: ChartData) -> list[Chart]:
    """Return charts of regret or reward against each swept parameter, and by each pair of them.

    Args:
        data: What they show.
    """
    if data.has_nothing_to_judge:
        return []
    paths, criterion = data.swept_paths, data.criterion
    charts = []
    if paths:
        others = " Where several are swept, means are over the others." if len(paths) > 1 else ""
        charts.append(
            Chart(
                "swept",
                f"{_capital(criterion.word)} by what is swept"
                if not criterion.is_regret
                else "Regret against what is swept",
                f"{_capital(criterion.label)}, with its 95 % interval over replications.{others}",
                [_against(data, path) for path in paths],
                regret=criterion.from_zero,
            )
        )
    pairs = list(combinations(paths, 2))
    for place, (one, other) in enumerate(pairs[: _MOST_MAPS // max(1, len(data.optimizers))]):
        figures = _maps(data, one, other)
        if figures:
            names = " and ".join(shorten_paths([one, other]).values())
            title = f"{_capital(criterion.word)} by {names}"
            caption = f"{_capital(criterion.label)}; bright is good."
            charts.append(Chart(f"map-{place}", title, caption, figures))
    return charts


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def _places(values: Sequence[object]) -> tuple[list[Any], dict[str, Any]]:
    """Return where values lie on an axis, and what that needs of the axis."""
    if all(is_number(value) for value in values):
        return list(values), {}
    return [escape_text(format_value(value)) for value in values], {"type": "category"}


def _against(data: ChartData, path: str) -> Figure:
    values = data.values(path)
    x, axis = _places(values)
    traces: list[PlotlyTrace] = []
    for name in data.optimizers:
        spreads = data.pooled(name, path)
        look = data.look(name)
        traces.append(
            {
                "x": x,
                "y": round_digits(each.mean for each in spreads),
                "error_y": error_bars(spreads, look.series, positive=data.criterion.from_zero),
                "mode": "lines+markers",
                "line": line_style(look),
                "marker": marker_style(look, size=7),
                "name": escape_text(name),
            }
        )
    levels: dict[str, list[float]] = {name: [] for name in REFERENCES.values()}
    for value in values:
        known = dict(data.levels_in({path: value}))
        for name, heights in levels.items():
            heights.append(known.get(name, nan))
    traces += [
        reference_line(name, x, heights)
        for name, heights in levels.items()
        if any(map(isfinite, heights))
    ]
    return make_figure(
        traces,
        x=path,
        y=data.criterion.label,
        xaxis=axis,
        yaxis=FROM_ZERO if data.criterion.from_zero else {},
    )


def _maps(data: ChartData, one: str, other: str) -> list[Figure]:
    columns, rows = data.values(one), data.values(other)
    grids: dict[str, list[list[float]]] = {}
    for name in data.optimizers:
        own = [f for f in data.found if f.optimizer == name and {one, other} <= f.setting.keys()]
        cells: dict[tuple[str, str], list[StoredSummary]] = {}
        for found in own:
            where = canonical(found.setting[one]), canonical(found.setting[other])
            cells.setdefault(where, []).append(found)
        # Lists that run side by side fill a diagonal only, which is no map.
        if len(cells) > max((len(set(side)) for side in zip(*cells, strict=True)), default=0):
            grids[name] = [
                [
                    pool(cells.get((canonical(x), canonical(y)), ()), data.criterion).mean
                    for x in columns
                ]
                for y in rows
            ]
    known = [z for grid in grids.values() for row in grid for z in row if isfinite(z)]
    if not known:
        return []
    low_is_bright = not data.criterion.more_is_better
    return [
        _map(name, grid, (one, columns), (other, rows), known, reversed_scale=low_is_bright)
        for name, grid in grids.items()
    ]


def _map(
    name: str,
    grid: Sequence[Sequence[float]],
    across: tuple[str, Sequence[object]],
    down: tuple[str, Sequence[object]],
    known: Sequence[float],
    *,
    reversed_scale: bool,
) -> Figure:
    # As categories: swept values are seldom evenly spaced, and cells are best of one size.
    trace = {
        "type": "heatmap",
        "x": [escape_text(format_value(value)) for value in across[1]],
        "y": [escape_text(format_value(value)) for value in down[1]],
        "z": [round_digits(row) for row in grid],
        "zmin": round_digits([min(known)])[0],
        "zmax": round_digits([max(known)])[0],
        "colorscale": REGRETS.capitalize(),
        "reversescale": reversed_scale,
        "texttemplate": "%{z:.3g}",
        "hovertemplate": "%{z:.4g}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "tickfont": {"color": "--muted"}},
    }
    category = {"type": "category", "showgrid": False}
    names = shorten_paths([across[0], down[0]])
    return make_figure(
        [trace],
        x=names[across[0]],
        y=names[down[0]],
        hovermode="closest",
        xaxis=category,
        yaxis=category,
        title={"text": escape_text(name), "font": {"size": 14, "color": "--ink"}, "x": 0.02},
        margin={"l": 56, "r": 12, "t": 36, "b": 48},
    )
