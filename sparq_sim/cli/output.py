"""Print on the terminal: plain lines, and the notes of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sparq_sim.errors import visible

if TYPE_CHECKING:
    from sparq_sim.study.results import Results

__all__ = ["print_notes", "say"]


def say(text: str, *, err: bool = False) -> None:
    """Print what may hold a name or a reason from elsewhere, and cannot steer the terminal."""
    typer.echo(visible(text), err=err)


def print_notes(study: Results, *beside: Results) -> None:
    """Print what must be known of a folder and its results, apart from what was asked for."""
    from sparq_sim.analysis.cautions import cautions

    warned = (caution.text for caution in cautions(study, *beside))
    for note in (*study.notes, *study.warnings, *warned):
        say(f"Note: {note}", err=True)
