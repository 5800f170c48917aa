"""A portrait as an HTML page, drawn by Plotly, with a slider over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

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
from sparq_sim.report.palette import GREY, GRID, INK, REWARDS

__all__ = ["write_html"]

_PIXELS = 1130  # The width of a page that heights are meant for.


def write_html(portrait: Portrait, path: Path) -> Path:
    """Write a portrait as one HTML file, which needs no network.

    Args:
        portrait: What is shown.
        path: The file.

    Returns:
        The file.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.io import to_html

    figure = to_html(
        _figure(portrait),
        config={"displayModeBar": False, "responsive": True},
        full_html=False,
        include_plotlyjs=True,
        auto_play=False,
        default_height=None,
    )
    marks = {
        Slices: "Dots are the best points.",
        Fields: "The large dot is the best point, small dots are those of other times.",
        Places: "The ring is the best site.",
    }[type(portrait.view)]
    caption = (
        f"The reward from time 0 to {portrait.times[-1]:g}. {marks} "
        "Colours clip the lowest 1 % and the highest 0.5 %."
    )
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    page = templates.get_template("portrait.html.j2").render(
        title=portrait.name, caption=caption, figure=Markup(figure), ink=INK, grey=GREY
    )
    path.write_text(page, encoding="utf-8")
    return path


_GAP, _ASIDE = 86, 0.08  # Between panels, for titles and labels: pixels, and a share of the width.


@dataclass(frozen=True)
class _Spot:
    """Where a panel lies on a page: from and to, as shares of its width and height."""

    panel: Panel
    x: tuple[float, float]
    y: tuple[float, float]


def _figure(portrait: Portrait) -> Any:
    """Draw all panels; those of single moments become one, with a slider."""
    from plotly.graph_objects import Figure

    moving = not isinstance(portrait.view, Slices)
    height, spots = _beside(portrait) if moving else _below(layout(portrait))
    low, high = colour_limits(portrait)
    bottom = min(spot.y[0] for spot in spots if spot.panel.coloured)
    bar = {
        "title": {"text": REWARD, "font": {"size": 13}},
        "thickness": 12,
        "outlinewidth": 0,
        "x": spots[0].x[1] + 0.005 if moving else 1.0,
        "y": bottom,
        "yanchor": "bottom",
        "len": 1 - bottom,
    }
    figure = Figure()
    figure.update_layout(
        height=height + 100,
        margin={"l": 60, "r": 20, "t": 40, "b": 60},
        template="simple_white",
        font={"size": 13, "color": INK},
        hovermode="closest",
        coloraxis={"colorscale": REWARDS, "cmin": low, "cmax": high, "colorbar": bar},
    )
    for number, spot in enumerate(spots, start=1):
        _place(figure, spot, number)
    if moving:
        _animate(figure, portrait, range(2, len(spots) + 1))
    return figure


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


def _place(figure: Any, spot: _Spot, number: int) -> None:
    panel = spot.panel
    for letter, other, domain, label in zip(
        "xy", "yx", (spot.x, spot.y), panel.labels, strict=True
    ):
        axis = {
            "domain": domain,
            "anchor": f"{other}{number}",
            "title": {"text": escape(label), "font": {"size": 13}, "standoff": 8},
            "linecolor": GREY,
            "tickcolor": GREY,
            "tickfont": {"color": GREY},
            "zeroline": False,
            "showgrid": letter == "y" and not panel.coloured,
            "gridcolor": GRID,
        }
        figure.update_layout({f"{letter}axis{number}": axis})
    if panel.field is not None:
        across, up, _ = panel.field
        figure.update_layout({f"xaxis{number}_range": find_ends(across)})
        figure.update_layout({f"yaxis{number}_range": find_ends(up)})
    figure.add_annotation(
        text=_title(panel),
        font={"size": 13.5},
        x=spot.x[0],
        y=spot.y[1],
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        yshift=6,
        showarrow=False,
    )
    figure.add_traces(_traces(panel, number))


