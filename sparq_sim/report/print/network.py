"""A network for print: a map of its links, its batteries over time, and where the energy went."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sparq_sim.errors import SparqError
from sparq_sim.report.network import NetworkData
from sparq_sim.report.palette import CHARGES, GREY, INK, MEANINGS, PALE, colour_of
from sparq_sim.report.print.layout import Artists, add_legend
from sparq_sim.report.print.style import apply_style, literal, need_matplotlib
from sparq_sim.simulation.trace import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_network"]

_WIDE = 5.0
"""Inches, from which on panels stand side by side."""
_MOST_NAMES = 16
"""Nodes whose names are written below their bars."""
_LINKS: tuple[tuple[float, str, dict[str, Any]], ...] = (
    (0.95, "95 % or more delivered", {"color": GREY, "linewidth": 1.1}),
    (0.8, "80 to 95 %", {"color": GREY, "linewidth": 0.6}),
    (0.5, "50 to 80 %", {"color": MEANINGS[3], "linewidth": 0.7, "linestyle": (0, (4, 1.5))}),
    (0.0, "less than 50 %", {"color": MEANINGS[3], "linewidth": 0.8, "linestyle": (0, (1, 1.2))}),
)
"""Links by the least share of packets that they delivered: what they are called, and their look."""
_UNKNOWN: tuple[float, str, dict[str, Any]] = (
    0.0,
    "nothing sent",
    {"color": PALE, "linewidth": 0.5},
)


def draw_network(network: NetworkData, *, width: float = 3.4) -> Figure:
    """Return a figure of a network: its map, and where they are known batteries and energy.

    Args:
        network: What is drawn, as `sparq_sim.report.network.read_networks` returns it.
        width: In inches, from 1 to 30; by default, a column of a journal. From 5 inches on, panels
            stand side by side, else one above the other.

    Raises:
        SparqError: The width is out of range, or matplotlib is not installed.
    """
    need_matplotlib()
    from matplotlib.figure import Figure

    if not 1 <= width <= 30:
        raise SparqError(f"a figure must be from 1 to 30 inches wide, not {width!r}")
    painters: list[Callable[[Axes, NetworkData], Artists]] = [
        partial(_paint_map, wide=width >= _WIDE)
    ]
    if network.batteries is not None:
        painters.append(_paint_batteries)
    if network.energies:
        painters.append(_paint_energy)
    with apply_style():
        wide = width >= _WIDE
        rows, columns = (1, len(painters)) if wide else (len(painters), 1)
        across = width / columns
        heights = [min(1.0, max(0.5, _aspect(network))) * across, *[0.6 * across] * 2]
        heights = heights[: len(painters)]
        figure = Figure(figsize=(width, width), layout="constrained")
        grid = figure.add_gridspec(rows, columns, height_ratios=None if wide else heights)
        artists: Artists = {}
        for place, paint in enumerate(painters):
            axes = figure.add_subplot(grid[0, place] if wide else grid[place, 0])
            artists |= paint(axes, network)
        foot = add_legend(figure, artists, width)
        figure.set_size_inches(width, (max(heights) if wide else sum(heights)) + foot + 0.1)
    return figure


def _aspect(network: NetworkData) -> float:
    """Return how tall the map is for its width."""
    east, north = (
        np.ptp(np.concatenate([network.nodes[axis], network.gateways.get(axis, [])]))
        for axis in ("east", "north")
    )
    return float(north / east) if east > 0 else 1.0


def _paint_map(axes: Axes, network: NetworkData, *, wide: bool) -> Artists:
    artists = _paint_links(axes, network)
    count = len(network.names)
    size = 26 if count <= 40 else 14 if count <= 150 else 7

    def scatter(rows: Columns, which: Any, name: str, **look: Any) -> Any:
        edge = {"edgecolors": "white", "linewidths": 0.5, "zorder": 3, "label": name}
        return axes.scatter(rows["east"][which], rows["north"][which], **{**edge, **look})

    battery = np.isfinite(network.shares)
    if (charged := battery & ~network.dead).any():
        colours = {"c": network.shares[charged], "cmap": CHARGES, "vmin": 0, "vmax": 1}
        marks = scatter(network.nodes, charged, "node", s=size, edgecolors=INK, **colours)
        place: dict[str, Any] = {"location": "right", "aspect": 18, "shrink": 0.8}
        if not wide:
            place = {"location": "top", "aspect": 40, "shrink": 0.6}
        bar = axes.figure.colorbar(marks, ax=axes, pad=0.02, **place)
        bar.set_label("battery left (%)")
        bar.set_ticks([0, 0.5, 1], labels=["0", "50", "100"])
        bar.ax.spines["outline"].set_visible(False)
        artists["node"] = marks
    if (mains := ~battery & ~network.dead).any():
        look = {"c": "white", "edgecolors": INK}
        artists["mains"] = scatter(network.nodes, mains, "on mains", s=size, **look)
    if network.dead.any():
        look = {"c": MEANINGS[3], "marker": "X"}
        artists["dead"] = scatter(network.nodes, network.dead, "dead node", s=size + 6, **look)
    if network.gateways:
        look = {"c": INK, "marker": "^"}
        artists["gateway"] = scatter(network.gateways, slice(None), "gateway", s=36, **look)
    axes.set_aspect("equal")
    axes.margins(0.06)
    axes.locator_params(nbins=5)
    axes.set(xlabel="east (m)", ylabel="north (m)")
    return artists


def _paint_links(axes: Axes, network: NetworkData) -> Artists:
    artists: Artists = {}
    for node, gateway in network.links:
        share = network.delivered[node]
        _, name, look = next((each for each in _LINKS if share >= each[0]), _UNKNOWN)
        x, y = (
            [network.nodes[axis][node], network.gateways[axis][gateway]]
            for axis in ("east", "north")
        )
        (artists[name],) = axes.plot(x, y, label=name, zorder=1, **look)
    return {name: artists[name] for _, name, _ in (*_LINKS, _UNKNOWN) if name in artists}


def _paint_batteries(axes: Axes, network: NetworkData) -> Artists:
    batteries = network.batteries
    assert batteries is not None
    artists: Artists = {}
    many = len(batteries.nodes) > 40
    for column in range(len(batteries.nodes)):
        shares = batteries.shares[:, column]
        known = np.isfinite(shares)
        x, y = batteries.times[known].tolist(), shares[known].tolist()
        if np.isfinite(batteries.deaths[column]):
            x.append(batteries.deaths[column])
            y.append(batteries.last[column])
        (artists["one"],) = axes.plot(
            x,
            100 * np.array(y),
            color=MEANINGS[0],
            linewidth=0.4 if many else 0.6,
            alpha=0.35 if many else 0.6,
            label="one node",
        )
    if len(batteries.nodes) > 2:
        (artists["median"],) = axes.plot(
            batteries.times, 100 * batteries.median, color=INK, linewidth=1.2, label="median"
        )
    died = np.isfinite(batteries.deaths)
    if died.any():
        # The same cross as on the map.
        axes.scatter(
            batteries.deaths[died],
            100 * batteries.last[died],
            c=MEANINGS[3],
            s=24,
            marker="X",
            edgecolors="white",
            linewidths=0.5,
            zorder=3,
            clip_on=False,
        )
        axes.set_ylim(bottom=0)
    axes.locator_params(nbins=5)
    axes.set(xlabel="time (clock units)", ylabel="battery left (%)")
    return artists


def _paint_energy(axes: Axes, network: NetworkData) -> Artists:
    order = np.argsort(-network.used, kind="stable")
    places = np.arange(len(order))
    below = np.zeros(len(order))
    artists: Artists = {}
    for cause, energy in network.energies.items():
        artists[cause] = axes.bar(
            places,
            energy[order],
            0.85 if len(order) <= 60 else 1.0,
            bottom=below,
            color=MEANINGS[colour_of(cause) - 1],
            label=cause,
            linewidth=0,
        )
        below += energy[order]
    axes.set_ylabel("energy (J)")
    if len(order) <= _MOST_NAMES:
        names = [literal(network.names[row]) for row in order.tolist()]
        axes.set_xticks(places, names, rotation=90)
    else:
        axes.set_xticks([])
        axes.set_xlabel(f"{len(order)} nodes, by energy used")
    axes.margins(x=0.01)
    return artists
