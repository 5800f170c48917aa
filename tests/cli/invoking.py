"""Ways to run the command line in tests."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from sparq_sim.cli.main import main

runner = CliRunner()


SMALL = ["--set", "rounds=30", "--set", "replications=2", "--executor", "in-process"]


def ends_with(code: int, *arguments: str) -> str:
    """Run the command as a user does, and give what it said."""
    ran = subprocess.run(
        [sys.executable, "-m", "sparq_sim", *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stdout + ran.stderr


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command line to an error, and give what it says."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err
