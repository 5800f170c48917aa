"""A web service may do anything: each exchange ends with a reply, or with the reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sparq_sim.errors import PeerError, SparqError
from sparq_sim.remote.http import HttpAddress
from sparq_sim.remote.secrets import HIDDEN
from sparq_sim.remote.wire import encode
from tests.remote import web
from tests.remote.web import Handler, raw, reply, response, serve

pytestmark = pytest.mark.asyncio

ASK = {
    "sparq": 1,
    "type": "ask",
    "id": "play/lab/1/0",
    "source": "lab",
    "names": ["x"],
    "points": [[0.25]],
    "asked_at": 1.7e9,
    "play_time": 3.0,
    "unit": 1.0,
}
ANSWER = {"type": "answer", "id": ASK["id"], "values": [0.5]}


async def exchange(handle: Handler, **fields: Any) -> Mapping[str, Any]:
    async with serve(handle) as served:
        address = HttpAddress(url=served.url, **({"timeout": 10.0} | fields))
        async with address.open() as peer:
            return await peer.exchange(ASK)


async def failure(handle: Handler, **fields: Any) -> str:
    with pytest.raises(PeerError) as caught:
        await exchange(handle, **fields)
    return str(caught.value)


async def test_a_request_is_posted_as_json_and_its_reply_returned() -> None:
    async with serve(reply(web.answer)) as served:
        async with HttpAddress(url=served.url, headers={"X-Lab": "north"}).open() as peer:
            assert await peer.exchange(ASK) == ANSWER
        (request,) = served.requests
        assert request.message == ASK
        assert request.headers["content-type"] == "application/json"
        assert request.headers["idempotency-key"] == ASK["id"]
        assert request.headers["x-lab"] == "north"
        assert "authorization" not in request.headers


async def test_many_requests_are_under_way_at_once() -> None:
    everybody = asyncio.Barrier(64)

    async def handle(request: web.Request, writer: asyncio.StreamWriter) -> None:
        await everybody.wait()
        writer.write(response(encode(web.answer(request.message))))

    async with (
        serve(handle) as served,
        HttpAddress(url=served.url).open() as peer,
        asyncio.TaskGroup() as group,
    ):
        asks = [ASK | {"id": str(number), "points": [[number]]} for number in range(64)]
        tasks = [group.create_task(peer.exchange(ask)) for ask in asks]
        replies = await asyncio.gather(*tasks)
    assert [each["values"] for each in replies] == [[2.0 * number] for number in range(64)]


async def test_an_answer_that_is_not_ready_is_collected_later() -> None:
    def answer_at_the_third_time(message: dict[str, Any]) -> dict[str, Any]:
        seen.append(message)
        later = {"type": "later", "id": message["id"], "seconds": 0.01}
        return later if len(seen) < 3 else ANSWER

    seen: list[dict[str, Any]] = []
    assert await exchange(reply(answer_at_the_third_time)) == ANSWER
    collect = {"sparq": 1, "type": "collect", "id": ASK["id"]}
    assert seen == [ASK, collect, collect]


async def test_a_source_may_have_any_name() -> None:
    key = "play/Messgerät 7/1/0"
    async with serve(reply(web.answer)) as served:
        async with HttpAddress(url=served.url).open() as peer:
            assert (await peer.exchange(ASK | {"id": key}))["id"] == key
        assert served.requests[0].headers["idempotency-key"] == "play/Messger%C3%A4t%207/1/0"


# Misbehaviours


async def test_a_reply_that_is_no_json_is_told_of() -> None:
    told = await failure(raw(response(b"<html>Welcome</html>")))
    assert told == "sent no JSON: '<html>Welcome</html>'"


async def test_a_reply_with_nan_is_told_of() -> None:
    body = json.dumps(ANSWER | {"values": [float("nan")]}).encode()
    assert (await failure(raw(response(body)))).startswith("sent JSON with NaN, which is no number")


async def test_a_reply_that_is_too_large_is_not_read_to_its_end() -> None:
    sent = 0

    async def handle(request: web.Request, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            writer.write(b" " * 100_000)
            await writer.drain()
            sent += 100_000

    told = await failure(handle, largest=1000)
    assert told == "sent more than 1000 bytes; see the field largest"
    assert sent < 50_000_000  # What sockets and buffers hold, far from all of it.


async def test_a_slow_service_is_given_up_after_the_timeout() -> None:
    async def handle(request: web.Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60.0)

    assert await failure(handle, timeout=0.1) == "did not reply within 0.1 s"


async def test_a_slow_drip_does_not_prolong_the_timeout() -> None:
    async def handle(request: web.Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    assert await failure(handle, timeout=0.2) == "did not reply within 0.2 s"


async def test_a_reply_to_another_request_is_told_of() -> None:
    told = await failure(raw(response(encode(ANSWER | {"id": "other"}))))
    assert told == "sent a reply to another request, of id 'other'"


async def test_a_connection_that_closes_midway_is_told_of() -> None:
    half = response(encode(ANSWER))[:-5]
    told = await failure(raw(half, then_close=True))
    assert told.startswith("broke off: peer closed connection without sending complete message")


async def test_a_connection_that_closes_before_the_reply_is_told_of() -> None:
    told = await failure(raw(b"", then_close=True))
    assert told == "broke off: Server disconnected without sending a response."


async def test_what_is_no_http_is_told_of() -> None:
    told = await failure(raw(b"220 ready\r\n\r\n", then_close=True))
    assert told.startswith("broke off: illegal status line")


@pytest.mark.parametrize(
    ("body", "shown"), [(b"", ""), (b"no such lab", ": 'no such lab'"), (b"x" * 10_000, None)]
)
async def test_a_status_of_error_is_told_of_with_the_start_of_the_body(
    body: bytes, shown: str | None
) -> None:
    told = await failure(raw(response(body, "503 Service Unavailable")))
    assert told.startswith("replied with HTTP status 503 Service Unavailable")
    assert len(told) < 140
    assert shown is None or told.endswith(f"Unavailable{shown}")


async def test_a_redirect_is_not_followed() -> None:
    there = "Location: http://other.example/ask"
    told = await failure(raw(response(b"", "307 Temporary Redirect", there)))
    assert told.endswith("a redirect to 'http://other.example/ask', which is not followed")


async def test_a_compressed_reply_is_refused() -> None:
    told = await failure(raw(response(b"\x1f\x8b", "200 OK", "Content-Encoding: gzip")))
    assert told == "sent a compressed body ('gzip'), which it was told not to"


async def test_a_service_that_is_not_there_is_told_of() -> None:
    async with serve(reply(web.answer)) as served:
        url = served.url
    async with HttpAddress(url=url).open() as peer:
        with pytest.raises(PeerError, match=r"^cannot be reached: "):
            await peer.exchange(ASK)


async def test_a_later_in_a_wrong_form_is_told_of() -> None:
    told = await failure(reply(lambda ask: {"type": "later", "id": ask["id"], "seconds": -1}))
    assert told.startswith("sent a later whose seconds is -1")


async def test_an_exchange_that_is_cancelled_leaves_the_peer_usable() -> None:
    asked, proceed = asyncio.Event(), asyncio.Event()

    async def handle(request: web.Request, writer: asyncio.StreamWriter) -> None:
        if not asked.is_set():
            asked.set()
            await proceed.wait()
        writer.write(response(encode(web.answer(request.message))))

    async with serve(handle) as served, HttpAddress(url=served.url).open() as peer:
        task = asyncio.create_task(peer.exchange(ASK))
        await asked.wait()
        task.cancel()
        await asyncio.wait([task])
        proceed.set()
        assert await peer.exchange(ASK) == ANSWER


# Secrets and addresses


async def test_a_token_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TOKEN", "s3cret")
    monkeypatch.setenv("LAB_KEY", "0ther")
    secrets = {"token_env": "LAB_TOKEN", "headers_env": {"X-Key": "LAB_KEY"}}
    async with serve(
        raw(response(b"bad token s3cret and key 0ther", "401 Unauthorized"))
    ) as served:
        address = HttpAddress(url=served.url, **secrets)
        async with address.open() as peer:
            with pytest.raises(PeerError) as caught:
                await peer.exchange(ASK)
    assert served.requests[0].headers["authorization"] == "Bearer s3cret"
    assert served.requests[0].headers["x-key"] == "0ther"
    assert str(caught.value).endswith(f"'bad token {HIDDEN} and key {HIDDEN}'")
    assert "s3cret" not in repr(address) + repr(peer) + address.model_dump_json()

    failed = {"type": "failure", "id": ASK["id"], "reason": "not s3cret"}
    assert (await exchange(reply(lambda _: failed), **secrets))["reason"] == f"not {HIDDEN}"


@pytest.mark.parametrize("status", ["401 No", "200 OK"])
@pytest.mark.parametrize(
    "body",
    [
        b"Error 401: access denied to /v1/ask for Bearer sk-live-0123456789abcdefghijklmnopqrstuv",
        b"sk-live-0123456789abcdefghijklmnopqrstuv" * 9,
        b'{"id": "denied to all that come with the long token sk-live-0123456789abcdefghijkl'
        b'mnopqrstuv"}',
        b'{"type": "later", "id": "play/lab/1/0", "seconds": ["no: '
        b'sk-live-0123456789abcdefghijklmnopqrstuv"]}',
    ],
)
async def test_a_token_is_hidden_also_where_a_text_is_cut(
    monkeypatch: pytest.MonkeyPatch, status: str, body: bytes
) -> None:
    monkeypatch.setenv("LAB_TOKEN", "sk-live-0123456789abcdefghijklmnopqrstuv")
    told = await failure(raw(response(body, status)), token_env="LAB_TOKEN")
    assert "sk-" not in told
    assert HIDDEN[:4] in told


async def test_a_token_that_is_not_set_is_an_error_when_the_door_opens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LAB_TOKEN", raising=False)
    address = HttpAddress(url="https://lab.example/", token_env="LAB_TOKEN")
    with pytest.raises(SparqError, match="LAB_TOKEN is not set"):
        async with address.open():
            raise AssertionError("it opened")


async def test_a_token_that_no_header_can_have_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TOKEN", "schlüssel")
    with pytest.raises(SparqError, match="LAB_TOKEN holds letters that a header cannot") as caught:
        async with HttpAddress(url="https://lab.example/", token_env="LAB_TOKEN").open():
            raise AssertionError("it opened")
    assert "schl" not in str(caught.value)


async def test_a_certificate_that_nobody_vouches_for_is_refused_unless_it_is_given(
    tmp_path: Path,
) -> None:
    tls = web.make_certificate(tmp_path)
    async with serve(reply(web.answer), tls=tls) as served:
        async with HttpAddress(url=served.url).open() as peer:
            with pytest.raises(PeerError, match=r"cannot be reached: .*CERTIFICATE_VERIFY_FAILED"):
                await peer.exchange(ASK)
        async with HttpAddress(url=served.url, ca_file=tmp_path / "cert.pem").open() as peer:
            assert await peer.exchange(ASK) == ANSWER


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"url": "https://me:pw@lab.example/"}, "must not hold a user or password"),
        ({"url": "ftp://lab.example/"}, "must begin with http:// or https://"),
        ({"url": "https://lab.example/a b"}, "must have no spaces"),
        ({"url": "lab.example"}, "must begin with http:// or https://"),
        ({"url": "http://lab.example:99999/"}, "is no URL: Port out of range"),
        ({"url": "http://lab.example/", "token_env": "T"}, "would send secrets unencrypted"),
        ({"url": "http://lab.example/", "headers_env": {"K": "T"}}, "would send secrets"),
        ({"url": "https://lab.example/", "headers": {"X": "a\nb"}}, "must be one line"),
        ({"url": "https://lab.example/", "headers": {"X:": "a"}}, "name 'X:' of a header"),
        ({"url": "https://lab.example/", "client_key": "key.pem"}, "client_key needs client_cert"),
    ],
)
async def test_a_wrong_address_is_refused_when_it_is_written(
    fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValidationError, match=told) as caught:
        HttpAddress(**fields)
    assert ":pw@" not in str(caught.value) + repr(caught.value.errors())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "[::1]"])
async def test_a_token_may_go_unencrypted_to_this_machine(host: str) -> None:
    assert HttpAddress(url=f"http://{host}:8000/", token_env="T").token_env


async def test_a_token_may_go_unencrypted_elsewhere_if_that_is_said() -> None:
    assert HttpAddress(url="http://lab.example/", token_env="T", insecure=True).insecure


async def test_a_file_that_is_no_certificate_is_told_of(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with pytest.raises(SparqError, match=r"certificates in .*ca\.pem cannot be used"):
        async with HttpAddress(url="https://lab.example/", ca_file=file).open():
            raise AssertionError("it opened")


async def test_addresses_can_be_compared_and_hashed() -> None:
    first, second = (HttpAddress(url="https://lab.example/", headers={"A": "b"}) for _ in "ab")
    assert {first} == {second}
