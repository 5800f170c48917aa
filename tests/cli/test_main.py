"""Errors are printed plainly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sparq_sim import PluginError, __version__
from sparq_sim.cli.main import app, main
from tests.cli.invoking import ends_with, runner


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "synthetik"], "did you mean 'synthetic'"),
        (["run", "synthetic.toml"], "the bundled scenario is called 'synthetic', without .toml"),
        (["run", "synthetic", "--executor", "daks"], "did you mean 'dask'"),
        (["show", "optimizer"], "say which optimizer"),
        (["show", "optimizer", "sparq"], "no optimizer is called 'sparq'"),
        (["compare", "no-such-folder"], "no-such-folder"),
        (["reproduce", "no-such-file"], "give one from the folder `rounds`"),
    ],
)
def test_what_a_user_can_mend_is_said_plainly_with_exit_code_2(
    arguments: list[str], words: str
) -> None:
    assert words in ends_with(2, *arguments)


def test_the_command_ends_with_the_code_and_without_a_traceback() -> None:
    command = [sys.executable, "-m", "sparq_sim", "run", "synthetik"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "did you mean 'synthetic'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert runner.invoke(app, ["--version"]).output.strip() == __version__ == version("sparq-sim")


def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(arguments: object) -> None:
        raise PluginError("no expert is called 'thruth'")

    monkeypatch.setattr("sparq_sim.cli.main.app", refuse)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "Error: no expert is called 'thruth'\n"
