from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from sparq_experts.wireless.accounts import Log, count_packets
from tests.experts.wireless.networks import CC2420, SF7, Caller, Town, play_town, select, sensors


def test_packets_are_counted_by_what_became_of_them() -> None:
    fates = ["delivered"] * 5 + ["collided"] * 2 + ["faded", "gateway full", "node dead"]
    counted = count_packets(Counter([*fates, "duty cycle", "channel busy", "channel busy"]))
    assert counted == {"sent": 10, "delivered": 5, "lost": 3, "collided": 2, "refused": 3}


def test_of_many_samples_of_energy_some_hundred_are_kept_evenly() -> None:
    log = Log(10.0)
    for number in range(5000):
        log.sample(10.0 * number, [])
    times = np.array([time for time, _ in log.levels])
    assert 200 <= len(times) <= 401
    assert times[0] == 0.0
    assert len(set(np.diff(times))) == 1
    assert times[-1] >= 5000 - np.diff(times)[0]


def test_levels_fall_as_energy_is_used() -> None:
    outcome = play_town(sensors(radio=SF7, battery=0.2), Town(sites=2), rounds=10)
    levels = outcome.table("levels")
    assert levels["time"].tolist() == np.repeat(np.arange(12.0), 2).tolist()
    draw = outcome.model.radio.listen
    expected = np.maximum(0.2 - draw * levels["time"], 0.0)
    assert levels["left"] == pytest.approx(expected, abs=1e-12)
    assert levels["alive"].tolist() == (expected > 0).tolist()


@pytest.mark.parametrize(
    "fields",
    [
        {"radio": SF7},
        {"radio": SF7, "listening": {"kind": "windows", "every": 12.0}},
        {"radio": SF7, "listening": {"kind": "wake-ups", "every": 3.0, "lasting": 0.2}},
        {"radio": {**SF7, "acknowledged": True, "retransmissions": 2}},
        {"radio": CC2420, "scale": 0.05},
    ],
    ids=["always", "windows", "wake-ups", "acknowledged", "ieee802154"],
)
def test_the_phases_of_a_query_are_its_life_from_asking_to_answer(fields: dict[str, Any]) -> None:
    model = sensors(measuring_time=0.3, **fields)
    outcome = play_town(
        model, Town(sites=3), rounds=4, caller=Caller(each_round=(0, 1, 1, 2)), period=60.0
    )
    phases = outcome.table("phases")
    answered = select(outcome.asked, fate="answered")
    assert len(answered["query"]) > 8
    for query, asked_at, arrived_at in zip(
        answered["query"], answered["asked_at"], answered["arrived_at"], strict=True
    ):
        own = select(phases, query=query)
        order = np.lexsort((own["ended_at"], own["started_at"]))
        starts, ends = own["started_at"][order], own["ended_at"][order]
        assert starts[0] == pytest.approx(asked_at)
        up = own["phase"] == "uplink"
        assert own["ended_at"][up] == pytest.approx([arrived_at])
        assert starts[1:] == pytest.approx(ends[:-1])
        packet = own["packet"][up][0]
        assert outcome.packets["ended_at"][packet] == pytest.approx(arrived_at)
