"""`calibrate` reads what holds a play with its replies, and prints channels."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sparq_sim import Channel
from sparq_sim.cli.main import app
from tests.cli.invoking import SMALL, runner, said
from tests.live.calibrate.plays import hear, record


def test_a_journal_of_a_play_tells_the_channel_of_the_play(tmp_path: Path) -> None:
    file = tmp_path / "play.jsonl"
    channel = Channel(transit=1.5, cost=0.5, cost_per_point=0.25, loss=0.1, noise=0.1)
    record(channel, file, rounds=100)
    result = runner.invoke(app, ["calibrate", str(file)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("# Channels fitted to play.jsonl, 100 rounds.")
    found = tomllib.loads(result.output)["experts"]["lab"]["channel"]
    assert (found["transit"], found["cost"], found["cost_per_point"]) == (1.5, 0.5, 0.25)
    assert found["loss"] == pytest.approx(0.1, abs=0.06)
    assert found["noise"] == pytest.approx(0.1, abs=0.02)


def test_a_journal_in_which_nothing_was_asked_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "play.jsonl"
    record(Channel(), file, rounds=1)
    whole = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(whole[0])
    error = said(capsys, "calibrate", str(file))
    assert f"{file}: nobody was asked" in error
    assert "calibrate a longer one" in error


def test_a_trace_file_is_calibrated(tmp_path: Path) -> None:
    file = tmp_path / "play.zip"
    hear(Channel(transit=1.5, cost=0.5), rounds=30).save(file)
    result = runner.invoke(app, ["calibrate", str(file)])
    assert result.exit_code == 0, result.output
    channel = tomllib.loads(result.output)["experts"]["lab"]["channel"]
    assert channel == {"transit": 1.5, "cost": 0.5}


def test_a_stored_play_is_calibrated_if_its_replies_were_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kept in ("full", "rounds"):
        folder = tmp_path / kept
        only = ["--set", f"record={kept}", "--set", 'optimizers=["uniform"]', "--no-report"]
        result = runner.invoke(app, ["run", "synthetic", "--out", str(folder), *SMALL, *only])
        assert result.exit_code == 0, result.output
    file = next((tmp_path / "full" / "rounds").glob("*.parquet"))
    result = runner.invoke(app, ["calibrate", str(file)])
    assert result.exit_code == 0, result.output
    assert tomllib.loads(result.output)["feedback"]["noise"] == 0.1
    bare = next((tmp_path / "rounds" / "rounds").glob("*.parquet"))
    assert 'record = "full"' in said(capsys, "calibrate", str(bare))


def test_what_is_no_play_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not a file" in said(capsys, "calibrate", str(tmp_path / "none.jsonl"))
    file = tmp_path / "empty.jsonl"
    file.touch()
    assert str(file) in said(capsys, "calibrate", str(file))
