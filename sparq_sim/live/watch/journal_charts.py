"""Charts of a live play: the rewards so far, and what the agent believes now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Domain, Sites
from sparq_sim.live.watch.journal_state import describe_point
from sparq_sim.live.watch.posterior import View
from sparq_sim.messages import Answer
from sparq_sim.report.html.figure import (
    Chart,
    Figure,
    PlotlyTrace,
    escape_text,
    make_figure,
    round_digits,
)
from sparq_sim.report.palette import REWARDS
from sparq_sim.simulation.past import Past
from sparq_sim.simulation.records import Turn

__all__ = ["Marks", "posterior_chart", "reward_chart"]

_MOST_ROUNDS = 600
"""Of the chart of rewards: the newest."""
_MOST_ANSWERS = 40
"""Of the marks in a posterior: the newest points."""


@dataclass(frozen=True)
class Marks:
    """What is marked in a picture of the posterior."""

    points: Points
    """Where the newest answers are, (n, d), the newest last."""
    values: NDArray[np.float64]
    """What they say, (n,)."""
    stds: NDArray[np.float64]
    """How uncertain they are, (n,)."""
    open: Points
    """What is in flight, (m, d)."""
    in_force: NDArray[np.float64] | None
    """The point that was applied last, (d,)."""

    @classmethod
    def of(cls, past: Past, in_force: Sequence[float] | None, dimensions: int) -> Marks:
        """Return what is to be marked of a play.

        Args:
            past: What happened so far.
            in_force: The point that was applied last.
            dimensions: How many coordinates a point has.
        """
        newest: list[Answer] = []
        found = 0
        for record in reversed(past.records):
            if isinstance(record.reply, Answer) and record.heard:
                newest.insert(0, record.reply)
                found += len(record.reply.rows)
                if found >= _MOST_ANSWERS:
                    break
        nowhere = np.empty((0, dimensions))
        asked = [ask.query.points[ask.rows] for ask in past.open]
        return cls(
            points=np.concatenate([nowhere, *(answer.points for answer in newest)]),
            values=np.concatenate([np.empty(0), *(answer.values for answer in newest)]),
            stds=np.concatenate([np.empty(0), *(answer.stds for answer in newest)]),
            open=np.concatenate([nowhere, *asked]),
            in_force=None if in_force is None else np.array(in_force, dtype=float),
        )


# Rewards


def reward_chart(turns: Sequence[Turn], rewards: Values, *, observed: bool) -> list[Chart]:
    """Return the chart of the reward of each round, if there is any.

    Args:
        turns: The rounds so far.
        rewards: Those of the rounds: (rounds,), NaN where none is known.
        observed: Whether rewards are observed, with noise, and not known.
    """
    shown = turns[-_MOST_ROUNDS:]
    rewards = rewards[-_MOST_ROUNDS:]
    known = np.isfinite(rewards)
    if not known.any():
        return []
    rounds = [turn.round for turn in shown]
    counts = np.cumsum(known)
    means = np.full(len(rewards), np.nan)
    np.divide(np.cumsum(np.where(known, rewards, 0.0)), counts, out=means, where=counts > 0)
    traces: list[PlotlyTrace] = [
        {
            "x": rounds,
            "y": round_digits(rewards),
            "mode": "lines+markers" if len(shown) <= 150 else "lines",
            "name": "observed" if observed else "reward",
            "line": {"color": "--meaning-2/0.45", "width": 1.2},
            "marker": {"color": "--meaning-2", "size": 5},
        },
        {
            "x": rounds,
            "y": round_digits(means),
            "mode": "lines",
            "name": "mean so far" if len(shown) == len(turns) else "mean of these rounds",
            "line": {"color": "--ink", "width": 2},
        },
    ]
    best = np.array([turn.best for turn in shown], dtype=float)
    if np.isfinite(best).any():
        line = {"color": "--muted", "dash": "dash", "width": 1.2}
        traces.append(
            {"x": rounds, "y": round_digits(best), "mode": "lines", "name": "best", "line": line}
        )
    caption = "The reward of each round" + (
        ", as it was observed; the best one is not known." if observed else ", without noise."
    )
    if len(shown) < len(turns):
        caption += f" The newest {len(shown)} of {len(turns)} rounds."
    return [Chart("rewards", "Reward", caption, [make_figure(traces, x="round", y="reward")])]


# What is believed


def posterior_chart(view: View, domain: Domain, marks: Marks) -> list[Chart]:
    """Return the picture of what the agent believes.

    Args:
        view: What it believes, and where.
        domain: Where points may lie.
        marks: What is marked in it.
    """
    title = f"Posterior of round {view.round}"
    if isinstance(domain, Sites):
        figures = [_bars(view, domain, marks)]
        caption = "The mean that the agent believes at each site; bars are one standard deviation."
    elif domain.dimensions == 2:
        figures = [_map(view, domain, marks, std=std) for std in (False, True)]
        caption = "What the agent believes of the reward: its mean, and how uncertain that is."
    else:
        figures = [_curve(view, domain, marks, axis) for axis in range(len(view.slices))]
        caption = (
            "What the agent believes of the reward: its mean, and a band of two standard "
            "deviations to each side."
        )
        if domain.dimensions > 1:
            caption += " Each curve goes along one coordinate through the point in force."
    caption += " Dots are the newest answers; the point in force and what is in flight are marked."
    return [Chart("posterior", title, caption, figures)]


def _curve(view: View, domain: Domain, marks: Marks, axis: int) -> Figure:
    points, belief = view.slices[axis]
    x = round_digits(points[:, axis])
    edge = {"x": x, "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    edge["line"] = {"width": 0, "color": "--meaning-1"}
    low, high = belief.mean - 2 * belief.std, belief.mean + 2 * belief.std
    traces: list[PlotlyTrace] = [
        {**edge, "y": round_digits(low)},
        {**edge, "y": round_digits(high), "fill": "tonexty", "fillcolor": "--meaning-1/0.15"},
        {
            "x": x,
            "y": round_digits(belief.mean),
            "mode": "lines",
            "name": "mean",
            "line": {"color": "--meaning-1", "width": 2},
        },
    ]
    bottom = float(np.min(np.append(low, marks.values), initial=np.inf))
    if domain.dimensions == 1 and len(marks.values):
        traces.append(
            {
                "x": round_digits(marks.points[:, axis]),
                "y": round_digits(marks.values),
                "error_y": {
                    "type": "data",
                    "array": round_digits(np.nan_to_num(marks.stds)),
                    "color": "--meaning-3/0.35",
                    "thickness": 1.2,
                    "width": 0,
                },
                "mode": "markers",
                "name": "answers",
                "marker": {"color": "--meaning-3", "size": 7, "opacity": _fade(len(marks.values))},
            }
        )
    if len(marks.open):
        traces.append(
            {
                "x": round_digits(marks.open[:, axis]),
                "y": [bottom] * len(marks.open),
                "mode": "markers",
                "name": "in flight",
                "marker": {"color": "--meaning-5", "size": 9, "symbol": "triangle-up"},
                "hoverinfo": "x+name",
            }
        )
    if marks.in_force is not None:
        place = float(marks.in_force[axis])
        traces.append(
            {
                "x": [place, place],
                "y": round_digits([bottom, float(np.max(np.append(high, marks.values)))]),
                "mode": "lines",
                "name": "in force",
                "line": {"color": "--ink", "width": 1.5, "dash": "dot"},
                "hoverinfo": "x+name",
            }
        )
    ends = {"range": round_digits(points[[0, -1], axis]), "zeroline": False}
    return make_figure(
        traces,
        x=domain.names[axis],
        y="reward",
        hovermode="closest",
        showlegend=axis == 0,
        xaxis=ends,
    )


def _fade(count: int) -> list[float]:
    """Return opacities: the newest is strongest."""
    return [round(float(value), 2) for value in np.linspace(0.25, 1.0, count)]


def _map(view: View, domain: Domain, marks: Marks, *, std: bool) -> Figure:
    points, belief = view.slices[0]
    across, up = (np.unique(points[:, axis]) for axis in (0, 1))
    values = belief.std if std else belief.mean
    # The grid has the first coordinate outermost; Plotly wants rows of the second.
    field = values.reshape(len(across), len(up)).T
    heat: PlotlyTrace = {
        "type": "heatmap",
        "x": round_digits(across),
        "y": round_digits(up),
        "z": [round_digits(row) for row in field],
        "colorscale": "Cividis" if std else REWARDS.capitalize(),
        "colorbar": {
            "title": {"text": "std" if std else "mean", "font": {"color": "--muted"}},
            "tickfont": {"color": "--muted"},
            "thickness": 12,
            "outlinewidth": 0,
        },
        "hovertemplate": "%{x}, %{y}: %{z}<extra></extra>",
    }
    return make_figure(
        [heat, *_places(marks, legend=not std)],
        x=domain.names[0],
        y=domain.names[1],
        hovermode="closest",
        showlegend=not std,
    )


def _places(marks: Marks, *, legend: bool) -> list[PlotlyTrace]:
    """Mark answers, queries in flight and the point in force in a plane."""
    groups: list[tuple[str, Points, dict[str, Any]]] = [
        ("answers", marks.points, {"symbol": "circle", "size": 6, "color": "#ffffff"}),
        ("in flight", marks.open, {"symbol": "triangle-up", "size": 9, "color": "#f2b84b"}),
    ]
    if marks.in_force is not None:
        star = {"symbol": "star", "size": 15, "color": "#d55e00"}
        groups.append(("in force", marks.in_force[None, :], star))
    return [
        {
            "x": round_digits(points[:, 0]),
            "y": round_digits(points[:, 1]),
            "mode": "markers",
            "name": name,
            "marker": {**style, "line": {"color": "#1d2328", "width": 1.2}},
            "showlegend": legend,
        }
        for name, points, style in groups
        if len(points)
    ]


def _bars(view: View, domain: Sites, marks: Marks) -> Figure:
    points, belief = view.slices[0]
    names = [escape_text(describe_point(domain, point.tolist())) for point in points]
    here = marks.in_force
    colours = [
        "--meaning-2" if here is not None and np.allclose(point, here) else "--meaning-1"
        for point in points
    ]
    traces: list[PlotlyTrace] = []
    for colour, name in (("--meaning-1", "believed"), ("--meaning-2", "in force")):
        places = [place for place, own in enumerate(colours) if own == colour]
        if not places:
            continue
        traces.append(
            {
                "type": "bar",
                "x": [names[place] for place in places],
                "y": round_digits(belief.mean[places]),
                "name": name,
                "marker": {"color": colour},
                "error_y": {
                    "type": "data",
                    "array": round_digits(belief.std[places]),
                    "color": "--muted",
                    "thickness": 1.2,
                    "width": 3,
                },
            }
        )
    order = {"categoryorder": "array", "categoryarray": names}
    return make_figure(
        traces, x="site", y="reward", hovermode="closest", showlegend=True, xaxis=order
    )
