"""A timeline for print: what became of each query of a play, in a row per source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from sparq_sim.errors import SparqError
from sparq_sim.report.journeys import (
    choose_span,
    find_journeys,
    find_lanes,
    list_sources,
    split_journey,
)
from sparq_sim.report.palette import GREY, INK, MEANINGS, PALE
from sparq_sim.report.phrases import add_unit, format_number
from sparq_sim.report.print.layout import Artists, add_legend
from sparq_sim.report.print.style import STYLE, apply_style, literal
from sparq_sim.simulation.trace import Columns, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Span", "choose_part", "draw_timeline"]

Span = tuple[float, float]
"""From when to when, in clock units."""

_LANE, _LEAST = 0.1, 0.17
"""Inches of a lane, if there is room, and of the row of a source at least."""
_ROOM = 5.0
"""Inches that all lanes have; many are thinner."""
_GAP = 0.1
"""Inches between the rows of two sources."""
_FAILED, _ANSWERED = MEANINGS[3], MEANINGS[2]
_PHASES: Mapping[str, tuple[str, float, Any]] = {
    "waiting": (GREY, 0.2, (0, (0.6, 0.8))),
    "service": (MEANINGS[0], 0.6, "solid"),
    "transit": (MEANINGS[1], 0.22, "solid"),
}
"""The colour of each phase, which share of its lane a bar fills, and the dashes of it."""
_HOLLOW: Mapping[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 0.8}
_ENDS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "answered": ("o", _ANSWERED, {}),
    "late": ("o", _FAILED, _HOLLOW),
    "lost": ("x", _FAILED, {"markeredgewidth": 0.9}),
    "unanswered": ("|", GREY, {"markeredgewidth": 1.0}),
    **{fate: ("^", _FAILED, {}) for fate in ("outage", "budget", "access", "rate")},
    **{fate: (".", GREY, {}) for fate in ("duplicate", "stray")},
}
"""How each fate is marked; whatever else may become of a query is marked as invalid."""
_INVALID: tuple[str, str, Mapping[str, Any]] = ("s", _FAILED, {})


@dataclass(frozen=True)
class _Row:
    """The queries of a source that are shown, and where they are: inches from the top."""

    name: str
    journeys: Sequence[Mapping[str, Any]]
    places: Sequence[float]
    lane: float
    top: float
    high: float


def choose_part(trace: Trace, number: int | None, span: tuple[float | None, float | None]) -> Span:
    """Return which part of a play is shown: around a round, or as a user says.

    Args:
        trace: The play.
        number: The round in the middle, from 1; by default, the last one.
        span: From when to when; None where a user does not say.

    Raises:
        SparqError: A time is no number, it ends before it begins, or nothing happened in it.
    """
    starts, last = trace.rounds["started_at"], float(trace.rounds["played_at"][-1])
    period = float(np.diff(starts).min()) if len(starts) > 1 else 1.0
    around = choose_span(trace.replies, period) / 2
    begin, end = span
    for name, time in (("--from", begin), ("--to", end)):
        if time is not None and not isfinite(time):
            raise SparqError(f"{name} {time}: expected a time in clock units, such as {last:g}")
    if begin is None and end is None:
        now = last if number is None else float(trace.rounds["played_at"][number - 1])
        # At the ends of a play, as much is shown as elsewhere.
        begin = max(0.0, min(now, last - around) - around)
        end = min(begin + 2 * around, max(last, now))
        return begin, max(end, begin + period)
    begin = 0.0 if begin is None else begin
    end = max(last, begin + period) if end is None else end
    if begin >= end:
        raise SparqError(
            f"a timeline from {begin:g} to {end:g} has no length; --from must be before --to"
        )
    if begin > last or end < 0:
        raise SparqError(
            f"nothing happened from {begin:g} to {end:g}; the play lasted from 0 to {last:g}"
        )
    return begin, end


def draw_timeline(
    trace: Trace,
    part: Span,
    *,
    outages: Mapping[str, Sequence[Span]],
    now: tuple[int, float] | None,
    title: str,
    unit: str,
    width: float,
) -> Figure:
    """Return a figure of what became of each query in a part of a play.

    Args:
        trace: The play, with its replies.
        part: From when to when.
        outages: When nobody could be asked, by source.
        now: The round at which a line is drawn, and its moment; None for no line.
        title: Which play it is, as matplotlib shows it.
        unit: That of time; empty where it has no name.
        width: In inches.

    Raises:
        SparqError: Nothing was observed or asked then.
    """
    from matplotlib.figure import Figure

    rows = _lay_out(trace, part)
    if not rows:
        raise SparqError(
            f"nothing was observed or asked from {part[0]:g} to {part[1]:g}; choose another part "
            "by --from and --to, or by --round"
        )
    with apply_style():
        high = rows[-1].top + rows[-1].high + _GAP / 2
        figure = Figure(figsize=(width, width), layout="constrained")
        axes = figure.add_subplot()
        # Marks at the edges are whole.
        edge = 0.012 * (part[1] - part[0])
        limits = part[0] - edge, part[1] + edge
        axes.set(
            xlim=limits, ylim=(high, 0), xlabel=literal(add_unit("time", unit or "clock units"))
        )
        axes.set_yticks([row.top + row.high / 2 for row in rows], [literal(r.name) for r in rows])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        artists: Artists = {}
        for row in rows:
            if row is not rows[0]:
                axes.axhline(row.top - _GAP / 2, color=PALE, linewidth=0.4, zorder=0)
            artists |= _paint_outages(axes, row, outages.get(row.name, ()), part)
            artists |= _paint_row(axes, row, part)
        if now is not None and part[0] <= now[1] <= part[1]:
            _paint_now(axes, *now)
        axes.set_title(title, loc="left", color=GREY, fontsize=7, pad=11 if now else 3)
        artists = {name: artists[name] for name in _sort(artists)}
        foot = add_legend(figure, artists, width)
        figure.set_size_inches(width, high + foot + 0.72 + 0.1 * title.count("\n"))
    return figure


def _sort(names: Mapping[str, Any]) -> list[str]:
    order = [*_PHASES, "measured", "asked again", "outage declared", *_ENDS]
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))


def _lay_out(trace: Trace, part: Span) -> list[_Row]:
    """Find the queries of each source that are shown, and their places."""
    replies = trace.replies
    once = {name: column[find_journeys(replies)] for name, column in replies.items()}
    begin, end = part
    # What was measured long before its question is shown, if the question is.
    shown = (once["asked_at"] <= end) & (once["arrived_at"] >= begin)
    once = {name: column[shown] for name, column in once.items()}
    owns = {
        name: {key: column[once["source"] == name] for key, column in once.items()}
        for name in list_sources(once)
    }
    lanes = {name: find_lanes(own, end - begin) for name, own in owns.items()}
    counts = {name: int(found.max(initial=0)) + 1 for name, found in lanes.items()}
    lane = min(_LANE, _ROOM / max(1, sum(counts.values())))
    rows, top = [], 0.06
    for name, own in owns.items():
        high = max(_LEAST, counts[name] * lane)
        start = top + (high - counts[name] * lane) / 2
        places = (start + (lanes[name] + 0.5) * lane).tolist()
        rows.append(_Row(name, list(_read(own)), places, lane, top, high))
        top += high + _GAP
    return rows


def _read(columns: Columns) -> Iterator[dict[str, Any]]:
    """Yield the rows of columns; a time that is not known is None."""
    for values in zip(*(column.tolist() for column in columns.values()), strict=True):
        yield {
            name: None if value != value else value
            for name, value in zip(columns, values, strict=True)
        }


def _paint_outages(axes: Axes, row: _Row, outages: Sequence[Span], part: Span) -> Artists:
    from matplotlib.patches import Rectangle

    artists: Artists = {}
    for start, end in outages:
        start, end = max(start, part[0]), min(end, part[1])
        if start >= end:
            continue
        corner, size = (start, row.top - _GAP / 2), (end - start, row.high + _GAP)
        look: dict[str, Any] = {"facecolor": "#f4f4f4", "edgecolor": PALE, "hatch": "//////"}
        patch = Rectangle(corner, *size, label="outage declared", linewidth=0, zorder=0.5, **look)
        artists["outage declared"] = axes.add_patch(patch)
    return artists


def _paint_row(axes: Axes, row: _Row, part: Span) -> Artists:
    artists = _paint_phases(axes, row)
    artists |= _paint_measured(axes, row, part)
    size = min(3.2, max(1.0, 72 * row.lane * 0.55))
    again = [
        (journey["asked_at"], y)
        for journey, y in zip(row.journeys, row.places, strict=True)
        if journey["attempt"] > 1
    ]
    if again:
        artists["asked again"] = _mark(
            axes, again, "|", _FAILED, "asked again", size + 1, markeredgewidth=1.0
        )
    ends: dict[str, list[tuple[float, float]]] = {}
    for journey, y in zip(row.journeys, row.places, strict=True):
        ends.setdefault(str(journey["fate"]), []).append((journey["arrived_at"], y))
    for fate, found in ends.items():
        marker, colour, look = _ENDS.get(fate, _INVALID)
        artists[fate] = _mark(axes, found, marker, colour, fate, size, **look)
    return artists


def _mark(
    axes: Axes,
    places: Sequence[tuple[float, float]],
    marker: str,
    colour: str,
    name: str,
    size: float,
    **look: Any,
) -> Any:
    x, y = zip(*places, strict=True)
    usual: dict[str, Any] = {"linestyle": "", "color": colour, "markeredgecolor": colour}
    usual |= {"marker": marker, "markersize": size, "label": name, "zorder": 4}
    (line,) = axes.plot(x, y, **(usual | look))
    return line


def _paint_phases(axes: Axes, row: _Row) -> Artists:
    spans: dict[str, list[tuple[float, float, float]]] = {}
    for journey, place in zip(row.journeys, row.places, strict=True):
        for name, start, end in split_journey(journey):
            spans.setdefault(name, []).append((place, start, end))
    artists: Artists = {}
    for name, found in spans.items():
        colour, share, dashes = _PHASES[name]
        thick = max(0.3, 72 * row.lane * share)
        style: dict[str, Any] = {"colors": colour, "linestyles": [dashes], "linewidths": thick}
        y, x, until = zip(*found, strict=True)
        artists[name] = axes.hlines(y, x, until, label=name, zorder=2, **style)
    return artists


def _paint_measured(axes: Axes, row: _Row, part: Span) -> Artists:
    """Mark when values were measured; where that was before the question, a line leads there."""
    near = 0.008 * (part[1] - part[0])
    marks: list[tuple[float, float]] = []
    leads: list[tuple[float, float, float]] = []
    for journey, place in zip(row.journeys, row.places, strict=True):
        measured, asked = journey["measured_at"], journey["asked_at"]
        if measured is None:
            continue
        if measured < asked:
            leads.append((place, measured, asked))
        elif journey["arrived_at"] - measured < near:
            continue  # The mark of its end is there.
        marks.append((measured, place))
    if leads:
        y, x, until = zip(*leads, strict=True)
        axes.hlines(y, x, until, colors=INK, linewidths=0.4, alpha=0.6, zorder=1.5)
    if not marks:
        return {}
    size = max(1.5, 72 * row.lane * 0.85)
    return {"measured": _mark(axes, marks, "|", INK, "measured", size, markeredgewidth=0.8)}


def _paint_now(axes: Axes, number: int, moment: float) -> None:
    axes.axvline(moment, color=INK, linewidth=0.8, zorder=5)
    axes.annotate(
        f"round {number}, at {format_number(moment, 4)}",
        (moment, 1),
        xytext=(0, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=STYLE["xtick.labelsize"] - 1,
        annotation_clip=False,
    )
