"""The expert `mqtt`: in a scenario file, and in live plays over a real broker."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparq_experts.mqtt import Mqtt
from sparq_sim import Rules, Scenario, Trace, play_live
from sparq_sim.errors import LiveOnlyError, ScenarioError
from sparq_sim.remote.serve.mqtt import serve_mqtt
from sparq_sim.remote.tasks import end_tasks
from sparq_sim.testing import Asker, Slope
from tests.remote.brokers import Broker, any_broker, broker
from tests.remote.serve.asks import add_up
from tests.remote.test_mqtt import address, client

__all__ = ["any_broker", "broker"]

SCENARIO = """
rounds = 3
environment.kind = "synthetic"
optimizers = ["uniform"]

[experts.lab]
kind = "mqtt"
host = "broker.example"
tls = true
topic = "lab/ask"
readings_topic = "lab/readings/+"
username_env = "LAB_USER"
password_env = "LAB_PASSWORD"
timeout = 10.0
"""


def load(folder: Path, text: str) -> Scenario:
    file = folder / "live.toml"
    file.write_text(text, encoding="utf-8")
    return Scenario.load(file)


def test_it_is_read_from_a_scenario_file(tmp_path: Path) -> None:
    expert = load(tmp_path, SCENARIO).experts["lab"].expert
    assert isinstance(expert, Mqtt)
    assert (expert.broker, expert.topic, expert.sends_readings) == (
        "broker.example:8883",
        "lab/ask",
        True,
    )


def test_it_is_played_live_only(tmp_path: Path) -> None:
    with pytest.raises(LiveOnlyError, match="expert 'lab': real"):
        load(tmp_path, SCENARIO).play("uniform")


def test_the_secrets_of_a_scenario_are_in_none_of_its_descriptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_PASSWORD", "s3cret")
    scenario = load(tmp_path, SCENARIO)
    assert "s3cret" not in repr(scenario) + scenario.model_dump_json()


def test_an_error_names_the_line_and_the_field(tmp_path: Path) -> None:
    wrong = SCENARIO.replace("tls = true\n", "")
    with pytest.raises(ScenarioError, match=r"live\.toml:\d+: experts\.lab.*sent unencrypted"):
        load(tmp_path, wrong)


def make_expert(broker: Broker, **fields: Any) -> Mqtt:
    return Mqtt(**{**address(broker).model_dump(), **fields})


def replies(trace: Trace) -> list[tuple[str, float]]:
    rows = np.flatnonzero(trace.replies["source"] == "lab")
    return [(str(trace.replies["fate"][row]), float(trace.replies["value"][row])) for row in rows]


async def played(expert: Mqtt, wanted: str, *, rounds: int = 6) -> Trace:
    """Play until there are two replies of the wanted fate, each time more slowly."""
    for seconds in (0.05, 0.3, 2.0):
        trace = await play_live(
            Asker(), Slope(), Rules(rounds=rounds), experts={"lab": expert}, seconds=seconds
        )
        if sum(fate == wanted for fate, _ in replies(trace)) >= 2:
            break
    return trace


@pytest.mark.asyncio
async def test_answers_over_a_broker_reach_the_play(broker: Broker) -> None:
    async with serve_mqtt(add_up, address(broker)):
        trace = await played(make_expert(broker), "answered")
    answered = trace.replies["fate"] == "answered"
    assert answered.sum() >= 2
    of_lab = answered & (trace.replies["source"] == "lab")
    assert trace.replies["value"][of_lab].tolist() == trace.replies["x0"][of_lab].tolist()


@pytest.mark.asyncio
async def test_without_a_broker_each_question_fails_and_the_play_goes_on(
    any_broker: Broker,
) -> None:
    any_broker.stop()
    trace = await played(make_expert(any_broker, timeout=0.05), "invalid")
    assert len(trace) == 6
    told = {str(reason) for reason in trace.replies["reason"] if "broker" in str(reason)}
    assert len(told) == 1
    assert f"the connection to the broker {any_broker.host}:{any_broker.port} could" in told.pop()


@asynccontextmanager
async def reporting(broker: Broker) -> AsyncIterator[None]:
    """Publish a dated reading every 20 ms, and leave an undated one with the broker."""
    async with client(broker) as own:
        undated = {"type": "reading", "points": [[0.5]], "values": [99.0]}
        await own.publish("plant", json.dumps(undated), qos=1, retain=True)

        async def report() -> None:
            while True:
                await asyncio.sleep(0.02)
                dated = {**undated, "values": [3.0], "measured_at": time.time()}
                await own.publish("plant", json.dumps(dated), qos=1)

        task = asyncio.create_task(report())
        try:
            yield
        finally:
            await end_tasks([task])


@pytest.mark.asyncio
async def test_readings_reach_the_play_and_an_old_one_without_a_date_does_not(
    any_broker: Broker,
) -> None:
    async with reporting(any_broker):
        trace = await played(make_expert(any_broker, topic="", readings_topic="plant"), "answered")
    values = {value for fate, value in replies(trace) if fate == "answered"}
    assert values == {3.0}
    assert any("retained" in reason for reason in trace.accounts["lab/dropped"]["reason"])
