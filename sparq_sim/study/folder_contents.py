"""What a folder is said to hold, and whether a scenario belongs there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparq_sim.documents import read_json_file
from sparq_sim.scenario.tables import (
    ABSENT,
    find_at_path,
)
from sparq_sim.study.differences import FieldDifference, Fingerprint, find_difference
from sparq_sim.study.store import FORMAT, FolderStore, Label, Provenance, StoreError, canonical
from sparq_sim.study.store.checksums import unseal
from sparq_sim.study.store.errors import UnfitError, explain_content_errors
from sparq_sim.study.store.keys import check_format
from sparq_sim.study.store.layout import SCENARIO, Reject

__all__ = ["Holding", "admit", "infer_holdings", "read_holdings"]


@dataclass(frozen=True)
class Holding:
    """A scenario that a folder holds plays of: its identity, its title, and what is played."""

    identity: str
    """Twelve digits that stand for the scenario; empty where that is not known."""
    title: str
    """Of the scenario."""
    plays: Sequence[Mapping[str, Any]]
    """By optimizer and setting, each with its family and fingerprint."""

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Holding:
        """Return what `to_json` has written.

        Args:
            described: A part of the description of a folder.

        Raises:
            KeyError: Something is missing.
            TypeError: It is not such a description.
        """
        plays = described["plays"]
        needed = ("family", "optimizer", "setting", "play")
        if lacking := [name for play in plays for name in needed if name not in play]:
            raise KeyError(lacking[0])
        return cls(str(described.get("scenario", "")), str(described.get("title", "")), plays)

    def to_json(self) -> dict[str, Any]:
        """Return the holding as the description of a folder has it."""
        return {"scenario": self.identity, "title": self.title, "plays": list(self.plays)}

    def compare(self, here: Holding) -> tuple[str, FieldDifference] | None:
        """Return an optimizer and the first field in which *here* is another scenario, or None.

        What both play in the same setting decides; if there is no such thing, what all plays
        share but for swept fields. Other optimizers and other values of a sweep do not matter.

        Args:
            here: What is to be played.
        """
        mine, theirs = self._by_label(), here._by_label()
        both = mine.keys() & theirs.keys()
        for name in mine:
            if name in both and (found := find_difference(mine[name], theirs[name])):
                return name[0], found
        if both or not mine or not theirs:
            return None
        old, new = self.plays[0], here.plays[0]
        swept = {path for play in (*self.plays, *here.plays) for path in play["setting"]}
        found = find_difference(old["play"], new["play"], left_out=("optimizer", *swept))
        return (str(new["optimizer"]), found) if found else None

    def is_incomplete(self) -> bool:
        """Return whether a setting lacks a swept field that its play has.

        Settings of a list were once kept by what each of them names alone.
        """
        swept = {path for play in self.plays for path in play["setting"]}
        return any(
            find_at_path(
                play["play"], path.replace(f"optimizers.{play['optimizer']}.", "optimizer.", 1)
            )
            is not ABSENT
            for play in self.plays
            for path in swept - play["setting"].keys()
        )

    def _by_label(self) -> dict[Label, Fingerprint]:
        return {
            (play["optimizer"], canonical(play["setting"])): play["play"] for play in self.plays
        }


def read_holdings(home: FolderStore, reject: Reject | None = None) -> list[Holding]:
    """Read which scenarios a folder is said to hold, the one last run first.

    Args:
        home: The folder.
        reject: What is done with a description that cannot be read; by default, it is left out,
            and noted.

    Raises:
        StoreError: The description is of another format, or the system refuses to read it.
    """
    path = home.folder / SCENARIO
    if not os.path.lexists(path):
        return []
    try:
        return _read_description(path)
    except UnfitError as unfit:
        (reject or home.layout.leave_out)(path, str(unfit))
        return []


def _read_description(path: Path) -> list[Holding]:
    if not path.is_file():
        raise UnfitError("it is not a file")
    with explain_content_errors("it cannot be read"):
        described: dict[str, Any] = read_json_file(path)
        # Early versions wrote no checksum; what has lost it is of the format of now.
        if "checksum" in described or described.get("format") == FORMAT:
            described = unseal(described)
        held = [Holding.from_json(each) for each in (described, *described.get("others", ()))]
    check_format(described.get("format"), f"{path} tells of plays")
    return held


def infer_holdings(home: FolderStore) -> list[Holding]:
    """Return the scenarios of which there are plays in a folder that is not described.

    Args:
        home: The folder.
    """
    firsts = {each.play.family: key for key, each in home.finished().items()}
    held: dict[str, list[Provenance]] = {}
    for key in firsts.values():
        provenance = home.provenance(key)
        held.setdefault(provenance.play.scenario, []).append(provenance)
    return [
        Holding(name, plays[0].title, [each.to_json() for each in plays])
        for name, plays in held.items()
    ]


def admit(folder: Path, held: Sequence[Holding], new: Holding, *, into: bool) -> list[Holding]:
    """Return what the folder goes on to hold beside a *new* scenario.

    Args:
        folder: That of the study.
        held: What it holds, what was played last first.
        new: What is to be played.
        into: Whether another scenario is meant to go into the same folder.

    Raises:
        StoreError: The folder holds another scenario, and *into* is false.
    """
    differences = [each.compare(new) for each in held]
    if None in differences:
        place = differences.index(None)
        return [each for number, each in enumerate(held) if number != place]
    known = [found for found in differences if found is not None]
    if into or not known:
        return [
            each for each, (_, found) in zip(held, known, strict=True) if not found.of_optimizer
        ]
    by_name = "(in Python, Study(..., into=True))"
    for optimizer, found in known:
        if found.of_optimizer:
            raise StoreError(
                f"{folder} holds plays of {optimizer!r} with other parameters: "
                f"{found.in_words(optimizer)}. Give the optimizer a name of its own to compare "
                f"both, choose another folder by --out, or set the plays of before aside by --into "
                f"{by_name}"
            )
    optimizer, found = known[0]
    title = f", {held[0].title!r}" if held[0].title not in ("", new.title) else ""
    raise StoreError(
        f"{folder} holds another scenario{title}: {found.in_words(optimizer)}. Choose another "
        f"folder by --out, or keep both in this one by --into {by_name}"
    )
