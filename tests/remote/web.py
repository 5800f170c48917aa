"""Web servers for tests, on loopback: one that replies as it is told, byte by byte if need be."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from sparq_sim.remote.wire import encode

Handler: TypeAlias = "Callable[[Request, asyncio.StreamWriter], Awaitable[None]]"


@dataclass
class Request:
    """What a server was sent."""

    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Served:
    """A running server, and what it was sent."""

    url: str
    requests: list[Request] = field(default_factory=list)


def response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def reply(function: Callable[[dict[str, Any]], dict[str, Any]]) -> Handler:
    """Make a server that replies to each message with what *function* returns."""

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response(encode(function(request.message))))

    return handle


def raw(data: bytes, *, then_close: bool = False) -> Handler:
    """Make a server that sends *data*, whatever it is sent."""

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        if then_close:
            writer.close()

    return handle


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Answer with twice the first coordinate of each point."""
    values = [2 * point[0] for point in message.get("points", [[0.5]])]
    return {"type": "answer", "id": message["id"], "values": values}


@asynccontextmanager
async def serve(handle: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    """Run a server on a free port of loopback."""
    tasks: set[asyncio.Task[Any]] = set()
    served = Served("")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while not writer.is_closing():
                request = await _read(reader)
                served.requests.append(request)
                await handle(request, writer)
                await writer.drain()
        writer.close()
        with suppress(ConnectionError, asyncio.CancelledError, ssl.SSLError):
            await writer.wait_closed()
        tasks.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    served.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}/ask"
    try:
        yield served
    finally:
        server.close()
        for task in [*tasks]:
            task.cancel()
        if tasks:
            await asyncio.wait([*tasks])
        await server.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().split("\r\n")[1:-2]
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Request(headers, await reader.readexactly(int(headers["content-length"])))


def make_certificate(folder: Path) -> ssl.SSLContext:
    """Make a certificate for 127.0.0.1 that vouches for itself, in cert.pem; skip without openssl.

    Returns:
        What a server that has it needs.
    """
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    options = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -keyout key.pem"
    names = ["-out", "cert.pem", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", *options.split(), *names]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return tls
