"""Charts: what a study comes to, as Plotly figures.

Colours are named after the properties of the page's style, `--series-1` say, with an opacity
where wanted (`--series-1/0.2`): the page puts in those of its theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import combinations
from math import isfinite, nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.summary import Band, Spread, Summary, spread
from sparq_sim.errors import visible
from sparq_sim.fields import is_number
from sparq_sim.simulation.references import References
from sparq_sim.study.settings import Setting, agree, brief, in_words, shown, swept, values_of
from sparq_sim.study.store import StoredSummary, canonical

Figure: TypeAlias = dict[str, Any]
Trace: TypeAlias = dict[str, Any]

MOST_POINTS = 250
"""Of a curve: more than a screen can show of it."""
MOST_CURVES = 240
"""Over the rounds, in all; of more settings than that allows, some are shown."""
MOST_CELLS = 24
"""Pairs of swept parameters times optimizers, of which heat maps are drawn."""
FROM_ZERO = {"rangemode": "tozero", "autorangeoptions": {"minallowed": 0}}
"""No regret is negative, though the interval of a mean may reach below."""
COLOURS = 8
DASHES = ("solid", "dash", "dot", "dashdot")
REFERENCES = {
    "uniform": "uniform, expected",
    "fixed": "best fixed point",
    "late": "one round late",
}


@dataclass(frozen=True)
class Track:
    """A quantity over the rounds: its mean over the plays of an optimizer in a setting."""

    name: str
    optimizer: str
    setting: Setting
    rounds: NDArray[np.float64]
    means: NDArray[np.float64]


@dataclass(frozen=True)
class Material:
    """What charts are made of."""

    optimizers: Sequence[str] = ()
    """In the order of their colours."""
    summaries: Sequence[Summary] = ()
    found: Sequence[StoredSummary] = ()
    bands: Sequence[Band] = ()
    """Of the cumulative regret, at no more rounds than are shown."""
    tracks: Sequence[Track] = ()
    levels: Sequence[tuple[Setting, References]] = ()
    """What simple policies would get, in each setting."""
    settings: Sequence[Setting] = field(default=({},))
    """Those that are shown over the rounds."""


@dataclass(frozen=True)
class Chart:
    """One chart: a figure a setting, of which one is shown, or a few side by side."""

    name: str
    title: str
    caption: str
    figures: Sequence[Figure]
    by_setting: bool = False
    regret: bool = False
    """Whether its values may as well be shown on a logarithmic scale."""


# Settings


def some(settings: Sequence[Setting], most: int) -> list[Setting]:
    """Choose at most *most* settings, evenly."""
    if len(settings) <= most:
        return list(settings)
    return [settings[i] for i in np.linspace(0, len(settings) - 1, max(1, most)).astype(int)]


# Numbers and text as figures have them


def digits(numbers: Iterable[float]) -> list[float | None]:
    """Round to five significant digits; what is not finite becomes None."""
    return [float(f"{n:.5g}") if isfinite(n) else None for n in map(float, numbers)]


def thinned(count: int) -> NDArray[np.intp]:
    """Choose at most MOST_POINTS of *count* places, first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(np.intp))


