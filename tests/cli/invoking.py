"""Ways to run the command line in tests."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest
from typer.testing import CliRunner

from sparq_sim.cli.main import main

runner = CliRunner()


SMALL = ["--set", "rounds=30", "--set", "replications=2", "--executor", "in-process"]


def ends_with(code: int, *arguments: str) -> str:
    """Run the command line in this process, and give what it printed and then its errors."""
    printed, told = StringIO(), StringIO()
    with redirect_stdout(printed), redirect_stderr(told), pytest.raises(SystemExit) as ended:
        main(arguments)
    assert (ended.value.code or 0) == code, printed.getvalue() + told.getvalue()
    assert "Traceback" not in told.getvalue()
    return printed.getvalue() + told.getvalue()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command line to an error, and give what it says."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err
