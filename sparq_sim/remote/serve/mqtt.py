"""An MQTT server for what answers questions: it listens to a topic, and replies where asked to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sparq_sim.errors import PeerError
from sparq_sim.remote.broker_link import BrokerLink, correlation_of
from sparq_sim.remote.mqtt import MqttAddress
from sparq_sim.remote.serve.responder import Answerer, Responder
from sparq_sim.remote.tasks import end_tasks
from sparq_sim.remote.wire import decode

if TYPE_CHECKING:
    import aiomqtt

__all__ = ["serve_mqtt"]

PATIENCE = 10.0
"""Seconds after which an asker is told that an answer comes later, each time."""


@asynccontextmanager
async def serve_mqtt(answer: Answerer, address: MqttAddress) -> AsyncIterator[BrokerLink]:
    """Serve over MQTT during the `async with` block.

    Replies go to the response topic of a question, or else to what its payload has under
    `reply_to`; a question with neither cannot be answered, and is dropped. A retained question is
    of the past, and dropped too.

    Args:
        answer: Who answers.
        address: The broker, and the topic to listen to; `largest` limits questions.

    Yields:
        The link to the broker, which tells whether there is a connection.

    Raises:
        SparqError: The library aiomqtt, a secret or a certificate is missing.
    """
    tasks: set[asyncio.Task[None]] = set()

    def take(message: aiomqtt.Message) -> None:
        if not message.retain:
            task = asyncio.create_task(_reply(link, responder, message))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async with Responder(answer, largest=address.largest) as responder:
        link = BrokerLink(address, [address.topic], take)
        try:
            async with link:
                yield link
        finally:
            await end_tasks(tasks)


async def _reply(link: BrokerLink, responder: Responder, message: aiomqtt.Message) -> None:
    payload = bytes(message.payload)
    topic = _find_topic(message, payload if len(payload) <= responder.largest else b"")
    if not topic:
        return
    correlation = correlation_of(message.properties)
    while True:
        response = await responder.respond(payload, within=PATIENCE)
        await link.publish(topic, response.payload, correlation=correlation)
        if not response.is_later:
            return


def _find_topic(message: aiomqtt.Message, payload: bytes) -> str:
    """Return the topic to which a reply goes; empty if there is none to which one may publish."""
    topic: Any = getattr(message.properties, "ResponseTopic", None)
    if topic is None:
        try:
            topic = decode(payload).get("reply_to")
        except PeerError:
            return ""
    if not isinstance(topic, str) or any(sign in topic for sign in "+#\0"):
        return ""
    # Not to itself: that would be a question without end.
    return "" if topic == str(message.topic) else topic
