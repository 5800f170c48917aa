"""Marks of figures for print: curves, bands, reference levels and lines that a user adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.curves import Band, Series
from sparq_sim.report.data import REFERENCES, ChartData
from sparq_sim.report.palette import (
    GREY,
    INK,
    PRINT_LINE_DASHES,
    PRINT_REFERENCE_DASHES,
)
from sparq_sim.report.print.layout import Artists
from sparq_sim.report.print.style import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Lines", "draw_band", "draw_curve", "draw_lines", "draw_reference", "find_look"]

Lines: TypeAlias = Mapping[str, NDArray[np.float64]]
"""What a user adds, by name: a number as a level, or a value per round."""


def find_look(data: ChartData, optimizer: str) -> dict[str, Any]:
    """Return the colour, marker and dashes of an optimizer, as matplotlib takes them.

    Args:
        data: What is drawn.
        optimizer: Its name.
    """
    look = data.look(optimizer)
    return {
        "color": look.ink,
        "marker": look.print_marker,
        "markeredgecolor": "white",
        "linestyle": look.print_dash,
        "zorder": 3,
    }


def draw_curve(
    axes: Axes, data: ChartData, curve: Band | Series, heights: NDArray[np.float64], name: str
) -> Any:
    """Draw a curve over the rounds, its markers apart from those of the other optimizers.

    Args:
        axes: Where.
        data: What is drawn.
        curve: Its optimizer and rounds.
        heights: Its values, (rounds,).
        name: For the legend.

    Returns:
        The line.
    """
    step = max(1, len(heights) // 6)
    start = step * list(data.optimizers).index(curve.optimizer) // len(data.optimizers)
    style = find_look(data, curve.optimizer)
    style |= {"label": literal(name), "markevery": (start, step)}
    (line,) = axes.plot(curve.rounds, heights, **style)
    return line


def draw_band(
    axes: Axes,
    x: Any,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    colour: str,
    *,
    alpha: float,
) -> None:
    """Shade an interval, if it is known.

    Args:
        axes: Where.
        x: Places on the axis below, (n,).
        low: Lower ends, (n,).
        high: Upper ends, (n,).
        colour: Of the curve.
        alpha: How opaque it is, up to 1.
    """
    if np.isfinite(low).any():
        axes.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0)


def draw_reference(axes: Axes, name: str, x: Any, heights: Any) -> None:
    """Draw what a simple policy would get.

    Args:
        axes: Where.
        name: One of the names in `REFERENCES`.
        x: Places on the axis below, (n,).
        heights: The levels there, (n,).
    """
    dashes = dict(zip(REFERENCES.values(), PRINT_REFERENCE_DASHES, strict=True))
    axes.plot(x, heights, label=name, color=GREY, linestyle=dashes[name], linewidth=0.8, zorder=2)


def draw_lines(axes: Axes, lines: Lines, ends: tuple[float, float]) -> Artists:
    """Draw the lines that a user adds.

    Args:
        axes: Where.
        lines: By name, a level or a value per round.
        ends: From where to where a level is drawn.

    Returns:
        The lines, for the legend.
    """
    artists = {}
    for place, (name, values) in enumerate(lines.items()):
        key = f"line {name}"
        x = np.arange(1, len(values) + 1) if values.ndim else np.array(ends)
        (artists[key],) = axes.plot(
            x,
            values if values.ndim else np.full(2, values),
            label=name,
            color=INK,
            linestyle=PRINT_LINE_DASHES[place % len(PRINT_LINE_DASHES)],
            linewidth=0.8,
            zorder=2,
        )
    return artists
