from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from sparq_sim.errors import SparqError
from sparq_sim.messages import Estimate
from sparq_sim.remote.http import HttpAddress
from sparq_sim.remote.serve import http
from sparq_sim.remote.serve.http import serve_http
from sparq_sim.remote.wire import ApplyMessage, AskMessage
from tests.conftest import PATIENCE
from tests.remote.serve.asks import add_up, ask, never

pytestmark = pytest.mark.asyncio


def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=PATIENCE)


async def test_a_peer_over_http_is_answered() -> None:
    async with serve_http(add_up) as url, HttpAddress(url=url, timeout=PATIENCE).open() as peer:
        keys = [str(i) for i in range(100)]
        asked = (peer.exchange(ask(key, [[float(key)]])) for key in keys)
        replies = await asyncio.gather(*asked)
    assert [reply["values"] for reply in replies] == [[float(key)] for key in keys]


async def test_a_system_may_be_steered() -> None:
    message = {name: value for name, value in ask(type="apply").items() if name != "source"}
    async with serve_http(add_up) as url, HttpAddress(url=url).open() as peer:
        assert (await peer.exchange(message))["values"] == [0.5]


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        (b"hello", 400, "no JSON"),
        (b'{"type": "ask"}', 400, "without id"),
        (b"x" * 2000, 413, "at most 1000 bytes are read"),
    ],
)
async def test_a_wrong_body_is_refused(content: bytes, status: int, reason: str) -> None:
    async with serve_http(add_up, largest=1000) as url, client() as asking:
        told = await asking.post(url, content=content)
    assert told.status_code == status
    assert told.json()["type"] == "failure"
    assert reason in told.json()["reason"]


async def test_only_posts_are_answered() -> None:
    async with serve_http(add_up) as url, client() as asking:
        told = await asking.get(url)
    assert (told.status_code, told.json()["reason"]) == (
        405,
        "GET is not answered; POST a message",
    )


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Bearer tok", "Basic token", "bearer"])
async def test_without_the_token_nothing_is_answered(header: str) -> None:
    headers = {"Authorization": header} if header else {}
    async with serve_http(add_up, token="token") as url, client() as asking:
        told = await asking.post(url, json=ask(), headers=headers)
        assert told.status_code == 401
        assert "token" not in told.headers
        told = await asking.post(url, json=ask(), headers={"Authorization": "Bearer token"})
        assert told.json()["values"] == [0.5]


async def test_an_answer_that_takes_long_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PATIENCE", 0.05)

    async def slow(message: AskMessage | ApplyMessage) -> Estimate:
        await asyncio.sleep(0.4)
        return await add_up(message)

    async with serve_http(slow) as url, HttpAddress(url=url, timeout=0.35).open() as peer:
        assert (await peer.exchange(ask()))["values"] == [0.5]


async def test_a_server_that_ends_lets_askers_go() -> None:
    async with client() as asking:
        async with serve_http(never) as url:
            waiting = asyncio.create_task(asking.post(url, json=ask()))
            await asyncio.sleep(0.1)
        told: Any = await waiting
    assert told.json()["reason"] == "the server ends"


async def test_an_asker_that_leaves_changes_nothing_for_others() -> None:
    async with serve_http(add_up) as url, client() as asking:
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.split(":")[-1][:-1]))
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await asking.post(url, json=ask())).json()["values"] == [0.5]


async def test_a_port_that_is_taken_is_named() -> None:
    async with serve_http(add_up) as url:
        port = int(url.split(":")[-1][:-1])
        with pytest.raises(SparqError, match=f"cannot listen on 127.0.0.1, port {port}: "):
            async with serve_http(add_up, port=port):
                pass
