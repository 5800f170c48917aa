"""Fingerprints: what fixes a play or a scenario, as JSON-able data and as a short hash."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from glob import glob
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel

from sparq_sim.errors import ScenarioError
from sparq_sim.limits import check_data_file
from sparq_sim.plugin.registry import add_kind, kind_to_write
from sparq_sim.scenario.files import FILE_FIELDS
from sparq_sim.scenario.plugins import ExpertEntry
from sparq_sim.scenario.tables import Keys, join_path, remove_paths
from sparq_sim.simulation.rules import Rules

if TYPE_CHECKING:
    from sparq_sim.plugin.optimizer import Optimizer
    from sparq_sim.scenario.model import Scenario

__all__ = ["NumberWord", "compute_identity", "to_data", "write_fingerprint"]


class NumberWord(str):
    """A number that JSON lacks, as the word that a field of numbers reads: "inf", say."""

    __slots__ = ()


def write_fingerprint(scenario: Scenario, optimizer: Optimizer) -> dict[str, Any]:
    """Return all that fixes a play of an *optimizer*, except seed and replication, JSON-able.

    Args:
        scenario: The scenario that is played, without a sweep.
        optimizer: The optimizer that plays.

    Returns:
        The fields by name. Under `contents` are hashes of the files that they name. Under
        `unwritten` are the paths of what cannot be written, such as a function, whose `repr` is
        in its place.
    """
    fields = ("environment", "feedback", "experts", *Rules.model_fields)
    unwritten: list[str] = []
    data = {name: _convert(getattr(scenario, name), (name,), unwritten) for name in fields}
    data["optimizer"] = _convert(optimizer, ("optimizer",), unwritten)
    played = [*(getattr(scenario, name) for name in fields), optimizer]
    if contents := _hash_contents(_find_files(played)):
        data["contents"] = contents
    return data | ({"unwritten": unwritten} if unwritten else {})


def compute_identity(scenario: Scenario) -> str:
    """Return twelve digits that stand for all that the plays of a *scenario* share.

    That is the environment, the channel of its rewards, the experts and the rules, except for
    swept fields and what cannot be written.

    Args:
        scenario: Any scenario; what its sweep changes does not count.
    """
    data = scenario.fingerprint(next(iter(scenario.optimizers)))
    left_out = ("optimizer", "unwritten", *scenario.sweep.paths(), *data.get("unwritten", ()))
    text = json.dumps(remove_paths(data, left_out), sort_keys=True, ensure_ascii=False)
    return blake2b(text.encode(), digest_size=6).hexdigest()


def to_data(model: BaseModel) -> dict[str, Any]:
    """Return a *model* as JSON-able data, with all defaults, as a file would have it.

    Args:
        model: Any model of pydantic.
    """
    data: dict[str, Any] = _convert(model, (), [])
    return data


def _convert(value: Any, at: Keys, unwritten: list[str]) -> Any:
    """Return a value as JSON-able data; the paths of what cannot be go to *unwritten*."""

    def inner(value: Any, key: object) -> Any:
        return _convert(value, (*at, str(key)), unwritten)

    match value:
        case ExpertEntry():
            return {
                **_convert(value.expert, at, unwritten),
                "channel": inner(value.channel, "channel"),
            }
        case BaseModel():
            kind = kind_to_write(value)
            if kind and (kind.startswith("__main__:") or "<locals>" in kind):
                unwritten.append(join_path((*at, "kind")))
            fields = {
                field.alias or key: inner(getattr(value, key), key)
                for key, field in type(value).model_fields.items()
            }
            return add_kind(fields, kind)
        case Mapping():
            return {str(key): inner(item, key) for key, item in value.items()}
        case tuple() | list():
            return [inner(item, place) for place, item in enumerate(value)]
        case set() | frozenset():
            return sorted((inner(item, "") for item in value), key=repr)
        case np.ndarray() | np.generic():
            return _convert(value.tolist(), at, unwritten)
        case float() if not math.isfinite(value):
            return NumberWord(value)
        case None | bool() | int() | float() | str():
            return value
        case Path():
            return str(value)
    unwritten.append(join_path(at))
    return repr(value)


# Files that are read


def _find_files(value: Any, key: str = "") -> Iterator[str]:
    """Yield the files that a value names, which is that of the field *key*."""
    match value:
        case BaseModel():
            for name in type(value).model_fields:
                yield from _find_files(getattr(value, name), name)
        case Mapping():
            for name, item in value.items():
                yield from _find_files(item, str(name))
        case tuple() | list() | set() | frozenset():
            for item in value:
                yield from _find_files(item, key)
        case Path():
            yield str(value)
        case str() if key in FILE_FIELDS:
            yield value


def _hash_contents(paths: Iterable[str]) -> dict[str, str]:
    """Hash what is in the files at *paths*, or patterns of such; what is not there, is not."""
    return {
        path: _hash_path(Path(path))
        for given in paths
        for path in sorted(glob(str(Path(given).expanduser()), recursive=True)) or [given]
        if Path(path).exists()
    }


def _hash_path(path: Path) -> str:
    """Hash a file, or what is in a folder, such as that of a study, by names and sizes."""
    if path.is_dir():
        inside = sorted((str(p.relative_to(path)), p.stat().st_size) for p in path.rglob("*"))
        return blake2b(repr(inside).encode(), digest_size=16).hexdigest()
    try:
        check_data_file(path)
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror or error}") from error
    stat = path.stat()
    return _hash_file(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _hash_file(path: Path, changed_at: int, size: int) -> str:
    """Hash a file; while it is not written to, once."""
    with path.open("rb") as stream:
        return file_digest(stream, "blake2b").hexdigest()[:32]
