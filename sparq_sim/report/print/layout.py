"""Layout of figures for print: panels side by side, and a legend below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.summary import Summary
from sparq_sim.errors import SparqError
from sparq_sim.report.data import ChartData
from sparq_sim.report.palette import GREY
from sparq_sim.report.print.style import STYLE, literal
from sparq_sim.report.scales import Scale, differ_much, fit, label_levels
from sparq_sim.report.uncertainty import find_interval
from sparq_sim.study.settings import format_setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "AS_FITS",
    "Artists",
    "Axis",
    "Panel",
    "add_legend",
    "lay_out",
    "make_panel",
    "setting_titles",
]

Artists: TypeAlias = dict[str, Any]
"""What a legend explains: artists of matplotlib by name, each once."""
_MOST_PANELS = 12
_BELOW_ZERO = 0.015
"""How far below 0 an axis begins, as a share of it: a line at 0 is to be seen."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes, and what paints them."""

    labels: tuple[str, str]
    """Of the axis below and the axis to the left."""
    paint: Callable[[Axes], Artists]
    """Draws on the axes; returns what a legend explains."""
    title: str = ""
    """Above it."""
    from_zero: bool = True
    """Whether its values begin at 0."""
    shown: Sequence[NDArray[np.float64]] = ()
    """What the axis to the left is to fit; if nothing, it fits all that is painted."""
    ends: Sequence[float] = ()
    """Final means, which decide whether that axis is logarithmic."""
    levels: Sequence[tuple[str, float]] = ()
    """Reference levels and where they end, which stand at the edge and do not stretch the axis."""


@dataclass(frozen=True)
class Axis:
    """What a user asks of the axis to the left."""

    logarithmic: bool = False
    """Whether it must be logarithmic; otherwise it is where that shows more."""
    limits: tuple[float, float] | None = None
    """Where it begins and ends; by default, it fits what is drawn."""


AS_FITS = Axis()
"""Asks nothing: the axis fits what is drawn."""


def make_panel(
    data: ChartData,
    rows: Sequence[Summary],
    label: str,
    paint: Callable[[Axes], Artists],
    lines: Iterable[NDArray[np.float64]],
) -> Panel:
    """Return a panel of what optimizers come to, a point for each row, against something else.

    Args:
        data: What is drawn.
        rows: Those that are shown.
        label: Of the axis below.
        paint: Draws on the axes; returns what a legend explains.
        lines: Levels that a user adds, which the axis is to show.
    """
    positive = data.criterion.from_zero
    means = [each.judged.mean for each in rows]
    intervals = [find_interval(each.judged, positive=positive) for each in rows]
    return Panel(
        (label, data.judged_label),
        paint,
        from_zero=positive,
        shown=[np.array(means), np.ravel(intervals), *map(np.ravel, lines)],
        ends=means if positive else (),
        levels=data.levels_in({}),
    )


def lay_out(
    panels: Sequence[Panel], width: float, *, alike: bool = True, axis: Axis = AS_FITS
) -> Figure:
    """Return a figure of panels side by side, in as many rows as it takes, with a legend below.

    Args:
        panels: What is shown.
        width: Of the figure, in inches.
        alike: Whether the panels share what they measure, and the rounds.
        axis: What is asked of the axis to the left.

    Raises:
        SparqError: There are too many panels for one figure, or the axis cannot be as asked.
    """
    from matplotlib.figure import Figure

    if len(panels) > _MOST_PANELS:
        raise SparqError(
            f"{len(panels)} panels are too many for one figure, which has room for {_MOST_PANELS}; "
            "choose among the values of what is swept (where)"
        )
    rows = ceil(len(panels) / max(1, int(width / 1.6)))
    columns = ceil(len(panels) / rows)
    figure = Figure(figsize=(width, width), layout="constrained")
    artists: Artists = {}
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
        artists |= panel.paint(axes)
        above_another = share_x and place + columns < len(panels)
        right_of_another = alike and place % columns > 0
        axes.set(
            title=_wrap_title(panel.title, width / columns),
            xlabel="" if above_another else literal(x),
            ylabel="" if right_of_another else literal(y),
        )
        axes.tick_params(
            labelbottom=not above_another,
            labelleft=not right_of_another,
            # In so many words, for otherwise the user's style would decide how many ticks fit.
            labelsize=STYLE["xtick.labelsize"],
        )
    if first is not None and alike:
        # Once all is artists, for it ends the search for limits.
        scale = _fit(panels, axis, figure.axes)
        if scale is not None:
            _apply(scale, figure.axes, panels)
        elif all(panel.from_zero for panel in panels):
            top = first.get_ylim()[1]
            first.set_ylim(-_BELOW_ZERO * top, top)
    foot = add_legend(figure, artists, width)
    high = (0.62 if columns == 1 else 0.85) * width / columns
    figure.set_size_inches(width, rows * high + foot)
    return figure


