"""The link to a broker of MQTT: a connection that is made again whenever it is lost."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sparq_sim.errors import PeerError, SparqError
from sparq_sim.remote.secrets import read_secret, redact
from sparq_sim.remote.tasks import end_tasks

if TYPE_CHECKING:
    import aiomqtt
    from paho.mqtt.properties import Properties

    from sparq_sim.remote.mqtt import MqttAddress

__all__ = ["FIRST_WAIT", "LONGEST_WAIT", "BrokerLink", "correlation_of", "make_properties"]

FIRST_WAIT = 0.5
"""Seconds from a lost connection to the next attempt; each further wait is twice as long."""
LONGEST_WAIT = 30.0
"""Seconds between two attempts at most."""
_log = logging.getLogger(__name__)
_quiet = logging.getLogger(f"{__name__}.aiomqtt")
_quiet.setLevel(
    logging.CRITICAL
)  # What it would warn of is told here, and where an exchange fails.
_ANSWERS_WITHIN = 10.0
"""Seconds that a broker may take to accept a connection or a subscription."""


class _ClosingSocket(ssl.SSLSocket):
    """A socket that is closed where nobody vouches for the other side; paho leaves it open."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


async def _close(client: aiomqtt.Client) -> None:
    import aiomqtt

    with suppress(aiomqtt.MqttError):
        await client.__aexit__(None, None, None)


