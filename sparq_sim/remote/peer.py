"""Peers: open doors to real things, where each message that is sent gets one reply.

An `Address` tells where a real thing is, and is written in scenario files. `Address.open` opens
a `Peer`, which exchanges messages of the wire format with it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from pydantic import PositiveInt

from sparq_sim.errors import PeerError
from sparq_sim.fields import Amount, Positive
from sparq_sim.plugin.model import Model
from sparq_sim.remote.drops import Drops, Seen
from sparq_sim.remote.secrets import redact, redact_message
from sparq_sim.remote.wire import WIRE_VERSION, decode, show

__all__ = [
    "MOST_KNOWN",
    "MOST_READINGS",
    "Address",
    "Exchanges",
    "Peer",
    "PeerError",
    "check_reply",
]

MOST_READINGS = 1000
"""How many readings wait to be taken at most; beyond that, the oldest is dropped."""
MOST_KNOWN = 10_000
"""How many names of readings are kept, to know one that comes twice."""


class Peer(Protocol):
    """An open door to a real thing."""

    async def exchange(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a message, and return the reply to it.

        An exchange may be cancelled; the reply to it is then dropped when it comes. A reply that
        says `later` is not returned: the exchange goes on until the answer is there.

        Args:
            message: A request of the wire format, with an `id`.

        Returns:
            A JSON object that has the same `id`; nothing else of it is checked.

        Raises:
            PeerError: No such reply came.
        """

    def readings(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the readings that come unasked, without end; nothing else of them is checked."""

    @property
    def dropped(self) -> Counter[str]:
        """How many messages that came were dropped, by the reason."""


class Address(Model):
    """Where a real thing is, and what is expected of it; the base of all addresses."""

    timeout: Positive = 30.0
    """How long a reply may take, in seconds of real time."""
    largest: PositiveInt = 1_000_000
    """The largest reply that is read, in bytes."""
    skew: Amount = 1.0
    """How many seconds the clock of the real thing may be ahead of the clock of this machine."""

    @property
    def sends_readings(self) -> bool:
        """Whether readings may come unasked."""
        return False

    def check_ready(self) -> None:
        """Check what can be checked before anything is played; by default, nothing.

        Raises:
            SparqError: Something is missing, such as a program; the message has the remedy.
        """

    def open(self) -> AbstractAsyncContextManager[Peer]:
        """Return a context manager that opens the door when it is entered, and closes it when left.

        Raises:
            SparqError: On entering: a secret is not set, or a library is not installed.
        """
        raise NotImplementedError(f"{type(self).__name__} must define open(self)")


def check_reply(message: Mapping[str, Any], key: str, secrets: Iterable[str] = ()) -> None:
    """Check that a reply is to the request of which it should be.

    Args:
        message: The JSON object that came.
        key: The `id` of the request.
        secrets: What must not be seen in errors.

    Raises:
        PeerError: It has another `id`, or none.
    """
    if "id" not in message:
        raise PeerError(f"sent a reply without an id: {show(dict(message), secrets)}")
    if message["id"] != key:
        shown = show(message["id"], secrets)
        raise PeerError(f"sent a reply to another request, of id {shown}")


class _Exchange:
    """A request whose reply has not come."""

    def __init__(self) -> None:
        self.reply: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self.deadline: asyncio.Timeout | None = None
        self.is_sent = False


class Exchanges:
    """The exchanges of a peer whose replies come in any order, found by their `id`.

    Whoever reads what the peer sends calls `take` with each message. A message that nobody can
    attribute, as it is no JSON, fails all exchanges under way: nobody knows which of them it was
    to answer. MQTT 5 names the request beside the message; then only that one fails.

    Args:
        timeout: How long a reply may take, in seconds.
        secrets: What must not be seen in errors and in the texts of replies.
    """

    def __init__(self, *, timeout: float, secrets: Iterable[str] = ()) -> None:
        self._timeout = timeout
        self._secrets = tuple(secrets)
        # Of one id there may be two: a request that is sent again while the first waits.
        self._open: dict[str, list[_Exchange]] = {}
        self._readings: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue(MOST_READINGS)
        # What it sent last that was not for anybody, which may tell why a reply is missing.
        self._stray = ""
        self._known = Seen(MOST_KNOWN)
        self._drops = Drops()

    @property
    def dropped(self) -> Counter[str]:
        """How many messages that came were dropped, by the reason."""
        return self._drops.counts

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    async def run(
        self,
        message: Mapping[str, Any],
        send: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> Mapping[str, Any]:
        """Send a message, and return the reply to it.

        Args:
            message: A request of the wire format, with an `id`.
            send: What sends it; the time it takes counts too.

        Raises:
            PeerError: No reply came in time, or `fail` was called meanwhile.
        """
        key, exchange = str(message["id"]), _Exchange()
        self._open.setdefault(key, []).append(exchange)
        try:
            async with asyncio.timeout(self._timeout) as exchange.deadline:
                await send(message)
                exchange.is_sent = True
                return await exchange.reply
        except TimeoutError:
            raise self._error(f"did not reply within {self._timeout:g} s{self._stray}") from None
        finally:
            if not exchange.reply.cancel() and not exchange.reply.cancelled():
                exchange.reply.exception()  # Looked at, so that asyncio does not complain.
            self._open[key].remove(exchange)
            if not self._open[key]:
                del self._open[key]

    def take(self, data: bytes, *, key: str = "") -> None:
        """Hand what came to whom it is for.

        Args:
            data: A message as it came.
            key: The `id` of the request that it is said to answer, if that is known without
                reading it.
        """
        try:
            message = decode(data, self._secrets)
            if message.get("type") == "reading":
                self.keep_reading(message)
                return
            message = redact_message(message, self._secrets)
            if key in self._open or "id" not in message:
                check_reply(message, key, self._secrets)
                self._settle(message)
            else:
                self._settle(message)
        except PeerError as error:
            self.fail(str(error), key=key)

    def _settle(self, message: Mapping[str, Any]) -> None:
        key = message["id"]
        exchanges = self._open.get(key, []) if isinstance(key, str) else []
        if not exchanges:
            self._stray = f"; it sent a reply to another request, of id {show(key, self._secrets)}"
            self.drop("a reply to no request under way")
        else:
            self._stray = ""
        for exchange in exchanges:
            if _is_later(message):
                self._put_off(exchange, message["seconds"])
            elif not exchange.reply.done():
                exchange.reply.set_result(message)

    def _put_off(self, exchange: _Exchange, seconds: float) -> None:
        if exchange.deadline is not None:
            now = asyncio.get_running_loop().time()
            exchange.deadline.reschedule(now + seconds + self._timeout)

    def keep_reading(self, message: Mapping[str, Any]) -> None:
        """Keep a reading for `readings`, unless one with its `id` came before.

        Where too many wait, the oldest is dropped.

        Args:
            message: The JSON object that came.
        """
        message = redact_message(message, self._secrets)
        key = message.get("id")
        if isinstance(key, str):
            name = key.encode("utf-8", "surrogatepass")
            if name in self._known:
                self.drop("a reading that came twice")
                return
            self._known.add(name)
            message["id"] = redact(key, self._secrets)
        if self._readings.full():
            self._readings.get_nowait()
            self.drop("a reading that nobody took in time")
        self._readings.put_nowait(message)

    def drop(self, reason: str, example: str = "") -> None:
        """Count a message that is dropped.

        Args:
            reason: Why, in words that are the same for all of its sort.
            example: What is wrong with this one; kept of the first of its sort.
        """
        self._drops.add(reason, redact(example, self._secrets))

    def fail(self, reason: str, *, key: str = "") -> None:
        """Fail all exchanges whose request has been sent, or those of one request.

        Args:
            reason: What the peer did, as "ended with exit code 1".
            key: The `id` of the request; where none is under way, all fail.
        """
        self._stray = f"; it {redact(reason, self._secrets)}"
        failed = self._open.get(key) or [
            each for of_id in self._open.values() for each in of_id if each.is_sent
        ]
        for exchange in failed:
            if not exchange.reply.done():
                exchange.reply.set_exception(self._error(reason))

    def _error(self, reason: str) -> PeerError:
        return PeerError(redact(reason, self._secrets))

    async def readings(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the readings that came, in their order, without end."""
        while True:
            yield await self._readings.get()


def _is_later(message: Mapping[str, Any]) -> bool:
    """Return whether a reply says in the right form when to expect the answer."""
    if message.get("type") != "later" or message.get("sparq", WIRE_VERSION) != WIRE_VERSION:
        return False
    seconds = message.get("seconds")
    return isinstance(seconds, int | float) and seconds is not True and 0 < seconds < 1e9
