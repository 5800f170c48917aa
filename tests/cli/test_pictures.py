from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparq_sim.cli.main import app, main

runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("studies") / "swept"
    told = runner.invoke(
        app,
        [
            *("run", "synthetic", "--executor", "in-process", "--out", str(out), "--set"),
            *("rounds=25", "--set", "replications=1", "--set", 'optimizers=["uniform"]', "--set"),
            "sweep={'experts.expert.channel.transit' = [10.0, 2.0]}",
        ],
    )
    assert told.exit_code == 0, told.output
    assert f"Report: {out / 'report.html'}" in re.sub(r"\s+", " ", told.output)
    return out


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command line to an error, and give what it says."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_every_run_leaves_a_report_unless_told_otherwise(folder: Path, tmp_path: Path) -> None:
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    plain = ["run", "synthetic", "--no-report", "--set", "rounds=25", "--set", "replications=1"]
    few = ["--set", 'optimizers=["uniform"]', "--executor", "in-process"]
    assert not runner.invoke(app, [*plain, *few, "--out", str(tmp_path)]).exit_code
    assert not (tmp_path / "report.html").exists()


def test_a_report_is_written_where_it_is_asked_for(folder: Path, tmp_path: Path) -> None:
    to = tmp_path / "page.html"
    assert runner.invoke(app, ["report", str(folder), "-o", str(to)]).output == f"{to}\n"
    assert to.is_file()


def test_a_report_of_no_study_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there is no finished play" in said(capsys, "report", str(tmp_path))


def test_a_figure_is_drawn_of_one_value_of_a_sweep(folder: Path, tmp_path: Path) -> None:
    for where in ("transit=2", "experts.expert.channel.transit=2.0"):
        to = tmp_path / "regret.svg"
        told = runner.invoke(
            app, ["plot", str(folder), "average-regret", "-o", str(to), "--where", where]
        )
        assert told.output == f"{to}\n"
        assert to.read_text(encoding="utf-8").startswith("<?xml")


def test_a_figure_that_cannot_be_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = str(tmp_path / "regret.svg")
    for kind, where, reason in (
        ("averge-regret", "transit=2", "did you mean 'average-regret'?"),
        ("average-regret", "transit=3", "3"),
        ("average-regret", "transit", "expected FIELD=VALUE"),
    ):
        assert reason in said(capsys, "plot", str(folder), kind, "-o", to, "--where", where)


def test_an_environment_is_drawn_with_its_fields_set(tmp_path: Path) -> None:
    to = tmp_path / "peaks.html"
    drawn = ["show", "environment", "moving-peaks", "--plot", str(to), "--horizon", "5"]
    assert runner.invoke(app, [*drawn, "--set", "peaks=3"]).output == f"{to}\n"
    assert "moving-peaks" in to.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["environment", "recorded"], "by --set FIELD=VALUE): files: missing; add it"),
        (["environment", "plume", "--set", "cels=4"], "cels: 4: no such field; did you mean 'cel"),
        (["environment", "plume", "--set", "cells=x"], "cells: 'x': should be a whole number"),
        (["environment", "recorded", "--set", "x=1"], "--set x=1: x: 1: no such field; there are:"),
        (["environments", "a:B"], "--allow-import"),
        (["environments", "a:B", "--allow-import"], "No module named 'a'"),
        (["environment", "sinthetic"], "did you mean 'synthetic'?"),
        (["synthetic"], "--plot draws environments"),
    ],
)
def test_a_drawing_that_cannot_be_is_refused(
    arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = str(tmp_path / "world.html")
    assert reason in said(capsys, "show", *arguments, "--plot", to)


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
