"""MQTT: a real thing behind a broker, asked over one topic and heard over others.

With MQTT 5, where to reply and to what are properties of the message (response topic, correlation
data); with MQTT 3.1.1 they are in the payload only (`reply_to`, `id`). Here they are always in
both places where that is possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from uuid import uuid4

from pydantic import Field, PositiveInt, model_validator

from sparq_sim.errors import PeerError
from sparq_sim.remote.broker_link import BrokerLink, correlation_of
from sparq_sim.remote.drops import Seen
from sparq_sim.remote.peer import MOST_KNOWN, Address, Exchanges, Peer
from sparq_sim.remote.secrets import is_loopback
from sparq_sim.remote.wire import decode, encode

if TYPE_CHECKING:
    import aiomqtt

__all__ = ["MqttAddress", "MqttPeer"]


class MqttAddress(Address):
    """A real thing behind an MQTT broker."""

    host: Annotated[str, Field(min_length=1)] = "localhost"
    """The host of the broker, by name or number."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """The port of the broker; by default 1883, or 8883 with `tls`."""
    topic: str = ""
    """The topic to which questions are published; empty for a source that only sends readings."""
    reply_topic: str = ""
    """The topic to which replies come; by default one of this play's own below `topic`."""
    readings_topic: str = ""
    """The topic of readings that come unasked, with wildcards `+` and `#` if need be; empty for
    none."""
    version: Literal["5", "3.1.1"] = "5"
    """The version of MQTT that the broker speaks."""
    username_env: str = ""
    """The environment variable that holds the name of the user; empty for none."""
    password_env: str = ""
    """The environment variable that holds the password of the user; empty for none."""
    tls: bool = False
    """Whether the connection is encrypted, and the certificate of the broker checked."""
    ca_file: Path | None = None
    """A file of certificates (PEM) that vouch for the broker, in place of those of the system."""
    insecure: bool = False
    """Whether a password may be sent unencrypted to another machine, where others can read it."""
    qos: Literal[0, 1, 2] = 1
    """How delivery is assured: at most once (0), at least once (1) or exactly once (2)."""
    keepalive: PositiveInt = 60
    """Seconds of silence after which broker and client check that the other is there."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if not (self.topic or self.readings_topic):
            raise ValueError("give a topic to ask, a readings_topic to listen to, or both")
        for name in ("topic", "reply_topic"):
            if any(sign in getattr(self, name) for sign in "+#\0"):
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}; messages are published to one topic, "
                    "without the wildcards + and #"
                )
        if self.password_env and not self.username_env:
            raise ValueError("password_env needs username_env: MQTT has no password without a user")
        if self.ca_file is not None and not self.tls:
            raise ValueError("ca_file needs tls = true")
        is_open = not (self.tls or self.insecure or is_loopback(self.host))
        if self.password_env and is_open:
            raise ValueError(
                f"the password would be sent unencrypted to {self.host!r}; set tls = true, or "
                "insecure = true if nobody else can read it"
            )
        return self

    @property
    def sends_readings(self) -> bool:
        return bool(self.readings_topic)

    @property
    def broker(self) -> str:
        """The host and the port of the broker, as messages show them."""
        return f"{self.host}:{self.port or (8883 if self.tls else 1883)}"

    def open(self) -> AbstractAsyncContextManager[Peer]:
        return MqttPeer(self)


class MqttPeer:
    """An open door to a real thing behind a broker; an asynchronous context manager.

    Args:
        address: Where the thing is.
    """

    def __init__(self, address: MqttAddress) -> None:
        self._address = address
        name = uuid4().hex[:16]
        self._reply_topic = address.reply_topic or f"{address.topic}/reply/{name}"
        topics = [address.readings_topic] if address.readings_topic else []
        topics += [self._reply_topic] if address.topic else []
        self._link = BrokerLink(address, topics, self._take)
        # Apart, as many that come at once must not push out those that the broker keeps.
        self._retained, self._live = Seen(MOST_KNOWN), Seen(MOST_KNOWN)

    async def __aenter__(self) -> Self:
        self._link.prepare()
        self._exchanges = Exchanges(timeout=self._address.timeout, secrets=self._link.secrets)
        await self._link.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._link.__aexit__(kind, error, trace)

    async def exchange(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        address, link = self._address, self._link
        if not address.topic:
            raise PeerError("has no topic to which questions go; it only sends readings")

        async def send(message: Mapping[str, Any]) -> None:
            payload = encode({**message, "reply_to": self._reply_topic})
            key = str(message["id"]).encode()
            await link.publish(address.topic, payload, reply_to=self._reply_topic, correlation=key)

        losses = link.losses
        was_connected = link.is_connected
        try:
            return await self._exchanges.run(message, send)
        except PeerError as error:
            if was_connected and link.losses == losses:
                raise
            lost = "was lost" if was_connected else "could not be made"
            raise PeerError(
                f"{error}; the connection to the broker {address.broker} {lost}: {link.trouble}"
            ) from None

    def readings(self) -> AsyncIterator[Mapping[str, Any]]:
        return self._exchanges.readings()

    @property
    def dropped(self) -> Counter[str]:
        return self._exchanges.dropped

    def _take(self, message: aiomqtt.Message) -> None:
        payload = bytes(message.payload)
        if str(message.topic) != self._reply_topic:
            self._take_reading(payload, topic=str(message.topic), is_retained=message.retain)
            return
        if message.retain:
            self._exchanges.drop("a retained reply, which is of an earlier request")
            return
        key = (correlation_of(message.properties) or b"").decode(errors="replace")
        if len(payload) > self._address.largest:
            self._exchanges.fail(self._tell_size(payload), key=key)
        else:
            self._exchanges.take(payload, key=key)

    def _tell_size(self, payload: bytes) -> str:
        return f"sent {len(payload)} bytes; at most {self._address.largest} are read (`largest`)"

    def _take_reading(self, payload: bytes, *, topic: str, is_retained: bool) -> None:
        drop = self._exchanges.drop
        if len(payload) > self._address.largest:
            drop(f"a reading of more than {self._address.largest} bytes")
            return
        try:
            reading = decode(payload, self._link.secrets)
        except PeerError as error:
            drop("a reading that cannot be read", f"it {error}")
            return
        name = topic.encode() + b"\0" + payload
        if is_retained and reading.get("measured_at") is None:
            drop("a retained reading without measured_at, of which nobody knows how old it is")
        elif is_retained and (name in self._retained or name in self._live):
            # The broker sends it again at each new connection.
            drop("a retained reading that came before")
        else:
            (self._retained if is_retained else self._live).add(name)
            self._exchanges.keep_reading({"type": "reading", **reading})
