"""The map of a network in a page: its nodes with what they have left, its gateways and links."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from sparq_sim.report.html.figure import (
    Figure,
    PlotlyTrace,
    escape_text,
    make_figure,
    round_digits,
)
from sparq_sim.report.network import NetworkData
from sparq_sim.report.palette import CHARGES
from sparq_sim.report.phrases import format_number

__all__ = ["draw_map"]

_MOST_NAMES = 8
"""Nodes with their names beside them on the map; of more, the pointer tells."""
_LINKS = (
    (0.95, "95 % or more delivered", {"color": "--muted/0.75", "width": 2}),
    (0.8, "80 to 95 %", {"color": "--muted/0.6", "width": 1.2}),
    (0.5, "50 to 80 %", {"color": "--meaning-4/0.8", "width": 1.2, "dash": "dash"}),
    (0.0, "less than 50 %", {"color": "--meaning-4", "width": 1.4, "dash": "dot"}),
)
"""Links by the least share of packets that they delivered: what they are called, and their look."""


def draw_map(network: NetworkData) -> Figure:
    """Return the map of a network: nodes, gateways and links, with equal scales.

    Args:
        network: What is drawn.
    """
    traces = [*_links(network), *_gateways(network), *_node_marks(network)]
    metres = {"constrain": "domain", "zeroline": False, "exponentformat": "none"}
    return make_figure(
        traces,
        x="east (m)",
        y="north (m)",
        hovermode="closest",
        xaxis=metres,
        yaxis={**metres, "scaleanchor": "x", "showgrid": False},
    )


def _links(network: NetworkData) -> list[PlotlyTrace]:
    """Return the links in groups of equal look, and a mark in the middle of each to point at."""
    nodes, gateways = network.nodes, network.gateways
    groups: dict[int, list[tuple[int, int]]] = {}
    for node, gateway in network.links:
        share = network.delivered[node]
        place = next((i for i, look in enumerate(_LINKS) if share >= look[0]), len(_LINKS))
        groups.setdefault(place, []).append((node, gateway))
    traces: list[PlotlyTrace] = []
    for place, links in sorted(groups.items()):
        unknown = (0.0, "nothing sent", {"color": "--line", "width": 1})
        _, name, line = (*_LINKS, unknown)[place]
        x, y = (
            [
                coordinate
                for node, gateway in links
                for coordinate in (
                    *round_digits([nodes[axis][node], gateways[axis][gateway]]),
                    None,
                )
            ]
            for axis in ("east", "north")
        )
        look = {"mode": "lines", "line": line, "name": name, "hoverinfo": "skip"}
        traces.append({"x": x, "y": y, **look})
    if network.links:
        middles = {
            axis: round_digits((nodes[axis][n] + gateways[axis][g]) / 2 for n, g in network.links)
            for axis in ("east", "north")
        }
        traces.append(
            {
                "x": middles["east"],
                "y": middles["north"],
                "text": [_describe_link(network, node, gateway) for node, gateway in network.links],
                "mode": "markers",
                "marker": {"size": 14, "opacity": 0},
                "hovertemplate": "%{text}<extra></extra>",
                "showlegend": False,
            }
        )
    return traces


def _describe_link(network: NetworkData, node: int, gateway: int) -> str:
    nodes = network.nodes
    ends = f"{escape_text(network.names[node])} \N{RIGHTWARDS ARROW} "
    facts = [f"{nodes['distance'][node]:.0f} m"] if "distance" in nodes else []
    if "margin" in nodes:
        facts.append(f"margin {nodes['margin'][node]:.1f} dB")
    if "rate" in nodes and nodes["rate"][node] > 0:
        facts.append(f"SF {nodes['rate'][node]}")
    counts = [
        f"{nodes[name][node]} {name}"
        for name in ("sent", "delivered", "lost", "collided", "refused")
        if name in nodes
    ]
    lines = [f"<b>{ends}{escape_text(network.gateway_names[gateway])}</b>", ", ".join(facts)]
    lines.append(f"packets: {', '.join(counts)}" if counts else "")
    return "<br>".join(line for line in lines if line)


def _gateways(network: NetworkData) -> list[PlotlyTrace]:
    if not network.gateways:
        return []
    texts = []
    for row, name in enumerate(network.gateway_names):
        text = f"<b>{escape_text(name)}</b><br>gateway"
        if "airtime" in network.gateways:
            text += f"<br>sent for {format_number(float(network.gateways['airtime'][row]))} s"
        if "busiest" in network.gateways:
            text += f"<br>received at most {network.gateways['busiest'][row]} packets at once"
        texts.append(text)
    return [
        {
            "x": round_digits(network.gateways["east"]),
            "y": round_digits(network.gateways["north"]),
            "text": texts,
            "mode": "markers",
            "name": "gateway",
            "marker": {
                "symbol": "triangle-up",
                "size": 15,
                "color": "--ink",
                "line": {"color": "--paper", "width": 1.5},
            },
            "hovertemplate": "%{text}<extra></extra>",
        }
    ]


def _node_marks(network: NetworkData) -> list[PlotlyTrace]:
    count = len(network.names)
    size = 13 if count <= 40 else 9 if count <= 150 else 6
    charged = np.isfinite(network.shares) & ~network.dead
    looks: list[tuple[str, Any, dict[str, Any]]] = [
        (
            "node with battery",
            charged,
            {
                "color": round_digits(network.shares[charged]),
                "cmin": 0,
                "cmax": 1,
                "colorscale": CHARGES.capitalize(),
                "line": {"color": "--ink", "width": 1},
                "colorbar": {
                    "title": {"text": "left", "font": {"size": 12, "color": "--muted"}},
                    "thickness": 10,
                    "outlinewidth": 0,
                    "tickformat": ".0%",
                    "tickfont": {"color": "--muted"},
                },
            },
        ),
        (
            "node on mains",
            ~np.isfinite(network.shares) & ~network.dead,
            {"color": "--paper", "line": {"color": "--ink", "width": 2}},
        ),
        (
            "dead node",
            network.dead,
            {"symbol": "x", "color": "--meaning-4", "line": {"color": "--paper", "width": 1}},
        ),
    ]
    named: dict[str, Any] = {"mode": "markers"}
    if count <= _MOST_NAMES:
        font = {"color": "--muted", "size": 11}
        named = {"mode": "markers+text", "textposition": "top center", "textfont": font}
    return [
        {
            "x": round_digits(network.nodes["east"][which]),
            "y": round_digits(network.nodes["north"][which]),
            "text": [escape_text(network.names[row]) for row in np.flatnonzero(which).tolist()],
            "customdata": [_describe_node(network, row) for row in np.flatnonzero(which).tolist()],
            "hovertemplate": "<b>%{text}</b><br>%{customdata}<extra></extra>",
            "name": name,
            "marker": {"size": size, **marker},
            "cliponaxis": False,
            **named,
        }
        for name, which, marker in looks
        if which.any()
    ]


def _describe_node(network: NetworkData, row: int) -> str:
    capacity, share = float(network.nodes["capacity"][row]), float(network.shares[row])
    lines = []
    if network.dead[row]:
        lines.append(f"died at {format_number(float(network.nodes['died_at'][row]), 4)}")
    if isfinite(share):
        left = format_number(float(network.nodes["left"][row]))
        lines.append(f"{left} of {format_number(capacity)} J left ({100 * share:.3g} %)")
    else:
        lines.append("on mains")
    if network.energies:
        lines.append(f"used {format_number(float(network.used[row]))} J")
    if "harvested" in network.nodes and network.nodes["harvested"][row] > 0:
        lines.append(f"harvested {format_number(float(network.nodes['harvested'][row]))} J")
    return "<br>".join(lines)
