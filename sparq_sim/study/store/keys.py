"""Keys: what a play is called, from all that fixes what it comes to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

import sparq_sim
from sparq_sim.plugin.origins import find_origins
from sparq_sim.plugin.sources import Plugin, hash_core
from sparq_sim.study.store.errors import StoreError

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = [
    "FORMAT",
    "UNSEALED",
    "Label",
    "PlayId",
    "Setting",
    "canonical",
    "check_format",
    "hash_json",
    "is_key",
    "list_models",
    "list_plugins",
    "name_code",
    "name_family",
    "name_play",
]

FORMAT = 3
"""Of the files that are written; later ones this version cannot read."""
UNSEALED = 2
"""The format of before, which is read too: its files have no checksums but that of a trace."""

Setting: TypeAlias = Mapping[str, object]
"""The swept values that make a difference to a play, by dotted path."""
Label: TypeAlias = tuple[str, str]
"""An optimizer, and its setting as canonical JSON: what a row of a table is about."""

hash_core()  # Now, for a file may be edited while this process goes on with what it has loaded.


@dataclass(frozen=True, slots=True)
class PlayId:
    """What tells a play from all others, be it planned, computed, stored or failed."""

    key: str
    """Hashes *family*, *seed* and *replication*; the name of its files."""
    family: str
    """Hashes all that fixes the play but its seed and replication, the code included."""
    optimizer: str
    """The name of the optimizer that plays."""
    setting: Setting = field(hash=False)
    """The swept values that make a difference to it."""
    seed: int
    """Of the scenario."""
    replication: int
    """From 0."""
    scenario: str = ""
    """The identity of the scenario that it is played for; empty in files of early versions."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlayId:
        """Return the identity that the provenance of a stored play holds.

        Args:
            data: The provenance as it is in the file.

        Raises:
            KeyError: A part of the identity is missing.
        """
        return cls(
            key=data["key"],
            family=data["family"],
            optimizer=data["optimizer"],
            setting=data["setting"],
            seed=data["seed"],
            replication=data["replication"],
            scenario=data.get("scenario", ""),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the identity as a provenance holds it."""
        return {
            "key": self.key,
            "family": self.family,
            "optimizer": self.optimizer,
            "setting": dict(self.setting),
            "seed": self.seed,
            "replication": self.replication,
            "scenario": self.scenario,
        }

    @property
    def label(self) -> Label:
        """The row of a table that the play belongs to."""
        return self.optimizer, canonical(self.setting)


# Made once: to make it takes longer than to write a setting by it.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(thing: object) -> str:
    """Return a thing as JSON, written in the one way that equal things share.

    Args:
        thing: Anything that JSON can write.
    """
    return _ENCODER.encode(thing)


def hash_json(thing: object) -> str:
    """Return 32 digits that stand for a thing.

    Args:
        thing: Anything that JSON can write.
    """
    return blake2b(canonical(thing).encode(), digest_size=16).hexdigest()


def is_key(given: object) -> bool:
    """Return whether something is the key of a play: 32 hexadecimal digits.

    Args:
        given: What a file calls a play.
    """
    return isinstance(given, str) and re.fullmatch("[0-9a-f]{32}", given) is not None


def name_code(plugins: Sequence[Mapping[str, object]]) -> str:
    """Return a name of the code that a play is computed by: sparq-sim's and its plug-ins'.

    Args:
        plugins: What takes part, as `list_plugins` lists it.
    """
    return hash_json([sparq_sim.__version__, hash_core(), plugins])


def name_family(
    optimizer: str, fingerprint: Mapping[str, object], plugins: Sequence[Mapping[str, object]]
) -> str:
    """Return a name of what fixes a play but its seed and replication, its code included.

    Args:
        optimizer: The name of the one that plays; two that are alike are still two.
        fingerprint: What is played, as `Scenario.fingerprint` writes it.
        plugins: What takes part, as `list_plugins` lists it.
    """
    return hash_json([FORMAT, name_code(plugins), optimizer, fingerprint])


def name_play(family: str, seed: int, replication: int) -> str:
    """Return the key of a play.

    Args:
        family: As `name_family` names it.
        seed: Of the scenario.
        replication: From 0.
    """
    return hash_json([family, seed, replication])


def list_plugins(scenario: Scenario, optimizer: str) -> list[dict[str, object]]:
    """List the classes and functions that take part in a play, and what their code is known by.

    Args:
        scenario: What is played, without a sweep.
        optimizer: The name of the one that plays.
    """
    return [origin.to_provenance() for origin in find_origins(list_models(scenario, optimizer))]


def list_models(scenario: Scenario, optimizer: str) -> list[Plugin]:
    """List the classes of all models that take part in a play, and the functions.

    Args:
        scenario: What is played, without a sweep.
        optimizer: The name of the one that plays.
    """
    taking_part = (
        scenario.environment,
        getattr(scenario, "experts", {}),
        scenario.optimizers[optimizer],
        scenario.feedback,
        scenario.thinking,
    )
    return [*dict.fromkeys(_find_plugins(taking_part))]


def _find_plugins(thing: object) -> Iterator[Plugin]:
    """Find the classes of all models in *thing*, and the functions."""
    match thing:
        case BaseModel():
            yield type(thing)
            for name in type(thing).model_fields:
                yield from _find_plugins(getattr(thing, name))
        case Mapping():
            for value in thing.values():
                yield from _find_plugins(value)
        case list() | tuple() | set() | frozenset():
            for value in thing:
                yield from _find_plugins(value)
        case FunctionType():
            yield thing


def check_format(number: object, what: str) -> None:
    """Refuse files of another format, which another version has written.

    Args:
        number: The format that the file names.
        what: What the file is, as the message begins.

    Raises:
        StoreError: It is another than this version reads.
    """
    if number not in (UNSEALED, FORMAT):
        raise StoreError(
            f"{what} of format {number!r}, and this version ({sparq_sim.__version__}) reads "
            f"formats {UNSEALED} and {FORMAT}; use the version that wrote it, or another folder"
        )
