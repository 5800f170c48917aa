from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from scipy import stats

from sparq_sim.analysis.summary import (
    spread,
    summary,
)
from sparq_sim.simulation import measures
from sparq_sim.study.results import Results
from tests.analysis.conftest import traces


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


def test_a_summary_agrees_with_the_traces(study: Results) -> None:
    rows = {(row.optimizer, row.setting["feedback.noise"]): row for row in summary(study)}
    assert len(rows) == 4
    row, played = rows["sparq-gp-ucb", 0.1], traces("sparq-gp-ucb")
    finals = [measures.average_regret(trace)[-1] for trace in played]
    growths = [measures.exponent(measures.regret(trace)).value for trace in played]
    counts = [measures.tally(trace) for trace in played]
    assert row.plays == 4
    assert row.average_regret.mean == pytest.approx(np.mean(finals))
    assert row.average_regret.std == pytest.approx(np.std(finals, ddof=1))
    assert row.exponent.mean == pytest.approx(np.mean(growths))
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
