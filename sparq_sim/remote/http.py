"""Peers over HTTP: a request is the body of a POST, and its reply is the body that comes back."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from sparq_sim.errors import PeerError, SparqError
from sparq_sim.remote.peer import Address, Peer, check_reply
from sparq_sim.remote.secrets import HIDDEN, is_loopback, read_secret, redact, redact_message
from sparq_sim.remote.wire import (
    SHOWN,
    CollectMessage,
    LaterMessage,
    decode,
    encode,
    read_message,
    show,
)

if TYPE_CHECKING:
    import httpx

__all__ = ["HttpAddress"]

_MOST_CONNECTIONS = 256
"""More than capacities of channels are in practice; what is beyond waits for a connection."""
_SHORTEST_PAUSE = 0.05
"""Seconds between two requests for the same answer, also where a service says less."""


class HttpAddress(Address):
    """A web service that takes a message as the body of a POST, and replies in the body.

    A redirect is not followed. Proxies and passwords that environment variables or `.netrc` name
    are not used. With TLS (`https://`), certificates are verified.
    """

    url: str
    """The URL to which requests are posted, as "https://lab.example/ask"."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further headers of each request, by name; no secrets, which belong in *headers_env*."""
    headers_env: dict[str, str] = Field(default_factory=dict)
    """Further headers whose values are secret: the name of the environment variable of each."""
    token_env: str = ""
    """The environment variable that holds a bearer token; empty for none."""
    ca_file: Path | None = None
    """Certificates (PEM) to trust in place of those that the system trusts."""
    client_cert: Path | None = None
    """The certificate (PEM) by which this program identifies itself; none by default."""
    client_key: Path | None = None
    """Its key (PEM), if it is not in the same file."""
    insecure: bool = False
    """Whether secrets may be sent over `http://` to other machines, where others can read them."""

    @field_validator("url", mode="before")
    @classmethod
    def _is_a_url(cls, given: Any) -> Any:
        if isinstance(given, str):
            _check_url(given)
        return given

    @model_validator(mode="after")
    def _keeps_secrets(self) -> Self:
        parts = urlsplit(self.url)
        is_open = parts.scheme == "http" and not is_loopback(parts.hostname or "")
        if is_open and (self.token_env or self.headers_env) and not self.insecure:
            raise ValueError(
                f"url {self.url!r} would send secrets unencrypted to another machine; use "
                "https://, or write insecure = true if nobody else can read them"
            )
        for name in (*self.headers, *self.headers_env):
            if not name.replace("-", "").isalnum() or not name.isascii():
                raise ValueError(f"the name {name!r} of a header must be letters, digits, dashes")
        for name, value in self.headers.items():
            if not value.isprintable() or not value.isascii():
                raise ValueError(f"header {name} must be one line of ASCII text, not {value!r}")
        if self.client_key is not None and self.client_cert is None:
            raise ValueError("client_key needs client_cert, the certificate that it belongs to")
        return self

    def __hash__(self) -> int:  # A dictionary has none.
        return hash((type(self), self.url, self.token_env, self.timeout))

    def open(self) -> AbstractAsyncContextManager[Peer]:
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Peer]:
        httpx = _import_httpx()
        secrets = {name: _read_header(variable) for name, variable in self.headers_env.items()}
        if self.token_env:
            secrets["Authorization"] = f"Bearer {_read_header(self.token_env)}"
        tls, one = self._make_tls(), httpx.Limits(max_connections=1)
        # Transports, as a client adds cookies, redirects and passwords of .netrc. One for each
        # connection, as the time that a pool takes for a request grows with its connections.
        peer = _HttpPeer(
            self,
            lambda: httpx.AsyncHTTPTransport(verify=tls, limits=one, trust_env=False),
            headers=self.headers | secrets | _HEADERS,
            secrets=[each.removeprefix("Bearer ") for each in secrets.values()],
        )
        try:
            yield peer
        finally:
            await peer.close()

    def _make_tls(self) -> ssl.SSLContext:
        if not self.url.startswith("https:"):
            # Not used; to read certificates would take 20 ms for each connection.
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            tls = ssl.create_default_context(cafile=self.ca_file)
            if self.client_cert is not None:
                # Without a terminal to ask for a passphrase, an encrypted key is an error.
                tls.load_cert_chain(self.client_cert, self.client_key, password=lambda: b"")
        except (OSError, ssl.SSLError) as error:
            files = [str(f) for f in (self.ca_file, self.client_cert, self.client_key) if f]
            raise SparqError(
                f"the certificates in {', '.join(files)} cannot be used: {error}; expected PEM "
                "files, and a key without a passphrase"
            ) from None
        return tls


