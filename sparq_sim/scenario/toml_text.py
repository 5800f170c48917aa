"""TOML text: a scenario with all its defaults, written so that it can be loaded again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparq_sim.scenario.fingerprint import NumberWord
from sparq_sim.scenario.tables import Keys, join_path, quote

__all__ = ["write_toml_table"]

_WIDTH = 88
"""Columns of a line; what is longer gets lines of its own where TOML has a way to."""


def write_toml_table(data: Mapping[str, Any]) -> str:
    """Return a table as TOML: short tables within it on one line, longer ones under headings.

    TOML has no null: fields that are None are left out.

    Args:
        data: The table, as `Scenario.resolve` returns it.
    """
    return "\n".join(_write_table(data, ())).strip() + "\n"


def _write_table(data: Mapping[str, Any], at: Keys) -> Iterator[str]:
    """Yield the lines of a table: first what takes one line, then tables under headings."""
    given = {key: value for key, value in data.items() if value is not None}
    lines = {key: f"{join_path((key,))} = {_write_value(value)}" for key, value in given.items()}
    apart = {key for key, value in given.items() if _is_table(value) and len(lines[key]) > _WIDTH}
    within = [key for key in given if key not in apart]
    if at and (within or not apart):
        yield f"[{join_path(at)}]"
    for key in within:
        yield from _break_list(key, given[key], lines[key])
    if within or not given:
        yield ""
    for key in given:
        if key in apart:
            yield from _write_table(given[key], (*at, key))


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _break_list(key: str, value: object, line: str) -> list[str]:
    """Return the line of a field; a long list gets a line for each of its elements."""
    if len(line) <= _WIDTH or not isinstance(value, Sequence) or isinstance(value, str):
        return [line]
    return [
        f"{join_path((key,))} = [",
        *(f"    {_write_value(each)}," for each in value),
        "]",
    ]


def _write_value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case NumberWord():
            return str(value)
        case str():
            return quote(value)
        case Mapping():
            given = [
                f"{join_path((key,))} = {_write_value(each)}"
                for key, each in value.items()
                if each is not None
            ]
            return f"{{ {', '.join(given)} }}" if given else "{}"
        case _:
            return f"[{', '.join(map(_write_value, value))}]"