def _animate(figure: Any, portrait: Portrait, followers: range) -> None:
    """Add a slider over the frames, a button that moves it, and lines that mark the time."""
    from plotly.graph_objects import Frame

    at_once = {"mode": "immediate", "transition": {"duration": 0}}
    frames, steps = [], []
    for number, time in enumerate(portrait.times[portrait.frames].tolist()):
        panel = make_snapshot(portrait, number)
        traces = _traces(panel, 1)
        lines = [
            {
                "type": "line",
                "x0": time,
                "x1": time,
                "y0": 0,
                "y1": 1,
                "line": {"color": GREY, "width": 1},
            }
            | {"xref": f"x{each}", "yref": f"y{each} domain"}
            for each in followers
        ]
        frames.append(
            Frame(
                name=str(number),
                data=traces,
                traces=list(range(len(traces))),
                layout={"shapes": lines},
            )
        )
        stop = [[str(number)], {**at_once, "frame": {"duration": 0, "redraw": True}}]
        steps.append({"label": f"{time:.4g}", "method": "animate", "args": stop})
    figure.frames = frames
    figure.update_layout(shapes=frames[0].layout.shapes)
    run = [None, {**at_once, "fromcurrent": True, "frame": {"duration": 250, "redraw": True}}]
    figure.update_layout(
        sliders=[
            {
                "steps": steps,
                "x": 0.07,
                "len": 0.43,
                "y": 0.1,
                "yanchor": "top",
                "currentvalue": {"prefix": "t = ", "xanchor": "right"},
                "pad": {"t": 0},
            }
        ],
        updatemenus=[
            {
                "type": "buttons",
                "buttons": [{"label": "play", "method": "animate", "args": run}],
                "x": 0.0,
                "xanchor": "left",
                "y": 0.04,
                "yanchor": "top",
                "showactive": False,
            }
        ],
    )


# Panels as Plotly reads them


def _title(panel: Panel) -> str:
    """Return the title, and the names of the curves in their colours: a legend in place."""
    named = [] if panel.coloured else [curve for curve in panel.curves if curve.name]
    legend = [f'<span style="color:{curve.colour}">{escape(curve.name)}</span>' for curve in named]
    return "   ".join([f"<b>{escape(panel.title)}</b>", *legend])


def _traces(panel: Panel, number: int) -> list[dict[str, Any]]:
    """Return all that is drawn of a panel, on the axes of this *number*."""
    axes = {"xaxis": f"x{number}", "yaxis": f"y{number}", "showlegend": False}
    across, up = (escape(label) for label in panel.labels)
    place = f"{across} %{{x:.4g}}<br>{up} %{{y:.4g}}"
    traces: list[dict[str, Any]] = []
    if panel.field is not None:
        x, y, rewards = panel.field
        hover = f"{place}<br>{REWARD} %{{z:.4g}}<extra></extra>"
        field = {"x": x, "y": y, "z": rewards.astype(np.float32), "hovertemplate": hover}
        look = {"coloraxis": "coloraxis", "zsmooth": "best"}
        traces.append({"type": "heatmap", **look, **field, **axes})
    elif panel.places is not None:
        x, y = panel.places.points.T
        marker = {"size": 11, "color": panel.places.rewards[0], "coloraxis": "coloraxis"}
        hover = f"%{{text}}<br>{REWARD} %{{marker.color:.4g}}<extra></extra>"
        names = [escape(name) for name in panel.places.names]
        sites = {"x": x, "y": y, "marker": marker, "text": names, "hovertemplate": hover}
        traces.append({"type": "scatter", "mode": "markers", **sites, **axes})
    for curve in panel.curves:
        hover = f"{place}<extra>{escape(curve.name)}</extra>"
        drawn = {"x": curve.x, "y": curve.y, "hovertemplate": hover, **axes}
        traces.append({"type": "scatter", **drawn, **_style(curve, panel)})
    return traces


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
