"""Figures of a page: charts as Plotly draws them, in the page's own colours.

Colours are named after the properties of the page's style, `--series-1` say, with an opacity
where wanted (`--series-1/0.2`): the page puts in those of its theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite, log10
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.summary import Spread
from sparq_sim.errors import mask_invisible
from sparq_sim.report.data import REFERENCES
from sparq_sim.report.looks import Look
from sparq_sim.report.palette import SCREEN_REFERENCE_DASHES
from sparq_sim.report.scales import EdgeLabel, Scale, fit, label_levels
from sparq_sim.report.uncertainty import find_reaches

__all__ = [
    "FROM_ZERO",
    "Chart",
    "Figure",
    "PlotlyTrace",
    "add_scales",
    "error_bars",
    "escape_text",
    "line_style",
    "make_figure",
    "mark",
    "marker_style",
    "reference_line",
    "round_digits",
]

Figure: TypeAlias = dict[str, Any]
"""As Plotly reads it: data and layout."""
PlotlyTrace: TypeAlias = dict[str, Any]
"""One thing that Plotly draws in a figure."""

FROM_ZERO = {"rangemode": "tozero"}
"""An axis of what is not negative."""


@dataclass(frozen=True)
class Chart:
    """One chart: a figure per setting or network, of which one is shown, or a few side by side."""

    name: str
    """Its id in the page."""
    title: str
    """Above it."""
    caption: str
    """Below it."""
    figures: Sequence[Figure]
    """All its figures."""
    by: Literal["", "setting", "network"] = ""
    """What there is a figure per, of which the reader chooses one."""
    regret: bool = False
    """Whether its values may also be shown on a logarithmic scale."""
    logarithmic: bool = False
    """Whether they are at first."""
    low: bool = False
    """Whether it needs little height, as it has one or two rows."""


def round_digits(numbers: Iterable[float]) -> list[float | None]:
    """Return numbers rounded to five significant digits; what is not finite becomes None.

    Args:
        numbers: What a figure shows.
    """
    return [float(f"{n:.5g}") if isfinite(n) else None for n in map(float, numbers)]


def escape_text(words: str) -> str:
    """Return what a figure shows as it is: Plotly reads tags and entities in its texts.

    Args:
        words: A name or label, perhaps from elsewhere.
    """
    return escape(mask_invisible(words), quote=False)


def line_style(look: Look) -> dict[str, Any]:
    """Return the colour and dashes of the line of an optimizer.

    Args:
        look: The optimizer's.
    """
    return {"color": look.series, "dash": look.screen_dash, "width": 2}


def marker_style(look: Look, *, size: float) -> dict[str, Any]:
    """Return the colour and shape of the markers of an optimizer.

    Args:
        look: The optimizer's.
        size: Of the markers, in pixels.
    """
    return {"color": look.series, "symbol": look.screen_marker, "size": size}


def reference_line(name: str, x: Sequence[Any], y: Sequence[float]) -> PlotlyTrace:
    """Return the dashed line of what a simple policy would get.

    Args:
        name: One of the names in `REFERENCES`.
        x: Where on the axis below.
        y: The levels there.
    """
    dashes = dict(zip(REFERENCES.values(), SCREEN_REFERENCE_DASHES, strict=True))
    return {
        "x": list(x),
        "y": round_digits(y),
        "mode": "lines",
        "name": name,
        "line": {"color": "--muted", "dash": dashes[name], "width": 1.2},
        "showlegend": False,  # Its name stands at the edge.
    }


def error_bars(spreads: Sequence[Spread], colour: str, *, positive: bool) -> dict[str, Any]:
    """Return the 95 % intervals of some points.

    Args:
        spreads: One per point; those of fewer than five plays have no bar.
        colour: Of the points.
        positive: Whether the numbers cannot be negative, as for `find_interval`.
    """
    below, above = find_reaches(spreads, positive=positive)
    return {
        "type": "data",
        "symmetric": False,
        "array": round_digits(above),
        "arrayminus": round_digits(below),
        # Fainter than the points, which they may cross in numbers.
        "color": f"{colour}/0.5",
        "thickness": 1.2,
        "width": 3,
    }


def mark(name: str, role: Literal["line", "spread"] = "line") -> dict[str, Any]:
    """Return what tells the script of the page which curve a trace belongs to.

    Args:
        name: Of the curve; its traces are emphasised together.
        role: "line", or "spread" for what is around it: a band, or single plays.
    """
    return {"meta": {"of": name, "role": role}, "legendgroup": escape_text(name)}


def add_scales(
    figure: Figure,
    curves: Sequence[NDArray[np.float64]],
    levels: Sequence[tuple[str, float]],
    *,
    from_zero: bool,
) -> Figure:
    """Return a figure whose axis to the left fits what is drawn, linear or logarithmic.

    Args:
        figure: Any.
        curves: What the axis is to show.
        levels: Names of reference levels and where they end, which stand at the edge and do not
            stretch the axis.
        from_zero: Whether the linear axis begins at 0.
    """
    scales = {
        name: fit(curves, from_zero=from_zero, logarithmic=name == "log")
        for name in ("linear", "log")
    }
    figure["scales"] = {
        name: {
            "yaxis": {
                **(
                    {"tickvals": scale.ticks, "ticktext": [f"{tick:g}" for tick in scale.ticks]}
                    if scale.logarithmic
                    else {}
                ),
                "type": name,
                "range": [
                    log10(end) if scale.logarithmic else end for end in (scale.low, scale.high)
                ],
                # What the reader has enlarged is that of one scale.
                "uirevision": name,
            },
            "annotations": [_write(label, scale) for label in label_levels(levels, scale)],
        }
        for name, scale in scales.items()
        if scale is not None
    }
    return figure


def _write(label: EdgeLabel, scale: Scale) -> dict[str, Any]:
    """Write the names of levels at the right edge of a figure."""
    where: dict[str, Any] = {"yref": "paper", "y": max(label.beyond, 0), "yanchor": "bottom"}
    if label.beyond == 0:
        height = max(label.heights)
        where |= {"yref": "y", "y": log10(height) if scale.logarithmic else height}
    elif label.beyond == 1:
        where |= {"yanchor": "top"}
    return {
        **where,
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "text": escape_text(label.text),
        "showarrow": False,
        "font": {"size": 11, "color": "--muted"},
        "bgcolor": "--paper/0.7",
        "borderpad": 1,
    }


def make_figure(data: Sequence[PlotlyTrace], *, x: str, y: str, **layout: Any) -> Figure:
    """Return a figure with the axes and legend that all charts of the page share.

    Args:
        data: What is drawn.
        x: Label of the axis below.
        y: Label of the axis to the left.
        **layout: More of Plotly's layout; `xaxis` and `yaxis` add to the axes.
    """

    def axis(title: str) -> dict[str, Any]:
        return {
            "title": {"text": escape_text(title), "font": {"size": 13, "color": "--muted"}},
            "gridcolor": "--line",
            "linecolor": "--line",
            "zerolinecolor": "--line",
            "tickfont": {"color": "--muted"},
            "automargin": True,
            "exponentformat": "e",
        }

    own = {name: layout.pop(name, {}) for name in ("xaxis", "yaxis")}
    return {
        "data": list(data),
        "layout": {
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": "--ink", "size": 13},
            "margin": {"l": 56, "r": 12, "t": 12, "b": 48},
            "hovermode": "x unified",
            "hoverlabel": {
                "bgcolor": "--panel",
                "bordercolor": "--line",
                "font": {"color": "--ink"},
                "namelength": 40,
            },
            "legend": {
                "orientation": "h",
                "yref": "container",
                "y": 0,
                "yanchor": "bottom",
                "x": 0,
                "font": {"color": "--ink"},
            },
            "xaxis": {**axis(x), "showgrid": False, **own["xaxis"]},
            "yaxis": {**axis(y), **own["yaxis"]},
            **layout,
        },
    }
