"""Settings: the swept values of plays, compared, found by name, and in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sparq_sim.documents import read_json
from sparq_sim.errors import SparqError, did_you_mean
from sparq_sim.fields import is_number
from sparq_sim.study.store import Setting, canonical

__all__ = [
    "Setting",
    "agree",
    "find_path",
    "find_value",
    "format_setting",
    "format_value",
    "keep_fullest",
    "list_paths",
    "list_values",
    "shorten_path",
    "shorten_paths",
]


def list_paths(settings: Iterable[Setting]) -> list[str]:
    """List the swept paths, each once.

    Args:
        settings: Of several plays.
    """
    return list(dict.fromkeys(path for setting in settings for path in setting))


def agree(one: Setting, other: Setting) -> bool:
    """Return whether two settings have equal values wherever both have one.

    Args:
        one: A setting.
        other: Another.
    """
    return all(
        one[path] is other[path] or canonical(one[path]) == canonical(other[path])
        for path in one.keys() & other.keys()
    )


def keep_fullest(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings of which no others are special cases, each once.

    Args:
        settings: Of several plays.
    """
    unique = {canonical(dict(setting)): setting for setting in settings}
    kinds: dict[frozenset[str], list[Setting]] = {}
    for setting in unique.values():
        kinds.setdefault(frozenset(setting), []).append(setting)
    kept = []
    for paths, alike in kinds.items():
        special = {
            canonical({path: wider[path] for path in paths})
            for others, more in kinds.items()
            if others > paths
            for wider in more
        }
        kept += [setting for setting in alike if canonical(dict(setting)) not in special]
    return kept


def list_values(settings: Iterable[Setting], path: str) -> list[object]:
    """List the values that a path takes, numbers by their size.

    Args:
        settings: Of several plays.
        path: A swept one.
    """
    found = {canonical(each[path]): each[path] for each in settings if path in each}
    numbers: list[Any] = [value for value in found.values() if is_number(value)]
    return sorted(numbers) if len(numbers) == len(found) else [found[key] for key in sorted(found)]


def find_path(name: str, paths: Sequence[str]) -> str:
    """Return the swept path that has this name, in full or by its last words.

    Args:
        name: What a user calls it.
        paths: Those that are swept.

    Raises:
        SparqError: There is none, or there are several.
    """
    matching = [path for path in paths if path == name]
    matching = matching or [path for path in paths if path.endswith(f".{name}")]
    if not matching:
        known = paths if "." in name else shorten_paths(paths).values()
        raise SparqError(f"{name!r} is not swept: {did_you_mean(name, known)}")
    if len(matching) > 1:
        raise SparqError(f"{name!r} may be any of {', '.join(matching)}; write it in full")
    return matching[0]


def find_value(value: object, values: Sequence[object], path: str) -> object:
    """Return the one of the *values* of a path that equals a *value*: 2 is written 2.0, say.

    Args:
        value: What a user writes.
        values: Those that the path takes.
        path: Its name, for the message.

    Raises:
        SparqError: There is none.
    """
    for written in (value, canonical(value)):  # Lists and tables are kept as their JSON.
        if written in values:
            return values[values.index(written)]
    raise SparqError(
        f"{path} was never {value!r}; there are: {', '.join(map(format_value, values))}"
    )


def shorten_path(path: str) -> str:
    """Return the last word of a path, which tells most.

    Args:
        path: A swept one.
    """
    return path.rpartition(".")[2] or path


def shorten_paths(paths: Iterable[str]) -> dict[str, str]:
    """Return for each path its last word, or as many as tell it from the others.

    Args:
        paths: Those that are swept.
    """
    parts = {path: path.split(".") for path in paths}
    names = {}
    for path, words in parts.items():
        others = [each for each in parts.values() if each != words]
        own = (k for k in range(1, len(words)) if all(o[-k:] != words[-k:] for o in others))
        names[path] = ".".join(words[-next(own, len(words)) :])
    return names


def format_value(value: object) -> str:
    """Return a swept value as text.

    Args:
        value: Of a setting.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and value.startswith("{"):
        return _format_table(value)
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _format_table(text: str) -> str:
    """Return a swept table, which settings keep as its JSON, as "periodic, every 600"."""
    try:
        table = read_json(text)
    except ValueError:  # It is a text that begins like one.
        return text
    kind = table.pop("kind", None)
    words = [f"{name} {format_value(value)}" for name, value in table.items()]
    return ", ".join(words if kind is None else [str(kind), *words])


def format_setting(setting: Setting) -> str:
    """Return a setting on one line; fields of one name that have one value are named once.

    Args:
        setting: The swept values of a play.
    """
    alike: dict[str, list[str]] = {}
    for path in setting:
        alike.setdefault(shorten_path(path), []).append(path)
    names = shorten_paths(setting)
    for word, paths in alike.items():
        # Losses of two experts that are swept side by side, say.
        if len({canonical(setting[path]) for path in paths}) == 1:
            names |= dict.fromkeys(paths, word)
    told = (f"{names[path]} {format_value(value)}" for path, value in setting.items())
    return ", ".join(dict.fromkeys(told))
