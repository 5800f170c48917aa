"""A portrait as an HTML page, drawn by Plotly, with a slider over time."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparq_sim.report.environment.data import Fields, Places, Portrait, Slices
from sparq_sim.report.environment.layout import (
    REWARD,
    Curve,
    Panel,
    Row,
    colour_limits,
    find_ends,
    layout,
    make_snapshot,
)
from sparq_sim.report.html.embed import embed
from sparq_sim.report.html.figure import Figure, PlotlyTrace
from sparq_sim.report.html.page import dress, make_environment, read_template
from sparq_sim.report.html.plotly import read_plotly
from sparq_sim.report.palette import GREY, GRID, INK, REWARDS
from sparq_sim.study.store import write_whole

__all__ = ["write_html"]

_TEMPLATES = Path(__file__).parent / "templates"
_PIXELS = 1130  # The width of a page that heights are meant for.


def write_html(portrait: Portrait, path: Path) -> Path:
    """Write a portrait as one HTML file, which needs no network.

    Args:
        portrait: What is shown.
        path: The file.

    Returns:
        The file.
    """
    marks = {
        Slices: "Dots are the best points.",
        Fields: "The large dot is the best point, small dots are those of other times.",
        Places: "The ring is the best site.",
    }[type(portrait.view)]
    caption = (
        f"The reward from time 0 to {portrait.times[-1]:g}. {marks} "
        "Colours clip the lowest 1 % and the highest 0.5 %."
    )
    scripts = {"plotly": read_plotly(), "portrait": read_template("portrait.js", _TEMPLATES)}
    page = (
        make_environment(_TEMPLATES)
        .get_template("portrait.html.j2")
        .render(
            **dress(scripts, styles=()),
            title=portrait.name,
            caption=caption,
            figure=embed(_figure(portrait)),
            ink=INK,
            grey=GREY,
        )
    )
    write_whole(path, page.encode())
    return path


_GAP, _ASIDE = 86, 0.08  # Between panels, for titles and labels: pixels, and a share of the width.


@dataclass(frozen=True)
class _Spot:
    """Where a panel lies on a page: from and to, as shares of its width and height."""

    panel: Panel
    x: tuple[float, float]
    y: tuple[float, float]


def _figure(portrait: Portrait) -> Figure:
    """Draw all panels; those of single moments become one, with a slider."""
    moving = not isinstance(portrait.view, Slices)
    height, spots = _beside(portrait) if moving else _below(layout(portrait))
    low, high = colour_limits(portrait)
    bottom = min(spot.y[0] for spot in spots if spot.panel.coloured)
    bar = {
        "title": {"text": REWARD, "font": {"size": 13}},
        "thickness": 12,
        "outlinewidth": 0,
        "ticks": "outside",
        "x": spots[0].x[1] + 0.005 if moving else 1.0,
        "y": bottom,
        "yanchor": "bottom",
        "len": 1 - bottom,
    }
    shown: dict[str, Any] = {
        "height": height + 100,
        "margin": {"l": 60, "r": 20, "t": 40, "b": 60},
        "font": {"size": 13, "color": INK},
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "coloraxis": {
            "colorscale": REWARDS.capitalize(),
            "cmin": low,
            "cmax": high,
            "colorbar": bar,
        },
        "annotations": [_title(spot) for spot in spots],
    }
    for number, spot in enumerate(spots, start=1):
        shown |= _axes(spot, number)
    data = [
        trace for number, spot in enumerate(spots, start=1) for trace in _traces(spot.panel, number)
    ]
    figure = {"data": data, "layout": shown}
    return _animate(figure, portrait, range(2, len(spots) + 1)) if moving else figure


def _below(rows: tuple[Row, ...]) -> tuple[float, list[_Spot]]:
    """Place rows below each other, and return the height of all."""
    heights = [_PIXELS * row.height for row in rows]
    spots = []
    for row, y in zip(rows, _stacked(heights), strict=True):
        width = (1 + _ASIDE) / len(row.panels)
        for number, panel in enumerate(row.panels):
            spots.append(_Spot(panel, (number * width, (number + 1) * width - _ASIDE), y))
    return sum(heights) + _GAP * (len(rows) - 1), spots


def _beside(portrait: Portrait) -> tuple[float, list[_Spot]]:
    """Place a moment to the left, its slider below, the rest to the right; return the height."""
    height = 620.0
    others = [panel for row in layout(portrait)[1:] for panel in row.panels]
    each = (height - _GAP * (len(others) - 1)) / len(others)
    now = replace(make_snapshot(portrait, 0), title=REWARD)  # The slider says when.
    spots = [_Spot(now, (0.0, 0.5), (0.2, 1.0))]
    for panel, y in zip(others, _stacked([each] * len(others)), strict=True):
        spots.append(_Spot(panel, (0.66, 1.0), y))
    return height, spots


def _stacked(heights: list[float]) -> list[tuple[float, float]]:
    """Return where each of a column begins and ends, as shares, from the top."""
    total = sum(heights) + _GAP * (len(heights) - 1)
    tops = [total - sum(heights[:i]) - _GAP * i for i in range(len(heights))]
    # Rounding may take the last below 0, which plotly refuses.
    return [
        (max(0.0, (top - height) / total), top / total)
        for top, height in zip(tops, heights, strict=True)
    ]


def _axes(spot: _Spot, number: int) -> dict[str, Any]:
    """Return the axes of a panel, by their names in the layout."""
    panel, end = spot.panel, _end(number)
    ranges = [find_ends(across) for across in panel.field[:2]] if panel.field else []
    axes = {}
    for place, (letter, other, domain, label) in enumerate(
        zip("xy", "yx", (spot.x, spot.y), panel.labels, strict=True)
    ):
        axes[f"{letter}axis{end}"] = {
            "domain": domain,
            "anchor": f"{other}{end}",
            "title": {"text": escape(label), "font": {"size": 13}, "standoff": 8},
            "linecolor": GREY,
            "tickcolor": GREY,
            "tickfont": {"color": GREY},
            "ticks": "outside",
            "showline": True,
            "zeroline": False,
            "showgrid": letter == "y" and not panel.coloured,
            "gridcolor": GRID,
            "automargin": True,
        } | ({"range": ranges[place]} if ranges else {})
    return axes


def _end(number: int) -> str:
    """Return how the names of the axes of a panel end: the first have no number."""
    return "" if number == 1 else str(number)


def _animate(figure: Figure, portrait: Portrait, followers: range) -> Figure:
    """Return a figure with a slider over frames, a button to move it, and marks of the time."""
    at_once = {"mode": "immediate", "transition": {"duration": 0}}
    frames: list[dict[str, Any]] = []
    steps = []
    for number, time in enumerate(portrait.times[portrait.frames].tolist()):
        traces = _traces(make_snapshot(portrait, number), 1)
        mark = {"type": "line", "x0": time, "x1": time, "y0": 0, "y1": 1}
        lines = [
            {
                **mark,
                "line": {"color": GREY, "width": 1},
                "xref": f"x{each}",
                "yref": f"y{each} domain",
            }
            for each in followers
        ]
        frames.append(
            {
                "name": str(number),
                "data": traces,
                "traces": list(range(len(traces))),
                "layout": {"shapes": lines},
            }
        )
        stop = [[str(number)], {**at_once, "frame": {"duration": 0, "redraw": True}}]
        steps.append({"label": f"{time:.4g}", "method": "animate", "args": stop})
    run = [None, {**at_once, "fromcurrent": True, "frame": {"duration": 250, "redraw": True}}]
    slider = {
        "steps": steps,
        "x": 0.07,
        "len": 0.43,
        "y": 0.1,
        "yanchor": "top",
        "currentvalue": {"prefix": "t = ", "xanchor": "right"},
        "pad": {"t": 0},
    }
    button = {
        "type": "buttons",
        "buttons": [{"label": "play", "method": "animate", "args": run}],
        "x": 0.0,
        "xanchor": "left",
        "y": 0.04,
        "yanchor": "top",
        "showactive": False,
    }
    moving = {**frames[0]["layout"], "sliders": [slider], "updatemenus": [button]}
    return {"data": figure["data"], "layout": {**figure["layout"], **moving}, "frames": frames}


# Panels as Plotly reads them


def _title(spot: _Spot) -> dict[str, Any]:
    """Return the title, and the names of the curves in their colours: a legend in place."""
    panel = spot.panel
    named = [] if panel.coloured else [curve for curve in panel.curves if curve.name]
    legend = [f'<span style="color:{curve.colour}">{escape(curve.name)}</span>' for curve in named]
    return {
        "text": "   ".join([f"<b>{escape(panel.title)}</b>", *legend]),
        "font": {"size": 13.5},
        "x": spot.x[0],
        "y": spot.y[1],
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 6,
        "showarrow": False,
    }


def _traces(panel: Panel, number: int) -> list[PlotlyTrace]:
    """Return all that is drawn of a panel, on the axes of this *number*."""
    end = _end(number)
    axes = {"xaxis": f"x{end}", "yaxis": f"y{end}", "showlegend": False}
    across, up = (escape(label) for label in panel.labels)
    place = f"{across} %{{x:.4g}}<br>{up} %{{y:.4g}}"
    traces: list[PlotlyTrace] = []
    if panel.field is not None:
        x, y, rewards = panel.field
        hover = f"{place}<br>{REWARD} %{{z:.4g}}<extra></extra>"
        field = {"x": _pack(x), "y": _pack(y), "z": _pack(rewards), "hovertemplate": hover}
        look = {"coloraxis": "coloraxis", "zsmooth": "best"}
        traces.append({"type": "heatmap", **look, **field, **axes})
    elif panel.places is not None:
        colours = _pack(panel.places.rewards[0])
        marker = {"size": 11, "color": colours, "coloraxis": "coloraxis"}
        hover = f"%{{text}}<br>{REWARD} %{{marker.color:.4g}}<extra></extra>"
        names = [escape(name) for name in panel.places.names]
        east, north = map(_pack, panel.places.points.T)
        sites = {"x": east, "y": north, "marker": marker, "text": names, "hovertemplate": hover}
        traces.append({"type": "scatter", "mode": "markers", **sites, **axes})
    for curve in panel.curves:
        hover = f"{place}<extra>{escape(curve.name)}</extra>"
        drawn = {"x": _pack(curve.x), "y": _pack(curve.y), "hovertemplate": hover, **axes}
        traces.append({"type": "scatter", **drawn, **_style(curve, panel)})
    return traces


def _pack(numbers: ArrayLike) -> dict[str, str]:
    """Return numbers as Plotly reads them from base64, which is less than half as long."""
    array = np.ascontiguousarray(numbers, dtype="<f4")
    content = base64.b64encode(array.tobytes()).decode()
    return {"dtype": "f4", "bdata": content, "shape": ", ".join(map(str, array.shape))}


def _style(curve: Curve, panel: Panel) -> dict[str, Any]:
    line = {"color": curve.colour, "width": 2}
    dot = {"color": curve.colour, "size": 4.5, "line": {"color": "white", "width": 0.8}}
    match curve.style:
        case "dots":
            return {"mode": "markers", "marker": dot}
        case "mark" if panel.places is not None:
            ring = {"symbol": "circle-open", "size": 19, "color": curve.colour}
            return {
                "mode": "markers",
                "marker": {**ring, "line": {"width": 2}},
                "hoverinfo": "skip",
            }
        case "mark":
            return {"mode": "markers", "marker": {**dot, "size": 11}, "cliponaxis": False}
        case "steps":
            return {"mode": "lines", "line": {**line, "shape": "vh"}}
        case "thin":
            return {"mode": "lines", "line": {**line, "width": 0.7}, "hoverinfo": "skip"}
        case "line":
            return {"mode": "lines", "line": line}
