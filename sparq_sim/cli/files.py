"""Commands about scenario files and new plug-ins: `check`, `schema`, `new`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sparq_sim.cli.options import AllowImport, Overrides, load_scenario
from sparq_sim.cli.output import say
from sparq_sim.errors import SparqError

__all__ = ["check", "new", "schema"]


class Made(StrEnum):
    """What `new` can make."""

    EXPERT = "expert"
    ENVIRONMENT = "environment"
    OPTIMIZER = "optimizer"
    SCENARIO = "scenario"


def check(
    files: Annotated[list[str], typer.Argument(help="Scenario files, or names.")],
    overrides: Overrides = None,
    allow_import: AllowImport = False,
) -> None:
    """Check scenario files and their data; each error is told with its line, the exit code is 2."""
    problems = []
    for file in files:
        try:
            loaded = load_scenario(file, overrides, allow_import=allow_import, check_data=True)
            count = len(loaded.settings())
        except SparqError as error:
            problems.append(str(error))
        else:
            say(f"{file}: sound, {count} {'setting' if count == 1 else 'settings'}")
    if problems:
        raise SparqError("\n".join(problems))


def schema() -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from sparq_sim.scenario.schema import build_schema

    typer.echo(json.dumps(build_schema(), indent=2))


def new(
    kind: Made,
    name: Annotated[str, typer.Argument(help="Lower-case words with dashes.")],
    folder: Annotated[Path, typer.Option(help="Where to put it.")] = Path(),
) -> None:
    """Make a working plug-in package with a test, or a scenario, to start from."""
    from sparq_sim.scenario.scaffold.create import create

    for path in create(kind.value, name, folder):
        typer.echo(str(path))
