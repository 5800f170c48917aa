from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sparq_sim.analysis.export import export
from sparq_sim.analysis.summary import AnalysisError
from sparq_sim.study.results import Results
from tests.bookkeeping import run_metered


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


def test_an_exported_summary_has_columns_of_meters(tmp_path: Path) -> None:
    study = run_metered(tmp_path / "study")
    export(study, tmp_path / "out.json")
    rows = {row["optimizer"]: row for row in json.loads((tmp_path / "out.json").read_text())}
    assert rows["asker"]["meter_battery_left"] == 91.0
    export(study, tmp_path / "rounds.parquet", "rounds")
    assert "meter_battery_left" in pq.read_table(tmp_path / "rounds.parquet").column_names


def test_what_an_expert_leaves_is_exported_by_its_name(tmp_path: Path) -> None:
    study = run_metered(tmp_path / "study", record="full")
    export(study, tmp_path / "out.csv", "battery/cells")
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["capacity"] for row in rows} == {"inf", "100"}
    assert {row["optimizer"] for row in rows} == {"asker", "uniform"}


def test_an_unknown_table_is_refused_with_those_there_are(study: Results, tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match=r"'round'; choose summary, rounds or replies"):
        export(study, tmp_path / "out.csv", "round")


def test_rounds_without_a_known_best_have_no_columns_of_regret(
    steered: Results, tmp_path: Path
) -> None:
    export(steered, tmp_path / "rounds.csv", "rounds")
    text = (tmp_path / "rounds.csv").read_text()
    assert not {"regret", "best"} & {name.strip('"') for name in text.splitlines()[0].split(",")}
    assert "nan" not in text


def test_regret_against_the_best_seen_is_exported_on_request(
    steered: Results, tmp_path: Path
) -> None:
    export(steered, tmp_path / "rounds.json", "rounds", best_seen=True)
    rows = json.loads((tmp_path / "rounds.json").read_text())
    seen = [row for row in rows if row["reward"] is not None]
    assert len(seen) < len(rows)
    for row in seen:
        assert row["regret_to_best_seen"] == pytest.approx(row["best_seen"] - row["reward"])
    assert min(row["regret_to_best_seen"] for row in seen) == 0
    export(steered, tmp_path / "summary.json", best_seen=True)
    assert "regret_to_best_seen" in json.loads((tmp_path / "summary.json").read_text())[0]
