"""Ways to run the command line in tests."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from inspect import signature
from io import StringIO
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sparq_sim.cli.main import main


def make_runner() -> CliRunner:
    """Return a runner whose results have what was printed, and what was told as an error, apart.

    click 8.1, with which typer 0.15 goes, mixes them unless told otherwise, or else leaves errors
    out of the output.
    """
    if "mix_stderr" not in signature(CliRunner).parameters:
        return CliRunner()

    class Both(Result):
        @property
        def output(self) -> str:
            return self.stdout + self.stderr

    class Runner(CliRunner):
        def invoke(self, *args: Any, **more: Any) -> Result:
            result = super().invoke(*args, **more)
            result.__class__ = Both
            return result

    keywords: dict[str, Any] = {"mix_stderr": False}
    return Runner(**keywords)


runner = make_runner()


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
