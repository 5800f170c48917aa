"""Holdings: what a folder holds already, whether a scenario belongs there, and what it replaces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import sparq_sim
from sparq_sim.plugin.origins import qualified_name
from sparq_sim.plugin.registry import kind_of, name_of
from sparq_sim.plugin.sources import CORE, hash_core
from sparq_sim.scenario.tables import (
    ABSENT,
    find_at_path,
    format_value,
    join_path,
    remove_paths,
)
from sparq_sim.study.store import FolderStore, Provenance, StoreError, canonical
from sparq_sim.study.store.keys import check_format, list_models, list_plugins
from sparq_sim.study.store.layout import SCENARIO

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

Fingerprint: TypeAlias = Mapping[str, Any]
"""All that fixes a play but its seed, its replication and its code."""


# How plays differ


@dataclass(frozen=True)
class Difference:
    """The first field in which two plays differ: where it is, and both values."""

    keys: tuple[str, ...]
    there: object
    here: object

    @property
    def of_optimizer(self) -> bool:
        """Whether the plays differ by no more than the parameters of their optimizer."""
        return self.keys[0] == "optimizer"

    def told(self, optimizer: str) -> str:
        """Return it in words, of plays of an *optimizer*."""
        if self.keys[0] == "contents":
            return f"what is in {self.keys[-1]} has changed"
        keys = ("optimizers", optimizer, *self.keys[1:]) if self.of_optimizer else self.keys
        there, here = (
            "absent" if v is ABSENT else format_value(v) for v in (self.there, self.here)
        )
        return f"{join_path(keys)} was {there} then and is {here} now"


def difference(
    there: Fingerprint, here: Fingerprint, *, left_out: Sequence[str] = ()
) -> Difference | None:
    """Return the first field in which two plays differ, or None; those of the optimizer come last.

    Args:
        there: The fingerprint of a play that was kept, maybe by other versions than those of now.
        here: The fingerprint of a play of now.
        left_out: Paths that do not matter.
    """
    if canonical(there) == canonical(here):
        return None
    there = _renewed(there, here)
    unwritten = (*there.get("unwritten", ()), *here.get("unwritten", ()))
    cut = ("unwritten", *left_out, *unwritten)
    old, new = remove_paths(there, cut), remove_paths(here, cut)
    optimizers = (
        {"optimizer": old.pop("optimizer", None)},
        {"optimizer": new.pop("optimizer", None)},
    )
    return _first(old, new) or _first(*optimizers)


def _first(there: Any, here: Any, keys: tuple[str, ...] = ()) -> Difference | None:
    match there, here:
        case dict(), dict():
            places = list(dict.fromkeys([*here, *there]))
        case list(), list() if len(there) == len(here):
            there, here = dict(enumerate(there)), dict(enumerate(here))
            places = list(here)
        case _:
            same = canonical(there) == canonical(here)
            return None if same else Difference(keys, there, here)
    for place in places:
        old, new = there.get(place, ABSENT), here.get(place, ABSENT)
        inner = (*keys, str(place))
        if old is ABSENT or new is ABSENT:
            return Difference(inner, old, new)
        if found := _first(old, new, inner):
            return found
    return None


def _renewed(there: Fingerprint, here: Fingerprint) -> Fingerprint:
    """Write an old fingerprint as this version does, with the fields that are new at their default.

    The files that it names are as they were.
    """
    from sparq_sim.scenario.model import Scenario

    # Code that is loaded already may be named.
    known = set(_modules(there)) <= set(_modules(here))
    try:
        scenario = Scenario.from_fingerprint(there, seed=0, name="any", allow_import=known)
        renewed = remove_paths(scenario.fingerprint("any"), ("contents",))
    except Exception:  # Of a plug-in, whatever it be: what has become of its fields is not known.
        return there
    return renewed | {name: there[name] for name in ("contents",) if name in there}


def _modules(data: Any) -> Iterator[str]:
    """Find the kinds that name code to import."""
    if isinstance(data, Mapping):
        if ":" in (kind := str(data.get("kind", ""))):
            yield kind
        for value in data.values():
            yield from _modules(value)
    elif isinstance(data, list):
        for value in data:
            yield from _modules(value)


# Which scenarios belong into a folder


@dataclass(frozen=True)
class Holding:
    """A scenario that a folder holds plays of: its identity, its title, and what is played."""

    identity: str
    title: str
    plays: Sequence[Mapping[str, Any]]
    """By optimizer and setting, each with its family and fingerprint."""

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> Holding:
        """Read what `described` has written; raise KeyError or TypeError where it cannot be."""
        plays = described["plays"]
        needed = ("family", "optimizer", "setting", "play")
        if lacking := [name for play in plays for name in needed if name not in play]:
            raise KeyError(lacking[0])
        return cls(str(described.get("scenario", "")), str(described.get("title", "")), plays)

    def described(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {"scenario": self.identity, "title": self.title, "plays": list(self.plays)}

    def differs(self, here: Holding) -> tuple[str, Difference] | None:
        """Return an optimizer and the first field in which *here* is another scenario, or None.

        What both play in the same setting decides; if there is no such thing, what all plays
        share but for swept fields. Other optimizers and other values of a sweep do not matter.
        """
        mine, theirs = self._by_label(), here._by_label()
        both = mine.keys() & theirs.keys()
        for name in mine:
            if name in both and (found := difference(mine[name], theirs[name])):
                return name[0], found
        if both or not mine or not theirs:
            return None
        old, new = self.plays[0], here.plays[0]
        swept = {path for play in (*self.plays, *here.plays) for path in play["setting"]}
        found = difference(old["play"], new["play"], left_out=("optimizer", *swept))
        return (str(new["optimizer"]), found) if found else None

    def incomplete(self) -> bool:
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

    def _by_label(self) -> dict[tuple[str, str], Fingerprint]:
        return {
            (play["optimizer"], canonical(play["setting"])): play["play"] for play in self.plays
        }


def read_holdings(home: FolderStore) -> list[Holding]:
    """Read which scenarios a folder is said to hold, the one last run first.

    Args:
        home: The folder; a description that cannot be read is set aside.

    Raises:
        StoreError: The description is of another format.
    """
    path = home.folder / SCENARIO
    if not path.is_file():
        return []
    try:
        described: dict[str, Any] = json.loads(path.read_bytes())
        held = [Holding.read(each) for each in (described, *described.get("others", ()))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        home.layout.set_aside(path, f"it cannot be read ({type(error).__name__}: {error})")
        return []
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
    differences = [each.differs(new) for each in held]
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
                f"{found.told(optimizer)}. Give the optimizer a name of its own to compare both, "
                f"choose another folder by --out, or set the plays of before aside by --into "
                f"{by_name}"
            )
    optimizer, found = known[0]
    title = f", {held[0].title!r}" if held[0].title not in ("", new.title) else ""
    raise StoreError(
        f"{folder} holds another scenario{title}: {found.told(optimizer)}. Choose another folder "
        f"by --out, or keep both in this one by --into {by_name}"
    )


# Which plays are replaced, and why


def replaced(told: Provenance, scenario: Scenario, optimizer: str) -> str | None:
    """Return why a play that was kept is not one of now, or None for a play of another scenario.

    Args:
        told: The provenance of a play that has another key than all plays of now.
        scenario: The one of now, without a sweep.
        optimizer: The name of the one that plays.
    """
    here = scenario.fingerprint(optimizer)
    if found := difference(told.fingerprint, here):
        return found.told(optimizer) if found.of_optimizer else None
    version = told.machine.versions["sparq-sim"]
    if version != sparq_sim.__version__:
        return f"sparq-sim was {version} then and is {sparq_sim.__version__} now"
    # Early versions knew installed plug-ins by their versions alone.
    if told.machine.core is None:
        return "the source of the code that played them was not noted then"
    changed = ["the source of sparq-sim"] if told.machine.core != hash_core() else []
    changed += _changed(told.plugins, scenario, optimizer)
    if changed:
        return f"{' and '.join(changed)} {'has' if len(changed) == 1 else 'have'} changed since"
    unwritten = ", ".join(here.get("unwritten", ())) or "their code"
    return f"{unwritten} cannot be written to a file, and may have changed since"


def _changed(before: Sequence[Mapping[str, Any]], scenario: Scenario, optimizer: str) -> list[str]:
    """Name the source and the versions of plug-ins that are not as they were *before*."""
    then = {each["class"]: each for each in before}
    called = _called(scenario, optimizer)
    sources: dict[str, list[str]] = {}
    versions: dict[str, None] = {}
    for now in list_plugins(scenario, optimizer):
        old = then.get(now["class"], now)
        if now["covers"] == CORE:
            continue
        if (now["covers"], now["source"]) != (old["covers"], old["source"]):
            sources.setdefault(str(now["covers"]), []).append(str(now["class"]))
        elif now["version"] != old["version"]:
            told = f"{now['distribution']} ({old['version']} then, {now['version']} now)"
            versions[f"the version of {told}"] = None
    known = {
        covers: [called[name] for name in names if name in called] or names
        for covers, names in sources.items()
    }
    edited = [f"the source of {' and '.join(known[covers])} ({covers})" for covers in known]
    return [*edited, *versions]


def _called(scenario: Scenario, optimizer: str) -> dict[str, str]:
    """Return what users call the plug-ins of a scenario, by class."""
    return {
        qualified_name(model): f"{kind} {name_of(model)!r}"
        for model in list_models(scenario, optimizer)
        if isinstance(model, type) and (kind := kind_of(model)) is not None
    }
