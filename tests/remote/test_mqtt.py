from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from pydantic import ValidationError

from sparq_sim.errors import PeerError, SparqError
from sparq_sim.remote import broker_link
from sparq_sim.remote.mqtt import MqttAddress, MqttPeer
from sparq_sim.remote.tasks import end_tasks
from tests.conftest import PATIENCE
from tests.remote.brokers import Broker, any_broker, broker, run_broker

__all__ = ["any_broker", "broker"]

pytestmark = pytest.mark.asyncio

Reply = Callable[[dict[str, Any]], Iterable[dict[str, Any] | bytes]]


def address(broker: Broker, **fields: Any) -> MqttAddress:
    given = {"host": broker.host, "port": broker.port, "version": broker.version, "topic": "lab"}
    return MqttAddress(**{**given, "timeout": PATIENCE, **fields})


def client(broker: Broker) -> aiomqtt.Client:
    versions = {"5": aiomqtt.ProtocolVersion.V5, "3.1.1": aiomqtt.ProtocolVersion.V311}
    return aiomqtt.Client(broker.host, broker.port, protocol=versions[broker.version])


def answer(ask: dict[str, Any]) -> dict[str, Any]:
    return {"type": "answer", "id": ask["id"], "values": [2.0]}


@asynccontextmanager
async def responder(broker: Broker, reply: Reply) -> AsyncIterator[aiomqtt.Client]:
    """Run what replies to each question with the messages that *reply* gives."""
    async with client(broker) as own:
        await own.subscribe("lab", qos=1)

        async def serve() -> None:
            async for message in own.messages:
                ask = json.loads(message.payload)
                for each in reply(ask):
                    payload = each if isinstance(each, bytes) else json.dumps(each).encode()
                    properties = message.properties
                    if properties is not None:  # The reply has the correlation data alone.
                        correlation = broker_link.correlation_of(properties)
                        properties = broker_link.make_properties("", correlation)
                    await own.publish(ask["reply_to"], payload, qos=1, properties=properties)

        task = asyncio.create_task(serve())
        try:
            yield own
        finally:
            await end_tasks([task])


async def fails(peer: MqttPeer, match: str, key: str = "a") -> None:
    with pytest.raises(PeerError, match=match):
        await peer.exchange({"type": "ask", "id": key})


async def test_a_question_gets_its_answer(broker: Broker) -> None:
    async with responder(broker, lambda ask: [answer(ask)]), MqttPeer(address(broker)) as peer:
        reply = await peer.exchange({"type": "ask", "id": "a"})
        assert reply == {"type": "answer", "id": "a", "values": [2.0]}


async def test_many_questions_at_once_get_their_own_answers(any_broker: Broker) -> None:
    def reply(ask: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"type": "answer", "id": ask["id"], "values": [float(ask["id"])]}]

    async with responder(any_broker, reply), MqttPeer(address(any_broker)) as peer:
        keys = [str(i) for i in range(100)]
        replies = await asyncio.gather(*(peer.exchange({"id": key}) for key in keys))
        assert [each["values"] for each in replies] == [[float(key)] for key in keys]


async def test_the_topics_of_replies_may_be_chosen(any_broker: Broker) -> None:
    heard = []

    def reply(ask: dict[str, Any]) -> list[dict[str, Any]]:
        heard.append(ask["reply_to"])
        return [answer(ask)]

    chosen = address(any_broker, reply_topic="lab/answers")
    async with responder(any_broker, reply), MqttPeer(chosen) as peer:
        await peer.exchange({"id": "a"})
    assert heard == ["lab/answers"]


# What goes wrong


async def test_a_responder_that_never_answers_is_given_up(broker: Broker) -> None:
    quick = address(broker, timeout=0.2)
    async with responder(broker, lambda ask: []), MqttPeer(quick) as peer:
        await fails(peer, r"^did not reply within 0\.2 s$")


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"hello", "sent no JSON: 'hello'"),
        (b"\xff\xfe", "not text in UTF-8"),
        (b"[1]", "JSON that is no object"),
        (b'{"type": "answer", "values": [1.0]}', "without an id"),
        (b'{"type": "answer", "id": "a", "values": [NaN]}', "NaN, which is no number of JSON"),
    ],
)
async def test_a_wrong_payload_fails_the_question(
    broker: Broker, payload: bytes, reason: str
) -> None:
    async with responder(broker, lambda ask: [payload]), MqttPeer(address(broker)) as peer:
        await fails(peer, reason)


