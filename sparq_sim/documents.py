"""Documents: JSON that others have written, read within limits of size and nesting."""

from __future__ import annotations

import json
from pathlib import Path
from stat import S_ISREG
from typing import Any, NoReturn

__all__ = ["MOST_LEVELS", "NestedError", "read_json", "read_json_file"]

_MOST_BYTES = 100_000_000
"""How large a document may be, in bytes."""
MOST_LEVELS = 100
"""How deep lists and objects may be nested; what reads them calls itself for each level."""


class NestedError(ValueError):
    """A document is nested too deeply."""


def read_json(data: bytes | str, *, most_bytes: int = _MOST_BYTES, strict: bool = False) -> Any:
    """Return what a document holds.

    Args:
        data: The document, in UTF-8.
        most_bytes: How large it may be.
        strict: Whether to refuse what JSON does not have, NaN and Infinity, and a key that stands
            twice in an object.

    Raises:
        ValueError: It is no JSON, or too large. It is a `NestedError` if it is nested too deeply.
    """
    if len(data) > most_bytes:
        raise ValueError(f"it has {len(data)} bytes, and at most {most_bytes} are read")
    try:
        if strict:
            found = json.loads(
                data, parse_constant=_refuse_constant, object_pairs_hook=_refuse_twice
            )
        else:
            found = json.loads(data)
    except RecursionError:
        raise NestedError(_NESTED) from None
    # Few brackets cannot nest deeply, and to count them is quick.
    brackets = (
        data.count("[") + data.count("{")
        if isinstance(data, str)
        else data.count(b"[") + data.count(b"{")
    )
    if brackets > MOST_LEVELS:
        _check_levels(found)
    return found


def read_json_file(path: Path) -> Any:
    """Return what a file holds.

    Args:
        path: The file; a pipe or a device, which may have no end, is not opened.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no regular file, no JSON, or too large.
    """
    state = path.stat()
    if not S_ISREG(state.st_mode):
        raise ValueError("it is no regular file")
    if state.st_size > _MOST_BYTES:
        raise ValueError(f"it has {state.st_size} bytes, and at most {_MOST_BYTES} are read")
    return read_json(path.read_bytes())


_NESTED = f"it is nested deeper than {MOST_LEVELS} levels"


def _check_levels(found: Any) -> None:
    level = [found]
    for _ in range(MOST_LEVELS + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise NestedError(_NESTED)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is no number of JSON")


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found
