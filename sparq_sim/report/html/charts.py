"""Charts of a page: all for which there are data, by section."""

from __future__ import annotations

from collections.abc import Mapping

from sparq_sim.report.data import ChartData
from sparq_sim.report.html.cost import cost_charts
from sparq_sim.report.html.curves import regret_charts, series_charts
from sparq_sim.report.html.differences import difference_charts
from sparq_sim.report.html.fates import fate_charts
from sparq_sim.report.html.figure import Chart
from sparq_sim.report.html.prices import price_charts
from sparq_sim.report.html.shares import share_charts
from sparq_sim.report.html.sweeps import sweep_charts

__all__ = ["all_charts"]


def all_charts(data: ChartData) -> Mapping[str, list[Chart]]:
    """Return all charts for which there are data, by section of the page.

    Args:
        data: What they show.
    """
    regret = regret_charts(data)
    return {
        "regret": regret[:1],
        "differences": difference_charts(data),
        "series": [*regret[1:], *series_charts(data)],
        "fates": fate_charts(data),
        "shares": share_charts(data),
        "cost": [*cost_charts(data), *price_charts(data)],
        "sweep": sweep_charts(data),
    }
