"""Wire: the messages that plays exchange with real things, version 1, written as JSON objects.

One message is one HTTP body, one line of a pipe, or one MQTT payload. docs/wire.md shows them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import Field, StringConstraints, ValidationError, model_validator
from pydantic.json_schema import models_json_schema

from sparq_sim.documents import NestedError, read_json
from sparq_sim.errors import PeerError, did_you_mean, mask_invisible
from sparq_sim.fields import Amount, Positive
from sparq_sim.plugin.model import Model
from sparq_sim.remote.secrets import redact

__all__ = [
    "MESSAGES",
    "SHOWN",
    "WIRE_VERSION",
    "AnswerMessage",
    "ApplyMessage",
    "AskMessage",
    "CollectMessage",
    "FailureMessage",
    "LaterMessage",
    "Message",
    "ReadingMessage",
    "decode",
    "encode",
    "read_message",
    "show",
    "wire_schema",
]

WIRE_VERSION = 1
"""The version of the wire format, which messages have under `sparq`."""
SHOWN = 80
"""How many characters of what came an error shows at most."""

_Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
_Id: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
_Points: TypeAlias = Annotated[
    tuple[Annotated[tuple[_Number, ...], Field(min_length=1)], ...], Field(min_length=1)
]
_NoteName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Message(Model):
    """What all messages have."""

    sparq: Literal[1] = 1
    """The version of the wire format; a message without it is of version 1."""

    def to_object(self) -> dict[str, Any]:
        """Return it as it is written in JSON, without what is not stated."""
        stated = self.model_dump(mode="json", exclude_defaults=True)
        return {"sparq": self.sparq, "type": getattr(self, "type", None), **stated}


class _Request(Message):
    """What asks for the reward at some points."""

    id: _Id
    """Names this request in all the world; the same if it is sent again. The reply has it too."""
    names: tuple[str, ...]
    """The names of the coordinates, in the order in which points have them."""
    points: _Points
    """Where: a list of points, each a list of coordinates."""
    asked_at: _Number
    """When this was asked, in seconds since the Unix epoch."""
    play_time: Amount
    """The same moment in clock units of the play."""
    unit: Positive
    """How many seconds a clock unit lasts."""
    reply_to: str | None = None
    """The MQTT topic to which the reply is to be published; MQTT 5 also has it as a property."""

    @model_validator(mode="after")
    def _has_even_rows(self) -> Self:
        _check_rows(self.points, self.names)
        return self


class AskMessage(_Request):
    """Asks a source for what it knows of the reward at some points."""

    type: Literal["ask"] = "ask"
    """What the message is."""
    source: str
    """The name of the source in the play, such as "lab"."""


class ApplyMessage(_Request):
    """Brings a system to a point, and asks for the reward that it then has."""

    type: Literal["apply"] = "apply"
    """What the message is."""


class CollectMessage(Message):
    """Asks again, over HTTP, for an answer that was not ready before."""

    type: Literal["collect"] = "collect"
    """What the message is."""
    id: _Id
    """That of the request."""


class AnswerMessage(Message):
    """The reply that has values, one for each point."""

    type: Literal["answer"] = "answer"
    """What the message is."""
    id: _Id
    """That of the request."""
    values: Annotated[tuple[_Number | None, ...], Field(min_length=1)]
    """The reward at each point; null where nothing is known."""
    stds: Amount | tuple[Amount | None, ...] = 0.0
    """How uncertain the values are, in reward units: one number for all, or one for each."""
    measured_at: _Number | None = None
    """When it was measured, in seconds since the Unix epoch; by default, when the reply came."""
    notes: Annotated[dict[_NoteName, _Number], Field(max_length=64)] = Field(default_factory=dict)
    """Numbers for the trace: `name` becomes the column `note_name`."""
    absent: str = ""
    """Why values are null."""

    @model_validator(mode="after")
    def _has_a_std_for_each(self) -> Self:
        _check_stds(self.values, self.stds)
        return self


class FailureMessage(Message):
    """The reply of a source that knows nothing of the whole request."""

    type: Literal["failure"] = "failure"
    """What the message is."""
    id: _Id
    """That of the request."""
    reason: str
    """Why nothing is known."""


class LaterMessage(Message):
    """The reply of a source that is still at work.

    Over HTTP the asker sends a `collect` after that time. Over pipes and MQTT the answer comes by
    itself, and the timeout counts from then.
    """

    type: Literal["later"] = "later"
    """What the message is."""
    id: _Id
    """That of the request."""
    seconds: Positive
    """When to ask again, in seconds from now."""


class ReadingMessage(Message):
    """A reading that nobody asked for, from a program or over MQTT."""

    type: Literal["reading"] = "reading"
    """What the message is."""
    id: _Id | None = None
    """Names this reading in all the world, so that one that is delivered twice counts once."""
    names: tuple[str, ...] | None = None
    """The names of the coordinates, if they are in another order than the play has them."""
    points: _Points
    """Where it was measured: a list of points, each a list of coordinates."""
    values: Annotated[tuple[_Number, ...], Field(min_length=1)]
    """The reward at each point."""
    stds: Amount | tuple[Amount, ...] = 0.0
    """How uncertain the values are, in reward units: one number for all, or one for each."""
    measured_at: _Number | None = None
    """When it was measured, in seconds since the Unix epoch; by default, when it came."""

    @model_validator(mode="after")
    def _has_a_value_for_each(self) -> Self:
        _check_rows(self.points, self.names)
        if len(self.values) != len(self.points):
            raise ValueError(f"{len(self.points)} points have {len(self.values)} values")
        _check_stds(self.values, self.stds)
        return self


def _check_rows(points: tuple[tuple[float, ...], ...], names: tuple[str, ...] | None) -> None:
    count = len(points[0]) if names is None else len(names)
    if any(len(point) != count for point in points):
        raise ValueError(f"each point needs {count} coordinates, one for each name")


def _check_stds(values: tuple[float | None, ...], stds: float | tuple[float | None, ...]) -> None:
    if isinstance(stds, tuple):
        if len(stds) != len(values):
            raise ValueError(f"{len(values)} values have {len(stds)} stds")
        if any(s is None and v is not None for s, v in zip(stds, values, strict=True)):
            raise ValueError("a std is null where there is a value")


MESSAGES: tuple[type[Message], ...] = (
    AskMessage,
    ApplyMessage,
    CollectMessage,
    AnswerMessage,
    FailureMessage,
    LaterMessage,
    ReadingMessage,
)
"""The classes of all messages."""
_BY_TYPE: Mapping[str, type[Message]] = {
    each.model_fields["type"].default: each for each in MESSAGES
}

M = TypeVar("M", bound=Message)


# From bytes to messages and back


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as JSON in UTF-8, on one line and without a line break at its end.

    Args:
        message: What is sent; all its numbers are finite.

    Raises:
        ValueError: A number is not finite.
    """
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()


