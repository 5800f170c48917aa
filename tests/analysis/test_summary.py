from __future__ import annotations

from math import isnan
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sparq_sim.analysis.summary import (
    spread,
    spread_exponents,
    summary,
)
from sparq_sim.simulation import measures
from sparq_sim.study.results import Results
from tests.analysis.conftest import traces
from tests.bookkeeping import run_metered


def test_a_spread_is_student_s() -> None:
    numbers = [1.0, 2.0, 4.0, 9.0]
    found = spread([*numbers, None, float("nan")])
    low, high = stats.t.interval(0.95, 3, np.mean(numbers), stats.sem(numbers))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (found.mean, found.count) == (4.0, 4)
    assert found.std == pytest.approx(np.std(numbers, ddof=1))


def test_one_replication_has_no_interval_and_none_no_mean() -> None:
    assert spread([2.0]).mean == 2.0
    assert isnan(spread([2.0]).low)
    assert isnan(spread([]).mean)


def test_an_exponent_lies_where_a_t_test_does_not_tell_the_octaves_from_its_ratio() -> None:
    rng = np.random.default_rng(2)
    octaves = rng.gamma(4.0, [0.25, 0.2], (8, 2))
    found = spread_exponents([*map(tuple, octaves.tolist()), (None, 1.0)])
    assert found.mean == pytest.approx(1 + np.log2(octaves[:, 1].mean() / octaves[:, 0].mean()))
    assert found.low < found.mean < found.high
    assert found.count == 8
    for end in (found.low, found.high):
        gaps = octaves[:, 1] - 2 ** (end - 1) * octaves[:, 0]
        assert stats.ttest_1samp(gaps, 0.0).pvalue == pytest.approx(0.05)


def test_an_exponent_is_unknown_without_regret_and_its_interval_where_plays_do_not_bound_it() -> (
    None
):
    assert isnan(spread_exponents([(0.0, 0.0), (0.0, 1.0)]).mean)
    assert isnan(spread_exponents([]).mean)
    alone = spread_exponents([(1.0, 1.0)])
    assert (alone.mean, alone.count) == (1.0, 1)
    assert isnan(alone.low)
    apart = spread_exponents([(0.0, 0.0), (0.0, 0.0), (9.0, 9.0), (0.0, 0.1)])
    assert apart.mean == pytest.approx(1.0, abs=0.1)
    assert isnan(apart.low)
    assert isnan(apart.high)


def test_a_summary_agrees_with_the_traces(study: Results) -> None:
    rows = {(row.optimizer, row.setting["feedback.noise"]): row for row in summary(study)}
    assert len(rows) == 4
    row, played = rows["sparq-gp-ucb", 0.1], traces("sparq-gp-ucb")
    finals = [measures.average_regret(trace)[-1] for trace in played]
    early, late = np.mean([measures.octaves(measures.regret(trace)) for trace in played], axis=0)
    growths = [measures.exponent(measures.regret(trace)) for trace in played]
    counts = [measures.tally(trace) for trace in played]
    assert row.plays == 4
    assert row.average_regret.mean == pytest.approx(np.mean(finals))
    assert row.average_regret.std == pytest.approx(np.std(finals, ddof=1))
    assert row.exponent.mean == pytest.approx(1 + np.log2(late / early))
    assert row.exponent.std == pytest.approx(np.std(growths, ddof=1))
    assert row.spent.mean == pytest.approx(np.mean([trace.spent for trace in played]))
    asked = sum(count.asked for count in counts)
    assert row.asked_per_round == pytest.approx(asked / 100)
    assert row.answered == pytest.approx(sum(count.answered for count in counts) / asked)
    assert row.lost == pytest.approx(sum(count.lost for count in counts) / asked)
    ages = np.concatenate([measures.staleness(trace) for trace in played])
    assert row.staleness == pytest.approx(ages.mean())
    assert isnan(rows["uniform", 0.1].answered)


def test_a_flat_row_has_none_for_what_is_unknown(study: Results) -> None:
    rows = [row.flat() for row in summary(study)]
    assert {row["answered"] for row in rows if row["optimizer"] == "uniform"} == {None}
    assert {"average_regret", "average_regret_low", "exponent", "plays"} <= rows[0].keys()


def test_meters_are_summarised_as_they_stood_in_the_last_round(tmp_path: Path) -> None:
    rows = {row.optimizer: row for row in summary(run_metered(tmp_path))}
    # One point in the first round, two in each of the others, and the last are not asked yet.
    assert list(rows["asker"].meters) == ["battery_energy_used", "battery_left"]
    assert rows["asker"].meters["battery_energy_used"] == spread([9.0] * 3)
    assert rows["uniform"].meters["battery_left"] == spread([100.0] * 3)
    told = rows["asker"].flat()
    assert (told["meter_battery_left"], told["meter_battery_left_std"]) == (91.0, 0.0)
    assert (told["meter_battery_left_low"], told["meter_battery_left_high"]) == (91.0, 91.0)
    assert "meters" not in told


def test_plays_without_meters_have_no_columns_of_them(study: Results) -> None:
    for row in summary(study):
        assert row.meters == {}
        assert not [name for name in row.flat() if name.startswith("meter")]


def test_rows_of_plays_that_know_the_best_have_no_columns_of_rewards(study: Results) -> None:
    for row in summary(study):
        assert row.judged == row.average_regret
        assert not row.flat().keys() & {"mean_reward", "knows_best", "unobserved", "criterion"}


def test_rows_of_plays_that_do_not_have_rewards_in_place_of_regret(steered: Results) -> None:
    for row in summary(steered):
        told = row.flat()
        assert row.judged == row.mean_reward
        assert row.loss == -row.mean_reward.mean
        assert told["average_regret"] is None
        assert told["knows_best"] is False
        assert told["criterion"] == "mean_reward"
        assert told["mean_reward_low"] < told["mean_reward"] < told["mean_reward_high"]  # type: ignore[operator] # numbers
        assert 0 < row.unobserved < 1
        assert "regret_to_best_seen" not in told


def test_regret_against_the_best_seen_is_in_the_rows_on_request(steered: Results) -> None:
    for row in summary(steered, best_seen=True):
        assert row.judged.mean == row.flat()["regret_to_best_seen"]
        assert row.judged.mean > 0
