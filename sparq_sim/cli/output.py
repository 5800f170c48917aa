"""Print on the terminal: plain lines, and the notes of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sparq_sim.errors import mask_invisible

if TYPE_CHECKING:
    from sparq_sim.study.results import Results

__all__ = ["print_notes", "say"]


def say(text: str, *, err: bool = False) -> None:
    """Print a line of text, without characters that would control the terminal.

    Args:
        text: What to print; it may hold names and messages from files and plug-ins.
        err: Whether to print to standard error.
    """
    typer.echo(mask_invisible(text), err=err)


def print_notes(study: Results, *beside: Results) -> None:
    """Print notes on a study to standard error: what a reader of its results must know.

    Args:
        study: The study.
        beside: Studies whose plays are compared with those of the study.
    """
    from sparq_sim.analysis.cautions import cautions

    warned = (caution.text for caution in cautions(study, *beside))
    for note in (*study.notes, *study.warnings, *warned):
        say(f"Note: {note}", err=True)