def binned(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average a curve over at most MOST_POINTS bins of rounds; give their middles and means."""
    bins = np.array_split(np.arange(len(values)), min(len(values), MOST_POINTS) or 1)
    middles, means = [], []
    for places in bins:
        known = values[places][np.isfinite(values[places])]
        if len(known):
            middles.append(1 + places.mean())
            means.append(known.mean())
    return np.array(middles), np.array(means)


def text(words: str) -> str:
    """Write what a figure shall show as it is: Plotly reads tags and entities in its texts."""
    return escape(visible(words), quote=False)


def _line(optimizers: Sequence[str], name: str) -> dict[str, Any]:
    place = optimizers.index(name) if name in optimizers else len(optimizers)
    cycle, colour = divmod(place, COLOURS)
    return {"color": f"--series-{colour + 1}", "dash": DASHES[cycle % len(DASHES)], "width": 2}


def _figure(data: Sequence[Trace], *, x: str, y: str, **layout: Any) -> Figure:
    def axis(title: str) -> dict[str, Any]:
        return {
            "title": {"text": text(title), "font": {"size": 13, "color": "--muted"}},
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


# Over the rounds


def regrets(material: Material) -> list[Chart]:
    """Chart the average and the cumulative regret."""
    return [_regret(material, average=average) for average in (True, False) if material.bands]


def tracked(material: Material) -> list[Chart]:
    """Chart all else that is known of each round."""
    names = list(dict.fromkeys(track.name for track in material.tracks))
    return [_tracked(material, name, place) for place, name in enumerate(names)]


def _regret(material: Material, *, average: bool) -> Chart:
    kind = "Average" if average else "Cumulative"
    intervals = any((band.plays > 1).any() for band in material.bands)
    return Chart(
        name="average-regret" if average else "cumulative-regret",
        title=f"{kind} regret",
        caption=(
            "R_t / t: the mean of the regrets up to each round."
            if average
            else "R_t: the sum of the regrets up to each round. Straight is linear growth."
        )
        + (" Bands are 95 % intervals of the mean over replications." if intervals else "")
        + (" Dashed: what simple policies with full knowledge would get." * bool(material.levels)),
        figures=[_regret_figure(material, setting, average) for setting in material.settings],
        by_setting=True,
        regret=True,
    )


def _regret_figure(material: Material, setting: Setting, average: bool) -> Figure:
    traces: list[Trace] = []
    longest = 1
    for band in material.bands:
        if not agree(band.setting, setting):
            continue
        longest = max(longest, int(band.rounds[-1]))
        scale = 1 / band.rounds if average else np.ones(len(band.rounds))
        line = _line(material.optimizers, band.optimizer)
        alike = {"x": band.rounds.tolist(), "legendgroup": text(named(band, setting))}
        low, high = digits(band.low * scale), digits(band.high * scale)
        if any(value is not None for value in low):
            edge = {
                **alike,
                "mode": "lines",
                "line": {"width": 0, "color": line["color"]},
                "hoverinfo": "skip",
                "showlegend": False,
            }
            fill = {"fill": "tonexty", "fillcolor": f"{line['color']}/0.13"}
            traces += [{**edge, "y": low}, {**edge, "y": high, **fill}]
        traces.append(
            {
                **alike,
                "y": digits(band.mean * scale),
                "mode": "lines",
                "name": text(named(band, setting)),
                "line": line,
            }
        )
    for name, level in levels_in(material, setting):
        ends = [1, longest]
        heights = [level, level] if average else [level, level * longest]
        traces.append(_reference(name, ends, heights))
    return _figure(
        traces,
        x="round",
        y=f"{'average' if average else 'cumulative'} regret",
        yaxis=FROM_ZERO,
    )


def named(curve: Band | Track | Summary, setting: Setting) -> str:
    """Call a curve by its optimizer, and by what of its setting the chart's does not say."""
    rest = {path: value for path, value in curve.setting.items() if path not in setting}
    return f"{curve.optimizer}, {in_words(rest)}" if rest else curve.optimizer


def levels_in(material: Material, setting: Setting) -> list[tuple[str, float]]:
    """Give the mean reference levels of all worlds that agree with a setting."""
    known = [level for world, level in material.levels if agree(world, setting)]
    means = {
        name: spread(getattr(level, field) for level in known).mean
        for field, name in REFERENCES.items()
    }
    return [(name, level) for name, level in means.items() if isfinite(level)]


def _reference(name: str, x: Sequence[Any], y: Sequence[float]) -> Trace:
    dashes = dict(zip(REFERENCES.values(), ("dash", "dashdot", "dot"), strict=True))
    return {
        "x": list(x),
        "y": digits(y),
        "mode": "lines",
        "name": name,
        "line": {"color": "--muted", "dash": dashes[name], "width": 1.2},
    }


KNOWN_TRACKS = {
    "spent": ("Spent", "On queries, up to each round."),
    "asked": (
        "Points asked per round",
        "Points asked of experts, each counted once, by the round in which they were asked.",
    ),
    "retries": ("Points asked again per round", "Further attempts at points that had failed."),
    "pushed": (
        "Readings sent without being asked",
        "Readings per round that reached the agent without a query.",
    ),
    "staleness": (
        "Staleness",
        "How old experts' answers were on arrival, in clock units, by the round of the query.",
    ),
    "note kl_bound": (
        "The approximation: KL bound",
        "tr(Σ⁻¹(K - Q)), which bounds the mean divergence of the sparse posterior from the one "
        "that all past points would give.",
    ),
    "note kl": (
        "The approximation: divergence",
        "The mean Kullback-Leibler divergence of the sparse posterior; the bound lies above it.",
    ),
    "note kl_subset": (
        "The approximation: divergence of the subset",
        "The same for the posterior that knows the answers and nothing else.",
    ),
}


def _tracked(material: Material, name: str, place: int) -> Chart:
    noted = name.partition(" ")[2]
    whose = "the optimizers" if name.startswith("note ") else "the sources with their replies"
    title, caption = KNOWN_TRACKS.get(name, (f"Noted: {noted}", f"A number noted by {whose}."))
    figures = []
    for setting in material.settings:
        traces = [
            {
                "x": digits(track.rounds),
                "y": digits(track.means),
                "mode": "lines",
                "name": text(named(track, setting)),
                "line": _line(material.optimizers, track.optimizer),
            }
            for track in material.tracks
            if track.name == name and agree(track.setting, setting)
        ]
        ylabel = noted or title.lower()
        figures.append(_figure(traces, x="round", y=ylabel, showlegend=True, yaxis=FROM_ZERO))
    return Chart(f"track-{place}", title, caption, figures, by_setting=True)


# Cost


def plane(material: Material) -> list[Chart]:
    """Chart regret against what was spent, with the Pareto front."""
    rows = [each for each in material.summaries if isfinite(each.average_regret.mean)]
    if not any(each.spent.mean > 0 for each in rows):
        return []
    traces: list[Trace] = []
    front = pareto([(each.spent.mean, each.average_regret.mean) for each in rows])
    ends = [rows[i] for i in front]
    traces.append(
        {
            "x": digits(each.spent.mean for each in ends),
            "y": digits(each.average_regret.mean for each in ends),
            "mode": "lines",
            "line": {"color": "--muted", "width": 1.2, "shape": "hv"},
            "name": "Pareto front",
            "hoverinfo": "skip",
        }
    )
    for name in material.optimizers:
        own = [each for each in rows if each.optimizer == name]
        line = _line(material.optimizers, name)
        traces.append(
            {
                "x": digits(each.spent.mean for each in own),
                "y": digits(each.average_regret.mean for each in own),
                "error_x": _errors([each.spent for each in own], line["color"]),
                "error_y": _errors([each.average_regret for each in own], line["color"]),
                "text": [text(in_words(each.setting)) for each in own],
                "mode": "markers",
                "marker": {"color": line["color"], "size": 9},
                "name": text(name),
            }
        )
    most = max(each.spent.mean for each in rows)
    traces += [_reference(name, [0, most], [level] * 2) for name, level in levels_in(material, {})]
    figure = _figure(
        traces,
        x="spent in a play",
        y="average regret",
        hovermode="closest",
        yaxis=FROM_ZERO,
    )
    caption = (
        "Each point is an optimizer in one setting; bars are 95 % intervals. On the front, less "
        "regret costs more."
    )
    return [Chart("plane", "Regret and cost", caption, [figure], regret=True)]


def pareto(points: Sequence[tuple[float, float]]) -> list[int]:
    """Give which (cost, regret) no other beats in both, by growing cost."""
    front: list[int] = []
    for place in sorted(range(len(points)), key=lambda i: points[i]):
        if not front or points[place][1] < points[front[-1]][1]:
            front.append(place)
    return front


def _errors(spreads: Sequence[Spread], colour: str) -> dict[str, Any]:
    reaches = [0.0 if not isfinite(s.high) else s.high - s.mean for s in spreads]
    return {
        "type": "data",
        "array": digits(reaches),
        # Fainter than the points, which they may cross in numbers.
        "color": f"{colour}/0.5",
        "thickness": 1.2,
        "width": 3,
    }


# Swept parameters


def sweeps(material: Material) -> list[Chart]:
    """Chart regret against each swept parameter, and against each pair of them."""
    paths = swept(found.setting for found in material.found)
    charts = []
    if paths:
        others = " Where several are swept, means are over the others." if len(paths) > 1 else ""
        charts.append(
            Chart(
                "swept",
                "Regret against what is swept",
                f"Average regret, with its 95 % interval over replications.{others}",
                [_against(material, path) for path in paths],
                regret=True,
            )
        )
    pairs = list(combinations(paths, 2))
    for place, (one, other) in enumerate(pairs[: MOST_CELLS // max(1, len(material.optimizers))]):
        figures = _maps(material, one, other)
        if figures:
            title = "Regret by {} and {}".format(*brief([one, other]).values())
            charts.append(Chart(f"map-{place}", title, "Average regret; bright is good.", figures))
    return charts


def swept_values(material: Material, path: str) -> list[object]:
    """List the values that a path takes in what charts are made of."""
    return values_of((found.setting for found in material.found), path)


def _places(values: Sequence[object]) -> tuple[list[Any], dict[str, Any]]:
    """Give where values lie on an axis, and what that takes of the axis."""
    if all(is_number(value) for value in values):
        return list(values), {}
    return [text(shown(value)) for value in values], {"type": "category"}


def pooled(plays: Iterable[StoredSummary]) -> Spread:
    """Average over settings within each replication, then over replications."""
    luck: dict[tuple[int, int], list[float]] = {}
    for play in plays:
        regret = play.measures.get("average_regret")
        if regret is not None:
            luck.setdefault((play.seed, play.replication), []).append(regret)
    return spread(float(np.mean(regrets)) for regrets in luck.values())


def _against(material: Material, path: str) -> Figure:
    values = swept_values(material, path)
    x, axis = _places(values)
    traces: list[Trace] = []
    for name in material.optimizers:
        own = [found for found in material.found if found.optimizer == name]
        spreads = [pooled(f for f in own if agree(f.setting, {path: value})) for value in values]
        line = _line(material.optimizers, name)
        traces.append(
            {
                "x": x,
                "y": digits(each.mean for each in spreads),
                "error_y": _errors(spreads, line["color"]),
                "mode": "lines+markers",
                "line": line,
                "marker": {"size": 7},
                "name": text(name),
            }
        )
    levels: dict[str, list[float]] = {name: [] for name in REFERENCES.values()}
    for value in values:
        known = dict(levels_in(material, {path: value}))
        for name, heights in levels.items():
            heights.append(known.get(name, nan))
    traces += [
        _reference(name, x, heights)
        for name, heights in levels.items()
        if any(map(isfinite, heights))
    ]
    return _figure(traces, x=path, y="average regret", xaxis=axis, yaxis=FROM_ZERO)


def _maps(material: Material, one: str, other: str) -> list[Figure]:
    columns, rows = swept_values(material, one), swept_values(material, other)
    grids: dict[str, list[list[float]]] = {}
    for name in material.optimizers:
        own = [
            f for f in material.found if f.optimizer == name and {one, other} <= f.setting.keys()
        ]
        cells: dict[tuple[str, str], list[StoredSummary]] = {}
        for found in own:
            where = canonical(found.setting[one]), canonical(found.setting[other])
            cells.setdefault(where, []).append(found)
        # Lists that run side by side fill a diagonal only, which is no map.
        if len(cells) > max((len(set(side)) for side in zip(*cells, strict=True)), default=0):
            grids[name] = [
                [pooled(cells.get((canonical(x), canonical(y)), ())).mean for x in columns]
                for y in rows
            ]
    known = [z for grid in grids.values() for row in grid for z in row if isfinite(z)]
    if not known:
        return []
    return [_map(name, grid, (one, columns), (other, rows), known) for name, grid in grids.items()]


def _map(
    name: str,
    grid: Sequence[Sequence[float]],
    across: tuple[str, Sequence[object]],
    down: tuple[str, Sequence[object]],
    known: Sequence[float],
) -> Figure:
    # As categories: swept values are seldom evenly spaced, and cells are best of one size.
    trace = {
        "type": "heatmap",
        "x": [text(shown(value)) for value in across[1]],
        "y": [text(shown(value)) for value in down[1]],
        "z": [digits(row) for row in grid],
        "zmin": digits([min(known)])[0],
        "zmax": digits([max(known)])[0],
        "colorscale": "Cividis",
        "reversescale": True,
        "texttemplate": "%{z:.3g}",
        "hovertemplate": "%{z:.4g}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "tickfont": {"color": "--muted"}},
    }
    category = {"type": "category", "showgrid": False}
    names = brief([across[0], down[0]])
    return _figure(
        [trace],
        x=names[across[0]],
        y=names[down[0]],
        hovermode="closest",
        xaxis=category,
        yaxis=category,
        title={"text": text(name), "font": {"size": 14, "color": "--ink"}, "x": 0.02},
        margin={"l": 56, "r": 12, "t": 36, "b": 48},
    )


def everything(material: Material) -> Mapping[str, list[Chart]]:
    """Make all charts there are material for, by section."""
    return {
        "regret": regrets(material),
        "tracks": tracked(material),
        "cost": plane(material),
        "sweep": sweeps(material),
    }
