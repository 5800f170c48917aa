"""The page: what a report shows, as one HTML file that needs no network."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sparq_sim
from sparq_sim.errors import mask_invisible
from sparq_sim.report.data import ReportData
from sparq_sim.report.html.charts import all_charts
from sparq_sim.report.html.embed import embed
from sparq_sim.report.html.figure import Chart
from sparq_sim.report.html.network import network_charts
from sparq_sim.report.html.place import caption_places, pack_places
from sparq_sim.report.html.plotly import read_plotly
from sparq_sim.report.html.ranked import make_ranked_chart
from sparq_sim.report.phrases import format_number
from sparq_sim.report.place import find_most_telling
from sparq_sim.report.results_table import make_results_table, name_paths
from sparq_sim.study.settings import format_setting, format_value

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "TEMPLATES",
    "THEME",
    "describe",
    "describe_charts",
    "dress",
    "make_environment",
    "read_player",
    "read_styles",
    "read_template",
    "render",
]

TEMPLATES = Path(__file__).parent / "templates"
"""The folder of templates, styles and scripts."""
_PLAYER = (
    *("drawing/numbers", "replay/film", "drawing/pen"),
    *(f"replay/{part}" for part in ("line", "fields", "strips", "lives", "areas", "timeline")),
    *(f"replay/{part}" for part in ("brush", "shares", "words", "touch", "choice", "controls")),
)
"""The parts of the script that plays replays, in their order."""
_PLACES = ("drawing/numbers", "place/picture", "drawing/pen", "place/rows", "place/controls")
"""The parts of the script that draws place over time, in their order."""
_MOST_ROWS = 400
"""Of a table in the page."""
THEME = (
    "document.documentElement.dataset.theme ="
    ' matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";'
)
"""Runs before anything is shown, so that a dark page never flashes."""


@cache
def make_environment(*folders: Path) -> Environment:
    """Make what renders templates, with the report's filters; a folder is made ready once.

    Args:
        *folders: Of templates, which come before those of the report.

    Returns:
        The environment of Jinja: what is put into a page is escaped.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    def seen(value: object) -> object:
        return mask_invisible(value) if type(value) is str else value

    environment = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": format_number,
        "interval": _format_interval,
        "shown": format_value,
    }
    environment.globals |= {"in_words": format_setting}
    return environment


def render(report: ReportData) -> str:
    """Return the page of a report.

    Args:
        report: What it shows.
    """
    shown = describe(report)
    scripts, styles = {"theme": THEME}, [*read_styles()]
    if report.places:
        scripts["place"] = _join_scripts(_PLACES)
        styles.append(read_template("place.css"))
    # Before the charts: their script is large, and the replay need not wait for it.
    if any(replay.film is not None for replay in report.replays):
        scripts["replay"] = read_player()
    if report.replays:
        styles.append(read_template("replay.css"))
    if any(shown["sections"].values()):
        scripts["plotly"] = read_plotly()
    scripts["page"] = read_template("page.js")
    template = make_environment().get_template("page.html.j2")
    return template.render(**shown, **dress(scripts, styles))


def describe(report: ReportData) -> dict[str, Any]:
    """Return what the template of the page shows of a report, by name.

    Args:
        report: What it shows.
    """
    from sparq_sim.report.html.replay import pack_all

    sections = {**all_charts(report.charts), "network": network_charts(report.networks)}
    rows = report.charts.summaries
    return {
        "report": report,
        "paths": name_paths([each.setting for each in rows]),
        "summaries": rows[:_MOST_ROWS],
        "criterion": report.charts.criterion,
        "results": make_results_table(report.standings, report.charts.levels)
        if report.standings
        else None,
        "most_rows": _MOST_ROWS,
        "meters": list(dict.fromkeys(name for each in rows for name in each.meters)),
        "ranked": make_ranked_chart(report.charts, report.standings),
        "grave": bool(report.standings) and any(row.impossible for row in rows),
        "sections": sections,
        "networks": report.networks,
        "charts": embed(describe_charts(chart for part in sections.values() for chart in part)),
        "parameters": json.dumps(report.parameters, indent=1, ensure_ascii=False),
        "places": report.places,
        "place_caption": caption_places(report.places),
        "place_first": find_most_telling(report.places),
        "place_data": embed(pack_places(report.places)),
        "replays": report.replays,
        "replay_data": embed(
            pack_all(
                report.replays,
                report.charts.found,
                order=report.charts.optimizers,
                folder=report.folder,
            )
        ),
        "made_at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "version": sparq_sim.__version__,
    }


def describe_charts(charts: Iterable[Chart]) -> dict[str, Any]:
    """Return what the script of the page draws, by the names of the charts.

    Args:
        charts: Those of a page.
    """
    return {chart.name: {"figures": chart.figures, "by": chart.by} for chart in charts}


def dress(scripts: Mapping[str, str], styles: Iterable[str], *, more: str = "") -> dict[str, Any]:
    """Return the scripts and styles of a page for its template, and a policy that allows only them.

    Args:
        scripts: By the names that the template knows.
        styles: Style sheets.
        more: Further directives of the policy.
    """
    from markupsafe import Markup

    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts.values())
    return {
        "policy": f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        f"img-src data: blob:; base-uri 'none'; form-action 'none'{more}",
        "scripts": {name: Markup(script) for name, script in scripts.items()},
        "styles": [Markup(style) for style in styles],
    }


def read_template(name: str, folder: Path = TEMPLATES) -> str:
    """Read a style sheet or a script.

    Args:
        name: Of the file.
        folder: Where it is.
    """
    # As browsers read it, lest the hash be that of another text.
    return (folder / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def read_styles() -> list[str]:
    """Return the style sheets that every page of results has."""
    return [read_template(name) for name in ("page.css", "ranked.css")]


def read_player() -> str:
    """Read the script that plays replays: its parts share names, and no name leaves it."""
    return _join_scripts(_PLAYER)


def _join_scripts(parts: Iterable[str]) -> str:
    joined = "\n".join(read_template(f"{part}.js") for part in parts)
    return f'"use strict";\n(() => {{\n{joined}}})();'


def _digest(script: str) -> str:
    return base64.b64encode(sha256(script.encode()).digest()).decode()


def _format_interval(low: float, high: float) -> str:
    """Return an interval as text; nothing for one that is unknown.

    Args:
        low: Its lower end.
        high: Its upper end.
    """
    return (
        f"{format_number(low)} … {format_number(high)}" if isfinite(low) and isfinite(high) else ""
    )
