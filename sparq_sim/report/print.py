"""Figures: what a study comes to, for print; the report's charts, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import combinations
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.summary import Band, Spread
from sparq_sim.errors import SparqError, did_you_mean, visible
from sparq_sim.fields import is_number
from sparq_sim.report.html.charts import (
    REFERENCES,
    Material,
    Track,
    levels_in,
    named,
    pareto,
    pooled,
    swept_values,
)
from sparq_sim.report.html.page import gathered
from sparq_sim.study.results import Results
from sparq_sim.study.settings import (
    Setting,
    agree,
    fullest,
    in_words,
    path_called,
    short,
    shown,
    swept,
    value_among,
)
from sparq_sim.study.store import canonical, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = {
    "average-regret": "R_t / t over the rounds, with bands over replications",
    "cumulative-regret": "R_t over the rounds, with bands over replications",
    "cost": "average regret against what was spent, with the Pareto front",
    "sweep": "average regret against each swept parameter",
    "heat-map": "average regret by two swept parameters",
    "spent": "what had been spent by each round",
    "asked": "points asked of experts per round",
    "retries": "points asked again per round, after a failure",
    "pushed": "readings per round that experts sent without being asked",
    "staleness": "how old experts' answers were on arrival",
}
"""What can be drawn of a study; besides these, whatever was noted each round, by its name."""
SUFFIXES = (".pdf", ".svg", ".png")
COLUMN = 3.4
"""How wide a column of a two-column journal is, in inches."""
MOST_PANELS = 12

Line: TypeAlias = float | Sequence[float] | NDArray[np.float64]
Lines: TypeAlias = Mapping[str, NDArray[np.float64]]
Painted: TypeAlias = dict[str, Any]
"""What a legend explains: artists, each once."""

# The colours are the page's: Okabe and Ito (2008), darker where thin lines want it. Markers tell
# the optimizers apart where there is no colour.
SERIES = (
    *("#0072b2", "#d55e00", "#009e73", "#b4558c"),
    *("#c98600", "#3a9bd6", "#857a00", "#555b60"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
REFERENCE_DASHES: tuple[Any, ...] = ((0, (5, 2)), (0, (6, 1.5, 1, 1.5)), (0, (1, 1.5)))
LINE_DASHES: tuple[Any, ...] = ((0, (9, 2)), (0, (9, 2, 1, 2)), (0, (9, 2, 1, 2, 1, 2)))
INK, GREY = "#222222", "#6b6b6b"

_STYLE: dict[Any, Any] = {
    # It comes with matplotlib, as does what stands in for it (DejaVu Serif): the same everywhere.
    "font.family": ["STIXGeneral", "serif"],
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.titlepad": 3,
    "axes.labelpad": 2,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.xmargin": 0.02,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "lines.markeredgewidth": 0.4,
    "errorbar.capsize": 1.5,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "legend.borderpad": 0.1,
    "legend.columnspacing": 1.4,
    "legend.handlelength": 2.8,
    "legend.handletextpad": 0.5,
    "legend.labelspacing": 0.3,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # TrueType, which journals ask for.
    "svg.fonttype": "none",  # Text stays text.
    "svg.hashsalt": "sparq-sim",
}
_UNDATED: dict[str, dict[str, Any]] = {
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
    ".png": {},
}


def save(
    study: Results | Material,
    kind: str,
    to: Path | str,
    *,
    width: float = COLUMN,
    lines: Mapping[str, Line] | None = None,
    where: Setting | None = None,
) -> Path:
    """Draw a figure to a file that ends in .pdf, .svg or .png; the same bytes every time."""
    to = Path(to)
    suffix = to.suffix.lower()
    if suffix not in SUFFIXES:
        raise SparqError(f"cannot draw to {to.name!r}; end it in {', '.join(SUFFIXES)}")
    if not to.parent.is_dir():
        raise SparqError(f"cannot draw to {str(to)!r}: there is no folder {str(to.parent)!r}")
    figure = draw(study, kind, width=width, lines=lines, where=where)
    content = BytesIO()
    with _style():
        figure.savefig(content, format=suffix[1:], metadata=_UNDATED[suffix])
    write_whole(to, content.getvalue())
    return to


def draw(
    study: Results | Material,
    kind: str,
    *,
    width: float = COLUMN,
    lines: Mapping[str, Line] | None = None,
    where: Setting | None = None,
) -> Figure:
    """Draw a figure, *width* inches wide, of one of the KINDS or of what `kinds` lists.

    *lines* are drawn besides, under their names: a number as a level, several as the values of
    rounds 1, 2, … Of a sweep, *where* says at which values of its parameters to look.
    """
    _need_matplotlib()
    if not 1 <= width <= 30:
        raise SparqError(f"a figure must be from 1 to 30 inches wide, not {width!r}")
    material = _material(study)
    if kind not in (known := {*KINDS, *_tracks(material)}):
        hint = did_you_mean(kind, known)
        raise SparqError(f"no kind of figure is called {kind!r}: {hint}")
    if not material.found:
        raise SparqError("there is no finished play to draw; run the study first")
    chosen = _chosen(material, where or {})
    tracks = _tracks(chosen)
    more = _more(lines or {}, kind)
    with _style():
        match kind:
            case "average-regret" | "cumulative-regret":
                average = kind == "average-regret"
                return _laid_out(_regret_panels(chosen, more, average=average), width)
            case "cost" | "spent" if not _spent(chosen):
                raise SparqError(f"nothing was spent in this study, so it has no figure {kind!r}")
            case "cost":
                return _laid_out([_cost_panel(chosen, more)], width)
            case "sweep":
                return _laid_out(_sweep_panels(chosen, more), width)
            case "heat-map":
                return _heat_maps(chosen, width)
            case _ if kind in tracks:
                return _laid_out(_track_panels(chosen, tracks[kind], more), width)
    raise SparqError(
        f"this study has nothing to show of {kind!r}: no expert was asked, or replies were not "
        "recorded; run the scenario with record = 'full'"
    )


def kinds(study: Results | Material) -> list[str]:
    """List the kinds of figures of which a study has something to show."""
    material = _material(study)
    varied = len(_varied(material))
    there = {
        "average-regret": bool(material.bands),
        "cumulative-regret": bool(material.bands),
        "cost": _spent(material),
        "sweep": varied > 0,
        "heat-map": varied > 1,
    }
    return [*(kind for kind, is_there in there.items() if is_there), *_tracks(material)]


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401 - asked for only
    except ImportError:
        raise SparqError(
            "figures are drawn by matplotlib, which is not installed; "
            "run: pip install 'sparq-sim[plots]'"
        ) from None


def _style() -> AbstractContextManager[None]:
    """Put this style in force, and nothing of the user's own."""
    from matplotlib import style

    return style.context(_STYLE, after_reset=True)


