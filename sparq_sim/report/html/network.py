"""Networks in a page: a map, batteries over time, where the energy went, what became of packets."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite
from typing import Any

import numpy as np

from sparq_sim.report.html.figure import (
    Chart,
    Figure,
    PlotlyTrace,
    escape_text,
    make_figure,
    round_digits,
)
from sparq_sim.report.network import FATES, Batteries, NetworkData, ShownNetwork
from sparq_sim.report.palette import CHARGES, colour_of
from sparq_sim.report.words import format_number

__all__ = ["network_charts"]

_MOST_LINES = 60
"""Batteries that are lines of their own, which tell their names; of more, all are one line."""
_MOST_POINTS = 6000
"""Of all batteries in a figure; with more, fewer moments are shown."""
_MOST_BARS = 200
"""Nodes in the chart of energy; of more, those that used most."""
_MOST_NAMES = 8
"""Nodes with their names beside them on the map; of more, the pointer tells."""
_LINKS = (
    (0.95, "95 % or more delivered", {"color": "--muted/0.75", "width": 2}),
    (0.8, "80 to 95 %", {"color": "--muted/0.6", "width": 1.2}),
    (0.5, "50 to 80 %", {"color": "--series-4/0.8", "width": 1.2, "dash": "dash"}),
    (0.0, "less than 50 %", {"color": "--series-4", "width": 1.4, "dash": "dot"}),
)
"""Links by the least share of packets that they delivered: what they are called, and their look."""
_TIME = "time (clock units)"


def network_charts(shown: Sequence[ShownNetwork]) -> list[Chart]:
    """Return the charts of networks: one figure of each, of which the reader chooses.

    Args:
        shown: All networks of a report.
    """
    networks = [each.network for each in shown]
    charts = []

    def add(name: str, title: str, caption: str, figures: Sequence[Figure | None]) -> None:
        if any(figures):
            given = [figure or _nothing() for figure in figures]
            charts.append(Chart(f"network-{name}", title, caption, given, by="network"))

    add(
        "map",
        "Map",
        "Nodes at the end of the play, in the colour of what their batteries have left, and their "
        "links to their gateways; point at a node or at the middle of a link for its numbers.",
        [_map(network) for network in networks],
    )
    add(
        "batteries",
        "Batteries",
        "What is left in each battery over time, as a share of its capacity; a cross marks the "
        "death of a node.",
        [_batteries(network) for network in networks],
    )
    if any(network.energies for network in networks):
        caption = "Energy that all nodes used together in one play of each optimizer, by cause."
        charts.append(Chart("network-energy", "Where the energy went", caption, [_energy(shown)]))
    add(
        "nodes",
        "Energy of each node",
        "Energy that each node used, by cause, from the node that used most to the one that used "
        f"least{_most_bars(networks)}.",
        [_nodes(network) for network in networks],
    )
    add(
        "packets",
        "What became of packets",
        "How the packets of the whole play ended, by purpose; in brackets, how many there were.",
        [_packets(network) for network in networks],
    )
    return charts


def _most_bars(networks: Sequence[NetworkData]) -> str:
    most = max((len(network.names) for network in networks), default=0)
    return f"; of {most} nodes, {_MOST_BARS} are shown" if most > _MOST_BARS else ""


def _nothing() -> Figure:
    """Return the figure of a network that has nothing to show where another has."""
    words = {
        "text": "nothing to show in this play",
        "showarrow": False,
        "font": {"color": "--muted"},
    }
    place = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    off = {"visible": False}
    return make_figure([], x="", y="", xaxis=off, yaxis=off, annotations=[{**words, **place}])


# The map


def _map(network: NetworkData) -> Figure:
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
            {"symbol": "x", "color": "--series-4", "line": {"color": "--paper", "width": 1}},
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


# Over time


def _batteries(network: NetworkData) -> Figure | None:
    batteries = network.batteries
    if batteries is None:
        return None
    traces = _battery_lines(batteries, network.names)
    if len(batteries.nodes) > 2:
        traces.append(
            {
                "x": round_digits(batteries.times),
                "y": round_digits(batteries.median),
                "mode": "lines",
                "name": "median",
                "line": {"color": "--ink", "width": 2.5},
                "hovertemplate": "median %{y:.1%}<extra></extra>",
            }
        )
    died = np.flatnonzero(np.isfinite(batteries.deaths))
    if len(died):
        names = [escape_text(network.names[batteries.nodes[row]]) for row in died]
        traces.append(
            {
                "x": round_digits(batteries.deaths[died]),
                "y": round_digits(batteries.last[died]),
                "text": names,
                "mode": "markers",
                "name": "death",
                "marker": {"symbol": "x", "size": 9, "color": "--series-4"},
                "cliponaxis": False,
                "hovertemplate": "%{text} died at %{x:.4g}<extra></extra>",
            }
        )
    # Where a play is short, all is near the top: the axis need not begin at 0.
    axis = {"tickformat": ".3~p", "rangemode": "tozero" if len(died) else "normal"}
    return make_figure(traces, x=_TIME, y="left in the battery", hovermode="closest", yaxis=axis)


def _battery_lines(batteries: Batteries, names: Sequence[str]) -> list[PlotlyTrace]:
    count = len(batteries.nodes)
    stride = max(1, ceil(len(batteries.times) * count / _MOST_POINTS))
    kept = np.arange(len(batteries.times))[::-stride][::-1]
    curves = []
    for column, node in enumerate(batteries.nodes.tolist()):
        shares = batteries.shares[kept, column]
        known = np.isfinite(shares)
        x, y = batteries.times[kept][known].tolist(), shares[known].tolist()
        if isfinite(batteries.deaths[column]):
            x.append(batteries.deaths[column])
            y.append(batteries.last[column])
        curves.append((escape_text(names[node]), round_digits(x), round_digits(y)))
    look = {"mode": "lines", "name": "one node", "legendgroup": "nodes"}
    if count > _MOST_LINES:
        x = [number for _, xs, _ in curves for number in (*xs, None)]
        y = [number for _, _, ys in curves for number in (*ys, None)]
        line = {"color": "--series-1/0.35", "width": 0.8}
        return [{"x": x, "y": y, "line": line, "hoverinfo": "skip", **look}]
    return [
        {
            "x": x,
            "y": y,
            "line": {"color": "--series-1/0.5", "width": 1.2},
            "showlegend": place == 0,
            "text": name,
            "hovertemplate": "%{text}: %{y:.1%} at %{x:.4g}<extra></extra>",
            **look,
        }
        for place, (name, x, y) in enumerate(curves)
    ]


# Energy


def _energy(shown: Sequence[ShownNetwork]) -> Figure:
    labels = [_shorten(each.title) for each in shown]
    causes = list(dict.fromkeys(cause for each in shown for cause in each.network.energies))
    traces = []
    for cause in causes:
        totals = [
            float(each.network.energies[cause].sum()) if cause in each.network.energies else 0.0
            for each in shown
        ]
        whole = [float(each.network.used.sum()) for each in shown]
        parts = [
            f"{100 * t / w:.3g} %" if w > 0 else "" for t, w in zip(totals, whole, strict=True)
        ]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": round_digits(totals),
                "y": list(range(len(shown))),
                "text": parts,
                "textposition": "none",
                "name": cause,
                "marker": {"color": _colour(cause)},
                "hovertemplate": f"{cause}: %{{x:.4g}} J (%{{text}})<extra></extra>",
            }
        )
    figure = _bars(traces, "energy (J)", labels)
    figure["layout"]["xaxis"]["exponentformat"] = "SI"
    return figure


def _bars(traces: Sequence[PlotlyTrace], label: str, names: Sequence[str]) -> Figure:
    """Return a figure of stacked bars that lie, each under its name, the first on top."""
    figure = make_figure(
        traces,
        x=label,
        y="",
        hovermode="closest",
        barmode="stack",
        bargap=0.4,
        showlegend=True,
        xaxis={"showgrid": True},
        yaxis={
            "tickmode": "array",
            "tickvals": list(range(len(names))),
            "ticktext": list(names),
            "range": [len(names) - 0.5, -0.5],
            "showgrid": False,
            "zeroline": False,
        },
    )
    figure["layout"]["legend"]["traceorder"] = "normal"
    return figure


def _colour(name: str) -> str:
    place = colour_of(name)
    return f"--series-{place}" if place else "--ink"


def _shorten(title: str) -> str:
    return escape_text(title if len(title) <= 26 else f"{title[:25]}…")


def _nodes(network: NetworkData) -> Figure | None:
    if not network.energies:
        return None
    order = np.argsort(-network.used, kind="stable")[:_MOST_BARS]
    places = list(range(len(order)))
    traces = [
        {
            "type": "bar",
            "x": places,
            "y": round_digits(energy[order]),
            "name": cause,
            "marker": {"color": _colour(cause)},
            "hovertemplate": "%{y:.4g} J",
        }
        for cause, energy in network.energies.items()
    ]
    axis = {
        "tickmode": "array",
        "tickvals": places,
        "ticktext": [_shorten(network.names[row]) for row in order.tolist()],
        "showticklabels": len(order) <= 30,
        "zeroline": False,
    }
    look = {"barmode": "stack", "bargap": 0.15, "showlegend": True}
    label = "" if len(order) <= 30 else "nodes"
    joules = {"exponentformat": "SI"}
    figure = make_figure(traces, x=label, y="energy (J)", xaxis=axis, yaxis=joules, **look)
    figure["layout"]["legend"]["traceorder"] = "normal"
    return figure


# Packets


def _packets(network: NetworkData) -> Figure | None:
    counts = network.count_packets()
    if not counts:
        return None
    occurring = {fate for fates in counts.values() for fate in fates}
    known = [fate for fate in FATES if fate in occurring]
    traces = []
    for fate in [*known, *sorted(occurring.difference(FATES))]:
        shares = [fates.get(fate, 0) / sum(fates.values()) for fates in counts.values()]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": round_digits(shares),
                "y": list(range(len(counts))),
                "text": [str(fates.get(fate, 0)) for fates in counts.values()],
                "textposition": "none",
                "name": escape_text(fate),
                "marker": {"color": _colour(fate)},
                "hovertemplate": "%{fullData.name}: %{text} (%{x:.3~p})<extra></extra>",
            }
        )
    names = [f"{_shorten(purpose)} ({sum(fates.values())})" for purpose, fates in counts.items()]
    figure = _bars(traces, "share of packets", names)
    figure["layout"]["xaxis"] |= {"tickformat": ".0%", "range": [0, 1]}
    return figure
