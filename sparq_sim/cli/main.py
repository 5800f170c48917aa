"""The command line: all commands in the order of the help text, and how errors are printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

import typer

import sparq_sim
from sparq_sim.cli.calibrate import calibrate
from sparq_sim.cli.catalogue import list_installed, show
from sparq_sim.cli.compare import compare
from sparq_sim.cli.encoding import spell_what_streams_lack
from sparq_sim.cli.examples import write_epilog
from sparq_sim.cli.explain import explain
from sparq_sim.cli.files import check, new, schema
from sparq_sim.cli.live import live
from sparq_sim.cli.output import emit, say
from sparq_sim.cli.plays import diff, reproduce
from sparq_sim.cli.report import compact, export, plot, report
from sparq_sim.cli.run import run
from sparq_sim.cli.serve import serve_expert
from sparq_sim.cli.vopr import vopr
from sparq_sim.cli.watch import watch
from sparq_sim.errors import SparqError
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.frames import describe_error, locate_error
from sparq_sim.plugin.threads import end_in_time

__all__ = ["app", "main"]

app = typer.Typer(
    help=sparq_sim.__doc__,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _without_exits(command: Callable[..., None]) -> Callable[..., None]:
    """Have a plug-in that would end the program end a *command* with an error."""

    @wraps(command)
    def run_command(*arguments: Any, **options: Any) -> None:
        with refuse_exits():
            command(*arguments, **options)

    return run_command


# In the order of the help text.
_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Studies": {
        "run": run,
        "compare": compare,
        "report": report,
        "plot": plot,
        "export": export,
        "compact": compact,
    },
    "Live play": {
        "live": live,
        "watch": watch,
        "serve-expert": serve_expert,
        "calibrate": calibrate,
    },
    "Scenarios and plug-ins": {
        "list": list_installed,
        "show": show,
        "new": new,
        "check": check,
        "schema": schema,
    },
    "Single plays": {
        "explain": explain,
        "reproduce": reproduce,
        "diff": diff,
    },
    "Trust": {
        "vopr": vopr,
    },
}
for _panel, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel, epilog=write_epilog(_name))(
            _without_exits(_command)
        )


def _print_version(wanted: bool) -> None:
    if wanted:
        emit(sparq_sim.__version__)
        raise typer.Exit


@app.callback()
def _read_options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Read the options that come before a command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Errors that a user can correct, and errors of plug-ins, are printed without a traceback; the
    exit code is then 2.

    Args:
        arguments: The arguments after the name of the program; by default those of the process,
            which then ends, also where plug-ins have left threads.
    """
    spell_what_streams_lack()
    try:
        _run(arguments)
    except BaseException as ended:
        if arguments is None:
            code = ended.code if isinstance(ended, SystemExit) else 1
            end_in_time(code if isinstance(code, int) else int(code is not None), _note)
        raise


def _run(arguments: Sequence[str] | None) -> None:
    try:
        app(arguments)
    except SparqError as error:
        say(f"Error: {describe_error(error)}", err=True)
        sys.exit(2)
    except Exception as error:
        if not locate_error(error):
            raise
        say(f"Error: {describe_error(error)}", err=True)
        sys.exit(2)


def _note(text: str) -> None:
    say(f"Note: {text}", err=True)
