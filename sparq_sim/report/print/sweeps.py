"""Figures for print: regret or reward against what is swept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.intervals import FEWEST
from sparq_sim.errors import SparqError
from sparq_sim.report.data import ChartData
from sparq_sim.report.palette import INK, REGRETS
from sparq_sim.report.print.layout import Artists, Panel, lay_out
from sparq_sim.report.print.marks import Lines, draw_lines, draw_reference, find_look
from sparq_sim.report.print.style import literal
from sparq_sim.report.sweeps import (
    Along,
    SweptAxis,
    find_along,
    find_axes,
    find_grid,
    list_levels,
)
from sparq_sim.report.uncertainty import find_interval, find_reaches
from sparq_sim.study.settings import format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_heat_maps", "sweep_panels"]


def sweep_panels(data: ChartData, lines: Lines) -> list[Panel]:
    """Return a panel of regret or reward against each swept axis.

    Args:
        data: What is drawn.
        lines: What a user adds, as levels.

    Raises:
        SparqError: Nothing is swept.
    """
    axes, positive = find_axes(data), data.criterion.from_zero
    if not axes:
        raise SparqError("nothing is swept in this study; a scenario's [sweep] says what is")
    panels = []
    for axis in axes:
        along = find_along(data, axis)
        spreads = [point for each in along for point in each.spreads]
        intervals = [find_interval(each, positive=positive) for each in spreads]
        means = [each.mean for each in spreads]
        panels.append(
            Panel(
                (axis.label, data.judged_label),
                partial(_paint_sweep, data=data, axis=axis, along=along, lines=lines),
                from_zero=positive,
                shown=[np.array(means), np.ravel(intervals), *map(np.ravel, lines.values())],
                ends=means if positive else (),
                levels=[
                    (name, heights[-1])
                    for name, heights in list_levels(data, axis).items()
                    if isfinite(heights[-1])
                ],
            )
        )
    return panels


def _paint_sweep(
    axes: Axes, *, data: ChartData, axis: SweptAxis, along: Sequence[Along], lines: Lines
) -> Artists:
    x = _along(axes, axis)
    artists: Artists = {}
    for each in along:
        style = find_look(data, each.optimizer)
        spreads = each.spreads
        means = [point.mean for point in spreads]
        (artists[each.optimizer],) = axes.plot(x, means, label=literal(each.optimizer), **style)
        reaches = find_reaches(spreads, positive=data.criterion.from_zero)
        bars = {"ecolor": style["color"], "elinewidth": 0.6, "zorder": 2}
        axes.errorbar(x, means, yerr=reaches, fmt="none", **bars)
        for here, numbers in zip(x, each.numbers, strict=True):
            if len(numbers) < FEWEST:
                dots = {"color": style["color"], "alpha": 0.4, "markersize": 1.5}
                axes.plot([here] * len(numbers), numbers, "o", **dots)
    for name, heights in list_levels(data, axis).items():
        draw_reference(axes, name, x, heights)
    return artists | draw_lines(axes, lines, (x[0], x[-1]))


def _along(axes: Axes, axis: SweptAxis) -> list[float]:
    """Return where values lie on the axis below; those that are no numbers, evenly."""
    if not axis.numbers:
        names = [literal(format_value(value)) for value in axis.values]
        axes.set_xticks(range(len(names)), names)
        return [float(place) for place in range(len(names))]
    if axis.is_wide:
        axes.set_xscale("log")
    return axis.numbers


def draw_heat_maps(data: ChartData, width: float) -> Figure:
    """Return a figure of regret or reward by each pair of swept parameters, a panel per optimizer.

    Args:
        data: What is drawn.
        width: Of the figure, in inches.

    Raises:
        SparqError: Fewer than two parameters are swept.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    grids = [
        (name, pair, grid)
        for pair in combinations(find_axes(data), 2)
        for name in data.optimizers
        if (grid := find_grid(data, name, *pair)) is not None
    ]
    if not grids:
        raise SparqError(
            "a heat map needs a study that sweeps two parameters, crossed; try 'sweep'"
        )
    known = np.concatenate([grid[np.isfinite(grid)] for _, _, grid in grids])
    # What is good is bright, be it a low regret or a high reward.
    bright_is_low = not data.criterion.more_is_better
    scale = f"{REGRETS}_r" if bright_is_low else REGRETS
    colours = ScalarMappable(Normalize(known.min(), known.max()), scale)
    panels = [
        Panel(
            (pair[0].label, pair[1].label),
            partial(
                _paint_map,
                grid=grid,
                values=(pair[0].values, pair[1].values),
                colours=colours,
                bright_is_low=bright_is_low,
            ),
            name,
        )
        for name, pair, grid in grids
    ]
    figure = lay_out(panels, width, alike=False)
    figure.colorbar(colours, ax=figure.axes, label=data.judged_label, aspect=30, pad=0.02)
    return figure


def _paint_map(
    axes: Axes,
    *,
    grid: NDArray[np.float64],
    values: tuple[Sequence[object], Sequence[object]],
    colours: Any,
    bright_is_low: bool,
) -> Artists:
    known = np.ma.masked_invalid(grid)
    axes.pcolormesh(known, cmap=colours.cmap, norm=colours.norm, edgecolors="white", linewidth=0.8)
    across, up = ([literal(format_value(value)) for value in each] for each in values)
    axes.set_xticks(np.arange(len(across)) + 0.5, across)
    axes.set_yticks(np.arange(len(up)) + 0.5, up)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if max(grid.shape) <= 6:  # Of more, the numbers would not fit.
        for (row, column), number in np.ndenumerate(grid):
            if isfinite(number):
                is_dark = (colours.norm(number) > 0.5) == bright_is_low
                ink = "white" if is_dark else INK
                axes.text(
                    column + 0.5,
                    row + 0.5,
                    # Rewards need not begin at 0, and may differ little.
                    f"{number:.2g}" if bright_is_low else f"{number:.3g}",
                    color=ink,
                    fontsize=6.5,
                    ha="center",
                    va="center",
                )
    return {}
