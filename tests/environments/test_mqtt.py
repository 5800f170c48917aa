"""The environment `mqtt`: in a scenario file, and in a live play over a real broker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from sparq_environments.mqtt import Mqtt
from sparq_sim import Rules, Scenario, play_live
from sparq_sim.errors import LiveOnlyError
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.remote.serve.mqtt import serve_mqtt
from tests.remote.brokers import Broker, broker
from tests.remote.serve.asks import add_up
from tests.remote.test_mqtt import address

__all__ = ["broker"]

SCENARIO = """
rounds = 3
optimizers = ["uniform"]

[environment]
kind = "mqtt"
host = "broker.example"
topic = "plant/apply"
bounds = [[0.0, 1.0]]
names = ["valve"]
safe_state = [0.5]
"""


def load(folder: Path, text: str) -> Scenario:
    file = folder / "live.toml"
    file.write_text(text, encoding="utf-8")
    return Scenario.load(file)


def test_it_is_read_from_a_scenario_file(tmp_path: Path) -> None:
    environment = load(tmp_path, SCENARIO).environment
    assert isinstance(environment, Mqtt)
    assert environment.make_domain().names == ("valve",)
    assert environment.safe_states.interrupt == (0.5,)


def test_it_is_played_live_only(tmp_path: Path) -> None:
    with pytest.raises(LiveOnlyError, match="environment Mqtt"):
        load(tmp_path, SCENARIO).play("uniform")


def test_it_has_a_topic_to_be_told_and_no_readings() -> None:
    with pytest.raises(ValidationError, match="must be told which point to apply"):
        Mqtt(readings_topic="plant", bounds=((0.0, 1.0),))
    with pytest.raises(ValidationError, match="rewards come as replies"):
        Mqtt(topic="plant", readings_topic="plant/+", bounds=((0.0, 1.0),))


@pytest.mark.asyncio
async def test_each_point_is_applied_and_its_reward_observed(broker: Broker) -> None:
    here = address(broker)
    plant = Mqtt(**here.model_dump(), bounds=((0.0, 1.0),), names=("valve",))
    async with serve_mqtt(add_up, here):
        for seconds in (0.1, 0.5, 3.0):  # Each time more slowly: the machine may be busy.
            trace = await play_live(Uniform(), plant, Rules(rounds=4), seconds=seconds)
            if not np.isnan(trace.rounds["reward"]).any():
                break
    assert trace.rounds["reward"].tolist() == trace.rounds["valve"].tolist()
    assert np.isnan(trace.rounds["regret"]).all()
