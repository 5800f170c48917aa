"""The page: what a report shows, as one HTML file that needs no network."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import sparq_sim
from sparq_sim.errors import mask_invisible
from sparq_sim.report.data import ReportData, different_levels, occurring_fates
from sparq_sim.report.html.charts import all_charts
from sparq_sim.report.html.embed import embed
from sparq_sim.report.html.figure import Chart
from sparq_sim.report.html.network import network_charts
from sparq_sim.report.words import format_number
from sparq_sim.study.settings import format_setting, format_value, list_paths, shorten_paths

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["TEMPLATES", "render"]

TEMPLATES = Path(__file__).parent / "templates"
"""The folder of templates, styles and scripts."""
_MOST_ROWS = 400
"""Of a table in the page."""
_THEME = (
    "document.documentElement.dataset.theme ="
    ' matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";'
)
"""Runs before anything is shown, so that a dark page never flashes."""


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    def seen(value: object) -> object:
        return mask_invisible(value) if type(value) is str else value

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": format_number,
        "interval": _format_interval,
        "share": _format_share,
        "shown": format_value,
    }
    environment.globals |= {"brief": shorten_paths, "in_words": format_setting}
    return environment


def render(report: ReportData) -> str:
    """Return the page of a report.

    Args:
        report: What it shows.
    """
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    from sparq_sim.report.html.replay import pack_all

    sections = {**all_charts(report.charts), "network": network_charts(report.networks)}
    rows = report.charts.summaries
    charts = [chart for section in sections.values() for chart in section]
    scripts, styles = {"theme": _THEME}, [_template("page.css")]
    # Before the charts: their script is large, and the replay need not wait for it.
    if report.replays:
        scripts["replay"] = _template("replay.js")
        styles.append(_template("replay.css"))
    if charts:
        scripts["plotly"] = get_plotlyjs()
    scripts["page"] = _template("page.js")
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts.values())
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            policy=(
                f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
                "img-src data: blob:; base-uri 'none'; form-action 'none'"
            ),
            scripts={name: Markup(script) for name, script in scripts.items()},
            styles=[Markup(style) for style in styles],
            paths=list_paths(each.setting for each in rows),
            summaries=rows[:_MOST_ROWS],
            fates=occurring_fates(rows),
            ended_early=any(each.ended_early for each in rows),
            idle=any(each.idle > 0 for each in rows),
            retries=any(each.retries_per_round > 0 for each in rows),
            meters=list(dict.fromkeys(name for each in rows for name in each.meters)),
            pushes=any(each.pushed_per_round > 0 for each in rows),
            winners=report.winners[:_MOST_ROWS] if len(report.winners) > 1 else (),
            levels=different_levels(report.charts.levels)[:_MOST_ROWS],
            sections=sections,
            networks=report.networks,
            charts=embed({chart.name: _chart_data(chart) for chart in charts}),
            parameters=json.dumps(report.parameters, indent=1, ensure_ascii=False),
            replays=report.replays,
            replay_data=embed(pack_all(report.replays)),
            made_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            version=sparq_sim.__version__,
        )
    )


def _template(name: str) -> str:
    # As browsers read it, lest the hash be that of another text.
    return (TEMPLATES / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _digest(script: str) -> str:
    return base64.b64encode(sha256(script.encode()).digest()).decode()


def _chart_data(chart: Chart) -> dict[str, object]:
    return {"figures": chart.figures, "by": chart.by}


def _format_interval(low: float, high: float) -> str:
    """Return an interval as text; nothing for one that is unknown.

    Args:
        low: Its lower end.
        high: Its upper end.
    """
    return (
        f"{format_number(low)} … {format_number(high)}" if isfinite(low) and isfinite(high) else ""
    )


def _format_share(value: float) -> str:
    """Return a share in per cent, as text; a dash for one that is unknown.

    Args:
        value: From 0 to 1.
    """
    return f"{100 * value:.3g} %" if isfinite(value) else "\N{EN DASH}"
