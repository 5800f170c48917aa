from __future__ import annotations

import pytest
from matplotlib.patches import Rectangle

from sparq_sim import SparqError
from sparq_sim.analysis.criteria import REGRET
from sparq_sim.analysis.summary import summarize
from sparq_sim.report.data import ChartData, ReportData
from sparq_sim.report.html.fates import fate_charts
from sparq_sim.report.print import draw
from tests.analysis.results import make_plays

PLAYS = [
    *make_plays("asker", [1.0], asked=20.0, answered=15.0, lost=3.0, late=2.0, retries=5.0),
    *make_plays("silent", [1.0]),
]


def test_the_shares_of_a_bar_sum_to_100_per_cent(told: ReportData) -> None:
    (chart,) = fate_charts(told.charts)
    for figure in chart.figures:
        rows = {name for trace in figure["data"] for name in trace["y"]}
        assert rows == {"curious"}
        assert sum(trace["x"][0] for trace in figure["data"]) == pytest.approx(100, abs=0.1)


def test_a_bar_has_each_fate_that_occurred_and_retries_beside_it() -> None:
    data = ChartData(optimizers=["asker", "silent"], summaries=summarize(PLAYS, REGRET))
    (figure,) = fate_charts(data)[0].figures
    assert {trace["name"]: trace["x"] for trace in figure["data"]} == {
        "answered": [75.0],
        "late": [10.0],
        "lost": [15.0],
    }
    assert [each["text"] for each in figure["layout"]["annotations"]] == [
        "0.5 asked again per round"
    ]


def test_where_all_is_answered_there_is_nothing_to_tell_apart() -> None:
    plays = make_plays("asker", [1.0], asked=20.0, answered=20.0)
    data = ChartData(optimizers=["asker"], summaries=summarize(plays, REGRET), found=plays)
    assert fate_charts(data) == []
    with pytest.raises(SparqError, match="all points asked were answered"):
        draw(data, "fates")


def test_print_draws_the_same_bars(told: ReportData) -> None:
    for axes in draw(told.charts, "fates").axes:
        bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
        assert max(bar.get_x() + bar.get_width() for bar in bars) == pytest.approx(100)
