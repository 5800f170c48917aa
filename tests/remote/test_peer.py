from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from sparq_sim.errors import PeerError
from sparq_sim.remote.peer import MOST_READINGS, Exchanges, check_reply
from sparq_sim.remote.secrets import HIDDEN
from sparq_sim.remote.wire import encode

pytestmark = pytest.mark.asyncio


async def send(message: Mapping[str, Any]) -> None:
    """Send nothing."""


def ask(exchanges: Exchanges, key: str) -> asyncio.Task[Mapping[str, Any]]:
    return asyncio.create_task(exchanges.run({"id": key}, send))


def answer(key: str, value: float = 1.0) -> bytes:
    return encode({"type": "answer", "id": key, "values": [value]})


async def test_replies_find_their_requests_in_any_order() -> None:
    exchanges = Exchanges(timeout=10.0)
    tasks = [ask(exchanges, key) for key in "abc"]
    await asyncio.sleep(0)
    for key in "cab":
        exchanges.take(answer(key))
    assert [(await task)["id"] for task in tasks] == ["a", "b", "c"]
    assert not len(exchanges)


async def test_a_request_without_a_reply_fails_after_the_timeout() -> None:
    with pytest.raises(PeerError, match=r"^did not reply within 0\.01 s$"):
        await Exchanges(timeout=0.01).run({"id": "a"}, send)


async def test_a_reply_to_another_request_is_dropped_and_told_of() -> None:
    exchanges = Exchanges(timeout=0.05)
    task = ask(exchanges, "a")
    await asyncio.sleep(0)
    exchanges.take(answer("b"))
    with pytest.raises(PeerError, match="it sent a reply to another request, of id 'b'"):
        await task
    assert exchanges.dropped == {"a reply to no request under way": 1}


async def test_a_reply_to_a_request_that_was_cancelled_is_dropped() -> None:
    exchanges = Exchanges(timeout=10.0)
    task = ask(exchanges, "a")
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    exchanges.take(answer("a"))
    assert sum(exchanges.dropped.values()) == 1
    assert not len(exchanges)


async def test_what_nobody_can_attribute_fails_all_that_is_under_way() -> None:
    exchanges = Exchanges(timeout=10.0)
    tasks = [ask(exchanges, key) for key in "ab"]
    await asyncio.sleep(0)
    exchanges.take(b"loading...")
    for task in tasks:
        with pytest.raises(PeerError, match=r"^sent no JSON: 'loading\.\.\.'$"):
            await task


async def test_a_reply_to_a_request_sent_twice_is_for_both() -> None:
    exchanges = Exchanges(timeout=10.0)
    tasks = [ask(exchanges, "a"), ask(exchanges, "a")]
    await asyncio.sleep(0)
    exchanges.take(answer("a", 2.0))
    assert [(await task)["values"] for task in tasks] == [[2.0], [2.0]]


async def test_later_puts_the_timeout_off() -> None:
    exchanges = Exchanges(timeout=0.05)
    task = ask(exchanges, "a")
    await asyncio.sleep(0)
    exchanges.take(encode({"type": "later", "id": "a", "seconds": 30.0}))
    await asyncio.sleep(0.1)
    exchanges.take(answer("a"))
    assert (await task)["type"] == "answer"


async def test_later_in_a_wrong_form_is_a_reply_like_any_other() -> None:
    exchanges = Exchanges(timeout=10.0)
    task = ask(exchanges, "a")
    await asyncio.sleep(0)
    exchanges.take(encode({"type": "later", "id": "a", "seconds": "soon"}))
    assert (await task)["seconds"] == "soon"


async def test_the_oldest_of_too_many_readings_is_dropped() -> None:
    exchanges = Exchanges(timeout=10.0)
    for number in range(MOST_READINGS + 1):
        exchanges.take(encode({"type": "reading", "points": [[number]], "values": [0.0]}))
    async for reading in exchanges.readings():
        assert reading["points"] == [[1]]
        break
    assert exchanges.dropped == {"a reading that nobody took in time": 1}


async def test_a_reading_with_an_id_that_came_before_is_dropped() -> None:
    exchanges = Exchanges(timeout=10.0)
    for key in ("a", "a", "b", None, None):
        exchanges.take(encode({"type": "reading", "id": key, "points": [[0]], "values": [0.0]}))
    readings = exchanges.readings()
    assert [(await anext(readings))["id"] for _ in range(4)] == ["a", "b", None, None]
    assert exchanges.dropped == {"a reading that came twice": 1}


async def test_no_error_and_no_reply_shows_a_secret() -> None:
    exchanges = Exchanges(timeout=10.0, secrets=["s3cret"])
    tasks = [ask(exchanges, key) for key in "ab"]
    await asyncio.sleep(0)
    exchanges.take(encode({"type": "failure", "id": "a", "reason": "no such token: s3cret"}))
    assert (await tasks[0])["reason"] == f"no such token: {HIDDEN}"
    exchanges.take(b"s3cret is no token")
    with pytest.raises(PeerError) as caught:
        await tasks[1]
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("reply", [{}, {"id": "b"}, {"id": None}, {"id": ["a"]}])
async def test_a_reply_must_have_the_id_of_its_request(reply: Mapping[str, Any]) -> None:
    with pytest.raises(PeerError, match=r"without an id|to another request"):
        check_reply(reply, "a")
