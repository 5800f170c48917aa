"""The command `explain`: why a point was played in a round of a stored play."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sparq_sim.cli.options import AllowImport, Folder, PlayName
from sparq_sim.cli.output import emit, say

__all__ = ["explain"]


def explain(
    folder: Folder,
    play: PlayName,
    number: Annotated[int, typer.Option("--round", min=1, help="The number of the round, from 1.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: an object.")] = False,
    allow_import: AllowImport = False,
) -> None:
    """Explain why a point was played in a round, and what experts were asked.

    The play is played again, and its agent watched: what it had heard, what it believed where it
    matters, what it asked and what came of it.
    """
    from sparq_sim.analysis.explanation import explain as explain_round
    from sparq_sim.cli.console import make_console
    from sparq_sim.report.explained import (
        asked_table,
        describe_choice,
        describe_outcome,
        place_table,
    )
    from sparq_sim.study.choice import choose_play, name_in_words
    from sparq_sim.study.results import Results

    study = Results.open(folder)
    found = choose_play(study, play)
    explained = explain_round(study.read(found.key), number, allow_import=allow_import)
    if as_json:
        told = {"play": found.key, "optimizer": found.optimizer, **explained.to_json()}
        emit(json.dumps(told, indent=2))
        for note in study.notes:
            say(f"Note: {note}", err=True)
        return
    say(f"Round {number} of {explained.rounds}: {name_in_words(found)} ({found.key[:8]})")
    say("")
    console = make_console()
    for line in describe_choice(explained):
        say(line)
    console.print(place_table(explained))
    for line in describe_outcome(explained):
        say(line)
    if table := asked_table(explained):
        console.print(table)
    for remark in (*study.notes, *explained.remarks):
        say(f"Note: {remark}", err=True)
