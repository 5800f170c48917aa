"""`check`, `schema` and `new`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from sparq_sim.cli.main import app
from sparq_sim.remote.wire import wire_schema
from tests.cli.invoking import ends_with, runner


def test_check_accepts_what_is_valid_and_tells_all_that_is_wrong(tmp_path: Path) -> None:
    assert ends_with(0, "check", "synthetic") == "synthetic: valid, 1 setting\n"
    broken = tmp_path / "broken.toml"
    broken.write_text(
        'rounds = 5\nenvironment.kind = "synthetik"\noptimizers = ["uniform"]\nfeedback.nois = 1\n'
    )
    said = ends_with(2, "check", str(broken))
    assert f"{broken}:2" in said
    assert "did you mean 'synthetic'" in said
    assert f"{broken}:4" in said
    assert "did you mean 'noise'" in said


def test_code_that_a_file_names_is_checked_and_shown_where_allowed(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    code = "sparq_sim.optimizers.uniform:Uniform"
    file.write_text(
        f'rounds = 5\nenvironment.kind = "synthetic"\noptimizers.own.kind = "{code}"\n'
        "sweep.rounds = [5, 6]\n"
    )
    assert "add --allow-import" in ends_with(2, "check", str(file))
    assert "valid, 2 settings" in ends_with(0, "check", str(file), "--allow-import")
    assert "own = " in ends_with(0, "show", str(file), "--allow-import")
    assert "drawn uniformly" in ends_with(0, "show", "optimizer", code, "--allow-import")
    with file.open("a") as more:
        more.write("optimizers.own.x = 1\n")
    assert "no such field; there are: kind" in ends_with(2, "check", str(file), "--allow-import")


def test_the_schema_is_json() -> None:
    assert "environment" in json.loads(runner.invoke(app, ["schema"]).output)["properties"]


def test_the_schema_of_messages_is_json() -> None:
    assert json.loads(runner.invoke(app, ["schema", "--wire"]).output) == wire_schema()


def test_a_new_expert_is_made_installed_and_played_in_three_commands(tmp_path: Path) -> None:
    site = tmp_path / "site"
    environment = {**os.environ, "PYTHONPATH": str(site)}
    sparq_sim = [sys.executable, "-m", "sparq_sim"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    commands = [
        [*sparq_sim, "new", "expert", "my-expert"],
        [*pip, "--no-index", "--target", str(site), "./my-expert"],
        [*sparq_sim, "run", "my-expert/scenario.toml", "--set", "rounds=30"],
    ]
    for command in commands:
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
    assert "average regret" in ran.stdout
    assert list((tmp_path / "studies" / "scenario" / "rounds").glob("*.parquet"))
