"""The table of a chart has the numbers that the chart shows."""

from __future__ import annotations

import numpy as np
import pytest

from sparq_sim import SparqError
from sparq_sim.report.chart_table import list_charts, tabulate_chart
from sparq_sim.report.gather import gather
from sparq_sim.report.print import draw
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.study.plays import scenario


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    swept = scenario(replications=6, sweep={"experts.sage.channel.cost": [0.1, 0.2]})
    study = Study(swept, tmp_path_factory.mktemp("six"))
    study.run(InProcess())
    return study.results


def test_a_curve_and_its_band_are_those_that_are_drawn(study: Results) -> None:
    table = tabulate_chart(study, "average-regret").to_pylist()
    curves = {each.get_label(): each for each in draw(study, "average-regret").axes[0].lines}
    cost = "experts.sage.channel.cost"
    own = [row for row in table if row["optimizer"] == "uniform" and row.get(cost) in (None, 0.1)]
    np.testing.assert_array_equal([row["x"] for row in own], curves["uniform"].get_xdata())
    np.testing.assert_array_equal([row["y"] for row in own], curves["uniform"].get_ydata())
    assert all(row["low"] <= row["y"] <= row["high"] for row in own)


def test_every_chart_that_is_listed_has_a_table(study: Results) -> None:
    for kind in list_charts(gather(study, replays=False).charts):
        table = tabulate_chart(study, kind)
        assert table.num_rows
        assert {"chart", "optimizer", "x", "y", "low", "high"} <= {*table.column_names}


def test_a_chart_that_is_not_there_is_refused(study: Results) -> None:
    with pytest.raises(SparqError, match="did you mean 'average-regret'"):
        tabulate_chart(study, "averge-regret")
