"""A belief for print: what an agent believed in a round, beside what was true and what it knew."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sparq_sim.analysis.explanation import is_told
from sparq_sim.arrays import Points, Values
from sparq_sim.errors import SparqError
from sparq_sim.messages import AGENT_NAME
from sparq_sim.plugin.optimizer import Belief
from sparq_sim.report.journeys import choose_span, list_sources
from sparq_sim.report.palette import BEST, GREY, INK, MEANINGS, REWARDS
from sparq_sim.report.phrases import add_unit
from sparq_sim.report.print.layout import Artists, add_legend
from sparq_sim.report.print.style import STYLE, apply_style, literal
from sparq_sim.report.replay import Film
from sparq_sim.simulation.records import Fate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_belief"]

_WIDE = 5.0
"""Inches, from which on panels stand side by side."""
_BELIEVED, _OWN = MEANINGS[0], MEANINGS[1]
_SOURCES = ((MEANINGS[1], "o"), (MEANINGS[2], "D"), (MEANINGS[4], "s"), (MEANINGS[5], "^"))
"""Colours and markers of values by their sources: own observations, and experts."""
_PLAYED: dict[str, Any] = {"marker": "o", "markersize": 6, "color": _OWN}
_BEST: dict[str, Any] = {"marker": "*", "markersize": 9, "color": BEST}
_CLEAR: dict[str, Any] = {"linestyle": "", "markeredgecolor": "white", "markeredgewidth": 0.8}
"""Marks that stand out from what is below them."""
_RING: dict[str, Any] = {
    "markersize": 8.5,
    "markerfacecolor": "none",
    "markeredgecolor": _OWN,
    "markeredgewidth": 1.6,
}


@dataclass(frozen=True)
class _Known:
    """The values of a source that the agent had heard: where, what, and how fresh, up to 1."""

    source: str
    points: Points
    values: Values
    fresh: Values

    def fade(self, colour: str) -> Any:
        """Return a colour per value, the older the fainter."""
        from matplotlib.colors import to_rgba_array

        colours = np.repeat(to_rgba_array(colour), len(self.fresh), axis=0)
        colours[:, 3] = 0.06 + 0.9 * self.fresh**2
        return colours


class _Shot:
    """The one round of a film."""

    def __init__(self, film: Film, belief: Belief) -> None:
        self.film, self.belief = film, belief
        self.scene, self.trace = film.scene, film.trace
        self.row = int(film.frames[0])
        self.truth: Values = film.rewards[0]
        self.bound: Values = belief.mean + belief.width * belief.std

    @cached_property
    def known(self) -> list[_Known]:
        """What the agent had heard, by source."""
        replies, rounds = self.trace.replies, self.trace.rounds
        now = float(rounds["started_at"][self.row])
        span = choose_span(replies, self.film.period)
        own = (replies["asker"] == AGENT_NAME) | (replies["asker"] == replies["source"])
        ages = now - replies["measured_at"]
        told = own & is_told(self.trace, self.row, now) & (replies["fate"] == Fate.ANSWERED)
        told &= ages <= span
        points = np.stack([replies[name] for name in self.trace.coordinates], axis=1)
        found = []
        for source in list_sources(replies):
            here = np.flatnonzero(told & (replies["source"] == source))
            here = here[np.argsort(-ages[here], kind="stable")]
            fresh = np.clip(1 - ages[here] / span, 0.0, 1.0)
            found.append(_Known(source, points[here], replies["value"][here], fresh))
        return found

    def label(self, place: int) -> str:
        """Return the label of the axis of a coordinate."""
        name = self.trace.coordinates[place]
        return literal(add_unit(name, self.film.units.of_coordinate(place)))


def draw_belief(film: Film, *, title: str, width: float) -> Figure:
    """Return a figure of what an agent believed in a round.

    In one dimension it has curves, in two and on maps a panel for each quantity.

    Args:
        film: One round of a play, as `sparq_sim.report.replay.film_round` returns it.
        title: Which play and round it is, as matplotlib shows it.
        width: In inches.

    Raises:
        SparqError: The agent believed nothing yet.
    """
    from matplotlib.figure import Figure

    (belief,) = film.beliefs
    if belief is None:
        raise SparqError(
            "the agent believed nothing yet in this round; choose a later one by --round"
        )
    shot = _Shot(film, belief)
    with apply_style():
        figure = Figure(figsize=(width, width), layout="constrained")
        if film.scene.kind == "line":
            artists, high = _paint_curves(figure.add_subplot(), shot), 0.62 * width
        else:
            artists, high = _paint_panels(figure, shot, width)
        figure.suptitle(title, x=0.01, ha="left", color=GREY, fontsize=7)
        foot = add_legend(figure, artists, width)
        figure.set_size_inches(width, high + foot + 0.15)
    return figure


# One dimension


def _paint_curves(axes: Axes, shot: _Shot) -> Artists:
    belief, truth = shot.belief, shot.truth
    places = shot.scene.true[:, 0]
    low, high = belief.mean - belief.std, belief.mean + belief.std
    artists: Artists = {}
    look: dict[str, Any] = {"color": INK, "linewidth": 1.2, "label": "true reward"}
    if shot.scene.shape.get("sites"):
        look |= {"marker": ".", "markersize": 3}
    (artists["truth"],) = axes.plot(places, truth, **look)
    (artists["mean"],) = axes.plot(places, belief.mean, color=_BELIEVED, label="posterior mean")
    band: dict[str, Any] = {
        "color": _BELIEVED,
        "alpha": 0.2,
        "linewidth": 0,
        "label": "mean ± 1 std",
    }
    artists["band"] = axes.fill_between(places, low, high, **band)
    dashes: dict[str, Any] = {"color": _BELIEVED, "linestyle": (0, (4, 2)), "linewidth": 0.9}
    (artists["bound"],) = axes.plot(places, shot.bound, label="upper confidence bound", **dashes)
    for i, known in enumerate(shot.known):
        if len(known.points):
            colour, marker = _SOURCES[min(i, len(_SOURCES) - 1)]
            name = literal(f"{known.source}: observed" if i == 0 else f"{known.source}: answers")
            axes.scatter(
                known.points[:, 0],
                known.values,
                c=known.fade(colour),
                marker=marker,
                s=12,
                linewidths=0,
                zorder=3,
            )
            artists[name] = axes.plot([], [], marker, color=colour, markersize=3.5, label=name)[0]
    played = shot.trace.points[shot.row], float(shot.trace.rounds["reward"][shot.row])
    best = shot.film.best[0], float(shot.trace.rounds["best"][shot.row])
    for name, (point, value), mark in (("played", played, _PLAYED), ("best", best, _BEST)):
        style = {**_CLEAR, **mark, "label": name, "zorder": 5, "clip_on": False}
        (artists[name],) = axes.plot(point[0], value, **style)
    axes.set(xlabel=shot.label(0), ylabel=literal(add_unit("reward", shot.film.units.reward)))
    axes.set_ylim(*_find_limits(shot, low, high))
    return artists


def _find_limits(shot: _Shot, low: Values, high: Values) -> tuple[float, float]:
    """Return the ends of the axis of rewards; bounds and noise far beyond them leave it."""
    least, most = float(np.nanmin(shot.truth)), float(np.nanmax(shot.truth))
    room = most - least or 1.0
    reach = float(np.nanmax([np.nanmax(high), np.nanquantile(shot.bound, 0.9)]))
    bottom = min(least, max(float(np.nanmin(low)), least - room / 2))
    top = max(most, min(reach, most + room))
    for known in shot.known:
        bottom = min(bottom, max(np.min(known.values, initial=bottom), least - room / 2))
        top = max(top, min(np.max(known.values, initial=top), most + room / 2))
    edge = 0.05 * (top - bottom)
    return bottom - edge, top + edge


# Two dimensions, and maps


def _paint_panels(figure: Figure, shot: _Shot, width: float) -> tuple[Artists, float]:
    """Paint a panel for each quantity; return what a legend explains, and the height in inches."""
    belief = shot.belief
    unit = shot.film.units.reward
    both = np.concatenate([shot.truth, belief.mean])
    rewards = float(np.nanmin(both)), float(np.nanmax(both))
    panels: list[tuple[str, Values, tuple[float, float] | None, str]] = [
        ("true reward", shot.truth, rewards, REWARDS),
        ("posterior mean", belief.mean, rewards, REWARDS),
        ("std", belief.std, None, "cividis"),
        ("upper confidence bound", shot.bound, None, REWARDS),
    ]
    columns = 4 if width >= _WIDE else 2
    across, up = _find_axes(shot)
    all_axes = figure.subplots(len(panels) // columns, columns, squeeze=False)
    artists: Artists = {}
    for number, (axes, (name, values, limits, colours)) in enumerate(
        zip(all_axes.flat, panels, strict=True)
    ):
        image = _paint_values(axes, shot, values, limits, colours)
        bar = figure.colorbar(image, ax=axes, location="bottom", aspect=22, pad=0.03, shrink=0.9)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=6, length=1.5, pad=1)
        bar.locator = _few_ticks()
        bar.update_ticks()
        axes.set_title(literal(add_unit(name, unit)))
        artists |= _paint_marks(axes, shot, known=number > 0)
        axes.locator_params(nbins=4)
        below, left = number + columns >= len(panels), number % columns == 0
        axes.tick_params(labelbottom=below, labelleft=left, labelsize=STYLE["xtick.labelsize"])
        axes.set(xlabel=shot.label(across) if below else "", ylabel=shot.label(up) if left else "")
    rows = len(panels) // columns
    return artists, rows * (width / columns * _find_aspect(shot) * 0.85 + 0.55)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def _find_axes(shot: _Shot) -> tuple[int, int]:
    """Return which coordinates go across and up."""
    across, up = shot.scene.shape.get("axes", (0, 1))
    return int(across), int(up)


def _find_aspect(shot: _Shot) -> float:
    """Return how tall a panel is for its width; that of a box says nothing of distances."""
    if shot.scene.kind == "field":
        return 1.0
    wide, tall = np.ptp(shot.scene.true[:, list(_find_axes(shot))], axis=0)
    return float(np.clip(tall / wide if wide else 1.0, 0.6, 1.2))


def _paint_values(
    axes: Axes, shot: _Shot, values: Values, limits: tuple[float, float] | None, colours: str
) -> Any:
    across, up = _find_axes(shot)
    points = shot.scene.true
    low, high = limits or (float(np.nanmin(values)), float(np.nanmax(values)))
    look: dict[str, Any] = {"cmap": colours, "vmin": low, "vmax": high}
    if shot.scene.kind == "map":
        sites: dict[str, Any] = {
            "s": 26,
            "edgecolors": GREY,
            "linewidths": 0.3,
            "plotnonfinite": True,
        }
        axes.margins(0.08)
        return axes.scatter(points[:, across], points[:, up], c=values, **sites, **look)
    places = [np.unique(points[:, i]) for i in (0, 1)]
    # Neighbouring points of a grid lie along one coordinate or the other.
    order = np.lexsort((points[:, 0], points[:, 1]))
    table = values[order].reshape(len(places[1]), len(places[0]))
    return axes.pcolormesh(*places, table, shading="gouraud", rasterized=True, **look)


def _paint_marks(axes: Axes, shot: _Shot, *, known: bool) -> Artists:
    across, up = _find_axes(shot)
    artists: Artists = {}
    for i, each in enumerate(shot.known if known else ()):
        if len(each.points):
            _, marker = _SOURCES[min(i, len(_SOURCES) - 1)]
            name = literal(f"{each.source}: observed" if i == 0 else f"{each.source}: answers")
            x, y = each.points[:, across], each.points[:, up]
            axes.scatter(
                *(x, y, 6),
                facecolors=each.fade("white"),
                edgecolors=each.fade(INK),
                marker=marker,
                linewidths=0.5,
                zorder=3,
            )
            sample: dict[str, Any] = {
                "markerfacecolor": "white",
                "markeredgecolor": INK,
                "markersize": 3.5,
            }
            artists[name] = axes.plot([], [], marker, label=name, **sample)[0]
    played, best = shot.trace.points[shot.row], shot.film.best[0]
    # A ring, for a site has a colour of its own.
    ring = {**_PLAYED, **_RING} if shot.scene.kind == "map" else _PLAYED
    for name, point, mark in (("played", played, ring), ("best", best, _BEST)):
        style = {**_CLEAR, **mark, "label": name, "zorder": 5, "clip_on": False}
        (artists[name],) = axes.plot(point[across], point[up], **style)
    return artists
