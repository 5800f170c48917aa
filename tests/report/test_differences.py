from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from sparq_sim import SparqError
from sparq_sim.analysis.pairs import compare_optimizers
from sparq_sim.report.data import ChartData, ReportData
from sparq_sim.report.html.differences import difference_charts
from sparq_sim.report.print import draw, kinds
from sparq_sim.study.results import Results
from tests.analysis.results import make_plays

GOOD = [0.10, 0.12, 0.08, 0.11, 0.09, 0.10]
BAD = [0.5, 0.6, 0.4, 0.55, 0.45, 0.5]
PLAYS = [
    *make_plays("good", GOOD),
    *make_plays("bad", BAD),
    *make_plays("close", [0.11, 0.11, 0.10, 0.10, 0.10, 0.10]),
]
DATA = ChartData(optimizers=["bad", "close", "good"], found=PLAYS)


def test_differences_are_those_of_the_pairs(study: Results, told: ReportData) -> None:
    (chart,) = difference_charts(told.charts)
    for setting, figure in zip(told.charts.settings, chart.figures, strict=True):
        (expected,) = [
            each.difference.mean
            for each in compare_optimizers(study, "careless", "curious")
            if each.setting == setting
        ]
        (point,) = [trace for trace in figure["data"] if trace.get("name")]
        assert point["x"] == [pytest.approx(expected, rel=1e-4)]
        assert figure["layout"]["xaxis"]["title"]["text"].endswith("that of curious")


def test_few_pairs_are_dots_and_many_an_interval() -> None:
    few = replace(DATA, found=[play for play in PLAYS if play.replication < 3])
    for data, dots, bars in ((few, 3, False), (DATA, 0, True)):
        (figure,) = difference_charts(data)[0].figures
        means = [trace for trace in figure["data"] if trace.get("name")]
        spreads = [trace for trace in figure["data"] if not trace.get("name")]
        assert all(len(trace["x"]) == dots for trace in spreads)
        assert all((trace["error_x"]["array"][0] > 0) == bars for trace in means)


def test_what_may_be_chance_is_hollow_and_says_so() -> None:
    (figure,) = difference_charts(DATA)[0].figures
    drawn = {trace["name"]: trace for trace in figure["data"]}
    assert drawn["close"]["marker"]["symbol"].endswith("-open")
    assert "may be chance, 6 pairs" in drawn["close"]["text"][0]
    assert not drawn["bad"]["marker"]["symbol"].endswith("-open")
    assert "worse, 6 pairs" in drawn["bad"]["text"][0]


def test_print_draws_the_same_rows() -> None:
    (axes,) = draw(DATA, "differences").axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["bad", "close"]
    (marks, *_) = axes.containers
    assert isinstance(marks, ErrorbarContainer)
    expected = np.mean(BAD) - np.mean(GOOD)
    assert np.asarray(marks.lines[0].get_xdata()) == pytest.approx(expected)


def test_one_optimizer_differs_from_no_other() -> None:
    alone = ChartData(optimizers=["good"], found=PLAYS[:6])
    assert difference_charts(alone) == []
    assert "differences" not in kinds(alone)
    with pytest.raises(SparqError, match="one optimizer only"):
        draw(alone, "differences")


def test_a_chart_of_one_or_two_rows_is_low() -> None:
    assert difference_charts(DATA)[0].low
    more = [*PLAYS, *make_plays("worst", [0.9] * 6)]
    assert not difference_charts(replace(DATA, found=more, optimizers=["good", "worst"]))[0].low
