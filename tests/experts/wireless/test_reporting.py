from __future__ import annotations

from math import inf, nan

import pytest
from pydantic import ValidationError

from sparq_environments.sensor_network import SensorNetwork
from sparq_experts.sensors import Sensors
from sparq_experts.wireless.presets import LoraSx1272Eu868
from sparq_experts.wireless.reporting import OnDelta, Periodic
from sparq_sim import Channel, Rules, play
from sparq_sim.optimizers.fixed import Fixed


def test_a_periodic_reading_is_always_sent() -> None:
    assert Periodic(every=60.0).is_due(1.0, 1.0, 0.0)


def test_a_reading_is_sent_where_it_differs_enough_from_the_last_one_sent() -> None:
    push = OnDelta(every=60.0, delta=0.5)
    assert push.is_due(1.0, nan, inf)
    assert not push.is_due(1.4, 1.0, 1e9)
    assert push.is_due(1.5, 1.0, 60.0)
    assert push.is_due(0.5, 1.0, 60.0)


def test_silence_ends_after_its_time() -> None:
    push = OnDelta(every=60.0, delta=0.5, silence=600.0)
    assert not push.is_due(1.0, 1.0, 540.0)
    assert push.is_due(1.0, 1.0, 600.0)


def test_a_silence_shorter_than_a_measurement_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"silence 30 s.*60 s.*periodic"):
        OnDelta(every=60.0, delta=0.5, silence=30.0)


def test_jitter_makes_other_packets_collide_each_time() -> None:
    radio = LoraSx1272Eu868(spreading_factor=10, channels=1, capture="none", duty_limit=1.0)
    mixed = {}
    for jitter in (0.0, 10.0):
        push = Periodic(every=20.0, jitter=jitter)
        sensors = Sensors(seconds=60, scale=0.01, radio=radio, push=push)
        rules = Rules(rounds=20)
        trace = play(
            Fixed(point=(40.74, -73.78)),
            SensorNetwork(),
            rules,
            experts={"net": (sensors, Channel())},
        )
        nodes = trace.accounts["net/nodes"]
        lucky = (nodes["delivered"] > 0) & (nodes["collided"] > 1)
        mixed[jitter] = int(lucky.sum())
    assert mixed[0.0] == 0
    assert mixed[10.0] == len(nodes["name"])


def test_jitter_as_long_as_the_period_is_refused() -> None:
    with pytest.raises(ValueError, match="jitter 20 s: would reach the next one, 20 s later"):
        Periodic(every=20.0, jitter=20.0)


@pytest.mark.parametrize("every", [1e-12, 0.00099])
def test_times_below_a_millisecond_are_refused(every: float) -> None:
    with pytest.raises(ValidationError, match=r"every\n.*greater than or equal to 0\.001"):
        Periodic(every=every)
    with pytest.raises(ValidationError, match=r"every\n.*greater than or equal to 0\.001"):
        OnDelta(every=every, delta=1.0)
    assert Periodic(every=0.001).every == 0.001
