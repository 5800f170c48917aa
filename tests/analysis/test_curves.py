from __future__ import annotations

from math import nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sparq_sim.analysis.averages import bin_rounds, choose_window, smooth, thin_rounds
from sparq_sim.analysis.criteria import REWARD
from sparq_sim.analysis.curves import bands, read_curves
from sparq_sim.analysis.summary import AnalysisError
from sparq_sim.simulation import measures
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.analysis.conftest import traces
from tests.bookkeeping import run_metered
from tests.study.plays import scenario

MOST = 250


def test_bands_are_means_with_intervals_a_round(study: Results) -> None:
    (band,) = [
        each
        for each in bands(study)
        if each.optimizer == "uniform" and each.setting["feedback.noise"] == 0.1
    ]
    curves = np.array([measures.average_regret(trace) for trace in traces("uniform")])
    low, high = stats.t.interval(0.95, 3, curves.mean(axis=0), stats.sem(curves))
    np.testing.assert_allclose(band.mean, curves.mean(axis=0))
    np.testing.assert_allclose(band.low, low)
    np.testing.assert_allclose(band.high, high)
    assert band.rounds.tolist() == list(range(1, 26))
    assert set(band.plays) == {4}


def test_bands_end_with_the_longest_play(tmp_path: Path) -> None:
    costly = {"sage": {"kind": "truth", "channel": {"cost_per_point": 0.1, "loss": 0.5}}}
    fields = {"experts": costly, "budget": 3.0, "ends_when_spent": True}
    study = Study(scenario(optimizers=["sparq-gp-ucb"], replications=3, **fields), tmp_path)
    study.run(InProcess())
    lengths = sorted(len(study.results.read(play).trace) for play in study.plays())
    (band,) = bands(study.results, "spent")
    assert len(band.mean) == lengths[-1]
    assert band.plays[0] == 3


def test_an_unknown_curve_is_refused_with_a_hint(study: Results) -> None:
    with pytest.raises(AnalysisError, match="did you mean 'regret'"):
        bands(study, "regrets")  # type: ignore[arg-type] # that is the mistake


# Fewer points than rounds


@given(st.integers(1, 5000))
def test_thinning_keeps_the_ends_and_is_bounded(count: int) -> None:
    places = thin_rounds(count, MOST)
    assert places[0] == 0
    assert places[-1] == count - 1
    assert len(places) == len(set(places)) <= MOST


@given(st.lists(st.floats(0, 10), min_size=1, max_size=2000))
def test_bins_of_one_size_keep_the_mean(values: list[float]) -> None:
    rounds, means = bin_rounds(np.array(values), MOST)
    sizes = [len(part) for part in np.array_split(values, min(len(values), MOST))]
    assert len(rounds) <= MOST
    assert np.dot(means, sizes) == pytest.approx(sum(values))


def test_unknown_rounds_are_left_out_of_their_bins() -> None:
    rounds, means = bin_rounds(np.array([nan, 2.0, nan]), MOST)
    assert (list(rounds), list(means)) == ([2.0], [2.0])


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60), st.sampled_from([1, 3, 7]))
def test_a_moving_mean_is_that_of_the_rounds_to_both_sides(
    values: list[float], window: int
) -> None:
    half = window // 2
    expected = [np.mean(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]
    found = smooth(np.array(values), window)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * max(values))
    assert (found >= 0).all()


def test_a_moving_mean_leaves_out_what_is_unknown() -> None:
    assert smooth(np.array([nan, 1.0, 3.0, nan]), 3).tolist() == [1.0, 2.0, 2.0, 3.0]
    assert np.isnan(smooth(np.full(3, nan), 3)).all()


def test_regrets_of_the_rounds_are_smoothed_over_a_window_that_is_told(study: Results) -> None:
    curves = read_curves(study, most_points=MOST)
    (found,) = [
        each
        for each in curves.series
        if each.name == "round-regret"
        and each.optimizer == "uniform"
        and each.setting["feedback.noise"] == 0.1
    ]
    regrets = np.mean([measures.regret(trace) for trace in traces("uniform")], axis=0)
    assert found.window == choose_window(25) == 1
    np.testing.assert_allclose(found.means, regrets)


def test_fewer_than_five_plays_are_kept_one_by_one(study: Results) -> None:
    for band in read_curves(study, most_points=10).bands:
        assert band.singles.shape == (4, 10)
        np.testing.assert_allclose(band.singles.mean(axis=0), band.mean)


def test_thinned_bands_are_those_of_all_rounds_at_some_of_them(study: Results) -> None:
    thinned = read_curves(study, most_points=7).bands
    for few, all_ in zip(thinned, bands(study, "cumulative_regret"), strict=True):
        assert (few.optimizer, few.setting) == (all_.optimizer, all_.setting)
        assert (len(few.rounds), few.rounds[0], few.rounds[-1]) == (7, 1, 25)
        np.testing.assert_array_equal(few.mean, all_.mean[few.rounds - 1])
        np.testing.assert_array_equal(few.low, all_.low[few.rounds - 1])


def test_meters_are_series(tmp_path: Path) -> None:
    curves = read_curves(run_metered(tmp_path), most_points=MOST)
    found = {(each.optimizer, each.name): each for each in curves.series}
    used = found["asker", "meter battery_energy_used"]
    assert used.means.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0]
    assert found["uniform", "meter battery_left"].means.tolist() == [100.0] * 6


def test_where_the_best_is_not_known_curves_are_of_rewards(steered: Results) -> None:
    curves = read_curves(steered, most_points=1000)
    assert curves.criterion == REWARD
    rewards = {play.key: steered.read(play.key).trace.rounds["reward"] for play in curves.found}
    for band in curves.bands:
        own = [
            rewards[play.key]
            for play in curves.found
            if (play.optimizer, play.setting) == (band.optimizer, band.setting)
        ]
        last = np.mean([np.nanmean(each) for each in own])
        assert band.mean[-1] / band.rounds[-1] == pytest.approx(last)
    assert "reward" in {series.name for series in curves.series}
    assert not any(np.isnan(series.means).any() for series in curves.series)


def test_where_it_is_known_rewards_are_no_series(study: Results) -> None:
    assert "reward" not in {series.name for series in read_curves(study, most_points=9).series}


def test_bands_of_rewards_can_be_asked_for(steered: Results) -> None:
    for name in ("average_reward", "reward"):
        assert all(np.isfinite(band.mean[-1]) for band in bands(steered, name))
