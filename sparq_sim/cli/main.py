"""The command line: all commands, and how errors end them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import sparq_sim
from sparq_sim.cli.catalogue import list_installed, show
from sparq_sim.cli.compare import compare
from sparq_sim.cli.files import check, new, schema
from sparq_sim.cli.output import say
from sparq_sim.cli.plays import diff, reproduce
from sparq_sim.cli.report import compact, export, plot, report
from sparq_sim.cli.run import run
from sparq_sim.errors import SparqError
from sparq_sim.plugin.frames import describe_error, locate_error

__all__ = ["app", "main"]

app = typer.Typer(
    help=sparq_sim.__doc__, no_args_is_help=True, add_completion=True, rich_markup_mode="rich"
)

app.command()(run)
app.command()(report)
app.command()(plot)
app.command("list")(list_installed)
app.command()(show)
app.command()(check)
app.command()(compare)
app.command()(export)
app.command()(compact)
app.command()(reproduce)
app.command()(diff)
app.command()(schema)
app.command()(new)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(sparq_sim.__version__)
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what a user can mend is said plainly, with exit code 2.

    So is what a plug-in raises.
    """
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
