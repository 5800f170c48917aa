"""`run` plays, reuses what was played, and leaves a table and a report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sparq_sim.cli.main import app
from tests.cli.invoking import SMALL, ends_with, runner, said


def test_what_was_played_is_found_again(study: Path) -> None:
    result = runner.invoke(app, ["run", "synthetic", "--out", str(study), *SMALL])
    assert "0 plays in" in result.output
    assert "8 reused" in result.output


def test_reference_levels_can_be_left_out_of_table_and_report(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path), "--set", "optimizers=['uniform']"]
    with_levels = runner.invoke(app, ["run", "synthetic", *out, *SMALL])
    assert "best fixed point" in with_levels.output
    shown = (tmp_path / "report.html").read_text(encoding="utf-8")
    without = runner.invoke(app, ["run", "synthetic", *out, *SMALL, "--set", "levels=false"])
    assert without.exit_code == 0, without.output
    assert "2 reused" in without.output
    assert "best fixed point" not in without.output
    assert runner.invoke(app, ["report", str(tmp_path)]).exit_code == 0
    left_out = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert shown.count("best fixed point") > left_out.count("best fixed point")


def test_reference_levels_of_a_part_are_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dear.py").write_text(
        "from sparq_sim.testing import Slope\n\n\n"
        'class Dear(Slope):\n    """A slope that is dear to evaluate."""\n'
        "    level_evaluations = 1000\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "dear.toml"
    file.write_text('rounds = 30\nenvironment.kind = "dear:Dear"\noptimizers = ["uniform"]\n')
    out = ["--out", str(tmp_path / "out"), "--allow-import", "--executor", "in-process"]
    said = runner.invoke(app, ["run", str(file), *out]).output
    told = "reference levels are estimated from 3 of 30 rounds at 268 points"
    assert f"Note: {told}" in said
    assert told in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_sweep_gives_a_row_a_setting(tmp_path: Path) -> None:
    overrides = ["--set", "sweep.'feedback.noise'=[0.1, 0.2]", "--set", "optimizers=['uniform']"]
    out = ["--out", str(tmp_path / "swept")]
    result = runner.invoke(app, ["run", "synthetic", *out, *SMALL, *overrides])
    assert result.exit_code == 0, result.output
    rows = json.loads(runner.invoke(app, ["compare", str(tmp_path / "swept"), "--json"]).output)
    assert [row["feedback.noise"] for row in rows] == [0.1, 0.2]


def test_another_scenario_into_the_same_folder_is_refused_unless_it_is_meant(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "study"
    command = ["run", "synthetic", "--out", str(folder), "--executor", "in-process", "--no-report"]
    command += ["--set", "replications=1", "--set", "optimizers=['uniform']"]
    ends_with(0, *command, "--set", "rounds=25")
    said = ends_with(2, *command, "--set", "rounds=30")
    assert said.startswith(f"Error: {folder} holds another scenario")
    assert "rounds was 25 then and is 30 now" in said
    left_out = "Note: left out 1 play of other scenarios"
    assert left_out in ends_with(0, *command, "--set", "rounds=30", "--into")
    for reading in (
        ["compare", str(folder)],
        ["compare", str(folder), "--json"],
        ["export", str(folder), str(tmp_path / "table.csv")],
    ):
        result = runner.invoke(app, reading)
        assert left_out in result.stderr
        assert left_out not in result.stdout
    (row,) = json.loads(runner.invoke(app, ["compare", str(folder), "--json"]).stdout)
    assert row["plays"] == 1
    runner.invoke(app, ["report", str(folder), "--no-replays"])
    assert "left out 1 play of other scenarios" in (folder / "report.html").read_text()


def test_every_run_leaves_a_report_unless_told_otherwise(folder: Path, tmp_path: Path) -> None:
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    plain = ["run", "synthetic", "--no-report", "--set", "rounds=25", "--set", "replications=1"]
    few = ["--set", 'optimizers=["uniform"]', "--executor", "in-process"]
    assert not runner.invoke(app, [*plain, *few, "--out", str(tmp_path)]).exit_code
    assert not (tmp_path / "report.html").exists()


def test_names_from_elsewhere_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "evil.toml"
    file.write_text('title = "\\u001b[31m\\u202e"\nrounds = 20\noptimizers = ["uniform"]\n')
    with file.open("a") as more:
        more.write('[environment]\nkind = "synthetic"\n')
    shown = runner.invoke(
        app, ["run", str(file), "--executor", "in-process", "--out", str(tmp_path / "out")]
    ).output
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown
    assert "\x1b" not in said(capsys, "show", "environment", "\x1b[31m")


def test_a_dry_run_tells_what_would_be_played_and_plays_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    few = ["run", "synthetic", "--out", str(folder), "--executor", "in-process", "--no-report"]
    few += ["--set", "rounds=25", "--set", "optimizers=['uniform', 'tv-gp-ucb']"]
    dry = ends_with(0, *few, "--set", "replications=2", "--dry-run")
    assert "4 plays: 0 there already, 4 to play" in " ".join(dry.split())
    assert not folder.exists()
    ends_with(0, *few, "--set", "replications=1")
    dry = ends_with(0, *few, "--set", "replications=2", "--dry-run")
    assert "4 plays: 2 there already, 2 to play" in " ".join(dry.split())
    assert re.search(r"tv-gp-ucb +25 +2 +1 +1", dry)
    said = ends_with(2, *few, "--set", "rounds=30", "--dry-run")
    assert "holds another scenario" in said


def test_a_quiet_run_tells_notes_and_errors_only(tmp_path: Path) -> None:
    few = ["run", "synthetic", "--out", str(tmp_path / "study"), "--executor", "in-process", "-q"]
    few += ["--set", "rounds=25", "--set", "replications=1", "--set", "optimizers=['uniform']"]
    assert ends_with(0, *few) == ""
    assert (tmp_path / "study" / "report.html").is_file()
    assert "Note: left out 1 play" in ends_with(0, *few, "--set", "rounds=26", "--into")


def test_a_report_is_opened_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    few = ["run", "synthetic", "--out", str(tmp_path), "--executor", "in-process", "--open"]
    few += ["--set", "rounds=25", "--set", "replications=1", "--set", "optimizers=['uniform']"]
    ends_with(0, *few)
    ends_with(0, "report", str(tmp_path), "-o", str(tmp_path / "b.html"), "--open")
    assert opened == [(tmp_path / name).as_uri() for name in ("report.html", "b.html")]
    assert "leave out --no-report" in ends_with(2, *few, "--no-report")
