from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from sparq_sim.analysis.curves import bands
from sparq_sim.analysis.summary import summary
from sparq_sim.report.data import ChartData, ReportData
from sparq_sim.report.html.charts import all_charts, cost_charts, series_charts
from sparq_sim.report.html.figure import Chart, escape_text, line_style, round_digits
from sparq_sim.study.results import Results


def chart(told: ReportData, name: str) -> Chart:
    (found,) = [
        c for section in all_charts(told.charts).values() for c in section if c.name == name
    ]
    return found


def traces(figure: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [trace for trace in figure["data"] if trace.get("name") == name]


# Curves


def test_numbers_have_five_digits() -> None:
    assert round_digits([1 / 3, 123456.0, nan, inf]) == [0.33333, 123460.0, None, None]


def test_regret_curves_are_those_of_the_analysis(study: Results, told: ReportData) -> None:
    for average, curve in ((True, "average_regret"), (False, "cumulative_regret")):
        figures = chart(told, curve.replace("_", "-")).figures
        for band in bands(study, "average_regret" if average else "cumulative_regret"):
            place = list(told.charts.settings).index(band.setting)
            data = figures[place]["data"]
            (mean,) = traces(figures[place], band.optimizer)
            low, high = data[data.index(mean) - 2], data[data.index(mean) - 1]
            assert mean["x"] == list(range(1, 31))
            for drawn, expected in ((mean, band.mean), (low, band.low), (high, band.high)):
                assert drawn["y"] == pytest.approx(list(expected), rel=1e-4)


def test_reference_levels_are_in_every_regret_chart(told: ReportData) -> None:
    drawn = [c for section in all_charts(told.charts).values() for c in section if c.regret]
    assert {c.name for c in drawn} == {"average-regret", "cumulative-regret", "plane", "swept"}
    for each in drawn:
        for figure in each.figures:
            for name in ("uniform, expected", "best fixed point", "one round late"):
                (line,) = traces(figure, name)
                assert line["line"]["dash"] != "solid"


def test_an_optimizer_has_one_colour_everywhere(told: ReportData) -> None:
    colours: dict[str, set[str]] = {"careless": set(), "curious": set()}
    for section in all_charts(told.charts).values():
        for each in section:
            for figure in each.figures:
                for name, found in colours.items():
                    found |= {
                        (trace.get("line") or trace["marker"])["color"]
                        for trace in traces(figure, name)
                    }
    assert colours == {"careless": {"--series-1"}, "curious": {"--series-2"}}


def test_more_optimizers_than_colours_differ_by_their_dashes() -> None:
    names = [f"o{i}" for i in range(20)]
    styles = {tuple(line_style(names, name).items()) for name in names}
    assert len(styles) == 20


# Cost


def test_where_nothing_is_spent_there_is_no_plane(told: ReportData) -> None:
    free = [row for row in told.charts.summaries if row.optimizer == "careless"]
    assert cost_charts(ChartData(optimizers=["careless"], summaries=free)) == []


# Sweeps


def test_each_swept_parameter_has_a_panel_with_means_over_the_others(
    study: Results, told: ReportData
) -> None:
    loss, noise = chart(told, "swept").figures
    assert loss["layout"]["xaxis"]["title"]["text"] == "experts.sage.channel.loss"
    assert noise["layout"]["xaxis"]["title"]["text"] == "feedback.noise"
    (line,) = traces(noise, "curious")
    rows = [row for row in summary(study) if row.optimizer == "curious"]
    for value, drawn in zip(line["x"], line["y"], strict=True):
        own = [r.average_regret.mean for r in rows if r.setting["feedback.noise"] == value]
        assert drawn == pytest.approx(np.mean(own), rel=1e-4)


def test_two_swept_parameters_make_a_map_an_optimizer(study: Results, told: ReportData) -> None:
    maps = chart(told, "map-0")
    assert [f["layout"]["title"]["text"] for f in maps.figures] == ["careless", "curious"]
    (cells,) = maps.figures[1]["data"]
    found = {tuple(r.setting.values()): r for r in summary(study) if r.optimizer == "curious"}
    expected = [
        [found[loss, noise].average_regret.mean for loss in (0.0, 0.4)] for noise in (0.1, 0.3)
    ]
    assert cells["z"] == [pytest.approx(row, rel=1e-4) for row in expected]
    assert (cells["x"], cells["y"]) == (["0", "0.4"], ["0.1", "0.3"])


# Other columns


def test_what_is_recorded_a_round_has_charts_of_its_own(told: ReportData) -> None:
    titles = [each.title for each in series_charts(told.charts)]
    assert titles[:4] == [
        "Spent",
        "Points asked per round",
        "Staleness",
        "The approximation: KL bound",
    ]
    assert "Noted: width" in titles


def test_tags_in_names_are_shown_not_obeyed() -> None:
    assert escape_text("<b>&amp;\u202e") == "&lt;b&gt;&amp;amp;\ufffd"
