from __future__ import annotations

import csv
import json
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from sparq_sim.analysis.summary import (
    AnalysisError,
    as_json,
    bands,
    export,
    paired,
    spread,
    summary,
)
from sparq_sim.simulation import measures
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.study.test_executors import Dawdling
from tests.study.test_store import scenario


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("study")
    played = scenario(replications=4, sweep={"feedback.noise": [0.1, 0.3]})
    Study(played, folder).run(InProcess())
    return Results.open(folder)


def traces(optimizer: str, noise: float = 0.1) -> list[Any]:
    played = scenario(feedback={"noise": noise})
    return [played.play(optimizer, replication) for replication in range(4)]


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


def test_pairs_meet_the_same_chance(study: Results) -> None:
    found = {
        each.setting["feedback.noise"]: each for each in paired(study, "uniform", "sparq-gp-ucb")
    }
    gaps = [
        measures.regret(a).mean() - measures.regret(b).mean()
        for a, b in zip(traces("uniform", 0.3), traces("sparq-gp-ucb", 0.3), strict=True)
    ]
    assert found.keys() == {0.1, 0.3}
    assert found[0.3].difference.mean == pytest.approx(np.mean(gaps))
    assert found[0.3].difference.std == pytest.approx(np.std(gaps, ddof=1))
    assert found[0.3].better == np.mean(np.array(gaps) < 0)


def test_what_is_not_swept_for_one_is_compared_with_each_of_the_other(tmp_path: Path) -> None:
    optimizers = {"slow": Dawdling(seconds=0.0), "calm": {"kind": "uniform"}}
    swept = scenario(optimizers=optimizers, replications=2, sweep={"optimizers.slow.why": [1, 2]})
    study = Study(swept, tmp_path)
    study.run(InProcess())
    for pair in (("slow", "calm"), ("calm", "slow")):
        found = paired(study.results, *pair)
        assert [each.setting["optimizers.slow.why"] for each in found] == [1, 2]
        assert all(each.difference.mean == 0 for each in found)


def test_an_unknown_optimizer_or_curve_is_said(study: Results) -> None:
    with pytest.raises(AnalysisError, match="did you mean 'uniform'"):
        paired(study, "unifrom", "sparq-gp-ucb")
    with pytest.raises(AnalysisError, match="did you mean 'regret'"):
        bands(study, "regrets")  # type: ignore[arg-type]


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


@pytest.mark.parametrize("what", ["summary", "rounds", "replies"])
def test_exports_hold_the_same_rows_in_each_format(
    study: Results, tmp_path: Path, what: Any
) -> None:
    for suffix in ("csv", "parquet", "json"):
        export(study, tmp_path / f"out.{suffix}", what)
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()
    with open(tmp_path / "out.csv", newline="") as file:
        listed = list(csv.DictReader(file))
    read = json.loads((tmp_path / "out.json").read_text())
    assert len(table) == len(listed) == len(read) > 0
    assert [row["optimizer"] for row in table] == [row["optimizer"] for row in listed]
    assert [row["optimizer"] for row in table] == [row["optimizer"] for row in read]


def test_an_unknown_format_is_refused_with_those_there_are(study: Results, tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match=r"\.csv, \.parquet, \.json"):
        export(study, tmp_path / "out.xlsx")


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.json"])
def test_an_export_that_cannot_be_written_is_refused(
    study: Results, tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").touch()
    for folder, reason in (("none", "No such file"), ("file", "Not a directory")):
        file = tmp_path / folder / name
        told = rf"^cannot write {file}: {reason}.*; make its folder, or choose another file$"
        with pytest.raises(AnalysisError, match=told):
            export(study, file)


def test_json_has_null_for_what_is_unknown(study: Results) -> None:
    rows = json.loads(as_json(summary(study)))
    assert {row["answered"] for row in rows if row["optimizer"] == "uniform"} == {None}
    assert {"average_regret", "average_regret_low", "exponent", "plays"} <= rows[0].keys()
    (first, _) = json.loads(as_json(paired(study, "uniform", "sparq-gp-ucb")))
    assert first["difference"]["count"] == 4
