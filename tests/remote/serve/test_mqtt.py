from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from sparq_sim.messages import Estimate
from sparq_sim.remote import broker_link
from sparq_sim.remote.mqtt import MqttPeer
from sparq_sim.remote.serve import mqtt
from sparq_sim.remote.serve.mqtt import serve_mqtt
from sparq_sim.remote.wire import ApplyMessage, AskMessage
from tests.conftest import PATIENCE
from tests.remote.brokers import Broker, any_broker, broker
from tests.remote.serve.asks import add_up, ask
from tests.remote.test_mqtt import address, client

__all__ = ["any_broker", "broker"]

pytestmark = pytest.mark.asyncio


async def test_a_peer_over_mqtt_is_answered(broker: Broker) -> None:
    here = address(broker)
    async with serve_mqtt(add_up, here), MqttPeer(here) as peer:
        keys = [str(i) for i in range(100)]
        asked = (peer.exchange(ask(key, [[float(key)]])) for key in keys)
        replies = await asyncio.gather(*asked)
    assert [reply["values"] for reply in replies] == [[float(key)] for key in keys]


async def test_servers_and_askers_of_different_versions_understand_each_other(
    any_broker: Broker,
) -> None:
    old, new = address(any_broker, version="3.1.1"), address(any_broker)
    async with serve_mqtt(add_up, old), MqttPeer(new) as peer:
        assert (await peer.exchange(ask()))["values"] == [0.5]
    async with serve_mqtt(add_up, new), MqttPeer(old) as peer:
        assert (await peer.exchange(ask()))["values"] == [0.5]


@pytest.mark.parametrize("payload", [b"hello", b'{"type": "ask", "reply_to": "lab"}', b"[]"])
async def test_what_cannot_be_replied_to_is_dropped(any_broker: Broker, payload: bytes) -> None:
    here = address(any_broker)
    async with serve_mqtt(add_up, here), MqttPeer(here) as peer, client(any_broker) as own:
        await own.publish("lab", payload, qos=1)
        assert (await peer.exchange(ask()))["values"] == [0.5]


async def test_a_wrong_question_gets_a_failure(broker: Broker) -> None:
    here = address(broker)
    async with serve_mqtt(add_up, here), MqttPeer(here) as peer:
        told = await peer.exchange(ask(points=[]))
    assert told["type"] == "failure"
    assert "whose points is []" in told["reason"]


async def test_a_retained_question_is_dropped(any_broker: Broker) -> None:
    asked: list[str] = []

    async def answer(message: AskMessage | ApplyMessage) -> Estimate:
        asked.append(message.id)
        return await add_up(message)

    here = address(any_broker)
    async with client(any_broker) as own:
        payload = json.dumps({**ask("old"), "reply_to": "nowhere"})
        await own.publish("lab", payload, qos=1, retain=True)
        async with serve_mqtt(answer, here), MqttPeer(here) as peer:
            await peer.exchange(ask("new"))
    assert asked == ["new"]


async def test_an_answer_that_takes_long_is_waited_for(
    any_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt, "PATIENCE", 0.1)

    async def slow(message: AskMessage | ApplyMessage) -> Estimate:
        await asyncio.sleep(1.0)
        return await add_up(message)

    here = address(any_broker, timeout=0.5)
    async with serve_mqtt(slow, here), MqttPeer(here) as peer:
        assert (await peer.exchange(ask()))["values"] == [0.5]


async def test_a_server_comes_back_with_its_broker(
    any_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_link, "FIRST_WAIT", 0.05)
    async with serve_mqtt(add_up, address(any_broker)) as link:
        any_broker.stop()
        await _until(lambda: not link.is_connected)
        await asyncio.to_thread(any_broker.start)
        await _until(lambda: link.is_connected)
        async with MqttPeer(address(any_broker)) as peer:
            assert (await peer.exchange(ask()))["values"] == [0.5]


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)
