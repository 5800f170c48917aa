"""Networks in a page: a map, batteries over time, where the energy went, what became of packets."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite

import numpy as np

from sparq_sim.report.html.figure import (
    Chart,
    Figure,
    PlotlyTrace,
    escape_text,
    make_figure,
    round_digits,
)
from sparq_sim.report.html.network_map import draw_map
from sparq_sim.report.network import FATES, Batteries, NetworkData, ShownNetwork
from sparq_sim.report.palette import colour_of

__all__ = ["network_charts"]

_MOST_LINES = 60
"""Batteries that are lines of their own, which tell their names; of more, all are one line."""
_MOST_POINTS = 6000
"""Of all batteries in a figure; with more, fewer moments are shown."""
_MOST_BARS = 200
"""Nodes in the chart of energy; of more, those that used most."""
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
        [draw_map(network) for network in networks],
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
                "marker": {"symbol": "x", "size": 9, "color": "--meaning-4"},
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
        line = {"color": "--meaning-1/0.35", "width": 0.8}
        return [{"x": x, "y": y, "line": line, "hoverinfo": "skip", **look}]
    return [
        {
            "x": x,
            "y": y,
            "line": {"color": "--meaning-1/0.5", "width": 1.2},
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
    return f"--meaning-{place}" if place else "--ink"


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
