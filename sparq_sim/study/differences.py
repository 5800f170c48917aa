"""Differences: the first field in which two plays are not the same, and why one is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import sparq_sim
from sparq_sim.plugin.origins import qualified_name
from sparq_sim.plugin.registry import kind_of, name_of
from sparq_sim.plugin.sources import CORE, hash_core
from sparq_sim.scenario.tables import (
    ABSENT,
    format_value,
    join_path,
    remove_paths,
)
from sparq_sim.study.store import Provenance, canonical
from sparq_sim.study.store.keys import list_models, list_plugins

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = ["FieldDifference", "Fingerprint", "explain_replacement", "find_difference"]

Fingerprint: TypeAlias = Mapping[str, Any]
"""All that fixes a play but its seed, its replication and its code."""


@dataclass(frozen=True)
class FieldDifference:
    """The first field in which two plays differ: where it is, and both values."""

    keys: tuple[str, ...]
    """Where the field is in the fingerprint, from the outside."""
    there: object
    """Its value in the play that was kept."""
    here: object
    """Its value now."""

    @property
    def of_optimizer(self) -> bool:
        """Whether the plays differ by no more than the parameters of their optimizer."""
        return self.keys[0] == "optimizer"

    def in_words(self, optimizer: str) -> str:
        """Return the difference as a sentence.

        Args:
            optimizer: The name of the one that plays.
        """
        if self.keys[0] == "contents":
            return f"what is in {self.keys[-1]} has changed"
        keys = ("optimizers", optimizer, *self.keys[1:]) if self.of_optimizer else self.keys
        there, here = (
            "absent" if v is ABSENT else format_value(v) for v in (self.there, self.here)
        )
        return f"{join_path(keys)} was {there} then and is {here} now"


def find_difference(
    there: Fingerprint, here: Fingerprint, *, left_out: Sequence[str] = ()
) -> FieldDifference | None:
    """Return the first field in which two plays differ, or None; those of the optimizer come last.

    Args:
        there: The fingerprint of a play that was kept, maybe by other versions than those of now.
        here: The fingerprint of a play of now.
        left_out: Paths that do not matter.
    """
    if canonical(there) == canonical(here):
        return None
    there = _renew(there, here)
    unwritten = (*there.get("unwritten", ()), *here.get("unwritten", ()))
    cut = ("unwritten", *left_out, *unwritten)
    old, new = remove_paths(there, cut), remove_paths(here, cut)
    optimizers = (
        {"optimizer": old.pop("optimizer", None)},
        {"optimizer": new.pop("optimizer", None)},
    )
    return _find_first(old, new) or _find_first(*optimizers)


def _find_first(there: Any, here: Any, keys: tuple[str, ...] = ()) -> FieldDifference | None:
    match there, here:
        case dict(), dict():
            places = list(dict.fromkeys([*here, *there]))
        case list(), list() if len(there) == len(here):
            there, here = dict(enumerate(there)), dict(enumerate(here))
            places = list(here)
        case _:
            same = canonical(there) == canonical(here)
            return None if same else FieldDifference(keys, there, here)
    for place in places:
        old, new = there.get(place, ABSENT), here.get(place, ABSENT)
        inner = (*keys, str(place))
        if old is ABSENT or new is ABSENT:
            return FieldDifference(inner, old, new)
        if found := _find_first(old, new, inner):
            return found
    return None


def _renew(there: Fingerprint, here: Fingerprint) -> Fingerprint:
    """Write an old fingerprint as this version does, with the fields that are new at their default.

    The files that it names are as they were.
    """
    from sparq_sim.scenario.model import Scenario

    # Code that is loaded already may be named.
    known = set(_find_modules(there)) <= set(_find_modules(here))
    try:
        scenario = Scenario.from_fingerprint(there, seed=0, name="any", allow_import=known)
        renewed = remove_paths(scenario.fingerprint("any"), ("contents",))
    except Exception:  # Of a plug-in, whatever it be: what has become of its fields is not known.
        return there
    return renewed | {name: there[name] for name in ("contents",) if name in there}


def _find_modules(data: Any) -> Iterator[str]:
    """Find the kinds that name code to import."""
    if isinstance(data, Mapping):
        if ":" in (kind := str(data.get("kind", ""))):
            yield kind
        for value in data.values():
            yield from _find_modules(value)
    elif isinstance(data, list):
        for value in data:
            yield from _find_modules(value)


def explain_replacement(provenance: Provenance, scenario: Scenario, optimizer: str) -> str | None:
    """Return why a play that was kept is not one of now, or None for a play of another scenario.

    Args:
        provenance: That of a play that has another key than all plays of now.
        scenario: The one of now, without a sweep.
        optimizer: The name of the one that plays.
    """
    here = scenario.fingerprint(optimizer)
    if found := find_difference(provenance.fingerprint, here):
        return found.in_words(optimizer) if found.of_optimizer else None
    version = provenance.machine.versions["sparq-sim"]
    if version != sparq_sim.__version__:
        return f"sparq-sim was {version} then and is {sparq_sim.__version__} now"
    # Early versions knew installed plug-ins by their versions alone.
    if provenance.machine.core is None:
        return "the source of the code that played them was not noted then"
    changed = ["the source of sparq-sim"] if provenance.machine.core != hash_core() else []
    changed += _list_changed(provenance.plugins, scenario, optimizer)
    if changed:
        return f"{' and '.join(changed)} {'has' if len(changed) == 1 else 'have'} changed since"
    unwritten = ", ".join(here.get("unwritten", ())) or "their code"
    return f"{unwritten} cannot be written to a file, and may have changed since"


def _list_changed(
    before: Sequence[Mapping[str, Any]], scenario: Scenario, optimizer: str
) -> list[str]:
    """Name the source and the versions of plug-ins that are not as they were *before*."""
    then = {each["class"]: each for each in before}
    called = _name_plugins(scenario, optimizer)
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


def _name_plugins(scenario: Scenario, optimizer: str) -> dict[str, str]:
    """Return what users call the plug-ins of a scenario, by class."""
    return {
        qualified_name(model): f"{kind} {name_of(model)!r}"
        for model in list_models(scenario, optimizer)
        if isinstance(model, type) and (kind := kind_of(model)) is not None
    }
