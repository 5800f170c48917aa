"""Tables within tables: find, remove and name what is in them, and show it in messages."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, TypeAlias

__all__ = [
    "ABSENT",
    "Keys",
    "NotTomlError",
    "Table",
    "find_at_path",
    "format_value",
    "get_entry",
    "join_path",
    "parse_keys",
    "quote",
    "remove",
    "remove_paths",
    "split_path",
]

Keys: TypeAlias = tuple[str, ...]
"""Where a value is: keys of tables, and places in lists from "0" on."""
Table: TypeAlias = dict[str, Any]
"""A TOML table, as `tomllib` reads it."""
ABSENT: Final = object()
"""Stands for what is not there, where None may be a value."""

_LONGEST_VALUE = 60
_KEY = re.compile(r"""(?:"(?:\\.|[^"\\\n])*+"|'[^'\n]*+'|[A-Za-z0-9_-]++)""")
_DOT = re.compile(r"[ \t]*+\.[ \t]*+")


class NotTomlError(Exception):
    """The text does not go on as TOML."""


# Finding and removing


def get_entry(value: Any, key: str) -> Any:
    """Return the entry of a table, or the element of a list, at *key*.

    Args:
        value: A table, a list, or anything else, which has no entries.
        key: A key of the table, or a place in the list, as "0".

    Returns:
        The entry, or `ABSENT`.
    """
    if isinstance(value, dict):
        return value.get(key, ABSENT)
    if isinstance(value, list) and key.isdecimal() and key.isascii() and len(key) < 10:
        return value[int(key)] if int(key) < len(value) else ABSENT
    return ABSENT


def find_at_path(data: Any, path: str) -> Any:
    """Return what is at a dotted *path* of *data*, or `ABSENT`.

    Args:
        data: Tables within tables.
        path: Keys joined by dots.
    """
    for key in split_path(path):
        data = get_entry(data, key)
    return data


def remove(values: Any, keys: Keys) -> Any:
    """Return *values* without the entry at *keys*; later elements of a list move up.

    Args:
        values: A table or a list; it is not changed.
        keys: Where the entry is; if there is none, *values* are returned as they are.
    """
    if not keys or get_entry(values, keys[0]) is ABSENT:
        return values
    if isinstance(values, list):
        place = int(keys[0])
        inner = [remove(values[place], keys[1:])] if len(keys) > 1 else []
        return [*values[:place], *inner, *values[place + 1 :]]
    rest = {key: value for key, value in values.items() if key != keys[0]}
    return rest | ({keys[0]: remove(values[keys[0]], keys[1:])} if len(keys) > 1 else {})


def remove_paths(data: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return a copy of *data* without what is at *paths*; elements of a list become None.

    Args:
        data: A table; it is not changed.
        paths: Dotted paths; those that are not there are ignored.
    """
    copy: dict[str, Any] = deepcopy(dict(data))
    for path in paths:
        *outer, last = split_path(path)
        inner: Any = copy
        for key in outer:
            inner = get_entry(inner, key)
        if get_entry(inner, last) is ABSENT:
            continue
        if isinstance(inner, dict):
            del inner[last]
        else:
            inner[int(last)] = None
    return copy


# Dotted paths


def join_path(keys: Sequence[str]) -> str:
    """Return *keys* as a dotted path, quoted where TOML needs it.

    Args:
        keys: From the outermost table.
    """
    return ".".join(key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else quote(key) for key in keys)


def quote(text: str) -> str:
    """Return a *text* as a string of TOML.

    Args:
        text: Any text without halves of characters.
    """
    # Of control characters, JSON leaves this one as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def split_path(path: str) -> Keys:
    """Return the keys of a dotted *path*; where it is not TOML, split it at the dots.

    Args:
        path: As a file or `--set` has it.
    """
    try:
        keys, end = parse_keys(path, 0)
    except NotTomlError:
        return tuple(path.split("."))
    return keys if end == len(path) else tuple(path.split("."))


def parse_keys(text: str, start: int) -> tuple[Keys, int]:
    """Read a key of a TOML text, dotted or not.

    Args:
        text: The text.
        start: Where in it the key begins.

    Returns:
        The keys, and where the text goes on after them.

    Raises:
        NotTomlError: There is no key.
    """
    keys: list[str] = []
    end = start
    while found := _KEY.match(text, end):
        keys.append(_unquote(found[0]))
        if not (dot := _DOT.match(text, found.end())):
            return tuple(keys), found.end()
        end = dot.end()
    raise NotTomlError


def _unquote(key: str) -> str:
    if key[0] not in "\"'":
        return key
    try:
        return tomllib.loads(f"{key} = 0").popitem()[0]
    except tomllib.TOMLDecodeError as error:
        raise NotTomlError from error


# Values in messages


def format_value(value: Any) -> str:
    """Return a *value* as messages show it, on one line and cut where it is long.

    Args:
        value: Any value of a file.
    """
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no whole numbers of more than 4300 digits.
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
