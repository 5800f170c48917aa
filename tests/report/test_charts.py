from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.analysis.summary import bands, summary
from sparq_sim.report.html import charts
from sparq_sim.report.html.charts import (
    MOST_POINTS,
    Chart,
    Material,
    binned,
    digits,
    everything,
    pareto,
    some,
    text,
    thinned,
)
from sparq_sim.report.html.page import Gathered
from sparq_sim.study.results import Results
from sparq_sim.study.settings import agree, fullest

NUMBERS = st.floats(0, 10)


def chart(told: Gathered, name: str) -> Chart:
    (found,) = [
        c for section in everything(told.material).values() for c in section if c.name == name
    ]
    return found


def traces(figure: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [trace for trace in figure["data"] if trace.get("name") == name]


# Curves


@given(st.integers(1, 5000))
def test_thinning_keeps_the_ends_and_is_bounded(count: int) -> None:
    places = thinned(count)
    assert places[0] == 0
    assert places[-1] == count - 1
    assert len(places) == len(set(places)) <= MOST_POINTS


@given(st.lists(NUMBERS, min_size=1, max_size=2000))
def test_bins_of_one_size_keep_the_mean(values: list[float]) -> None:
    rounds, means = binned(np.array(values))
    sizes = [len(part) for part in np.array_split(values, min(len(values), MOST_POINTS))]
    assert len(rounds) <= MOST_POINTS
    assert np.dot(means, sizes) == pytest.approx(sum(values))


def test_unknown_rounds_are_left_out_of_their_bins() -> None:
    rounds, means = binned(np.array([nan, 2.0, nan]))
    assert (list(rounds), list(means)) == ([2.0], [2.0])


def test_numbers_have_five_digits() -> None:
    assert digits([1 / 3, 123456.0, nan, inf]) == [0.33333, 123460.0, None, None]


def test_regret_curves_are_those_of_the_analysis(study: Results, told: Gathered) -> None:
    for average, curve in ((True, "average_regret"), (False, "cumulative_regret")):
        figures = chart(told, curve.replace("_", "-")).figures
        for band in bands(study, "average_regret" if average else "cumulative_regret"):
            place = list(told.material.settings).index(band.setting)
            data = figures[place]["data"]
            (mean,) = traces(figures[place], band.optimizer)
            low, high = data[data.index(mean) - 2], data[data.index(mean) - 1]
            assert mean["x"] == list(range(1, 31))
            for drawn, expected in ((mean, band.mean), (low, band.low), (high, band.high)):
                assert drawn["y"] == pytest.approx(list(expected), rel=1e-4)


def test_reference_levels_are_in_every_regret_chart(told: Gathered) -> None:
    drawn = [c for section in everything(told.material).values() for c in section if c.regret]
    assert {c.name for c in drawn} == {"average-regret", "cumulative-regret", "plane", "swept"}
    for each in drawn:
        for figure in each.figures:
            for name in ("uniform, expected", "best fixed point", "one round late"):
                (line,) = traces(figure, name)
                assert line["line"]["dash"] != "solid"


def test_an_optimizer_has_one_colour_everywhere(told: Gathered) -> None:
    colours: dict[str, set[str]] = {"careless": set(), "curious": set()}
    for section in everything(told.material).values():
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
    styles = {tuple(charts._line(names, name).items()) for name in names}
    assert len(styles) == 20


# Cost


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30))
def test_the_front_is_what_nobody_beats(points: list[tuple[float, float]]) -> None:
    front = {points[i] for i in pareto(points)}
    unbeaten = {
        point
        for point in points
        if not any(
            other != point and other[0] <= point[0] and other[1] <= point[1] for other in points
        )
    }
    assert front == unbeaten


def test_where_nothing_is_spent_there_is_no_plane(told: Gathered) -> None:
    free = [row for row in told.material.summaries if row.optimizer == "careless"]
    assert charts.plane(Material(optimizers=["careless"], summaries=free)) == []


# Sweeps


def test_each_swept_parameter_has_a_panel_with_means_over_the_others(
    study: Results, told: Gathered
) -> None:
    loss, noise = chart(told, "swept").figures
    assert loss["layout"]["xaxis"]["title"]["text"] == "experts.sage.channel.loss"
    assert noise["layout"]["xaxis"]["title"]["text"] == "feedback.noise"
    (line,) = traces(noise, "curious")
    rows = [row for row in summary(study) if row.optimizer == "curious"]
    for value, drawn in zip(line["x"], line["y"], strict=True):
        own = [r.average_regret.mean for r in rows if r.setting["feedback.noise"] == value]
        assert drawn == pytest.approx(np.mean(own), rel=1e-4)


def test_two_swept_parameters_make_a_map_an_optimizer(study: Results, told: Gathered) -> None:
    maps = chart(told, "map-0")
    assert [f["layout"]["title"]["text"] for f in maps.figures] == ["careless", "curious"]
    (cells,) = maps.figures[1]["data"]
    found = {tuple(r.setting.values()): r for r in summary(study) if r.optimizer == "curious"}
    expected = [
        [found[loss, noise].average_regret.mean for loss in (0.0, 0.4)] for noise in (0.1, 0.3)
    ]
    assert cells["z"] == [pytest.approx(row, rel=1e-4) for row in expected]
    assert (cells["x"], cells["y"]) == (["0", "0.4"], ["0.1", "0.3"])


def test_settings_that_are_special_cases_stand_for_the_general() -> None:
    assert fullest([{}, {"a": 1}, {"a": 2}, {"a": 1, "b": 0}]) == [{"a": 2}, {"a": 1, "b": 0}]
    assert fullest([{}]) == [{}]


def test_settings_agree_where_both_have_a_value() -> None:
    assert agree({"a": 1}, {"b": 2})
    assert not agree({"a": 1, "b": 1}, {"b": 2})


def test_of_too_many_settings_some_are_chosen_evenly() -> None:
    many = [{"a": i} for i in range(101)]
    assert [each["a"] for each in some(many, 5)] == [0, 25, 50, 75, 100]


# Other columns


def test_what_is_recorded_a_round_has_charts_of_its_own(told: Gathered) -> None:
    titles = [each.title for each in charts.tracked(told.material)]
    assert titles[:4] == ["Spent", "Queries a round", "Staleness", "The approximation: KL bound"]
    assert "Noted: width" in titles


def test_tags_in_names_are_shown_not_obeyed() -> None:
    assert text("<b>&amp;\u202e") == "&lt;b&gt;&amp;amp;\ufffd"
