"""The help of each command ends with examples, which are commands that can be read."""

from __future__ import annotations

import shlex

import pytest
import typer

from sparq_sim.cli.examples import EXAMPLES
from sparq_sim.cli.main import app
from tests.cli.invoking import ends_with


def test_every_command_has_examples() -> None:
    assert EXAMPLES.keys() == typer.main.get_command(app).commands.keys()  # type: ignore[attr-defined] # a group


@pytest.mark.parametrize("line", [each for some in EXAMPLES.values() for each in some])
def test_an_example_can_be_read_and_stands_in_the_help(line: str) -> None:
    program, name, *arguments = shlex.split(line)
    assert program == "sparq-sim"
    assert line in EXAMPLES[name]
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined] # a group
    command.make_context(name, arguments)
    assert line in " ".join(ends_with(0, name, "-h").split())
