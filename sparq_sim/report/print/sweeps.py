"""Figures for print: regret or reward against what is swept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.errors import SparqError
from sparq_sim.fields import is_number
from sparq_sim.report.data import REFERENCES, ChartData, pool
from sparq_sim.report.palette import INK, REGRETS
from sparq_sim.report.print.layout import Artists, Panel, lay_out, short_names
from sparq_sim.report.print.marks import Lines, draw_band, draw_lines, draw_reference, find_look
from sparq_sim.report.print.style import literal
from sparq_sim.study.settings import agree, format_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_heat_maps", "sweep_panels"]


def sweep_panels(data: ChartData, lines: Lines) -> list[Panel]:
    """Return a panel of regret or reward against each swept parameter.

    Args:
        data: What is drawn.
        lines: What a user adds, as levels.

    Raises:
        SparqError: Nothing is swept.
    """
    names = short_names(data.varied_paths)
    if not names:
        raise SparqError("nothing is swept in this study; a scenario's [sweep] says what is")
    return [
        Panel(
            (name, data.criterion.label),
            partial(_paint_sweep, data=data, path=path, lines=lines),
            from_zero=data.criterion.from_zero,
        )
        for path, name in names.items()
    ]


def _paint_sweep(axes: Axes, *, data: ChartData, path: str, lines: Lines) -> Artists:
    values = data.values(path)
    x = _along(axes, values)
    artists: Artists = {}
    for name in data.optimizers:
        spreads = data.pooled(name, path)
        if any(each.count for each in spreads):
            style = find_look(data, name)
            means = [each.mean for each in spreads]
            (artists[name],) = axes.plot(x, means, label=literal(name), **style)
            low, high = (np.array([getattr(s, end) for s in spreads]) for end in ("low", "high"))
            draw_band(axes, x, low, high, style["color"], alpha=0.16)
    known = [dict(data.levels_in({path: value})) for value in values]
    for name in REFERENCES.values():
        if any(name in levels for levels in known):
            heights = [levels.get(name, np.nan) for levels in known]
            draw_reference(axes, name, x, heights)
    return artists | draw_lines(axes, lines, (x[0], x[-1]))


def _along(axes: Axes, values: Sequence[Any]) -> list[float]:
    """Return where values lie on the axis below; those that are no numbers, evenly."""
    if not all(map(is_number, values)):
        axes.set_xticks(range(len(values)), [literal(format_value(value)) for value in values])
        return [float(place) for place in range(len(values))]
    if min(values) > 0 and max(values) >= 50 * min(values):
        axes.set_xscale("log")
    return [float(value) for value in values]


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

    paths = short_names(data.varied_paths)
    grids = [
        (name, pair, _grid(data, name, pair))
        for pair in combinations(paths, 2)
        for name in data.optimizers
    ]
    grids = [(name, pair, grid) for name, pair, grid in grids if np.isfinite(grid).sum() > 1]
    if not grids:
        raise SparqError("a heat map needs a study that sweeps two parameters; try 'sweep'")
    known = np.concatenate([grid[np.isfinite(grid)] for _, _, grid in grids])
    # What is good is bright, be it a low regret or a high reward.
    bright_is_low = not data.criterion.more_is_better
    scale = f"{REGRETS}_r" if bright_is_low else REGRETS
    colours = ScalarMappable(Normalize(known.min(), known.max()), scale)
    panels = [
        Panel(
            (paths[pair[0]], paths[pair[1]]),
            partial(
                _paint_map,
                grid=grid,
                values=(data.values(pair[0]), data.values(pair[1])),
                colours=colours,
                bright_is_low=bright_is_low,
            ),
            name,
        )
        for name, pair, grid in grids
    ]
    figure = lay_out(panels, width, alike=False)
    figure.colorbar(colours, ax=figure.axes, label=data.criterion.label, aspect=30, pad=0.02)
    return figure


def _grid(data: ChartData, optimizer: str, pair: tuple[str, str]) -> NDArray[np.float64]:
    """Compute the mean of the criterion by the values of two parameters: (second, first)."""
    own = [f for f in data.found if f.optimizer == optimizer and {*pair} <= f.setting.keys()]
    return np.array(
        [
            [
                pool(
                    (f for f in own if agree(f.setting, {pair[0]: x, pair[1]: y})), data.criterion
                ).mean
                for x in data.values(pair[0])
            ]
            for y in data.values(pair[1])
        ]
    )


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
