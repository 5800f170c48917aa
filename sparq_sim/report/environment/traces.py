"""Panels as plotly's traces."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from sparq_sim.report.environment.panels import REWARD, Curve, Panel


def titled(panel: Panel) -> str:
    """Give the title, and the names of the curves in their colours: a legend in place."""
    named = [] if panel.coloured else [curve for curve in panel.curves if curve.name]
    legend = [f'<span style="color:{curve.colour}">{escape(curve.name)}</span>' for curve in named]
    return "   ".join([f"<b>{escape(panel.title)}</b>", *legend])


def traces_of(panel: Panel, number: int) -> list[dict[str, Any]]:
    """Give all that is drawn of a panel, on the axes of this *number*."""
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
