"""The codec of a journal: from an entry to its line, and back.

Null stands for NaN, and the words "inf" and "-inf" for infinity, which JSON does not have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter, ValidationError

from sparq_sim.documents import read_json
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import JournalError
from sparq_sim.journal.entries import (
    FORMAT,
    AskEntry,
    EndEntry,
    Entry,
    EventEntry,
    Header,
    MoveEntry,
    QueryData,
    ReplyEntry,
    SourceTraits,
    TurnEntry,
)

__all__ = ["decode_entry", "decode_header", "encode"]

_KINDS: Final[Mapping[str, TypeAdapter[Any]]] = {
    kind.type: TypeAdapter(kind)
    for kind in (Header, MoveEntry, AskEntry, ReplyEntry, TurnEntry, EventEntry, EndEntry)
}


# Writing


def _convert(thing: Any) -> Any:
    """Return what JSON has for a *thing* that it does not know."""
    if isinstance(thing, np.generic | np.ndarray):
        return thing.tolist()
    if isinstance(thing, SourceTraits | QueryData):
        return _list_fields(thing)
    if isinstance(thing, Box | Sites):
        return _write_domain(thing)
    raise TypeError(f"{thing!r:.80} is nothing that JSON has")


_ENCODER = json.JSONEncoder(
    allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_convert
)


def _write_domain(domain: Domain) -> dict[str, object]:
    match domain:
        case Box(lower=lower, upper=upper, names=names):
            return {
                "kind": "box",
                "lower": lower.tolist(),
                "upper": upper.tolist(),
                "names": list(names),
            }
        case Sites(points=points, site_names=sites, names=names):
            return {
                "kind": "sites",
                "points": points.tolist(),
                "site_names": list(sites),
                "names": list(names),
            }


def _list_fields(thing: Any) -> dict[str, Any]:
    given = {each: getattr(thing, each.name) for each in fields(thing)}
    # What is None by default is left out.
    return {
        each.name: value
        for each, value in given.items()
        if value is not None or each.default is not None
    }


def _replace_nonfinite(given: Any) -> Any:
    """Return *given* with null in the place of NaN, and a word in that of infinity."""
    match given:
        case float():
            return given if given - given == 0 else None if given != given else str(float(given))
        case dict():
            return {name: _replace_nonfinite(each) for name, each in given.items()}
        case list() | tuple():
            return [_replace_nonfinite(each) for each in given]
        case np.ndarray() | np.generic():
            return _replace_nonfinite(given.tolist())
    return given


def encode(entry: Entry | Header) -> bytes:
    """Return the line of an entry, with its end.

    Args:
        entry: An entry, or the header.

    Raises:
        JournalError: Something in it is nothing that JSON has.
    """
    data: dict[str, Any] = {"type": entry.type}
    for name, each in _list_fields(entry).items():
        # Moments are the commonest NaN. Lists are left to the encoder, which is fast.
        data[name] = None if isinstance(each, float) and each != each else each
    try:
        try:
            text = _ENCODER.encode(data)
        except ValueError:  # Within a list or a table, there is NaN or infinity.
            text = _ENCODER.encode(_replace_nonfinite(data))
    except (TypeError, ValueError) as error:
        raise JournalError(f"the entry {entry.type!r} cannot be written: {error}") from error
    # Half a character, as in the name of a file that is no text, cannot be written.
    return f"{text}\n".encode(errors="replace")


# Reading


def _load(line: bytes) -> dict[str, Any]:
    try:
        data = read_json(line)
    except ValueError as error:
        raise JournalError(f"it is no JSON ({error}): {_show(line)}") from None
    if not isinstance(data, dict) or str(data.get("type")) not in _KINDS:
        raise JournalError(f"it is no entry of a journal: {_show(line)}")
    return data


def _read(data: dict[str, Any]) -> Any:
    kind = data.pop("type")
    try:
        return _KINDS[kind].validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise JournalError(f"the entry {kind!r} has a wrong {where}: {first['msg']}") from None


def _show(line: bytes) -> str:
    """Return the beginning of a line, to be shown."""
    return repr(line[:60].decode("utf-8", errors="replace"))


def decode_header(line: bytes) -> Header:
    """Return the header that is the first line of a journal.

    Args:
        line: The line.

    Raises:
        JournalError: It is none, or of a format that this version does not read.
    """
    data = _load(line)
    if data["type"] != Header.type:
        raise JournalError(f"expected the header of a journal, not the entry {data['type']!r}")
    if data.get("journal") != FORMAT:
        raise JournalError(
            f"it is of format {data.get('journal')!r}, and this version reads format {FORMAT}; "
            "use the version that wrote it"
        )
    header: Header = _read(data)
    return header


def decode_entry(line: bytes) -> Entry:
    """Return the entry that a later line of a journal is.

    Args:
        line: The line.

    Raises:
        JournalError: It is none.
    """
    data = _load(line)
    if data["type"] == Header.type:
        raise JournalError("it is the header of a journal, which is the first line only")
    entry: Entry = _read(data)
    return entry
