"""Shares in a page: stacked areas of what optimizers noted as parts of a whole."""

from __future__ import annotations

from collections.abc import Mapping

from sparq_sim.report.data import ChartData, curve_name
from sparq_sim.report.html.figure import Chart, Figure, escape_text, make_figure, round_digits
from sparq_sim.report.shares import Shares, choose_colours, spell_out
from sparq_sim.study.settings import agree

__all__ = ["share_charts"]

_CAPTION = (
    "The share of each part in every round, as the optimizer noted it; the mean over the plays, "
    "and over neighbouring rounds where there are many."
)


def share_charts(data: ChartData) -> list[Chart]:
    """Return a chart of each whole that an optimizer noted by its parts.

    Args:
        data: What they show.
    """
    # In the same setting there may be several of one optimizer, which differ in more than that.
    shown: dict[tuple[str, str], dict[int, Shares]] = {}
    for whole in data.shares:
        for place, setting in enumerate(data.settings):
            if agree(whole.setting, setting):
                key = curve_name(whole, setting), whole.group
                shown.setdefault(key, {})[place] = whole
    colours = {group: choose_colours(data.shares, group) for _, group in shown}
    return [
        Chart(
            f"shares-{number}",
            f"What {name} believed: {spell_out(group)}",
            _CAPTION,
            [_draw(wholes.get(place), colours[group]) for place in range(len(data.settings))],
            by="setting",
        )
        for number, ((name, group), wholes) in enumerate(shown.items())
    ]


def _draw(whole: Shares | None, colours: Mapping[str, int]) -> Figure:
    """Draw a whole; nothing where it was not noted."""
    traces = (
        []
        if whole is None
        else [
            {
                "x": round_digits(whole.rounds),
                "y": round_digits(100 * values),
                "mode": "lines",
                "stackgroup": "whole",
                "name": escape_text(spell_out(part)),
                # Lines of the colour of the paper tell neighbours apart, in grey too.
                "line": {"color": "--paper", "width": 0.7},
                "fillcolor": f"--share-{colours[part]}",
            }
            for part, values in zip(whole.parts, whole.values, strict=True)
        ]
    )
    figure = make_figure(
        traces,
        x="round",
        y="share",
        showlegend=True,
        yaxis={"range": [0, 100], "ticksuffix": " %", "hoverformat": ".1f"},
    )
    # Plotly would begin with the topmost area.
    figure["layout"]["legend"]["traceorder"] = "normal"
    return figure
