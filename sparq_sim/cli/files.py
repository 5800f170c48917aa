"""Commands about scenario files and new plug-ins: `check`, `schema`, `new`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sparq_sim.cli.options import AllowImport, Overrides, load_scenario
from sparq_sim.cli.output import emit, say
from sparq_sim.errors import SparqError

__all__ = ["check", "new", "schema"]


class Creatable(StrEnum):
    """What `new` can create."""

    EXPERT = "expert"
    ENVIRONMENT = "environment"
    OPTIMIZER = "optimizer"
    SCENARIO = "scenario"


def check(
    files: Annotated[
        list[str], typer.Argument(help="Scenario files, or names of bundled scenarios.")
    ],
    overrides: Overrides = None,
    allow_import: AllowImport = False,
) -> None:
    """Check scenario files, and the data files that they name.

    Every error is printed with its file and line; the exit code is then 2.
    """
    problems = []
    for file in files:
        try:
            loaded = load_scenario(file, overrides, allow_import=allow_import, check_data=True)
            count = len(loaded.settings())
        except SparqError as error:
            problems.append(str(error))
        else:
            say(f"{file}: valid, {count} {'setting' if count == 1 else 'settings'}")
    if problems:
        raise SparqError("\n".join(problems))


def schema(
    wire: Annotated[
        bool, typer.Option("--wire", help="That of messages to and from real sources instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from sparq_sim.remote.wire import wire_schema
    from sparq_sim.scenario.schema import build_schema

    emit(json.dumps(wire_schema() if wire else build_schema(), indent=2))


def new(
    kind: Annotated[Creatable, typer.Argument(help="What to create.")],
    name: Annotated[str, typer.Argument(help="Its name: lower-case words joined by dashes.")],
    folder: Annotated[Path, typer.Option(help="Folder to create it in.")] = Path(),
) -> None:
    """Create a plug-in package or a scenario to start from.

    A package comes with tests, and with a scenario that uses the plug-in.
    """
    from sparq_sim.scenario.scaffold.create import create

    for path in create(kind.value, name, folder):
        say(str(path))
