"""Figures of a page: charts as Plotly draws them, in the page's own colours.

Colours are named after the properties of the page's style, `--series-1` say, with an opacity
where wanted (`--series-1/0.2`): the page puts in those of its theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import Any, Literal, TypeAlias

from sparq_sim.analysis.summary import Spread
from sparq_sim.errors import mask_invisible
from sparq_sim.report.data import REFERENCES
from sparq_sim.report.looks import Look
from sparq_sim.report.palette import SCREEN_REFERENCE_DASHES

__all__ = [
    "FROM_ZERO",
    "Chart",
    "Figure",
    "PlotlyTrace",
    "error_bars",
    "escape_text",
    "line_style",
    "make_figure",
    "marker_style",
    "reference_line",
    "round_digits",
]

Figure: TypeAlias = dict[str, Any]
"""As Plotly reads it: data and layout."""
PlotlyTrace: TypeAlias = dict[str, Any]
"""One thing that Plotly draws in a figure."""

FROM_ZERO = {"rangemode": "tozero", "autorangeoptions": {"minallowed": 0}}
"""An axis of regrets: none is negative, though the interval of a mean may reach below."""


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
    }


def error_bars(spreads: Sequence[Spread], colour: str) -> dict[str, Any]:
    """Return the 95 % intervals of some points.

    Args:
        spreads: One per point; where the interval is unknown, there is no bar.
        colour: Of the points.
    """
    reaches = [0.0 if not isfinite(s.high) else s.high - s.mean for s in spreads]
    return {
        "type": "data",
        "array": round_digits(reaches),
        # Fainter than the points, which they may cross in numbers.
        "color": f"{colour}/0.5",
        "thickness": 1.2,
        "width": 3,
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
