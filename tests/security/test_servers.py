"""Attacks on servers: strangers, pages in a browser, and clients that are slow, large or many."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import httpx
import pytest

from sparq_sim.errors import SparqError
from sparq_sim.messages import Estimate
from sparq_sim.remote.serve import http, responder
from sparq_sim.remote.serve.http import serve_http
from sparq_sim.remote.serve.responder import Responder
from sparq_sim.remote.wire import ApplyMessage, AskMessage
from tests.conftest import PATIENCE
from tests.remote.serve.asks import add_up, as_bytes, ask, never

pytestmark = pytest.mark.asyncio


async def post(url: str, **more: Any) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as asking:
        return await asking.post(url, json=ask(), **more)


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", httpx.URL(url).port)


async def test_other_machines_are_not_answered_without_a_token() -> None:
    with pytest.raises(SparqError, match="needs a token"):
        async with serve_http(add_up, host="0.0.0.0"):
            pass


async def test_a_server_listens_on_loopback_unless_told_otherwise() -> None:
    async with serve_http(add_up, token="t") as url:
        port = httpx.URL(url).port
        others = {
            each[4][0] for each in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)
        } - {"127.0.0.1", "127.0.1.1"}
        for address in others:
            with socket.socket() as stranger, pytest.raises(OSError, match="refused"):
                stranger.connect((address, port))
        assert (await post(url)).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Host": ""},
    ],
)
async def test_without_a_token_no_page_in_a_browser_is_answered(headers: dict[str, str]) -> None:
    async with serve_http(add_up) as url:
        assert (await post(url, headers=headers)).status_code == 403
        assert (await post(url)).status_code == 200


@pytest.mark.parametrize("begun", [b"", b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
async def test_a_client_that_sends_no_request_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(http, "ARRIVAL", 0.3)
    async with serve_http(add_up, token="t") as url:
        reader, writer = await connect(url)
        writer.write(begun)
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionError):
                while await _drip(reader, writer):
                    pass
        writer.close()
        assert (await post(url, headers={"Authorization": "Bearer t"})).status_code == 200


async def _drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send a byte more of the head, as slow clients do; return whether one is still listened to."""
    writer.write(b"x")
    await writer.drain()
    try:
        async with asyncio.timeout(0.02):
            return bool(await reader.read(1))
    except TimeoutError:
        return True


async def test_a_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ARRIVAL", 0.1)
    async with serve_http(add_up) as url:
        reader, writer = await connect(url)
        writer.write(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n{")
        async with asyncio.timeout(PATIENCE):
            assert b" 408 " in await reader.readline()
        writer.close()


async def test_connections_beyond_the_limit_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_CONNECTIONS", 8)
    async with serve_http(add_up, token="t") as url, AsyncExitStack() as stack:
        held = [await connect(url) for _ in range(8)]
        for _, writer in held:
            stack.callback(writer.close)
        reader, writer = await connect(url)
        stack.callback(writer.close)
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionError):  # Cut off, which is as good.
                assert await reader.read(1) == b""


async def test_a_head_without_end_is_refused() -> None:
    async with serve_http(add_up, token="t") as url:
        reader, writer = await connect(url)
        writer.write(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 200_000)
        async with asyncio.timeout(PATIENCE):
            assert b" 400 " in await reader.readline()
        writer.close()


async def test_a_stranger_does_not_get_to_send_a_body() -> None:
    """The token is looked at before anything else is read."""
    async with serve_http(add_up, token="t") as url:
        reader, writer = await connect(url)
        writer.write(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999999999\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            assert b" 401 " in await reader.readline()
        writer.close()


async def test_questions_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responder, "MOST_OPEN", 3)
    async with Responder(never) as responding:
        asked = [
            asyncio.create_task(responding.respond(as_bytes(key=str(i)), within=PATIENCE))
            for i in range(3)
        ]
        await asyncio.sleep(0)
        refused = await responding.respond(as_bytes(key="more"), within=PATIENCE)
        assert refused.is_refusal
        assert "3 questions are being answered" in json.loads(refused.payload)["reason"]
        await responding.close()
        await asyncio.gather(*asked)


async def test_answers_that_are_kept_do_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(responder, "REMEMBERED_BYTES", 100_000)

    async def answer(message: AskMessage | ApplyMessage) -> Estimate:
        count = len(message.points)
        return Estimate([0.123456789] * count)  # type: ignore[arg-type] # a list will do

    points: Sequence[Sequence[float]] = [[0.5]] * 1000
    async with Responder(answer) as responding:
        for i in range(50):
            await responding.respond(as_bytes(key=str(i), points=points))
        kept = sum(asked.size for asked in responding._asked.values())
        again = await responding.respond(as_bytes(key="49", points=points))
    assert 0 < kept <= 100_000
    assert json.loads(again.payload)["type"] == "answer"