def _check_url(url: str) -> None:
    """Raise an error unless *url* is one; what might be a password is not shown."""
    if "@" in url.partition("?")[0].partition("#")[0]:
        reason = (
            "must not hold a user or password, which would be shown; put a token into an "
            "environment variable, and its name into token_env"
        )
        error = PydanticCustomError("secret", "{reason}", {"reason": reason})
        raise ValidationError.from_exception_data("url", [{"type": error, "input": HIDDEN}])
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as error:
        raise ValueError(f"is no URL: {error}") from None
    if not url.isprintable() or " " in url:
        raise ValueError("must have no spaces and no control characters")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http:// or https://, and a host")


_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # A small compressed body could become a huge one.
    "User-Agent": "sparq-sim",
}


def _read_header(variable: str) -> str:
    """Return a secret that can be the value of a header."""
    secret = read_secret(variable)
    if not secret.isascii():
        raise SparqError(
            f"the environment variable {variable} holds letters that a header cannot have; "
            "it must be ASCII"
        )
    return secret


def _import_httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise SparqError(
            "to ask a web service, httpx is needed: pip install 'sparq-sim[live]'"
        ) from None
    return httpx


class _HttpPeer:
    def __init__(
        self,
        address: HttpAddress,
        connect: Callable[[], httpx.AsyncHTTPTransport],
        *,
        headers: Mapping[str, str],
        secrets: Sequence[str],
    ) -> None:
        import httpx

        self._address, self._connect, self._secrets = address, connect, secrets
        self._url = httpx.URL(address.url)
        self._headers = [*headers.items()]
        self._free: list[httpx.AsyncHTTPTransport] = []
        self._made: list[httpx.AsyncHTTPTransport] = []
        self._slots = asyncio.Semaphore(_MOST_CONNECTIONS)
        self.dropped: Counter[str] = Counter()  # A reply that nobody awaits is not even read.

    async def close(self) -> None:
        """Close all connections."""
        for each in self._made:
            await each.aclose()

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[httpx.AsyncHTTPTransport]:
        """Lend a transport that nobody else uses."""
        async with self._slots:
            if not self._free:
                made = self._connect()
                self._made.append(made)
                self._free.append(made)
            transport = self._free.pop()
            try:
                yield transport
            finally:
                self._free.append(transport)

    async def exchange(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        key = str(message["id"])
        collect = CollectMessage(id=key).to_object()
        try:
            while True:
                reply = decode(await self._post(message, key), self._secrets)
                check_reply(reply, key, self._secrets)
                reply = redact_message(reply, self._secrets)
                if reply.get("type") != "later":
                    return reply
                pause = read_message(reply, LaterMessage).seconds
                await asyncio.sleep(max(pause, _SHORTEST_PAUSE))
                message = collect
        except PeerError as error:
            raise PeerError(redact(str(error), self._secrets)) from None

    async def readings(self) -> AsyncIterator[Mapping[str, Any]]:
        await asyncio.Event().wait()  # A web service sends nothing unasked.
        yield {}

    async def _post(self, message: Mapping[str, Any], key: str) -> bytes:
        import httpx

        address = self._address
        # A source may have any name, and a header only ASCII.
        headers = [*self._headers, ("Idempotency-Key", quote(key))]
        request = httpx.Request("POST", self._url, headers=headers, content=encode(message))
        try:
            async with asyncio.timeout(address.timeout), self._transport() as transport:
                response = await transport.handle_async_request(request)
                async with aclosing(response):
                    if response.status_code // 100 == 2:
                        return await self._read(response)
                    raise PeerError(await self._describe(response))
        except TimeoutError:
            raise PeerError(f"did not reply within {address.timeout:g} s") from None
        except httpx.ConnectError as error:
            raise PeerError(f"cannot be reached: {self._describe_cause(error)}") from None
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
            raise PeerError(f"broke off: {self._describe_cause(error)}") from None

    async def _read(self, response: httpx.Response) -> bytes:
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            shown = show(encoding, self._secrets)
            raise PeerError(f"sent a compressed body ({shown}), which it was told not to")
        data, largest = bytearray(), self._address.largest
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > largest:
                raise PeerError(f"sent more than {largest} bytes; see the field largest")
        return bytes(data)

    async def _describe(self, response: httpx.Response) -> str:
        """Return what a reply of another status than 2xx says, with the start of its body."""
        told = f"HTTP status {response.status_code} {response.reason_phrase}".strip()
        if response.status_code // 100 == 3:
            where = show(response.headers.get("Location", ""), self._secrets)
            return f"replied with {told}: a redirect to {where}, which is not followed"
        data = b""
        # A mark in the place of each secret makes text shorter: with this much of it, a secret
        # that is cut at the end of what is read stays behind all that is shown.
        enough = 4 * SHOWN + SHOWN // 2 * max(map(len, self._secrets), default=0)
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) >= enough:
                break
        try:
            reason = decode(data).get("reason")  # As our own server has it.
        except PeerError:
            reason = None
        shown = show(data if reason is None else reason, self._secrets)
        return f"replied with {told}: {shown}" if data else f"replied with {told}"

    def _describe_cause(self, error: Exception) -> str:
        return redact(f"{error}", self._secrets)[:SHOWN] or type(error).__name__