def decode(data: bytes, secrets: Iterable[str] = ()) -> dict[str, Any]:
    """Return the JSON object that some bytes hold.

    Args:
        data: What came, in UTF-8.
        secrets: What must not be seen in errors; what is returned may hold it.

    Raises:
        PeerError: It is no JSON object, has a key twice, or has NaN or Infinity.
    """
    try:
        found = read_json(data.decode("utf-8"), strict=True)
    except UnicodeDecodeError:
        raise PeerError(f"sent what is not text in UTF-8: {show(data, secrets)}") from None
    except json.JSONDecodeError:
        raise PeerError(f"sent no JSON: {show(data, secrets)}") from None
    except NestedError:
        shown = show(data, secrets)
        raise PeerError(f"sent JSON that is nested too deeply: {shown}") from None
    except ValueError as error:  # Of the two hooks, or a whole number of thousands of digits.
        raise PeerError(f"sent JSON with {error!s:.60}: {show(data, secrets)}") from None
    if not isinstance(found, dict):
        raise PeerError(f"sent JSON that is no object: {show(data, secrets)}")
    return found


def show(given: object, secrets: Iterable[str] = ()) -> str:
    """Return what came as text for an error message, at most `SHOWN` characters of it.

    Args:
        given: Bytes, or what they hold.
        secrets: What must not be seen, not even in part.
    """
    if isinstance(given, bytes | bytearray):
        given = given.decode("utf-8", "replace")
    if isinstance(given, str):
        text = repr(redact(given, secrets)[: 2 * SHOWN])
    else:
        text = redact(json.dumps(given, default=repr), secrets)
    text = mask_invisible(text)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def read_message(message: Mapping[str, Any], *expected: type[M]) -> M:
    """Return a message as an object of its class, after checking all of it.

    Args:
        message: The JSON object that came.
        expected: The classes of messages that may come here.

    Raises:
        PeerError: It is another message, of another version, or a field is missing, unknown or
            wrong.
    """
    version = message.get("sparq", WIRE_VERSION)
    if isinstance(version, bool) or version != WIRE_VERSION:
        raise PeerError(
            f"speaks version {show(version)} of the wire format; here it is version {WIRE_VERSION}"
        )
    wanted = {name: each for name, each in _BY_TYPE.items() if each in expected}
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in wanted:
        told = "no type" if "type" not in message else f"type {show(kind)}"
        raise PeerError(f"sent a message of {told}; expected {' or '.join(wanted)}")
    try:
        return wanted[kind].model_validate(message)
    except ValidationError as error:
        raise PeerError(f"sent {_article(kind)} {_explain(error, wanted[kind])}") from None


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "ao" else f"a {kind}"


