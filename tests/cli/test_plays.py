"""`reproduce` and `diff` compare plays to the last bit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparq_sim.cli.main import app
from tests.bookkeeping import run_metered
from tests.cli.invoking import ends_with, runner


def test_a_play_is_reproduced_to_the_last_bit(study: Path) -> None:
    file = next((study / "rounds").glob("*.parquet"))
    result = runner.invoke(app, ["reproduce", str(file)])
    assert result.exit_code == 0, result.output
    assert "identical" in result.output


def test_a_play_is_found_from_within_its_folder(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = next((study / "rounds").glob("*.parquet"))
    monkeypatch.chdir(study / "rounds")
    assert runner.invoke(app, ["diff", file.name, file.name]).output.strip() == "identical"


def test_a_file_that_is_no_play_is_refused(study: Path, tmp_path: Path) -> None:
    script = tmp_path / "t.sh"
    script.touch()
    for file in (script, study / "scenario.json"):
        assert f"{file} is not a stored play" in ends_with(2, "reproduce", str(file))


def test_two_plays_are_compared_record_by_record(study: Path) -> None:
    one, other, *_ = sorted((study / "rounds").glob("*.parquet"))
    assert runner.invoke(app, ["diff", str(one), str(one)]).output.strip() == "identical"
    result = runner.invoke(app, ["diff", str(one), str(other)])
    assert result.exit_code == 1
    assert re.search(
        r"rounds, row \d+ \(round \d+\): |only the (first|second) has the column", result.output
    )


@pytest.mark.parametrize("record", ["full", "rounds"])
def test_a_play_whose_experts_keep_books_is_reproduced(tmp_path: Path, record: str) -> None:
    run_metered(tmp_path, record=record, replications=1)
    for file in (tmp_path / "rounds").glob("*.parquet"):
        result = runner.invoke(app, ["reproduce", str(file), "--allow-import"])
        assert result.exit_code == 0, result.output
        assert runner.invoke(app, ["diff", str(file), str(file)]).exit_code == 0