# What is drawn


def _material(study: Results | Material) -> Material:
    return study if isinstance(study, Material) else gathered(study, replays=False).material


def _tracks(material: Material) -> dict[str, str]:
    """Give the names of tracks by the kinds of figures that show them."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(track.name for track in material.tracks):
        # Where replies were not recorded, the points that optimizers note as `queries` have to do.
        noted = "asked" if name == "note queries" else name.partition(" ")[2]
        free = noted not in found and (noted not in KINDS or noted == "asked")
        found[noted if noted and free else name] = name
    return found


def _spent(material: Material) -> bool:
    return any(each.spent.mean > 0 for each in material.summaries)


def _varied(material: Material) -> list[str]:
    """List the parameters that have several values."""
    paths = swept(found.setting for found in material.found)
    return [path for path in paths if len(swept_values(material, path)) > 1]


def _chosen(material: Material, where: Setting) -> Material:
    """Leave out what was played elsewhere than *where*, and put settings in order."""
    fixed = dict(_place(material, name, value) for name, value in where.items())
    chosen = replace(
        material,
        found=[each for each in material.found if agree(each.setting, fixed)],
        summaries=[each for each in material.summaries if agree(each.setting, fixed)],
        bands=[each for each in material.bands if agree(each.setting, fixed)],
        tracks=[each for each in material.tracks if agree(each.setting, fixed)],
        levels=[(setting, level) for setting, level in material.levels if agree(setting, fixed)],
    )
    orders = {
        path: [canonical(value) for value in swept_values(chosen, path)] for path in _varied(chosen)
    }
    settings = sorted(
        fullest(each.setting for each in chosen.found),
        key=lambda setting: [
            order.index(canonical(setting[path])) if path in setting else -1
            for path, order in orders.items()
        ],
    )
    return replace(chosen, settings=settings)


def _place(material: Material, name: str, value: object) -> tuple[str, object]:
    """Find the parameter that is called so, in full or by its last word, and its value."""
    paths = swept(found.setting for found in material.found)
    path = path_called(name, paths)
    return path, value_among(value, swept_values(material, path), path)


def _more(lines: Mapping[str, Line], kind: str) -> Lines:
    """Check the lines that a user draws besides."""
    several = kind not in ("cost", "sweep")
    found = {}
    for name, values in lines.items():
        if kind == "heat-map":
            raise SparqError(f"a heat map has no place for the line {name!r}")
        found[name] = np.asarray(values, dtype=float)
        if not found[name].size or found[name].ndim > several:
            wanted = "a number, or one a round" if several else "a number"
            raise SparqError(f"the line {name!r} of a figure {kind!r} must be {wanted}")
    return found


# Layout


@dataclass(frozen=True)
class _Panel:
    """One pair of axes, and what paints them."""

    labels: tuple[str, str]
    paint: Callable[[Axes], Painted]
    title: str = ""
    from_zero: bool = True


def _laid_out(panels: Sequence[_Panel], width: float, *, alike: bool = True) -> Figure:
    """Put panels side by side, in as many rows as it takes, and a legend below.

    Those that are *alike* share what they measure, and the rounds.
    """
    from matplotlib.figure import Figure

    if len(panels) > MOST_PANELS:
        raise SparqError(
            f"{len(panels)} panels are too many for one figure, which has room for {MOST_PANELS}; "
            "choose among the values of what is swept (where)"
        )
    rows = ceil(len(panels) / max(1, int(width / 1.6)))
    columns = ceil(len(panels) / rows)
    figure = Figure(figsize=(width, width), layout="constrained")
    painted: Painted = {}
    first: Axes | None = None
    for place, panel in enumerate(panels):
        x, y = panel.labels
        share_x = alike and panels[0].labels[0] == x
        axes = figure.add_subplot(
            rows,
            columns,
            place + 1,
            sharex=first if share_x else None,
            sharey=first if alike else None,
        )
        first = first or axes
        painted |= panel.paint(axes)
        above_another = share_x and place + columns < len(panels)
        right_of_another = alike and place % columns > 0
        axes.set(
            title=_literal(panel.title),
            xlabel="" if above_another else _literal(x),
            ylabel="" if right_of_another else _literal(y),
        )
        axes.tick_params(
            labelbottom=not above_another,
            labelleft=not right_of_another,
            # In so many words, for otherwise the user's style would decide how many ticks fit.
            labelsize=_STYLE["xtick.labelsize"],
        )
    if first is not None and alike and all(panel.from_zero for panel in panels):
        # Once all is painted, for it ends the search for limits; a line at 0 is to be seen.
        top = first.get_ylim()[1]
        first.set_ylim(-0.015 * top, top)
    foot = _legend(figure, painted, width)
    high = (0.62 if columns == 1 else 0.85) * width / columns
    figure.set_size_inches(width, rows * high + foot)
    return figure


def _legend(figure: Figure, painted: Painted, width: float) -> float:
    """Put a legend below; give its height in inches."""
    if not painted:
        return 0.0
    names = [artist.get_label() for artist in painted.values()]
    # A character is about half as wide as high, and the sample before it takes eight.
    room = width * 72 / (0.46 * _STYLE["legend.fontsize"])
    columns = min(len(names), max(1, int(room / (max(map(len, names)) + 8))))
    figure.legend(list(painted.values()), names, loc="outside lower center", ncols=columns)
    return 0.14 * ceil(len(names) / columns)


def _literal(text: str) -> str:
    """Give a text that matplotlib shows as it is, on one line that has room."""
    line = " ".join(visible(text).split())
    return (line if len(line) <= 48 else f"{line[:47]}…").replace("$", r"\$")


def _titles(material: Material) -> list[str]:
    """Say in what each setting differs from the others."""
    names = _names(_varied(material))
    return [
        in_words({name: setting[path] for path, name in names.items() if path in setting})
        for setting in material.settings
    ]


def _names(paths: Sequence[str]) -> dict[str, str]:
    """Call each path by its last word, or in full where others end alike."""
    words = [short(path) for path in paths]
    return {
        path: path if words.count(word) > 1 else word
        for path, word in zip(paths, words, strict=True)
    }


# Series


def _look(material: Material, optimizer: str) -> dict[str, Any]:
    cycle, place = divmod(list(material.optimizers).index(optimizer), len(SERIES))
    return {
        "color": SERIES[place],
        "marker": MARKERS[place],
        "markeredgecolor": "white",
        "linestyle": DASHES[cycle % len(DASHES)],
        "zorder": 3,
    }


def _draw_curve(
    axes: Axes, material: Material, curve: Band | Track, heights: NDArray[np.float64], name: str
) -> Any:
    """Draw a curve over the rounds, its markers apart from those of the other optimizers."""
    step = max(1, len(heights) // 6)
    start = step * list(material.optimizers).index(curve.optimizer) // len(material.optimizers)
    look = _look(material, curve.optimizer)
    look |= {"label": _literal(name), "markevery": (start, step)}
    (line,) = axes.plot(curve.rounds, heights, **look)
    return line


def _draw_band(
    axes: Axes, x: Any, low: NDArray[np.float64], high: NDArray[np.float64], colour: str
) -> None:
    """Shade an interval, if it is known."""
    if np.isfinite(low).any():
        axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)


def _draw_reference(axes: Axes, name: str, x: Sequence[Any], heights: Sequence[float]) -> Any:
    """Draw what a simple policy would get."""
    dashes = dict(zip(REFERENCES.values(), REFERENCE_DASHES, strict=True))
    (line,) = axes.plot(
        x, heights, label=name, color=GREY, linestyle=dashes[name], linewidth=0.8, zorder=2
    )
    return line


def _draw_lines(axes: Axes, lines: Lines, ends: tuple[float, float]) -> Painted:
    """Draw what a user wants drawn besides."""
    painted = {}
    for place, (name, values) in enumerate(lines.items()):
        key = f"line {name}"
        x = np.arange(1, len(values) + 1) if values.ndim else np.array(ends)
        (painted[key],) = axes.plot(
            x,
            values if values.ndim else np.full(2, values),
            label=name,
            color=INK,
            linestyle=LINE_DASHES[place % len(LINE_DASHES)],
            linewidth=0.8,
            zorder=2,
        )
    return painted


def _reaches(spreads: Sequence[Spread]) -> list[float]:
    return [each.high - each.mean if isfinite(each.high) else 0.0 for each in spreads]


# Over the rounds


def _regret_panels(material: Material, lines: Lines, *, average: bool) -> list[_Panel]:
    label = "average regret" if average else "cumulative regret"
    return [
        _Panel(
            ("round", label),
            partial(
                _paint_regret, material=material, setting=setting, lines=lines, average=average
            ),
            title,
        )
        for setting, title in zip(material.settings, _titles(material), strict=True)
    ]


def _paint_regret(
    axes: Axes, *, material: Material, setting: Setting, lines: Lines, average: bool
) -> Painted:
    painted: Painted = {}
    longest = 1
    for band in material.bands:
        if not agree(band.setting, setting):
            continue
        longest = max(longest, int(band.rounds[-1]))
        scale = 1 / band.rounds if average else np.ones(len(band.rounds))
        name = named(band, setting)
        line = _draw_curve(axes, material, band, band.mean * scale, name)
        painted[name] = line
        _draw_band(axes, band.rounds, band.low * scale, band.high * scale, line.get_color())
    for name, level in levels_in(material, setting):
        heights = [level, level] if average else [level, level * longest]
        painted[name] = _draw_reference(axes, name, [1, longest], heights)
    return painted | _draw_lines(axes, lines, (1, longest))


def _track_panels(material: Material, name: str, lines: Lines) -> list[_Panel]:
    tracks = [track for track in material.tracks if track.name == name]
    from_zero = all((track.means >= 0).all() for track in tracks)
    panels = []
    for setting, title in zip(material.settings, _titles(material), strict=True):
        if here := [track for track in tracks if agree(track.setting, setting)]:
            paint = partial(
                _paint_tracks, material=material, setting=setting, lines=lines, tracks=here
            )
            panels.append(_Panel(("round", _track_label(name)), paint, title, from_zero))
    return panels


def _track_label(name: str) -> str:
    known = {
        "asked": "points asked per round",
        "note queries": "points asked per round",
        "retries": "points asked again per round",
        "pushed": "readings sent per round",
        "staleness": "staleness (clock units)",
        "note kl_bound": "KL bound",
        "note kl": "KL divergence",
        "note kl_subset": "KL divergence of the subset",
    }
    return known.get(name) or (name.partition(" ")[2] or name).replace("_", " ")


def _paint_tracks(
    axes: Axes, *, material: Material, setting: Setting, lines: Lines, tracks: Sequence[Track]
) -> Painted:
    painted: Painted = {}
    for track in tracks:
        name = named(track, setting)
        painted[name] = _draw_curve(axes, material, track, track.means, name)
    longest = max(float(track.rounds[-1]) for track in tracks)
    return painted | _draw_lines(axes, lines, (1, longest))


# Cost


def _cost_panel(material: Material, lines: Lines) -> _Panel:
    return _Panel(
        ("spent in a play", "average regret"), partial(_paint_cost, material=material, lines=lines)
    )


def _paint_cost(axes: Axes, *, material: Material, lines: Lines) -> Painted:
    rows = [each for each in material.summaries if isfinite(each.average_regret.mean)]
    painted: Painted = {}
    for name in material.optimizers:
        own = [each for each in rows if each.optimizer == name]
        if own:
            look = {**_look(material, name), "linestyle": "", "elinewidth": 0.6}
            painted[name] = axes.errorbar(
                [each.spent.mean for each in own],
                [each.average_regret.mean for each in own],
                xerr=_reaches([each.spent for each in own]),
                yerr=_reaches([each.average_regret for each in own]),
                label=_literal(name),
                **look,
            )
    most = max(each.spent.mean for each in rows)
    front = [rows[i] for i in pareto([(e.spent.mean, e.average_regret.mean) for e in rows])]
    name = "Pareto front"
    (painted[name],) = axes.step(
        [*(each.spent.mean for each in front), most],
        [*(each.average_regret.mean for each in front), front[-1].average_regret.mean],
        where="post",
        label=name,
        color=INK,
        linewidth=0.8,
        zorder=2,
    )
    for name, level in levels_in(material, {}):
        painted[name] = _draw_reference(axes, name, [0, most], [level, level])
    return painted | _draw_lines(axes, lines, (0, most))


# Swept parameters


def _sweep_panels(material: Material, lines: Lines) -> list[_Panel]:
    names = _names(_varied(material))
    if not names:
        raise SparqError("nothing is swept in this study; a scenario's [sweep] says what is")
    return [
        _Panel(
            (name, "average regret"),
            partial(_paint_sweep, material=material, path=path, lines=lines),
        )
        for path, name in names.items()
    ]


def _paint_sweep(axes: Axes, *, material: Material, path: str, lines: Lines) -> Painted:
    values = swept_values(material, path)
    x = _along(axes, values)
    painted: Painted = {}
    for name in material.optimizers:
        own = [found for found in material.found if found.optimizer == name]
        spreads = [pooled(f for f in own if agree(f.setting, {path: value})) for value in values]
        if any(each.count for each in spreads):
            look = _look(material, name)
            means = [each.mean for each in spreads]
            (painted[name],) = axes.plot(x, means, label=_literal(name), **look)
            low, high = (np.array([getattr(s, end) for s in spreads]) for end in ("low", "high"))
            _draw_band(axes, x, low, high, look["color"])
    known = [dict(levels_in(material, {path: value})) for value in values]
    for name in REFERENCES.values():
        if any(name in levels for levels in known):
            heights = [levels.get(name, np.nan) for levels in known]
            painted[name] = _draw_reference(axes, name, x, heights)
    return painted | _draw_lines(axes, lines, (x[0], x[-1]))


def _along(axes: Axes, values: Sequence[Any]) -> list[float]:
    """Give where values lie on the axis below; those that are no numbers, evenly."""
    if not all(map(is_number, values)):
        axes.set_xticks(range(len(values)), [_literal(shown(value)) for value in values])
        return [float(place) for place in range(len(values))]
    if min(values) > 0 and max(values) >= 50 * min(values):
        axes.set_xscale("log")
    return [float(value) for value in values]


def _heat_maps(material: Material, width: float) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    paths = _names(_varied(material))
    grids = [
        (name, pair, _grid(material, name, pair))
        for pair in combinations(paths, 2)
        for name in material.optimizers
    ]
    grids = [(name, pair, grid) for name, pair, grid in grids if np.isfinite(grid).sum() > 1]
    if not grids:
        raise SparqError("a heat map wants a study that sweeps two parameters; try 'sweep'")
    known = np.concatenate([grid[np.isfinite(grid)] for _, _, grid in grids])
    colours = ScalarMappable(Normalize(known.min(), known.max()), "cividis_r")
    panels = [
        _Panel(
            (paths[pair[0]], paths[pair[1]]),
            partial(
                _paint_map,
                grid=grid,
                values=(swept_values(material, pair[0]), swept_values(material, pair[1])),
                colours=colours,
            ),
            name,
        )
        for name, pair, grid in grids
    ]
    figure = _laid_out(panels, width, alike=False)
    figure.colorbar(colours, ax=figure.axes, label="average regret", aspect=30, pad=0.02)
    return figure


def _grid(material: Material, optimizer: str, pair: tuple[str, str]) -> NDArray[np.float64]:
    """Give the average regret by the values of two parameters: (second, first)."""
    own = [f for f in material.found if f.optimizer == optimizer and {*pair} <= f.setting.keys()]
    return np.array(
        [
            [
                pooled(f for f in own if agree(f.setting, {pair[0]: x, pair[1]: y})).mean
                for x in swept_values(material, pair[0])
            ]
            for y in swept_values(material, pair[1])
        ]
    )


def _paint_map(
    axes: Axes,
    *,
    grid: NDArray[np.float64],
    values: tuple[Sequence[object], Sequence[object]],
    colours: Any,
) -> Painted:
    known = np.ma.masked_invalid(grid)
    axes.pcolormesh(known, cmap=colours.cmap, norm=colours.norm, edgecolors="white", linewidth=0.8)
    across, up = ([_literal(shown(value)) for value in each] for each in values)
    axes.set_xticks(np.arange(len(across)) + 0.5, across)
    axes.set_yticks(np.arange(len(up)) + 0.5, up)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if max(grid.shape) <= 6:  # Of more, the numbers would not fit.
        for (row, column), regret in np.ndenumerate(grid):
            if isfinite(regret):
                ink = "white" if colours.norm(regret) > 0.5 else INK
                axes.text(
                    column + 0.5,
                    row + 0.5,
                    f"{regret:.2g}",
                    color=ink,
                    fontsize=6.5,
                    ha="center",
                    va="center",
                )
    return {}
