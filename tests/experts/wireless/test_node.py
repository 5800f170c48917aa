from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng

from sparq_experts.wireless.battery import Battery
from sparq_experts.wireless.listening import AlwaysOn, AnyListening, WakeUps, Windows
from sparq_experts.wireless.node import DutyCycle, Gateway, Node, find_rest_draws
from sparq_experts.wireless.presets import LoraSx1272Eu868
from sparq_sim.simulation.clock.virtual import SimClock

RADIO = LoraSx1272Eu868(spreading_factor=7)


def make_node(listening: AnyListening, **fields: Any) -> Node:
    given_fields: dict[str, Any] = {
        "battery": Battery(10.0),
        "up": (-100.0,),
        "down": (-90.0,),
        "phase": 2.0,
        "wake_phase": 2.0,
        **fields,
    }
    return Node(
        0,
        "node",
        np.zeros((1, 1)),
        RADIO,
        listening=listening,
        duty=DutyCycle(1.0, 1.0),
        gate=SimClock().gate(1),
        rng=default_rng(0),
        **given_fields,
    )


# Duty cycles


def test_a_duty_cycle_admits_its_share_of_any_window() -> None:
    duty = DutyCycle(0.1, 100.0)
    assert [duty.admit(moment, 4.0) for moment in (0.0, 10.0, 20.0)] == [True, True, False]
    assert duty.admit(20.0, 2.0)
    # A packet counts until a window after its end.
    assert not duty.admit(103.9, 4.0)
    assert duty.admit(104.1, 4.0)


def test_a_limit_of_one_is_none() -> None:
    duty = DutyCycle(1.0, 10.0)
    assert all(duty.admit(0.0, 100.0) for _ in range(10))


@given(
    st.floats(0.01, 0.9),
    st.floats(1.0, 100.0),
    st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(0.001, 20.0)), max_size=40),
)
def test_no_window_holds_more_airtime_than_allowed(
    limit: float, window: float, packets: list[tuple[float, float]]
) -> None:
    duty, now, sent = DutyCycle(limit, window), 0.0, []
    for gap, airtime in packets:
        now += gap
        if duty.admit(now, airtime):
            sent.append((now, now + airtime))
            now += airtime
        else:
            # Refused for a reason: those that count, and this one, are more than allowed.
            counted = sum(end - start for start, end in sent if end > now - window)
            assert counted + airtime > limit * window
    for moment in [end for _, end in sent] + [start + window for start, _ in sent]:
        within = sum(
            max(0.0, min(end, moment) - max(start, moment - window)) for start, end in sent
        )
        assert within <= limit * window * (1 + 1e-6)


# Listening


def test_a_node_that_always_listens_hears_unless_it_sends_or_is_dead() -> None:
    node = make_node(AlwaysOn())
    assert node.is_listening(1.0)
    node.sending = True
    assert not node.is_listening(1.0)
    node.sending = False
    assert not node.is_listening(10.0 / RADIO.listen + 1.0)


def test_a_node_with_windows_listens_in_them_alone() -> None:
    node = make_node(Windows())
    node.windows = ((1.0, 1.1), (2.0, 2.1))
    moments = (0.5, 1.0, 1.1, 1.5, 2.05, 2.2)
    assert [node.is_listening(moment) for moment in moments] == [
        *(False, True, True),
        *(False, True, False),
    ]


def test_a_node_with_wake_ups_listens_when_awake() -> None:
    node = make_node(WakeUps(every=10.0, lasting=1.0))
    moments = (1.0, 2.0, 2.9, 3.1, 12.5, 14.0)
    assert [node.is_listening(moment) for moment in moments] == [
        *(False, True, True),
        *(False, True, False),
    ]


def test_a_node_that_receives_cannot_receive_another() -> None:
    node = make_node(AlwaysOn())
    node.incoming = SimClock().signal()
    assert not node.is_listening(1.0)


# Energy


@pytest.mark.parametrize(
    ("listening", "expected"),
    [
        (AlwaysOn(), {"listen": RADIO.listen}),
        (Windows(), {"sleep": RADIO.sleep}),
        (
            WakeUps(every=10.0, lasting=1.0),
            {"sleep": 0.9 * RADIO.sleep, "listen": 0.1 * RADIO.listen},
        ),
    ],
    ids=["always", "windows", "wake-ups"],
)
def test_rest_draws_what_its_listening_takes(
    listening: AnyListening, expected: dict[str, float]
) -> None:
    node = make_node(listening)
    assert node.is_alive(20.0)
    used = {cause: energy / 20.0 for cause, energy in node.battery.used.items() if energy}
    assert used == pytest.approx(expected)


def test_work_is_drawn_on_top_of_what_the_radio_does() -> None:
    node = make_node(AlwaysOn())
    node.work(1.0, (("measure", 0.5),))
    node.switch(2.0, (("receive", RADIO.receive),))
    node.rest(3.0)
    node.work(4.0, ())
    node.is_alive(5.0)
    used = node.battery.used
    assert used["measure"] == pytest.approx(3 * 0.5)
    assert used["receive"] == pytest.approx(RADIO.receive)
    assert used["listen"] == pytest.approx(4 * RADIO.listen)


def test_a_node_is_asked_by_the_gateway_that_hears_it_best() -> None:
    assert make_node(AlwaysOn(), up=(-100.0, -80.0, -90.0)).gateway == 1


def test_a_gateway_is_taken_until_the_answer_is_due() -> None:
    gateway = Gateway(0, "gateway", DutyCycle(1.0, 1.0), default_rng(0), free_at=5.0)
    assert gateway.is_taken(4.9)
    assert not gateway.is_taken(5.0)
    gateway.sending = True
    assert gateway.is_taken(6.0)


def test_a_node_at_a_high_spreading_factor_listens_longer_at_each_wake_up() -> None:
    wake_ups = WakeUps(every=600.0, lasting=0.1)
    slow = LoraSx1272Eu868(spreading_factor=12)
    (_, _), (cause, power) = find_rest_draws(slow, wake_ups)
    assert cause == "listen"
    assert power == pytest.approx(slow.listen * slow.shortest_listen / 600.0)
    assert slow.shortest_listen == pytest.approx(0.16384)