class BrokerLink:
    """A connection to a broker that is made again whenever it is lost.

    It is an asynchronous context manager; entering it waits for the first attempt to connect,
    whether that succeeds or not.

    Args:
        address: The broker, and how to be let in.
        topics: What to subscribe to.
        take: Called with each message that comes.

    Raises:
        SparqError: On entering: a library, a secret or a certificate is missing.
    """

    def __init__(
        self,
        address: MqttAddress,
        topics: Sequence[str],
        take: Callable[[aiomqtt.Message], None],
    ) -> None:
        self._address = address
        self._topics = topics
        self._take = take
        self._client: aiomqtt.Client | None = None
        self._is_connected = asyncio.Event()
        self._was_tried = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self._told_of_trouble = False
        self._options: dict[str, Any] = {}
        self.secrets: tuple[str, ...] = ()
        """What must not be shown."""
        self.losses = 0
        """How often a connection was lost or could not be made."""
        self.trouble = "no attempt was made"
        """Why the last connection ended or was not made."""

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._is_connected.is_set()

    def prepare(self) -> None:
        """Read the secrets and the certificates that connecting takes.

        Raises:
            SparqError: Something of that is missing, or the library aiomqtt.
        """
        self._options = self._make_options()

    async def __aenter__(self) -> Self:
        if not self._options:
            self.prepare()
        self._keeping = asyncio.create_task(self._keep())
        try:
            await self._was_tried.wait()
        except asyncio.CancelledError:
            await self._end()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        if self._keeping is not None:
            await end_tasks([self._keeping])
            if not self._keeping.cancelled() and (error := self._keeping.exception()):
                raise error

    async def publish(
        self, topic: str, payload: bytes, *, reply_to: str = "", correlation: bytes | None = None
    ) -> None:
        """Publish a message as soon as there is a connection.

        Args:
            topic: Where to.
            payload: The message.
            reply_to: The topic to which a reply is to be published; for MQTT 5.
            correlation: What a reply repeats, to be recognised; for MQTT 5.
        """
        import aiomqtt

        await self._is_connected.wait()
        assert self._client is not None
        properties = None
        if self._address.version == "5":
            properties = make_properties(reply_to, correlation)
        # Where the connection breaks meanwhile, nobody knows whether the message has got there: it
        # is not sent twice.
        with suppress(aiomqtt.MqttError):
            await self._client.publish(topic, payload, qos=self._address.qos, properties=properties)

    def _make_options(self) -> dict[str, Any]:
        """Return how to connect, after reading all that is needed for it."""
        try:
            import aiomqtt
        except ImportError as error:
            raise SparqError(
                f"MQTT needs the library aiomqtt ({error}): pip install 'sparq-sim[live]'"
            ) from error
        address = self._address
        options: dict[str, Any] = {
            "hostname": address.host,
            "port": int(address.broker.rpartition(":")[2]),
            "keepalive": address.keepalive,
            "timeout": _ANSWERS_WITHIN,
            "max_inflight_messages": 1000,
            "logger": _quiet,
            # A small message must not wait until the one before is confirmed.
            "socket_options": [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
            "protocol": aiomqtt.ProtocolVersion.V5
            if address.version == "5"
            else aiomqtt.ProtocolVersion.V311,
        }
        if address.username_env:
            options["username"] = read_secret(address.username_env)
        if address.password_env:
            options["password"] = read_secret(address.password_env)
            self.secrets = (options["password"],)
        if address.tls:
            try:
                context = ssl.create_default_context(cafile=address.ca_file)
            except (OSError, ssl.SSLError) as error:
                raise SparqError(
                    f"ca_file {address.ca_file} cannot be used: {error.strerror or error}; give a "
                    "file of certificates in PEM"
                ) from error
            context.sslsocket_class = _ClosingSocket
            options["tls_context"] = context
        return options

    async def _keep(self) -> None:
        """Connect, take what comes, and connect again, without end."""
        import aiomqtt

        wait = FIRST_WAIT
        while True:
            try:
                async with self._open() as client:
                    await self._subscribe(client)
                    self._client, wait = client, FIRST_WAIT
                    self._is_connected.set()
                    self._was_tried.set()
                    self._tell_of_connection()
                    async for message in client.messages:
                        self._take(message)
            except (aiomqtt.MqttError, PeerError) as error:
                self.trouble = redact(self._explain(error), self.secrets)
                self._tell_of_trouble()
            finally:
                self._client = None
                self._is_connected.clear()
            self.losses += 1
            self._was_tried.set()
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    def _tell_of_trouble(self) -> None:
        """Log why there is no connection; the first time only, until there is one again."""
        if not self._told_of_trouble:
            did = "was lost" if self.is_connected else "could not be made"
            _log.warning(
                "the connection to the broker %s %s, and is tried again: %s",
                *(self._address.broker, did, self.trouble),
            )
        self._told_of_trouble = True

    def _tell_of_connection(self) -> None:
        if self._told_of_trouble:
            _log.info(
                "the connection to the broker %s is there again, after: %s",
                *(self._address.broker, self.trouble),
            )
        self._told_of_trouble = False

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[aiomqtt.Client]:
        """Connect once."""
        import aiomqtt

        client = aiomqtt.Client(**self._options)
        client.pending_calls_threshold = 10_000  # Many messages under way are no cause to warn.
        connecting = asyncio.ensure_future(client.__aenter__())
        try:
            await asyncio.shield(connecting)
        except BaseException:
            # Cancelled while it connects, or not let in, aiomqtt would leave its socket open.
            await asyncio.wait([connecting])
            if connecting.exception() is not None:
                client.timeout = 0.01  # Nobody will confirm that the connection is closed.
            await _close(client)
            raise
        try:
            yield client
        finally:
            await _close(client)

    async def _subscribe(self, client: aiomqtt.Client) -> None:
        for topic in self._topics:
            for code in await client.subscribe(topic, qos=self._address.qos):
                number = code if isinstance(code, int) else code.value
                if number >= 128:
                    raise PeerError(f"it refuses the subscription to {topic!r}: {code}")

    def _explain(self, error: Exception) -> str:
        told = f"{error.__cause__ or error}".strip() or type(error).__name__
        if "rotocol version" in told:
            told += '; set version = "3.1.1" for a broker that does not speak MQTT 5'
        return told


def make_properties(reply_to: str, correlation: bytes | None) -> Properties:
    """Return the properties by which a message of MQTT 5 asks for a reply, or is one.

    Args:
        reply_to: The topic to which a reply is to be published; empty where none is expected.
        correlation: What the reply repeats; None for nothing.
    """
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call] # paho has no type
    if reply_to:
        properties.ResponseTopic = reply_to
    if correlation is not None:
        properties.CorrelationData = correlation
    return properties


def correlation_of(properties: Properties | None) -> bytes | None:
    """Return the correlation data of a message; None where it has none.

    Args:
        properties: Those of the message; None with MQTT 3.1.1.
    """
    return getattr(properties, "CorrelationData", None)
