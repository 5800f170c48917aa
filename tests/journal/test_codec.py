from __future__ import annotations

from dataclasses import fields, replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.domain import Box, Sites
from sparq_sim.errors import JournalError
from sparq_sim.journal.codec import decode_entry, decode_header, encode
from sparq_sim.journal.entries import (
    AskEntry,
    EndEntry,
    EventEntry,
    Header,
    MoveEntry,
    QueryData,
    ReplyEntry,
    SourceTraits,
    TurnEntry,
)
from tests.journal.samples import HEADER

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**53), 2**53)
TABLES = st.dictionaries(st.text(), st.floats(), max_size=3)
POINTS = st.lists(st.lists(FINITE, min_size=2, max_size=2), max_size=3)
JSON = st.recursive(FINITE | st.text() | st.booleans(), st.lists, max_leaves=4)
QUERIES = st.builds(QueryData, id=WHOLE, source=st.text(), points=POINTS)
BY_ANNOTATION: dict[str, st.SearchStrategy[Any]] = {
    "int": WHOLE,
    "float": FINITE,
    "bool": st.booleans(),
    "str": st.text(),
    "Number": st.floats(),
    "list[int]": st.lists(WHOLE, max_size=3),
    "list[float]": st.lists(FINITE, max_size=3),
    "list[float] | None": st.none() | st.lists(FINITE, max_size=3),
    "list[Number] | None": st.none() | st.lists(st.floats(), max_size=3),
    "list[list[float]]": POINTS,
    "list[list[float]] | None": st.none() | POINTS,
    "list[QueryData]": st.lists(QUERIES, max_size=2),
    "dict[str, Number]": TABLES,
    "dict[str, Any]": st.dictionaries(st.text(), JSON, max_size=3),
}
KINDS = (MoveEntry, AskEntry, ReplyEntry, TurnEntry, EventEntry, EndEntry)


def any_entry(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kind, **{each.name: BY_ANNOTATION[str(each.type)] for each in fields(kind)})


@given(st.one_of([any_entry(kind) for kind in KINDS]))
def test_what_is_written_is_read_back_and_is_one_line(entry: Any) -> None:
    line = encode(entry)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    # NaN differs from itself, but is written as itself.
    assert repr(decode_entry(line)) == repr(entry)


@pytest.mark.parametrize(
    "domain",
    [
        Box([0.0, -0.0], [1 / 3, 1e300 / 2], ["x", "y"]),
        Sites([[0.1, 2.0], [3.0, 0.3]], ["harbour", "hill"], ["x", "y"]),
    ],
)
def test_a_header_is_read_back_with_its_domain(domain: Box | Sites) -> None:
    read = decode_header(encode(replace(HEADER, domain=domain)))
    assert repr(read.domain) == repr(domain)
    assert (read.domain.grid(2) == domain.grid(2)).all()
    assert replace(read, domain=HEADER.domain) == HEADER
    assert read.coordinates == ("x", "y")
    assert read.sources["lab"] == SourceTraits(idempotent=True)


def test_nan_is_null_and_infinity_a_word() -> None:
    entry = EventEntry(n=1, unix=0.0, at=0.0, what="late", text="", numbers={"by": [nan, -inf]})
    assert b'{"by":[null,"-inf"]}' in encode(entry)
    end = EndEntry(n=1, unix=0.0, at=0.0, ended="rounds", spent=inf)
    assert decode_entry(encode(end)) == end


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    numbers = {"a": np.int64(3), "b": np.float32(0.5), "c": np.array([[1.0, nan]])}
    entry = EventEntry(n=1, unix=0.0, at=0.0, what="late", text="", numbers=numbers)
    assert b'{"a":3,"b":0.5,"c":[[1.0,null]]}' in encode(entry)


def test_half_a_character_is_written_as_a_question_mark() -> None:
    entry = EventEntry(n=1, unix=0.0, at=0.0, what="late", text="file \udcff")
    assert decode_entry(encode(entry)) == EventEntry(
        n=1, unix=0.0, at=0.0, what="late", text="file ?"
    )


def test_what_json_does_not_have_is_refused_and_named() -> None:
    entry = EventEntry(n=1, unix=0.0, at=0.0, what="late", text="", numbers={"by": object()})
    with pytest.raises(JournalError, match="entry 'event' cannot be written: <object"):
        encode(entry)


def test_fields_of_later_versions_are_ignored() -> None:
    line = b'{"type":"end","n":1,"unix":0,"at":0,"ended":"rounds","spent":2,"joules":3}\n'
    assert decode_entry(line) == EndEntry(n=1, unix=0.0, at=0.0, ended="rounds", spent=2.0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "it is no JSON"),
        (b'{"type":"end"', "it is no JSON"),
        (b"[" * 100_000, "it is no JSON"),
        (b'{"type":"end","n":1\xff}', "it is no JSON"),
        (b"[]", "no entry of a journal"),
        (b'{"type":"noise"}', 'no entry of a journal: \'{"type":"noise"}\''),
        (b'{"type":["end"]}', "no entry of a journal"),
        (b'{"type":"end","n":1,"unix":0,"at":0,"spent":0}', "'end' has a wrong ended: Field req"),
        (b'{"type":"end","n":1,"unix":0,"at":null,"ended":"","spent":0}', "'end' has a wrong at"),
        (b'{"type":"play"}', "the header of a journal, which is the first line only"),
    ],
)
def test_what_is_no_entry_is_refused_with_a_reason(line: bytes, reason: str) -> None:
    with pytest.raises(JournalError) as caught:
        decode_entry(line)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"type":"end"}', "expected the header of a journal, not the entry 'end'"),
        (b'{"type":"play","journal":2}', "of format 2, and this version reads format 1"),
        (b'{"type":"play","journal":1}', "the entry 'play' has a wrong play: Field required"),
        (encode(HEADER).replace(b'"lower":[0.0,', b'"lower":[9.0,'), "a wrong domain"),
        (encode(HEADER).replace(b'"box"', b'"ball"'), "wrong domain: Value error, expected a box"),
    ],
)
def test_what_is_no_header_is_refused_with_a_reason(line: bytes, reason: str) -> None:
    with pytest.raises(JournalError) as caught:
        decode_header(line)
    assert reason in str(caught.value)


def test_the_kind_of_an_entry_is_no_field() -> None:
    assert "type" not in {each.name for kind in (Header, *KINDS) for each in fields(kind)}
