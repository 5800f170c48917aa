"""A scenario that names programs, which would run with the rights of whoever plays it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.invoking import ends_with

PLAY = 'rounds = 2\noptimizers = ["uniform"]\n'
SIMULATED = '[environment]\nkind = "synthetic"\n'
REAL = '[environment]\nkind = "http"\nurl = "http://127.0.0.1:9/"\nbounds = [[0.0, 1.0]]\n'

HOSTILE = {
    "environment.command": PLAY
    + '[environment]\nkind = "program"\nbounds = [[0.0, 1.0]]\ncommand = COMMAND\n',
    "environment.safe_state.command": PLAY + REAL + "safe_state = { command = COMMAND }\n",
    "environment.safe_state.end.command": PLAY
    + REAL
    + "safe_state = { start = [0.5], end = { command = COMMAND } }\n",
    "experts.lab.command": PLAY
    + SIMULATED
    + '[experts.lab]\nkind = "program"\ncommand = COMMAND\n',
    "live.pause.command": PLAY
    + SIMULATED
    + '[live]\nseconds = 0.01\npause = { kind = "command", command = COMMAND }\n',
}
"""Scenarios that name a program, by the field in which they do."""


def write(folder: Path, text: str) -> tuple[Path, Path]:
    """Write a scenario whose program leaves a mark; return the file and the mark."""
    file, mark = folder / "hostile.toml", folder / "mark"
    file.write_text(text.replace("COMMAND", json.dumps(["touch", str(mark)])))
    return file, mark


@pytest.mark.parametrize("field", HOSTILE)
def test_no_program_of_a_scenario_runs_unless_allowed(field: str, tmp_path: Path) -> None:
    file, mark = write(tmp_path, HOSTILE[field])
    told = ends_with(2, "live", str(file), "--out", str(tmp_path / "out"))
    assert f"{field}: ['touch', '{mark}'] names a program to run" in told
    assert "--allow-programs" in told
    assert not mark.exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore:the agent's first move took")
def test_where_it_is_allowed_the_program_runs(tmp_path: Path) -> None:
    file, mark = write(tmp_path, HOSTILE["live.pause.command"])
    ends_with(0, "live", str(file), "--out", str(tmp_path / "out"), "--allow-programs")
    assert mark.exists()


@pytest.mark.parametrize("field", HOSTILE)
def test_to_check_show_or_play_a_scenario_runs_no_program(field: str, tmp_path: Path) -> None:
    file, mark = write(tmp_path, HOSTILE[field])
    is_real = not field.startswith("live")
    ends_with(0, "check", str(file))
    ends_with(0, "show", str(file))
    out = ("--out", str(tmp_path / "out"), "--no-report", "--executor", "in-process")
    ends_with(2 if is_real else 0, "run", str(file), *out)
    assert not mark.exists()


def test_no_program_of_a_scenario_is_served_unless_allowed(tmp_path: Path) -> None:
    file, mark = write(tmp_path, HOSTILE["experts.lab.command"])
    told = ends_with(
        *(2, "serve-expert", "committee", "--set", 'members=["lab"]', "--lines"),
        *("--scenario", str(file), "--along"),
    )
    assert "experts.lab.command" in told
    assert not mark.exists()