def _explain(error: ValidationError, model: type[Message]) -> str:
    """Return what is wrong first, as "whose values[1] is 'warm': it should be a number"."""
    wrong = error.errors(include_url=False)
    first = wrong[0]
    if first["type"] == "missing":  # It may be there under a wrong name.
        unknown = (each for each in wrong if each["type"] == "extra_forbidden")
        alike = (e for e in unknown if get_close_matches(str(e["loc"][0]), [str(first["loc"][0])]))
        first = next(alike, first)
    field, *rest = first["loc"] or ("",)
    where = f"{field}" + "".join(f"[{each}]" for each in rest if isinstance(each, int))
    if field == "notes" and rest:
        where = f"notes[{show(rest[0])}]"
    given: Any = first["input"]
    match first["type"]:
        case "missing":
            return f"without {where}"
        case "extra_forbidden":
            known = model.model_fields
            return f"with an unknown field {show(field)}: {did_you_mean(str(field), known)}"
        case "value_error":
            return f"in which {first['ctx']['error']}"
        case "tuple_type":
            reason = "should be a list"
        case "too_short":
            reason = "should not be empty"
        case "string_pattern_mismatch":
            reason = "should be a name of letters, digits and underscores"
        case _:
            reason = first["msg"].removeprefix("Input ").replace("String should", "should")
    return f"whose {where} is {show(given)}; it {reason}"


# The schema


def wire_schema() -> dict[str, Any]:
    """Return the JSON Schema of all messages: a message is one of the `$defs`, by its `type`."""
    keys, whole = models_json_schema(
        [(each, "validation") for each in MESSAGES], ref_template="#/$defs/{model}"
    )
    definitions = whole["$defs"]
    for each in MESSAGES:
        definition = definitions[each.__name__]
        definition["required"] = sorted({*definition.get("required", ()), "type"})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Messages between sparq-sim and real things, version 1",
        "oneOf": [keys[each, "validation"] for each in MESSAGES],
        "$defs": definitions,
    }
