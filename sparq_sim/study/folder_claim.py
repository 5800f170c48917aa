"""Claim a folder for a study: describe what it holds, and bring what is there up to date."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import sparq_sim
from sparq_sim.study.differences import explain_replacement
from sparq_sim.study.folder_contents import Holding, admit, infer_holdings, read_holdings
from sparq_sim.study.plan import Plan
from sparq_sim.study.progress import count_plays
from sparq_sim.study.results import note_left_out
from sparq_sim.study.store import FORMAT, FolderStore, Label, PlayId, StoredSummary, write_whole
from sparq_sim.study.store.checksums import seal
from sparq_sim.study.store.folder import relabel, retire
from sparq_sim.study.store.layout import SCENARIO, Reject

__all__ = ["admit_into", "claim"]


def claim(home: FolderStore, plan: Plan, *, into: bool) -> dict[str, StoredSummary]:
    """Make a folder ready for the plays of a plan, and return what is finished there, by key.

    The folder is made, and its description written. Plays that the plan has too, by other code or
    parameters, are set aside; those of an earlier sweep are labelled anew. The notes of the folder
    say so.

    Args:
        home: The folder.
        plan: What is to be played.
        into: Whether the folder may hold other scenarios too.

    Raises:
        StoreError: The folder holds another scenario, or cannot be read or written.
    """
    home.prepare()
    _describe(home, plan, into=into)
    plays = plan.plays()
    finished = home.tidy(verify=[play.key for play in plays])
    _set_aside(home, plan, finished)
    _relabel(home, plays, finished)
    return finished


def admit_into(home: FolderStore, plan: Plan, *, into: bool) -> list[Holding]:
    """Return what else a folder holds beside the plays of a plan; nothing is written.

    Args:
        home: The folder, which need not be there.
        plan: What is to be played.
        into: Whether the folder may hold other scenarios too.

    Raises:
        StoreError: The folder holds another scenario, or cannot be read.
    """
    return _admit(home, plan, home.layout.leave_out, into=into)


def _admit(home: FolderStore, plan: Plan, reject: Reject, *, into: bool) -> list[Holding]:
    held = read_holdings(home, reject) or infer_holdings(home)
    # What was begun there and has come to nothing is in nobody's way.
    return admit(home.folder, held, plan.holding(), into=into or home.empty)


def _describe(home: FolderStore, plan: Plan, *, into: bool) -> None:
    """Write down what is played; a folder that holds something else is refused."""
    new = plan.holding()
    others = _admit(home, plan, home.layout.set_aside, into=into)
    if unwritten := {path for play in new.plays for path in play["play"].get("unwritten", ())}:
        home.notes.append(
            f"{', '.join(sorted(unwritten))}: cannot be written to a file, so the plays may "
            "not be known again in another session"
        )
    described = {
        "format": FORMAT,
        "version": sparq_sim.__version__,
        **new.to_json(),
        "others": [each.to_json() for each in others],
    }
    write_whole(home.folder / SCENARIO, json.dumps(seal(described), indent=1).encode())


def _set_aside(home: FolderStore, plan: Plan, finished: dict[str, StoredSummary]) -> None:
    """Move plays out of the way that the plan has too, by other code or parameters."""
    families = {recipe.family for recipe in plan.recipes.values()}
    others: dict[tuple[Label, str], list[str]] = {}
    for key, each in finished.items():
        if each.play.family not in families:
            others.setdefault((each.label, each.play.family), []).append(key)
    reasons: dict[str, list[str]] = {}
    for (label, _), keys in others.items():
        if recipe := plan.recipes.get(label):
            provenance = home.provenance(keys[0])
            if why := explain_replacement(provenance, recipe.scenario, recipe.optimizer):
                reasons.setdefault(why, []).extend(keys)
    for why, keys in reasons.items():
        gone = retire(home, keys)
        for key in gone:
            del finished[key]
        if gone:
            home.notes.append(f"set aside {count_plays(len(gone))}: {why}")
        if stay := len(keys) - len(gone):
            home.notes.append(
                f"left out {count_plays(stay)} in compacted files, which hold others too: {why}"
            )
    explained = sum(len(keys) for keys in reasons.values())
    note_left_out(home, sum(len(keys) for keys in others.values()) - explained)


def _relabel(
    home: FolderStore, plays: Sequence[PlayId], finished: dict[str, StoredSummary]
) -> None:
    """Bring up to date how plays are labelled that an earlier sweep has left."""
    other = [play for play in plays if (there := finished.get(play.key)) and there.play != play]
    for play in other:
        finished[play.key] = replace(finished[play.key], play=play)
    relabel(home, other)