async def test_with_mqtt_5_a_wrong_payload_fails_its_own_question_only(tmp_path: Path) -> None:
    def reply(ask: dict[str, Any]) -> list[dict[str, Any] | bytes]:
        return [b"hello"] if ask["id"] == "bad" else []

    with run_broker("mosquitto", tmp_path) as broker:
        async with responder(broker, reply), MqttPeer(address(broker, timeout=1.0)) as peer:
            other = asyncio.create_task(peer.exchange({"id": "good"}))
            await fails(peer, "sent no JSON", "bad")
            with pytest.raises(PeerError, match="did not reply within"):
                await other


async def test_an_answer_that_is_too_large_is_not_read(broker: Broker) -> None:
    small = address(broker, largest=1000)
    async with responder(broker, lambda ask: [b"x" * 2000]), MqttPeer(small) as peer:
        await fails(peer, "sent 2000 bytes; at most 1000 are read")


async def test_an_answer_to_another_question_is_refused(broker: Broker) -> None:
    def reply(ask: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**answer(ask), "id": "b"}]

    async with responder(broker, reply), MqttPeer(address(broker, timeout=0.5)) as peer:
        await fails(peer, "sent a reply to another request, of id 'b'")


async def test_an_answer_that_comes_twice_counts_once(broker: Broker) -> None:
    def reply(ask: dict[str, Any]) -> list[dict[str, Any]]:
        return [answer(ask), {**answer(ask), "values": [3.0]}]

    async with responder(broker, reply), MqttPeer(address(broker)) as peer:
        assert (await peer.exchange({"id": "a"}))["values"] == [2.0]
        assert (await peer.exchange({"id": "b"}))["values"] == [2.0]


async def test_a_retained_reply_is_dropped(any_broker: Broker) -> None:
    fixed = address(any_broker, reply_topic="lab/answers", timeout=0.2)
    async with client(any_broker) as own:
        old = json.dumps({"type": "answer", "id": "a", "values": [1.0]})
        await own.publish("lab/answers", old, qos=1, retain=True)
        async with MqttPeer(fixed) as peer:
            await fails(peer, "did not reply within")


# The broker


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_link, "FIRST_WAIT", 0.05)
    monkeypatch.setattr(broker_link, "LONGEST_WAIT", 0.2)


@pytest.mark.usefixtures("hasty")
async def test_after_a_broker_was_lost_questions_fail_and_later_ones_are_answered(
    broker: Broker,
) -> None:
    async with MqttPeer(address(broker, timeout=1.0)) as peer:
        async with responder(broker, lambda ask: []):
            asked = asyncio.create_task(peer.exchange({"id": "a"}))
            await asyncio.sleep(0.2)
        broker.stop()
        with pytest.raises(
            PeerError, match=rf"connection to the broker 127.0.0.1:{broker.port} was lost: "
        ):
            await asked
        await fails(peer, f"the broker 127.0.0.1:{broker.port} could not be made: .*refused", "b")
        await asyncio.to_thread(broker.start)
        async with responder(broker, lambda ask: [answer(ask)]):
            reply = await _exchange_some_time(peer)
        assert reply["values"] == [2.0]


@pytest.mark.usefixtures("hasty")
async def test_a_lost_broker_is_logged_once_and_so_is_its_return(
    any_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "sparq_sim")

    def logged() -> list[tuple[str, str]]:
        return [
            (each.levelname, each.getMessage())
            for each in caplog.records
            if each.name.startswith("sparq_sim")
        ]

    async def wait_until(is_connected: bool, losses: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while peer._link.is_connected != is_connected or peer._link.losses < losses:
                await asyncio.sleep(0.01)

    any_broker.stop()
    listening = address(any_broker, topic="", readings_topic="plant")
    async with MqttPeer(listening) as peer:
        await wait_until(False, 3)
        await asyncio.to_thread(any_broker.start)
        await wait_until(True, 3)
        losses = peer._link.losses
        any_broker.stop()
        await wait_until(False, losses + 3)
    name = f"the connection to the broker 127.0.0.1:{any_broker.port}"
    first, back, lost = logged()
    assert first[0] == lost[0] == "WARNING"
    assert first[1].startswith(f"{name} could not be made, and is tried again: ")
    assert "refused" in first[1]
    assert back[0] == "INFO"
    assert back[1].startswith(f"{name} is there again, after: ")
    assert lost[1].startswith(f"{name} was lost, and is tried again: ")


@pytest.mark.usefixtures("hasty")
async def test_a_question_waits_for_a_broker_that_comes_later(any_broker: Broker) -> None:
    any_broker.stop()
    async with MqttPeer(address(any_broker)) as peer:
        asked = asyncio.create_task(peer.exchange({"id": "a"}))
        await asyncio.to_thread(any_broker.start)
        # A question that nobody has subscribed to yet is lost, as always with MQTT.
        async with responder(any_broker, lambda ask: [answer(ask)]):
            assert (await _exchange_some_time(peer))["values"] == [2.0]
        asked.cancel()
        await asyncio.wait([asked])


async def test_a_broker_that_is_not_there_is_named(any_broker: Broker) -> None:
    any_broker.stop()
    async with MqttPeer(address(any_broker, timeout=0.1)) as peer:
        named = rf"broker 127.0.0.1:{any_broker.port} could not be made: .*Connection refused"
        await fails(peer, named)


async def test_a_silent_broker_can_be_left_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_link, "_ANSWERS_WITHIN", 0.2)

    left = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
            left.set()
        finally:
            writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        async with MqttPeer(
            MqttAddress(host="127.0.0.1", port=port, topic="lab", timeout=0.1)
        ) as peer:
            await fails(peer, "could not be made: Operation timed out")
        await left.wait()
        left.clear()
        with pytest.raises(TimeoutError):
            async with (
                asyncio.timeout(0.1),
                MqttPeer(MqttAddress(host="127.0.0.1", port=port, topic="lab")),
            ):
                pass
        await left.wait()


