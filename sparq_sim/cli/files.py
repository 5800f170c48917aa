"""Commands about scenario files and new plug-ins: `check`, `schema`, `new`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.options import AllowImport, AllowOutside, MostPlays, Overrides, load_scenario
from sparq_sim.cli.output import emit, say
from sparq_sim.errors import SparqError
from sparq_sim.limits import MOST_PLAYS

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

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
    allow_outside: AllowOutside = False,
    most_plays: MostPlays = MOST_PLAYS,
) -> None:
    """Check scenario files, and the data files that they name.

    Every error is printed with its file and line; the exit code is then 2.
    """
    problems = []
    for file in files:
        try:
            loaded = load_scenario(
                file,
                overrides,
                allow_import=allow_import,
                allow_outside=allow_outside,
                check_data=True,
            )
            _check_plays(file, loaded, most_plays)
        except SparqError as error:
            problems.append(str(error))
        else:
            say(f"{file}: valid, {_count_settings(loaded)}")
    if problems:
        raise SparqError("\n".join(problems))


def _check_plays(file: str, scenario: Scenario, most: int) -> None:
    try:
        scenario.check_plays(most)
    except SparqError as error:
        raise SparqError(f"{file}: {error}") from error


def _count_settings(scenario: Scenario) -> str:
    from sparq_sim.scenario.settings import find_most

    count, most = scenario.sweep.count(), find_most(scenario)
    partly = f", of which {most} were looked at; `run` looks at all before it plays"
    return f"{count} {'setting' if count == 1 else 'settings'}{partly if count > most else ''}"


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
