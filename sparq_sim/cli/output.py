"""Print on the terminal: plain lines, and the notes of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sparq_sim.errors import mask_invisible

if TYPE_CHECKING:
    from collections.abc import Container

    from sparq_sim.analysis.cautions import Topic
    from sparq_sim.study.results import Results

__all__ = ["print_notes", "say"]


def say(text: str, *, err: bool = False) -> None:
    """Print a line of text, without characters that would control the terminal.

    Args:
        text: What to print; it may hold names and messages from files and plug-ins.
        err: Whether to print to standard error.
    """
    typer.echo(mask_invisible(text), err=err)


def print_notes(
    study: Results, *beside: Results, best_seen: bool = False, skip: Container[Topic] = ()
) -> None:
    """Print notes on a study to standard error: what a reader of its results must know.

    Args:
        study: The study.
        beside: Studies whose plays are compared with those of the study.
        best_seen: Whether regret is against the best reward seen in each play.
        skip: What has been said already.
    """
    from sparq_sim.analysis.cautions import cautions

    found = cautions(study, *beside, best_seen=best_seen)
    warned = (caution.text for caution in found if caution.topic not in skip)
    for note in (*study.notes, *study.warnings, *warned):
        say(f"Note: {note}", err=True)
