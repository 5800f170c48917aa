"""Asking: queries wait for a gateway that is busy, and get through."""

from __future__ import annotations

from sparq_environments.sensor_network import SensorNetwork
from sparq_experts.sensors import Sensors
from sparq_experts.wireless.listening import WakeUps
from sparq_experts.wireless.presets import LoraSx1272Eu868
from sparq_experts.wireless.reporting import Periodic
from sparq_sim import Channel, Rules, Trace, play
from sparq_sim.testing import Asker


def _play(sensors: Sensors) -> Trace:
    road = Channel(split=True)
    rules = Rules(rounds=20, period=0.25)
    return play(Asker(batch=12), SensorNetwork(), rules, experts={"network": (sensors, road)})


def test_a_query_that_misses_a_wake_up_waits_for_the_next_one() -> None:
    listening = WakeUps(every=5, lasting=0.1)
    trace = _play(Sensors(seconds=86_400, scale=0.02, listening=listening))
    assert set(trace.replies["fate"]) == {"answered"}
    assert "asleep" in trace.accounts["network/phases"]["phase"]


def test_a_query_waits_while_the_gateway_acknowledges() -> None:
    radio = LoraSx1272Eu868(acknowledged=True, duty_limit=1.0, gateway_duty_limit=1.0)
    push = Periodic(every=20)
    trace = _play(Sensors(seconds=600, scale=0.01, radio=radio, push=push, cost_per_joule=1.0))
    assert "acknowledgement" in trace.accounts["network/packets"]["purpose"]
    assert "queue" in trace.accounts["network/phases"]["phase"]
