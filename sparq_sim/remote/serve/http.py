"""An HTTP server for what answers questions: one message is the body of one POST."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias

from sparq_sim.errors import SparqError
from sparq_sim.remote.secrets import is_loopback
from sparq_sim.remote.serve.responder import Answerer, Responder
from sparq_sim.remote.wire import encode

__all__ = ["MOST_CONNECTIONS", "make_app", "serve_http"]

PATIENCE = 10.0
"""Seconds that an asker waits for an answer; then a reply says when to collect it."""
ARRIVAL = 30.0
"""Seconds that the head of a request, and its body, may take to arrive."""
MOST_CONNECTIONS = 256
"""How many connections are kept open at once; further ones are closed."""

_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[_Scope, _Receive, _Send], Awaitable[None]]
"""An ASGI application."""


def make_app(responder: Responder, *, token: str = "") -> App:
    """Return an ASGI application that answers each POST, whatever its path.

    A reply has the status 200, also if it is a failure; 400 if the message is wrong, 401 without
    the token, 403 for what a web page sends where there is no token, 405 for another method, 408
    for a message that does not arrive, and 413 for one that is too large.

    Args:
        responder: What answers.
        token: What askers must have as `Authorization: Bearer ...`; empty for nothing, but then
            only programs of this machine are answered, and no pages in its browsers.
    """
    expected = f"Bearer {token}".encode()

    async def app(scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        if token and not hmac.compare_digest(headers.get(b"authorization", b""), expected):
            await _reply(send, 401, _fail("a bearer token is needed, and this is another or none"))
        elif not (token or _is_local(headers)):
            await _reply(send, 403, _fail("without a token, only programs here are answered"))
        elif scope["method"] != "POST":
            await _reply(send, 405, _fail(f"{scope['method']} is not answered; POST a message"))
        else:
            await _answer(responder, receive, send)

    return app


def _is_local(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request is from a program of this machine, and not from a web page.

    A page names itself under `Origin`; or, where its name server points here, another host.
    """
    host = headers.get(b"host", b"").decode("latin-1")
    name = host[: host.rindex(":")] if ":" in host.rpartition("]")[2] else host
    return b"origin" not in headers and is_loopback(name.strip("[]").lower())


async def _answer(responder: Responder, receive: _Receive, send: _Send) -> None:
    try:
        async with asyncio.timeout(ARRIVAL):
            body = await _read(receive, responder.largest)
    except TimeoutError:
        await _reply(send, 408, _fail(f"the message did not arrive within {ARRIVAL:g} s"))
        return
    if body is None:
        await _reply(send, 413, _fail(f"at most {responder.largest} bytes are read"))
        return
    response = await responder.respond(body, within=PATIENCE)
    await _reply(send, 400 if response.is_refusal else 200, response.payload)


async def _read(receive: _Receive, largest: int) -> bytes | None:
    """Return the body of a request; None if it is too large or cut off."""
    body = bytearray()
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return bytes(body)
        body += event.get("body", b"")
        if len(body) > largest:
            return None
        if not event.get("more_body", False):
            return bytes(body)


async def _reply(send: _Send, status: int, payload: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(payload))]
    if status in (401, 403, 408, 413):
        headers.append((b"connection", b"close"))  # What is left of the body is not read.
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": payload})


def _fail(reason: str) -> bytes:
    return encode({"sparq": 1, "type": "failure", "reason": reason})


@asynccontextmanager
async def serve_http(
    answer: Answerer,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str = "",
    largest: int = 1_000_000,
) -> AsyncIterator[str]:
    """Serve over HTTP during the `async with` block.

    Args:
        answer: Who answers.
        host: The address to listen on; by default only this machine is answered.
        port: The port to listen on; 0 for any free one.
        token: What askers must have as `Authorization: Bearer ...`; empty for nothing, where only
            programs of this machine are answered.
        largest: The largest message that is read, in bytes.

    Yields:
        The URL to which messages are posted.

    Raises:
        SparqError: The port cannot be had, the library uvicorn is not installed, or other machines
            are to be answered without a token.
    """
    if not (token or is_loopback(host)):
        raise SparqError(
            f"host {host!r} answers other machines, which needs a token that askers must have"
        )
    try:
        import uvicorn
    except ImportError as error:
        raise SparqError(
            f"HTTP needs the library uvicorn ({error}): pip install 'sparq-sim[live]'"
        ) from error

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Leave signals to whoever serves."""
            yield

    with _listen(host, port) as listening:
        async with Responder(answer, largest=largest) as responder:
            config = uvicorn.Config(
                make_app(responder, token=token),
                http=_make_protocol(),
                log_config=None,
                log_level="critical",
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=1,
            )
            server = Server(config)
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                while not server.started and not serving.done():
                    await asyncio.sleep(0.005)
                shown = f"[{host}]" if ":" in host else host
                yield f"http://{shown}:{listening.getsockname()[1]}/"
            finally:
                await responder.close()
                server.should_exit = True
                await serving


def _make_protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP with limits for clients that are slow or many."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        """Closes a connection on which no head of a request arrives in time."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn does
            super().connection_made(transport)
            self._deadline: asyncio.TimerHandle | None = None
            if len(self.connections) > MOST_CONNECTIONS:
                transport.abort()
            else:
                self._set_deadline()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._set_deadline()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self._deadline is not None:
                self._deadline.cancel()

        def _set_deadline(self) -> None:
            """Let a head that has begun to arrive go on to its deadline, and one that is there."""
            cycle: Any = self.cycle  # None until a first request is there, though typed otherwise.
            is_waiting = cycle is None or cycle.response_complete
            if is_waiting and self._deadline is None:
                self._deadline = self.loop.call_later(ARRIVAL, self.transport.abort)
            elif not is_waiting and self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return Patient


@contextmanager
def _listen(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise SparqError(
                f"cannot listen on {host}, port {port}: {error.strerror or error}; choose another "
                "port, or 0 for any free one"
            ) from error
        listening.set_inheritable(True)
        yield listening
