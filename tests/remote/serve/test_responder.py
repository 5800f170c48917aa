from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sparq_sim.errors import PeerError, Unavailable
from sparq_sim.messages import Estimate
from sparq_sim.remote.serve import responder as module
from sparq_sim.remote.serve.responder import Responder
from sparq_sim.remote.wire import AnswerMessage, ApplyMessage, AskMessage, read_message
from tests.remote.serve.asks import add_up, as_bytes, never

pytestmark = pytest.mark.asyncio


class Counting:
    """Answers with how often it was asked, or raises what it is given."""

    def __init__(self, *errors: Exception) -> None:
        self.asked = 0
        self._errors = list(errors)

    async def __call__(self, message: AskMessage | ApplyMessage) -> Estimate:
        self.asked += 1
        await asyncio.sleep(0)
        if self._errors:
            raise self._errors.pop(0)
        return Estimate([float(self.asked)])  # type: ignore[arg-type] # a list will do


async def respond(responder: Responder, data: bytes) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((await responder.respond(data)).payload)
    return told


async def test_an_answer_is_dated_in_seconds_by_the_time_of_the_question() -> None:
    async with Responder(add_up) as responder:
        told = await respond(responder, as_bytes(points=[[0.5], [0.25]]))
    assert told == {
        "sparq": 1,
        "type": "answer",
        "id": "a",
        "values": [0.5, 0.25],
        "stds": [0.1, 0.1],
        "measured_at": 999.0,  # Half a clock unit of two seconds before 1000.
    }
    read_message(told, AnswerMessage)


async def test_what_is_not_known_is_null_with_its_reason() -> None:
    async def answer(message: AskMessage | ApplyMessage) -> Estimate:
        values = [1.0, float("nan")]
        notes = {"rssi": -80.0, "snr": float("nan")}
        return Estimate(values, notes=notes, absent="out of range")  # type: ignore[arg-type]

    async with Responder(answer) as responder:
        told = await respond(responder, as_bytes(points=[[0.5], [0.25]]))
    assert (told["values"], told["absent"]) == ([1.0, None], "out of range")
    assert told["notes"] == {"rssi": -80.0}
    read_message(told, AnswerMessage)


async def test_a_question_that_comes_again_gets_the_same_answer() -> None:
    counting = Counting()
    async with Responder(counting) as responder:
        first, second = await asyncio.gather(*(respond(responder, as_bytes()) for _ in range(2)))
        third = await respond(responder, as_bytes(asked_at=1001.0))
        other = await respond(responder, as_bytes(key="b"))
    assert first == second == third
    assert (first["values"], other["values"], counting.asked) == ([1.0], [2.0], 2)


async def test_a_failure_is_not_kept() -> None:
    async with Responder(Counting(Unavailable("closed"), KeyError("x"))) as responder:
        told = [await respond(responder, as_bytes()) for _ in range(3)]
    assert [each.get("reason", "")[:12] for each in told] == ["closed", "KeyError: 'x", ""]
    assert [each["id"] for each in told] == ["a"] * 3


async def test_an_id_stands_for_one_question_only() -> None:
    async with Responder(Counting()) as responder:
        await respond(responder, as_bytes())
        told = await responder.respond(as_bytes(points=[[0.6]]))
    assert told.is_refusal
    assert b"has used this id for another request" in told.payload


async def test_the_memory_of_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 2)
    counting = Counting()
    async with Responder(counting) as responder:
        for key in "abcca":
            await respond(responder, as_bytes(key=key))
    assert counting.asked == 4


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"hello", "the asker sent no JSON: 'hello'"),
        (as_bytes(points=[]), "whose points is []"),
        (as_bytes(points=[[float("nan")]]), "NaN"),
        (as_bytes(points=[["warm"]]), "points[0][0] is 'warm'"),
        (as_bytes(sparq=2), "speaks version 2"),
        (as_bytes(type="reading"), "a message of type"),
        (as_bytes(unit=0.0), "unit"),
        (b'{"type": "collect", "id": "z"}', "not known here"),
        (b" " * 2000, "sent 2000 bytes; at most 1000 are read"),
    ],
)
async def test_a_wrong_message_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    async with Responder(add_up, largest=1000) as responder:
        told = await responder.respond(data)
    assert told.is_refusal
    message = json.loads(told.payload)
    assert message["type"] == "failure"
    assert reason in message["reason"]


async def test_an_answerer_may_refuse_a_question() -> None:
    async with Responder(Counting(PeerError("sent points outside"))) as responder:
        told = await responder.respond(as_bytes())
    assert told.is_refusal
    assert json.loads(told.payload)["reason"] == "the asker sent points outside"


async def test_an_answer_that_takes_long_is_collected() -> None:
    ready = asyncio.Event()

    async def answer(message: AskMessage | ApplyMessage) -> Estimate:
        await ready.wait()
        return await add_up(message)

    async with Responder(answer) as responder:
        later = await responder.respond(as_bytes(), within=0.0)
        assert later.is_later
        assert json.loads(later.payload)["type"] == "later"
        ready.set()
        told = await respond(responder, b'{"type": "collect", "id": "a"}')
    assert told["values"] == [0.5]


async def test_who_waits_is_told_that_the_server_ends() -> None:
    responder = Responder(never)
    waiting = asyncio.create_task(respond(responder, as_bytes()))
    await asyncio.sleep(0.01)
    await responder.close()
    assert (await waiting)["reason"] == "the server ends"