async def test_a_broker_of_mqtt_3_asks_for_the_version_to_be_set(tmp_path: Path) -> None:
    with run_broker("amqtt", tmp_path) as broker:
        async with MqttPeer(address(broker, version="5", timeout=0.1)) as peer:
            await fails(peer, r'set version = "3.1.1"')


async def _exchange_some_time(peer: MqttPeer) -> Any:
    """Ask until there is a connection and somebody who answers."""
    for i in range(1000):
        try:
            async with asyncio.timeout(0.2):
                return await peer.exchange({"id": f"again {i}"})
        except (PeerError, TimeoutError):
            continue
    raise AssertionError("no answer")


# Readings


def reading(value: float, **more: Any) -> str:
    return json.dumps({"type": "reading", "points": [[0.5]], "values": [value], **more})


async def test_readings_come_from_all_topics_of_a_wildcard(broker: Broker) -> None:
    listening = address(broker, topic="", readings_topic="plant/+/readings")
    async with MqttPeer(listening) as peer, client(broker) as own:
        await own.publish("plant/1/readings", reading(1.0), qos=1)
        await own.publish("plant/2/readings", reading(2.0, measured_at=5.0), qos=1)
        readings = peer.readings()
        assert [(await anext(readings))["values"] for _ in range(2)] == [[1.0], [2.0]]


