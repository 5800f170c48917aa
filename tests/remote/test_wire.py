from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim.errors import PeerError
from sparq_sim.remote.wire import (
    SHOWN,
    AnswerMessage,
    ApplyMessage,
    AskMessage,
    CollectMessage,
    FailureMessage,
    LaterMessage,
    Message,
    ReadingMessage,
    decode,
    encode,
    read_message,
    show,
    wire_schema,
)

ASKED = {"names": ["x"], "points": [[0.2]], "asked_at": 1.7e9, "play_time": 3.0, "unit": 1.0}
EXAMPLES: list[tuple[type[Message], dict[str, Any]]] = [
    (AskMessage, {"type": "ask", "id": "a", "source": "lab", **ASKED}),
    (ApplyMessage, {"type": "apply", "id": "a", **ASKED}),
    (CollectMessage, {"type": "collect", "id": "a"}),
    (AnswerMessage, {"type": "answer", "id": "a", "values": [1.5]}),
    (
        AnswerMessage,
        {
            "type": "answer",
            "id": "a",
            "values": [1.5, None],
            "stds": [0.1, None],
            "measured_at": 1.7e9,
            "notes": {"rssi": -80.0},
            "absent": "blind spot",
        },
    ),
    (FailureMessage, {"type": "failure", "id": "a", "reason": "closed"}),
    (LaterMessage, {"type": "later", "id": "a", "seconds": 5.0}),
    (ReadingMessage, {"type": "reading", "points": [[0.2], [0.3]], "values": [1.0, 2.0]}),
]


@pytest.mark.parametrize(("model", "example"), EXAMPLES)
def test_a_message_is_written_as_it_was_read(model: type[Message], example: dict[str, Any]) -> None:
    read = read_message(decode(encode(example)), model)
    assert read.to_object() == {"sparq": 1} | example


@pytest.mark.parametrize(("model", "example"), EXAMPLES)
def test_the_schema_takes_each_message(model: type[Message], example: dict[str, Any]) -> None:
    schema = wire_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(example, schema)
    jsonschema.validate(read_message(example, model).to_object(), schema)


ANSWER = {"type": "answer", "id": "a", "values": [1.5]}
WRONG = [
    ({"values": [True]}, r"whose values\[0\] is true; it should be a number, not true or false"),
    ({"values": ["1.5"]}, r"whose values\[0\] is '1.5'; it should be a number; write 1.5 without"),
    ({"values": [1e999]}, r"whose values\[0\] is Infinity; it should be a finite number"),
    ({"values": [10**400]}, r"whose values\[0\] is 1000"),
    ({"values": []}, "whose values is .*; it should not be empty"),
    ({"values": 1.5}, "whose values is 1.5; it should be a list"),
    ({"values": None}, "whose values is null; it should be a list"),
    ({"std": 0.1}, "with an unknown field 'std': did you mean 'stds'"),
    ({"stds": -0.1}, "whose stds is -0.1; it should be greater than or equal to 0"),
    ({"stds": [0.1, 0.2]}, "in which 1 values have 2 stds"),
    ({"stds": [None]}, "in which a std is null where there is a value"),
    ({"id": 7}, "whose id is 7; it should be a valid string"),
    ({"measured_at": "noon"}, "whose measured_at is 'noon'; it should be a number"),
    ({"notes": {"a b": 1.0}}, r"whose notes\['a b'\] is 'a b'; it should be a name"),
    ({"notes": {"rssi": "weak"}}, r"whose notes\['rssi'\] is 'weak'; it should be a number"),
    ({"absent": 3}, "whose absent is 3; it should be a valid string"),
    ({"sparq": 2}, "speaks version 2 of the wire format; here it is version 1"),
    ({"sparq": True}, "speaks version true of the wire format"),
    ({"type": "ask"}, "sent a message of type 'ask'; expected answer or failure"),
    ({"type": ["answer"]}, "sent a message of type .*; expected answer or failure"),
]


@pytest.mark.parametrize(("change", "told"), WRONG)
def test_a_wrong_answer_is_refused_with_its_reason(change: dict[str, Any], told: str) -> None:
    with pytest.raises(PeerError, match=told):
        read_message(ANSWER | change, AnswerMessage, FailureMessage)


@pytest.mark.parametrize("field", ["type", "id", "values"])
def test_an_answer_needs_its_type_its_id_and_its_values(field: str) -> None:
    with pytest.raises(PeerError, match=f"without {field}|no type"):
        read_message({key: value for key, value in ANSWER.items() if key != field}, AnswerMessage)


def test_a_field_that_is_missing_may_have_a_wrong_name() -> None:
    wrong = {"type": "answer", "id": "a", "value": [1.0]}
    with pytest.raises(PeerError, match="with an unknown field 'value': did you mean 'values'"):
        read_message(wrong, AnswerMessage)
    with pytest.raises(PeerError, match="without values"):
        read_message({"type": "answer", "id": "a", "x": [1.0]}, AnswerMessage)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"points": [[0.2], [0.3, 0.4]]}, "each point needs 1 coordinates"),
        ({"points": []}, "it should not be empty"),
        ({"values": [1.0, 2.0]}, "1 points have 2 values"),
        ({"names": ["x", "y"]}, "each point needs 2 coordinates, one for each name"),
    ],
)
def test_a_reading_has_one_value_for_each_point(change: dict[str, Any], told: str) -> None:
    reading = {"type": "reading", "points": [[0.2]], "values": [1.0]}
    with pytest.raises(PeerError, match=told):
        read_message(reading | change, ReadingMessage)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"hello", "sent no JSON: 'hello'"),
        (b"", "sent no JSON: ''"),
        (b'{"id": ', "sent no JSON"),
        (b"\xff\xfe", "sent what is not text in UTF-8"),
        (b"[1]", "sent JSON that is no object"),
        (b'{"a": NaN}', "sent JSON with NaN, which is no number of JSON"),
        (b'{"a": -Infinity}', "sent JSON with -Infinity"),
        (b'{"a": 1, "a": 2}', "sent JSON with a key twice"),
        (b"[" * 100_000, "sent JSON that is nested too deeply"),
        (b'{"a": %s}' % (b"1" * 5000), "sent JSON with Exceeds the limit"),
    ],
)
def test_what_is_no_json_object_is_refused_with_its_reason(data: bytes, told: str) -> None:
    with pytest.raises(PeerError, match=told) as caught:
        decode(data)
    assert len(str(caught.value)) < 200


@given(st.binary(max_size=300))
def test_any_bytes_are_an_object_or_a_peer_error(data: bytes) -> None:
    with suppress(PeerError):
        assert isinstance(decode(data), dict)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*ANSWER, "stds", "notes", "sparq", "x"]), json_values))
def test_any_object_is_an_answer_or_a_peer_error(change: dict[str, Any]) -> None:
    with suppress(PeerError):
        json.dumps(read_message(ANSWER | change, AnswerMessage).to_object(), allow_nan=False)


@given(st.text() | st.binary() | json_values)
def test_what_is_shown_is_short_and_visible(given_value: Any) -> None:
    shown = show(given_value)
    assert len(shown) <= SHOWN
    assert not {"\x1b", "\n", "\u202e"} & {*shown}
