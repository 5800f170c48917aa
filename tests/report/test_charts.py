from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparq_sim.analysis.curves import bands
from sparq_sim.analysis.intervals import bound_positive
from sparq_sim.analysis.summary import summary
from sparq_sim.report.data import ChartData, ReportData
from sparq_sim.report.gather import gather
from sparq_sim.report.html.charts import all_charts
from sparq_sim.report.html.cost import cost_charts
from sparq_sim.report.html.curves import regret_charts, series_charts
from sparq_sim.report.html.figure import Chart, escape_text, line_style, round_digits
from sparq_sim.report.looks import find_looks
from sparq_sim.study.results import Results
from tests.plants import Plant, steer
from tests.report.conftest import with_six_plays


def chart(told: ReportData, name: str) -> Chart:
    (found,) = [
        c for section in all_charts(told.charts).values() for c in section if c.name == name
    ]
    return found


def around(figure: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Give what is drawn around a curve: the ends of its band, or the plays."""
    meta = {"of": name, "role": "spread"}
    return [trace for trace in figure["data"] if trace.get("meta") == meta]


def traces(figure: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [trace for trace in figure["data"] if trace.get("name") == name]


# Curves


def test_numbers_have_five_digits() -> None:
    assert round_digits([1 / 3, 123456.0, nan, inf]) == [0.33333, 123460.0, None, None]


def test_regret_curves_are_those_of_the_analysis(study: Results, told: ReportData) -> None:
    drawn = {each.name: each for each in regret_charts(with_six_plays(told.charts))}
    for average, curve in ((True, "average_regret"), (False, "cumulative_regret")):
        figures = drawn[curve.replace("_", "-")].figures
        for band in bands(study, "average_regret" if average else "cumulative_regret"):
            place = list(told.charts.settings).index(band.setting)
            (mean,) = traces(figures[place], band.optimizer)
            low, high = around(figures[place], band.optimizer)
            ends = bound_positive(band.mean, band.high - band.mean)
            assert mean["x"] == list(range(1, 31))
            for each, expected in zip((mean, low, high), (band.mean, *ends), strict=True):
                assert each["y"] == pytest.approx(list(expected), rel=1e-4)


def test_fewer_than_five_plays_are_drawn_one_by_one(told: ReportData) -> None:
    for place, figure in enumerate(chart(told, "average-regret").figures):
        for band in told.charts.bands:
            if band.setting == told.charts.settings[place]:
                (plays,) = around(figure, band.optimizer)
                assert plays["y"].count(None) == len(band.singles) == 2
                assert "fill" not in plays
                assert plays["y"][29] == pytest.approx(band.singles[0, -1] / 30, rel=1e-4)


def test_the_band_of_the_best_is_before_those_of_the_others(told: ReportData) -> None:
    for figure in regret_charts(with_six_plays(told.charts))[0].figures:
        opacity = {
            trace["meta"]["of"]: float(trace["fillcolor"].partition("/")[2])
            for trace in figure["data"]
            if "fill" in trace
        }
        assert opacity["curious"] > 4 * opacity["careless"] > 0


def test_the_axis_fits_the_curves_whatever_the_levels_are(told: ReportData) -> None:
    far = [(setting, replace(level, uniform=1e6)) for setting, level in told.charts.levels]
    (near, *_), (stretched, *_) = (
        regret_charts(data) for data in (told.charts, replace(told.charts, levels=far))
    )
    for one, other in zip(near.figures, stretched.figures, strict=True):
        for scale in ("linear", "log"):
            ranges = [each["scales"][scale]["yaxis"]["range"] for each in (one, other)]
            assert ranges[0] == ranges[1]
            (label,) = [
                each["text"]
                for each in other["scales"][scale]["annotations"]
                if "uniform" in each["text"]
            ]
            assert label.startswith("\N{UPWARDS ARROW}")
            assert "1e+06" in label


def test_an_axis_is_logarithmic_where_final_means_differ_much(told: ReportData) -> None:
    bands = [
        replace(band, mean=band.mean * (100 if band.optimizer == "careless" else 1))
        for band in told.charts.bands
    ]
    (drawn, *_) = regret_charts(replace(told.charts, bands=bands))
    assert drawn.logarithmic
    alike = [replace(band, mean=np.ones(30), singles=band.singles[:0]) for band in bands]
    assert not regret_charts(replace(told.charts, bands=alike))[0].logarithmic


def test_the_window_of_a_moving_mean_is_told(told: ReportData) -> None:
    series = [replace(each, window=25) for each in told.charts.series]
    (drawn, *_) = series_charts(replace(told.charts, series=series))
    assert drawn.title == "Regret of the round"
    assert drawn.caption.endswith("moving over 25 rounds.")


def test_reference_levels_are_in_every_regret_chart(told: ReportData) -> None:
    drawn = [c for section in all_charts(told.charts).values() for c in section if c.regret]
    names = {"average-regret", "cumulative-regret", "round-regret", "plane", "swept"}
    assert {c.name for c in drawn} == names
    for each in (c for c in drawn if c.name != "round-regret"):
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
    assert colours == {name: {told.charts.look(name).series} for name in colours}


def test_more_optimizers_than_colours_differ_by_their_dashes() -> None:
    looks = find_looks({f"o{i}": "sparq-gp-ucb" for i in range(17)})
    assert len({tuple(line_style(look).items()) for look in looks.values()}) == 17


# Cost


def test_where_nothing_is_spent_there_is_no_plane(told: ReportData) -> None:
    free = [row for row in told.charts.summaries if row.optimizer == "careless"]
    assert cost_charts(ChartData(optimizers=["careless"], summaries=free)) == []


# Sweeps


def test_each_swept_parameter_has_a_panel_with_means_over_the_others(
    study: Results, told: ReportData
) -> None:
    loss, noise = chart(told, "swept").figures
    assert loss["layout"]["xaxis"]["title"]["text"] == "loss"
    assert noise["layout"]["xaxis"]["title"]["text"] == "noise"
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
    assert titles[:5] == [
        "Regret of the round",
        "Spent",
        "Points asked per round",
        "Staleness",
        "The approximation: KL bound",
    ]
    assert "Noted: width" in titles


def test_tags_in_names_are_shown_not_obeyed() -> None:
    assert escape_text("<b>&amp;\u202e") == "&lt;b&gt;&amp;amp;\ufffd"


# Where the best reward is not known


def test_rewards_are_charted_in_place_of_regret(steered: Results) -> None:
    charts = all_charts(gather(steered, replays=False).charts)
    assert [chart.name for chart in charts["regret"]] == ["mean-reward"]
    assert charts["series"][0].title == "Reward"
    assert "more reward costs more" in charts["cost"][0].caption
    assert not any(chart.regret for section in charts.values() for chart in section)
    for section in charts.values():
        for chart in section:
            for figure in chart.figures:
                assert figure["data"], chart.name
                assert "regret" not in str(figure["layout"]["yaxis"]["title"])
                assert all(any(each["y"]) for each in figure["data"] if each.get("name"))


def test_bright_is_a_high_reward(steered: Results) -> None:
    charts = all_charts(gather(steered, replays=False).charts)
    (chart,) = [chart for chart in charts["sweep"] if chart.name == "map-0"]
    assert not any(figure["data"][0]["reversescale"] for figure in chart.figures)


def test_regret_against_the_best_seen_is_charted_on_request(steered: Results) -> None:
    charts = all_charts(gather(steered, replays=False, best_seen=True).charts)
    assert [chart.title for chart in (*charts["regret"], *charts["series"][:1])] == [
        "Average regret against the best seen",
        "Cumulative regret against the best seen",
    ]
    assert "highest reward observed in the whole play" in charts["regret"][0].caption


def test_without_any_reward_no_chart_is_empty(tmp_path: Path) -> None:
    sweep = {"environment.opening": [0.3, 0.6]}
    silent = steer(tmp_path, environment=Plant(silent=2.0), replications=1, sweep=sweep)
    charts = all_charts(gather(silent, replays=False).charts)
    assert not charts["regret"]
    assert not charts["cost"]
    assert not charts["sweep"]
    assert "Reward" not in {chart.title for chart in charts["series"]}
