"""The figures of studies, drawn for the documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

from reproduce import DOCS
from reproduce.pages import find_quantity, format_value
from reproduce.studies import Listed, Numbers, read_results, shorten_paths
from sparq_sim.report.looks import find_look
from sparq_sim.report.palette import GREY, SERIES
from sparq_sim.report.print import save
from sparq_sim.report.print.style import STYLE, apply_style
from sparq_sim.study.store import write_whole
from sparq_sim.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURES = DOCS / "pictures" / "results"


def draw(one: Listed, study: Study) -> None:
    """Draw all figures of a study."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    told = read_results(one.name)
    # Letters as outlines: a reader's browser need not have the font, nor one as narrow.
    with patch.dict(STYLE, {"svg.fonttype": "path"}):
        for wanted in one.figures:
            _draw(study, told, PICTURES / f"{wanted.get('file', one.name)}.svg", wanted)


def _draw(study: Study, told: Numbers, to: Path, wanted: Mapping[str, Any]) -> None:
    """Draw one figure: those of `sparq-sim plot`, and a few of these pages' own."""
    own: dict[str, Callable[[Axes, Numbers, Any], None]] = {
        "price": _paint_totals,
        "against": _paint_against,
        "rows": _paint_rows,
    }
    kind, width = wanted["kind"], wanted.get("width", 5.0)
    if kind not in own:
        save(study.results, kind, to, width=width, where=wanted.get("where"))
        return
    from matplotlib.figure import Figure

    content = BytesIO()
    with apply_style():
        figure = Figure(figsize=(width, 0.62 * width), layout="constrained")
        axes = figure.add_subplot()
        own[kind](axes, told, wanted.get("what"))
        if kind != "rows":
            figure.legend(loc="outside right upper")
        figure.savefig(content, format="svg", metadata={"Date": None})
    write_whole(to, content.getvalue())


def _paint_totals(axes: Axes, told: Numbers, end: float) -> None:
    lines = told["rows"]
    prices = np.linspace(0.0, end, 2)
    for place, row in enumerate(lines):
        totals = row["average_regret"] + prices * row["asked_per_round"]
        colour = SERIES[place % len(SERIES)]
        dashes = "-" if row["asked_per_round"] else "--"
        axes.plot(prices, totals, color=colour, linestyle=dashes, label=row["optimizer"])
    # Whoever costs more than twice what asking nobody does is of no interest.
    free = [row["average_regret"] for row in lines if not row["asked_per_round"]]
    axes.set(xlabel="price per query", ylabel="regret and price, a round", xlim=(0.0, end))
    axes.set_ylim(0.0, 2 * max(free) if free else None)


def _paint_against(axes: Axes, told: Numbers, word: str) -> None:
    lines = told["rows"]
    values = [shorten_paths(row["setting"]).get(word) for row in lines]
    swept = np.unique([float(str(value)) for value in values if value is not None])
    for name in dict.fromkeys(row["optimizer"] for row in lines):
        own = [row for row in lines if row["optimizer"] == name]
        flat = word not in shorten_paths(own[0]["setting"])
        means, low, high = (
            np.array([row[f"average_regret{end}"] for row in own] * (len(swept) if flat else 1))
            for end in ("", "_low", "_high")
        )
        # "gp-ucb, theory" has the colour of "gp-ucb".
        look = find_look(name.partition(",")[0])
        marker = "" if flat else look.print_marker
        (line,) = axes.plot(swept, means, label=name, color=look.ink, marker=marker)
        line.set_linestyle("--" if flat else "-")
        axes.fill_between(swept, low, high, color=look.ink, alpha=0.12, linewidth=0)
    if len(told["levels"]) == 1:
        fixed = told["levels"][0]["fixed"]
        axes.axhline(fixed, color=GREY, linestyle=":", label="best fixed point")
    axes.set(xlabel=word, ylabel="average regret")
    regrets = [row["average_regret"] for row in lines]
    if max(regrets) > 20 * min(regrets):
        axes.set_yscale("log")
        axes.set_ylim(min(regrets) / 1.5)
    else:
        axes.set_ylim(0.0)
    if swept[0] > 0 and swept[-1] >= 10 * swept[0]:
        axes.set_xscale("log")
        axes.set_xticks(swept, [format_value(value) for value in swept])
        axes.set_xticks([], minor=True)


def _paint_rows(axes: Axes, told: Numbers, _: object) -> None:
    lines = told["rows"]
    means = [row["average_regret"] for row in lines]
    reaches = [find_quantity(row, "average_regret")[1] or 0.0 for row in lines]
    places = range(len(lines), 0, -1)
    axes.errorbar(means, places, xerr=reaches, fmt="o", color=SERIES[0])
    axes.set_yticks(list(places), [row["optimizer"] for row in lines])
    axes.set(xlabel="average regret", xlim=(0.0, None))
