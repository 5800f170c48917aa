from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from sparq_sim import PluginError, __version__
from sparq_sim.cli import app, main

runner = CliRunner()


def test_demo_prints_a_table_with_the_reference_levels() -> None:
    result = runner.invoke(app, ["demo", "--rounds", "30", "--replications", "2"])
    assert result.exit_code == 0, result.output
    for words in ("uniform", "gp-ucb", "sparq-gp-ucb", "best fixed point", "one round late"):
        assert words in result.output


def test_list_names_what_is_installed() -> None:
    result = runner.invoke(app, ["list"])
    assert "environments: synthetic" in result.output
    assert "sparq-gp-ucb" in result.output


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert runner.invoke(app, ["--version"]).output.strip() == __version__ == version("sparq-sim")


def test_what_a_user_can_mend_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise PluginError("no expert is called 'thruth'")

    monkeypatch.setattr("sparq_sim.cli.app", refuse)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "Error: no expert is called 'thruth'\n"


def test_the_module_is_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "sparq_sim", "list"], capture_output=True, text=True, check=True
    )
    assert "optimizers:" in ran.stdout
