"""Figures for print: regret or reward against meters of experts, with the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isfinite, nan
from typing import TYPE_CHECKING, TypeAlias

from sparq_sim.analysis.summary import Spread, Summary
from sparq_sim.report.data import ChartData, pareto_front
from sparq_sim.report.looks import find_looks
from sparq_sim.report.palette import INK
from sparq_sim.report.print.layout import Artists, Panel, make_panel
from sparq_sim.report.print.marks import Lines, draw_lines, draw_reference
from sparq_sim.report.print.style import literal
from sparq_sim.report.uncertainty import find_reaches
from sparq_sim.scenario.settings import UNSET
from sparq_sim.study.settings import Setting, format_value, shorten_paths

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BY", "is_constant", "list_meters", "meter_panel"]

BY = "by-"
"""What the kind of figure begins with, before the name of the meter."""
_OTHERS = {"rounds": "rounds per play", "answered": "share answered"}
"""What regret can be drawn against besides meters, and what the axis is called."""
_MORE_IS_BETTER = ("alive", "delivered", "left", *_OTHERS)
"""The last words of meters that should be large."""
_WIDE = 20
"""Where the largest is more than so many times the smallest, the axis is logarithmic."""

_HEIGHTS = (4, -9, 12, -17)
"""How far above a point its text stands, in typographic points: not all texts at one height."""

_Groups: TypeAlias = Mapping[str, Sequence[Summary]]


def list_meters(data: ChartData) -> list[str]:
    """Return the meters that regret can be drawn against: those that are not always the same.

    Besides, `rounds`, how many rounds a play lasted, and `answered`, the share of queries that
    were.

    Args:
        data: What is drawn.
    """
    names = dict.fromkeys(name for each in data.summaries for name in each.meters)
    found = {
        name: [_read(each, name).mean for each in data.summaries] for name in (*names, *_OTHERS)
    }
    return [name for name, means in found.items() if len(set(filter(isfinite, means))) > 1]


def is_constant(data: ChartData, name: str) -> bool:
    """Return whether a name is that of a meter which is the same in all rows.

    Args:
        data: What is drawn.
        name: As `list_meters` would list it.
    """
    known = {*_OTHERS, *(meter for each in data.summaries for meter in each.meters)}
    return name in known and name not in list_meters(data)


def meter_panel(data: ChartData, meter: str, lines: Lines) -> Panel:
    """Return the panel of regret or reward against a meter, with the Pareto front.

    Where fields are unset in some settings, the settings with them and those without are two lines.
    Otherwise the field with the most values is swept along a line, and the others make lines. Each
    point is marked with what is swept along its line.

    Args:
        data: What is drawn.
        meter: One that `list_meters` lists.
        lines: What a user adds, as levels.
    """
    label = _OTHERS.get(meter) or meter.replace("_", ", ", 1)
    rows = [
        each
        for each in data.summaries
        if isfinite(each.judged.mean) and isfinite(_read(each, meter).mean)
    ]
    paint = partial(_paint_meter, data=data, rows=rows, meter=meter, lines=lines)
    return make_panel(data, rows, label, paint, lines.values())


def _read(row: Summary, meter: str) -> Spread:
    if meter in _OTHERS:
        return Spread(getattr(row, meter), nan, nan, nan, row.plays)
    return row.meters.get(meter, Spread(nan, nan, nan, nan, 0))


def _paint_meter(
    axes: Axes, *, data: ChartData, rows: Sequence[Summary], meter: str, lines: Lines
) -> Artists:
    places = [_read(each, meter).mean for each in rows]
    low, high = min(places), max(places)
    if 0 < low < high / _WIDE:
        axes.set_xscale("log")
    artists: Artists = {}
    groups = _group(data, rows)
    looks = find_looks({name: data.kind(own[0].optimizer) for name, own in groups.items()})
    for place, (name, own) in enumerate(groups.items()):
        look = looks[name]
        along = sorted(own, key=lambda row: _read(row, meter).mean)
        x, y = [_read(each, meter) for each in along], [each.judged for each in along]
        artists[name] = axes.errorbar(
            [each.mean for each in x],
            [each.mean for each in y],
            xerr=find_reaches(x, positive=False),
            yerr=find_reaches(y, positive=data.criterion.from_zero),
            label=literal(name),
            color=look.ink,
            marker=look.print_marker,
            linestyle=look.print_dash,
            markeredgecolor="white",
            linewidth=0.7,
            elinewidth=0.6,
            zorder=3,
        )
        for rank, (row, text) in enumerate(zip(along, _tell_apart(data, along), strict=True)):
            axes.annotate(
                literal(text),
                (_read(row, meter).mean, row.judged.mean),
                xytext=(4, _HEIGHTS[(rank + place) % len(_HEIGHTS)]),
                textcoords="offset points",
                fontsize=6,
                color=look.ink,
            )
    artists["Pareto front"] = _draw_front(axes, rows, meter)
    for name, level in data.levels_in({}):
        draw_reference(axes, name, [low, high], [level, level])
    return artists | draw_lines(axes, lines, (low, high))


def _draw_front(axes: Axes, rows: Sequence[Summary], meter: str) -> object:
    """Join the points that are better than any other that costs no more."""
    sign = -1.0 if meter.rpartition("_")[2] in _MORE_IS_BETTER else 1.0
    costs = [(sign * _read(each, meter).mean, each.loss) for each in rows]
    front = [rows[place] for place in pareto_front(costs)]
    (line,) = axes.plot(
        [_read(each, meter).mean for each in front],
        [each.judged.mean for each in front],
        label="Pareto front",
        color=INK,
        linewidth=3.0,
        alpha=0.2,
        zorder=2,
    )
    return line


def _group(data: ChartData, rows: Sequence[Summary]) -> _Groups:
    """Sort rows into lines: by optimizer, and by what is not swept along a line."""
    paths = data.varied_paths
    partly = [path for path in paths if UNSET in data.values(path)]
    along = max(paths, key=lambda path: len(data.values(path)), default="")
    names = shorten_paths(paths)

    def tell(setting: Setting, path: str) -> str:
        if path in partly:
            return f"{'without' if setting[path] == UNSET else 'with'} {names[path]}"
        return f"{names[path]} {format_value(setting[path])}"

    groups: dict[str, list[Summary]] = {}
    for row in sorted(rows, key=lambda row: data.optimizers.index(row.optimizer)):
        apart = partly or [path for path in paths if path != along]
        words = [tell(row.setting, path) for path in apart if path in row.setting]
        groups.setdefault(", ".join([row.optimizer, *words]), []).append(row)
    return groups


def _tell_apart(data: ChartData, rows: Sequence[Summary]) -> list[str]:
    """Return the swept values of rows, without the words that all of them have."""
    told = [
        [
            word
            for path in data.varied_paths
            if path in row.setting
            for word in format_value(row.setting[path]).replace(",", "").split()
        ]
        for row in rows
    ]
    common = set(told[0]).intersection(*told) if len(told) > 1 else set()
    return [" ".join(word for word in words if word not in common) for words in told]
