"""Options and arguments that several commands share, and what they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.completion import complete_field, complete_folder, complete_scenario
from sparq_sim.errors import SparqError, did_you_mean

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario
    from sparq_sim.study.executors import PlayExecutor

__all__ = [
    "BEST_SEEN",
    "Against",
    "AllowImport",
    "AllowOutside",
    "AllowPrograms",
    "ExecutorName",
    "Folder",
    "Jobs",
    "MostPlays",
    "OpenPage",
    "OptionalPlayName",
    "Overrides",
    "PlayName",
    "Source",
    "load_scenario",
    "make_executor",
    "read_against",
]

BEST_SEEN = "best-seen"
"""What --against takes where the best reward is not known."""

Source = Annotated[
    str,
    typer.Argument(
        help="A scenario file, or the name of a bundled scenario.", autocompletion=complete_scenario
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Override a field of the scenario. May be repeated.",
        autocompletion=complete_field,
    ),
]
AllowImport = Annotated[
    bool,
    typer.Option("--allow-import", help="Allow scenarios to import Python code, as module:Class."),
]
AllowPrograms = Annotated[
    bool,
    typer.Option("--allow-programs", help="Allow scenarios to run the programs that they name."),
]
AllowOutside = Annotated[
    bool,
    typer.Option(
        "--allow-outside", help="Allow scenarios to name files that are not in their folder."
    ),
]
MostPlays = Annotated[
    int, typer.Option(min=1, help="How many plays a study may have; more are refused.")
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Number of worker processes; one per core by default.")
]
ExecutorName = Annotated[
    str,
    typer.Option(
        help="Where plays run: processes, in-process, dask, or tcp://HOST:PORT of a Dask scheduler."
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="best-seen",
        help="Where the best reward is not known: regret against the best seen in each play.",
    ),
]
OpenPage = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
Folder = Annotated[
    Path, typer.Argument(help="The folder of a study.", autocompletion=complete_folder)
]
_PLAY = typer.Option(
    "--play",
    metavar="PLAY",
    help="Which play: how its key begins, or an optimizer and, after commas, what tells its "
    "plays apart: values of swept fields and the replication, as in sparq-gp-ucb,transit=2,0.",
)
PlayName = Annotated[str, _PLAY]
OptionalPlayName = Annotated[str | None, _PLAY]


def load_scenario(
    source: str,
    overrides: list[str] | None = None,
    *,
    allow_import: bool = False,
    allow_outside: bool = False,
    check_data: bool = False,
) -> Scenario:
    """Load a scenario as the shared options of a command ask for.

    Args:
        source: A file, or the name of a bundled scenario.
        overrides: What was given by --set, each FIELD=VALUE.
        allow_import: Whether the file may name code to import.
        allow_outside: Whether the file may name files that are not in its folder.
        check_data: Whether to check the data files that the scenario names.

    Raises:
        ScenarioError: The scenario is not valid.
    """
    from sparq_sim.scenario.model import Scenario

    return Scenario.load(
        source,
        overrides=overrides or (),
        allow_import=allow_import,
        allow_outside=allow_outside,
        check_data=check_data,
    )


def make_executor(name: str, jobs: int | None) -> PlayExecutor:
    """Make the executor that --executor and --jobs name.

    Args:
        name: `processes`, `in-process`, `dask`, or the address of a Dask scheduler.
        jobs: How many processes there are; None for one per core.

    Raises:
        SparqError: There is no such executor.
    """
    from sparq_sim.study.executors import Dask, InProcess, Processes

    match name:
        case "processes":
            return Processes(jobs)
        case "in-process":
            return InProcess()
        case "dask":
            return Dask(jobs=jobs)
        case address if "://" in address:
            return Dask(address)
    known = ("processes", "in-process", "dask", "tcp://HOST:PORT")
    raise SparqError(f"no executor is called {name!r}: {did_you_mean(name, known)}")


def read_against(text: str | None) -> bool:
    """Return whether --against asks for regret against the best seen.

    Args:
        text: What was given; None for nothing.

    Raises:
        SparqError: It is another word.
    """
    if text not in (None, BEST_SEEN):
        raise SparqError(f"--against {text}: expected {BEST_SEEN}")
    return text is not None
