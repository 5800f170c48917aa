from __future__ import annotations

import numpy as np
import pytest

from sparq_experts.wireless.presets import LoraWholeNode
from tests.experts.wireless.networks import Caller, Town, play_town, sensors

WHOLE = {"kind": "lora-whole-node", "spreading_factor": 7}


@pytest.mark.parametrize("time", [0.0, 0.4])
def test_measuring_and_computing_take_their_energy(time: float) -> None:
    model = sensors(radio=WHOLE, measuring_time=time, measuring_energy=0.02, computing_time=0.25)
    outcome = play_town(model, rounds=6, caller=Caller(each_round=(0,)), period=5.0)
    assert outcome.asked["fate"].tolist() == ["answered"] * 6
    assert outcome.nodes["energy_measure"] == pytest.approx([6 * 0.02])
    assert outcome.nodes["energy_compute"] == pytest.approx([6 * 0.25 * LoraWholeNode().compute])


def test_the_value_is_that_of_the_end_of_the_measurement() -> None:
    model = sensors(radio=WHOLE, measuring_time=2.0, computing_time=1.0)
    outcome = play_town(model, rounds=3, caller=Caller(each_round=(0,)), period=10.0)
    asked = outcome.asked
    assert asked["value"] == pytest.approx(np.sin(0.1 * asked["measured_at"]))
    begun = outcome.select(purpose="query")["ended_at"]
    assert asked["measured_at"] == pytest.approx(begun + 2.0)
    assert outcome.select(purpose="answer")["started_at"] == pytest.approx(begun + 3.0)


def test_a_node_that_dies_while_it_measures_reports_nothing() -> None:
    radio = LoraWholeNode(spreading_factor=7)
    enough = radio.listen * 11.0 + 0.5
    model = sensors(radio=WHOLE, measuring_time=2.0, measuring_energy=1.0, battery=enough)
    outcome = play_town(model, rounds=3, caller=Caller(calls={1: (0,)}), period=10.0)
    assert outcome.asked["fate"].tolist() == ["lost"]
    assert not len(outcome.select(direction="up")["number"])
    assert 10.0 < outcome.nodes["died_at"][0] < 12.0


def test_a_clock_unit_lasts_as_many_seconds_as_told() -> None:
    def play_in(seconds: float) -> list[float]:
        model = sensors(radio=WHOLE, measuring_time=3.0, seconds=seconds)
        outcome = play_town(
            model,
            Town(speed=0.1 * seconds),
            rounds=3,
            caller=Caller(each_round=(0,)),
            period=10.0 / seconds,
        )
        waited = (outcome.asked["arrived_at"] - outcome.asked["asked_at"]) * seconds
        return [*waited, *outcome.energy, *outcome.asked["value"]]

    assert play_in(60.0) == pytest.approx(play_in(1.0))
