"""Print on the terminal: lines that break between words, and the notes of a study."""

from __future__ import annotations

import re
import shutil
import sys
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

from sparq_sim.errors import mask_invisible

if TYPE_CHECKING:
    from collections.abc import Container

    from sparq_sim.analysis.cautions import Topic
    from sparq_sim.study.results import Results

__all__ = ["cut", "emit", "find_width", "print_notes", "say"]

_HANG = 2
"""By how much the rest of a sentence is indented that takes several lines."""
_TERM = re.compile(r"\s*\S.*?\s{2,}(?=\S)")
"""What a line explains, with the gap before its explanation."""


def say(text: str, *, err: bool = False, dim: bool = False) -> None:
    """Print text for a reader; on a terminal, lines break between words.

    Characters that would control the terminal are left out. What stands behind a wide gap stays
    behind it in the lines that follow.

    Args:
        text: What to print; it may hold names and messages from files and plug-ins.
        err: Whether to print to standard error.
        dim: Whether it matters less than what is around it.
    """
    width = find_width(err=err)
    lines = [line for whole in mask_invisible(text).split("\n") for line in _break(whole, width)]
    told = "\n".join(lines)
    _print(typer.style(told, dim=True) if dim else told, err=err)


def emit(text: str, *, err: bool = False) -> None:
    """Print text that a program may read or a user may copy: lines stay as long as they are.

    Args:
        text: What to print.
        err: Whether to print to standard error.
    """
    _print(mask_invisible(text), err=err)


def _print(text: str, *, err: bool) -> None:
    # A stream is named, for otherwise an ASCII console would be sent UTF-8.
    typer.echo(text, file=sys.stderr if err else sys.stdout)


def cut(line: str) -> str:
    """Return a line of a table, ended between words where the terminal is too narrow for it.

    Args:
        line: What to shorten.
    """
    width = find_width()
    if width is None or len(line) <= width:
        return line
    kept = line[: width - 1]
    return f"{kept.rpartition(' ')[0].rstrip() or kept}…"


def find_width(*, err: bool = False) -> int | None:
    """Return how many columns the terminal has; None where the output goes elsewhere.

    Args:
        err: Whether standard error is meant.
    """
    stream = sys.stderr if err else sys.stdout
    return shutil.get_terminal_size().columns if stream.isatty() else None


def _break(line: str, width: int | None) -> list[str]:
    """Break a line between words where it is longer than a terminal is wide."""
    if width is None or len(line) <= width:
        return [line]
    head = line[: len(line) - len(line.lstrip())]
    hang = len(head) + _HANG
    if (term := _TERM.match(line)) and term.end() <= width // 2:
        head, hang = term.group(), term.end()
    return wrap(
        line[len(head) :],
        width,
        initial_indent=head,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


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