def _fit(panels: Sequence[Panel], axis: Axis, all_axes: Sequence[Axes]) -> Scale | None:
    """Return the axis to the left that fits all panels, if they or the user say what it shows."""
    from_zero = all(panel.from_zero for panel in panels)
    differ = from_zero and any(differ_much(panel.ends) for panel in panels)
    shown = [values for panel in panels for values in panel.shown]
    if axis != AS_FITS and not shown:
        shown = [np.asarray(line.get_ydata()) for axes in all_axes for line in axes.lines]
    scale = fit(shown, from_zero=from_zero, logarithmic=axis.logarithmic or differ)
    if axis.logarithmic and scale is None:
        raise SparqError("nothing here is above 0, as a logarithmic axis needs; leave out --log")
    if axis.limits is None or scale is None:
        return scale
    low, high = axis.limits
    if scale.logarithmic and low <= 0:
        # The user's limits win over what would have been fitted.
        if axis.logarithmic:
            raise SparqError(f"a logarithmic axis begins above 0, not at {low:g}; see --ylim")
        return Scale(low, high)
    return Scale(low, high, logarithmic=scale.logarithmic)


def _apply(scale: Scale, all_axes: Sequence[Axes], panels: Sequence[Panel]) -> None:
    """Draw the axis that panels share to the left, and write the levels at its edge."""
    first = all_axes[0]
    if scale.logarithmic:
        first.set_yscale("log")
        if len(scale.ticks) > 1:  # Of a shorter axis, matplotlib numbers what lies between.
            first.set_yticks(scale.ticks, [f"{tick:g}" for tick in scale.ticks])
            first.minorticks_off()
    below = -_BELOW_ZERO * scale.high if scale.low == 0 < scale.high else scale.low
    first.set_ylim(below, scale.high)
    for axes, panel in zip(all_axes, panels, strict=True):
        for label in label_levels(panel.levels, scale):
            within = label.beyond == 0
            axes.annotate(
                label.text,
                (1, max(label.heights) if within else max(label.beyond, 0)),
                xycoords=("axes fraction", "data" if within else "axes fraction"),
                xytext=(0, -1 if label.beyond == 1 else 1),
                textcoords="offset points",
                ha="right",
                va="top" if label.beyond == 1 else "bottom",
                fontsize=6,
                color=GREY,
                zorder=4,
                bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.3},
            )


def _wrap_title(title: str, width: float) -> str:
    """Return a title in as many lines as it needs above a panel of so many inches."""
    # Beside the axes there are their numbers; a character is a bit less than half as wide as high.
    room = max(12, int((width - 0.3) * 72 / (0.42 * STYLE["axes.titlesize"])))
    return fill(literal(title), room, break_long_words=False, break_on_hyphens=False)


def add_legend(figure: Figure, artists: Artists, width: float) -> float:
    """Put a legend below, and return its height in inches.

    Args:
        figure: Where.
        artists: What it explains.
        width: Of the figure, in inches.
    """
    if not artists:
        return 0.0
    names = [artist.get_label() for artist in artists.values()]
    # A character is about half as wide as high, and the sample before it takes eight.
    room = width * 72 / (0.46 * STYLE["legend.fontsize"])
    columns = min(len(names), max(1, int(room / (max(map(len, names)) + 8))))
    figure.legend(list(artists.values()), names, loc="outside lower center", ncols=columns)
    return 0.14 * ceil(len(names) / columns)


def setting_titles(data: ChartData) -> list[str]:
    """Return, for each setting, in what it differs from the others.

    Args:
        data: What is drawn.
    """
    return [
        format_setting({path: setting[path] for path in data.varied_paths if path in setting})
        for setting in data.settings
    ]