async def test_a_retained_reading_counts_only_with_its_date(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(broker) as own:
        await own.publish("plant/1", reading(1.0), qos=1, retain=True)
        await own.publish("plant/2", reading(2.0, measured_at=5.0), qos=1, retain=True)
        async with MqttPeer(address(broker, readings_topic="plant/#")) as peer:
            await own.publish("plant/3", reading(3.0), qos=1)
            readings = peer.readings()
            assert [(await anext(readings))["values"] for _ in range(2)] == [[2.0], [3.0]]
    assert "dropped a retained reading without measured_at" in caplog.text


async def test_a_reading_that_comes_twice_counts_once(any_broker: Broker) -> None:
    async with (
        MqttPeer(address(any_broker, readings_topic="plant")) as peer,
        client(any_broker) as own,
    ):
        for key, value in (("r1", 1.0), ("r1", 1.0), ("r2", 2.0)):
            await own.publish("plant", reading(value, id=key), qos=1)
        readings = peer.readings()
        assert [(await anext(readings))["id"] for _ in range(2)] == ["r1", "r2"]


@pytest.mark.usefixtures("hasty")
async def test_a_retained_reading_counts_once_also_after_new_connections(tmp_path: Path) -> None:
    with run_broker("mosquitto", tmp_path) as broker:
        listening = address(broker, topic="", readings_topic="plant/#")
        async with client(broker) as own, MqttPeer(listening) as peer:
            # As it is published, and twice more as the broker keeps it.
            await own.publish("plant/1", reading(1.0, measured_at=5.0), qos=1, retain=True)
            readings = peer.readings()
            assert (await anext(readings))["values"] == [1.0]
            for _ in range(2):
                await peer._link._client.subscribe("plant/#", qos=1)  # type: ignore[union-attr] # it is connected
            await own.publish("plant/2", reading(1.0, measured_at=5.0), qos=1, retain=True)
            await own.publish("plant/2", reading(2.0, measured_at=6.0), qos=1)
            assert [(await anext(readings))["values"] for _ in range(2)] == [[1.0], [2.0]]
            assert peer.dropped == {"a retained reading that came before": 2}


async def test_what_is_no_reading_is_dropped_with_a_reason(
    any_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    listening = address(any_broker, readings_topic="plant", largest=200)
    async with MqttPeer(listening) as peer, client(any_broker) as own:
        for payload in ("hello", reading(float("nan")), "x" * 300, reading(1.0)):
            await own.publish("plant", payload, qos=1)
        assert (await anext(peer.readings()))["values"] == [1.0]
        told = {
            "a reading that cannot be read (the first: it sent no JSON: 'hello')": 2,
            "a reading of more than 200 bytes": 1,
        }
        assert peer.dropped == told
    assert [each.getMessage() for each in caplog.records] == [f"dropped {each}" for each in told]


async def test_a_source_of_readings_only_cannot_be_asked(any_broker: Broker) -> None:
    listening = address(any_broker, topic="", readings_topic="plant")
    async with MqttPeer(listening) as peer:
        await fails(peer, "only sends readings")


# Addresses


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "give a topic to ask"),
        ({"topic": "lab/#"}, "without the wildcards"),
        ({"topic": "lab", "password_env": "WORD"}, "needs username_env"),
        (
            {"topic": "lab", "host": "b.example", "username_env": "U", "password_env": "WORD"},
            "sent unencrypted to 'b.example'",
        ),
        ({"topic": "lab", "ca_file": "ca.pem"}, "needs tls = true"),
        ({"topic": "lab", "port": 0}, "port"),
        ({"topic": "lab", "version": "4"}, "version"),
    ],
)
async def test_an_address_that_makes_no_sense_is_refused(
    fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        MqttAddress(**fields)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Make a certificate for 127.0.0.1 that vouches for itself, with its key beside it."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    made = tmp_path / "certificate.pem"
    options = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext"
    subprocess.run(
        [
            *(program, *options.split(), "subjectAltName=IP:127.0.0.1"),
            *("-out", str(made), "-keyout", str(tmp_path / "key.pem")),
        ],
        check=True,
        capture_output=True,
    )
    return made


async def test_an_encrypted_connection_is_made_if_the_certificate_is_trusted(
    tmp_path: Path, certificate: Path
) -> None:
    options = f"certfile {certificate}\nkeyfile {tmp_path / 'key.pem'}\n"
    with run_broker("mosquitto", tmp_path, options) as broker:
        trusting = address(broker, tls=True, ca_file=certificate, timeout=0.2)
        async with MqttPeer(trusting) as peer:
            await fails(peer, "^did not reply within 0.2 s$")
        async with MqttPeer(address(broker, tls=True, timeout=0.2)) as peer:
            await fails(peer, "could not be made: .*certificate verify failed")


async def test_a_user_is_let_in_by_the_password_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path / "passwords"
    program = shutil.which("mosquitto_passwd")
    if program is None:
        pytest.skip("mosquitto_passwd is not installed; `make broker` installs Debian's")
    subprocess.run([program, "-b", "-c", str(passwords), "ann", "pass-word"], check=True)
    monkeypatch.setenv("SPARQ_TEST_USER", "ann")
    fields = {"username_env": "SPARQ_TEST_USER", "password_env": "SPARQ_TEST_WORD"}
    with run_broker("mosquitto", tmp_path, f"password_file {passwords}\n") as broker:
        monkeypatch.setenv("SPARQ_TEST_WORD", "pass-word")
        async with MqttPeer(address(broker, **fields, timeout=0.2)) as peer:
            await fails(peer, "^did not reply within 0.2 s$")
        monkeypatch.setenv("SPARQ_TEST_WORD", "wrong-word")
        async with MqttPeer(address(broker, **fields, timeout=0.2)) as peer:
            with pytest.raises(PeerError, match=r"could not be made: .*Not authorized") as told:
                await peer.exchange({"id": "a"})
            assert "-word" not in str(told.value)
            assert "-word" not in repr(peer) + repr(address(broker, **fields))


async def test_the_port_of_an_encrypted_connection_is_another() -> None:
    assert MqttAddress(topic="lab").broker == "localhost:1883"
    assert MqttAddress(topic="lab", tls=True).broker == "localhost:8883"


async def test_a_secret_that_is_not_set_is_named() -> None:
    with pytest.raises(SparqError, match="variable SPARQ_TEST_USER is not set"):
        async with MqttPeer(MqttAddress(topic="lab", username_env="SPARQ_TEST_USER")):
            pass


async def test_a_file_of_certificates_that_is_none_is_named(tmp_path: Path) -> None:
    wrong = tmp_path / "ca.pem"
    with pytest.raises(SparqError, match=r"ca.pem cannot be used: No such file"):
        async with MqttPeer(MqttAddress(topic="lab", tls=True, ca_file=wrong)):
            pass
    wrong.write_text("none")
    with pytest.raises(SparqError, match=r"ca.pem cannot be used"):
        async with MqttPeer(MqttAddress(topic="lab", tls=True, ca_file=wrong)):
            pass
