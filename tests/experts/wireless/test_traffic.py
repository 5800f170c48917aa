from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from sparq_experts.wireless.accounts import Log
from sparq_experts.wireless.battery import Battery
from sparq_experts.wireless.listening import AlwaysOn
from sparq_experts.wireless.medium import Medium, PacketFate
from sparq_experts.wireless.node import DutyCycle, Gateway, Node
from sparq_experts.wireless.presets import Ieee802154Cc2420, LoraSx1272Eu868
from sparq_experts.wireless.seconds_clock import SecondsClock
from sparq_experts.wireless.traffic import Errand, Traffic
from sparq_sim.simulation.clock.virtual import SimClock
from tests.experts.wireless.networks import (
    CC2420,
    QUIET,
    SF7,
    Caller,
    Outcome,
    Town,
    latencies,
    play_town,
    select,
    sensors,
)

LORA, CHIP = LoraSx1272Eu868(spreading_factor=7), Ieee802154Cc2420()
AT_THE_EDGE = 10 ** ((95.51 + 0.5 - 55.0) / 24.0)
"""Metres at which the signal of a CC2420 is 0.5 dB below the noise: every third packet is lost."""


def report(every: float, town: Town | None = None, *, lasting: float, **fields: Any) -> Outcome:
    """Have nodes send a reading every few seconds, and nothing else."""
    push = {"kind": "periodic", "every": every}
    return play_town(
        sensors(**{"battery": np.inf, "push": push, **fields}), town, rounds=1, period=lasting / 2
    )


def delivered(outcome: Outcome) -> float:
    """The share of readings that arrived."""
    first = outcome.select(purpose="report", attempt=1)
    return len(outcome.pushed["value"]) / len(first["number"])


# Carrier sense


def crowd(apart: float, gateway: float) -> Outcome:
    radio = {**CC2420, "acknowledged": False, "retransmissions": 0}
    town = Town(sites=2, apart=apart)
    return report(0.01, town, lasting=20.0, radio=radio, gateways=((gateway,),), payload=30)


def starts_of_overlapping(outcome: Outcome) -> list[float]:
    """From the start of a packet to that of the next, where they overlap, in seconds."""
    order = np.argsort(outcome.packets["started_at"])
    starts, ends = outcome.packets["started_at"][order], outcome.packets["ended_at"][order]
    apart: list[float] = (starts[1:] - starts[:-1])[ends[:-1] > starts[1:] + 1e-9].tolist()
    return apart


def test_nodes_that_hear_each_other_overlap_only_while_their_radios_turn_around() -> None:
    outcome = crowd(apart=5.0, gateway=2.5)
    apart = starts_of_overlapping(outcome)
    assert 0 < max(apart) <= 192e-6
    assert outcome.nodes["delivered"].sum() > 3000


def test_nodes_hidden_from_each_other_collide_more_often() -> None:
    # 30 m apart, of 8 m at which they would notice; each reaches the gateway between them.
    hidden, heard = crowd(apart=30.0, gateway=15.0), crowd(apart=5.0, gateway=2.5)
    assert max(starts_of_overlapping(hidden)) > 5 * 192e-6
    assert hidden.nodes["collided"].sum() > 3 * heard.nodes["collided"].sum()


def test_who_finds_the_air_busy_too_often_gives_up() -> None:
    # Ten nodes that each would send for a fifth of the time.
    radio = {**CC2420, "acknowledged": False, "retransmissions": 0}
    outcome = report(0.02, Town(sites=10, apart=0.1), lasting=4.0, radio=radio, payload=100)
    busy = outcome.select(fate="channel busy")
    assert len(busy["number"]) == outcome.nodes["refused"].sum() > 0
    assert (busy["channel"] == -1).all()
    assert (busy["energy"] == 0).all()
    # Listening costs, also where nothing is sent.
    assert (outcome.nodes["energy_listen"] > 0).all()


def test_listening_before_talking_takes_a_whole_number_of_units() -> None:
    radio = {**CC2420, "acknowledged": False, "retransmissions": 0}
    outcome = report(1.0, lasting=300.0, radio=radio, listening={"kind": "windows"})
    sent = outcome.packets["started_at"]
    units = np.round(np.diff(sent % 1.0) / 320e-6, 6)
    assert np.allclose(units, np.round(units), atol=1e-3)
    assert 0 < abs(units).max() <= 7
    # Of the waits, only the end is spent listening: 128 us a packet.
    windows = 2 * CHIP.shortest_listen * (CHIP.listen - CHIP.sleep)
    sensed = outcome.nodes["energy_listen"][0] / len(sent) - windows
    assert sensed == pytest.approx(128e-6 * CHIP.listen, rel=1e-3)


@pytest.mark.parametrize(
    ("exponents", "backoffs"),
    [((3, 5), 4), ((5, 7), 4), ((3, 3), 4), ((0, 2), 6), ((3, 5), 0)],
    ids=str,
)
def test_waits_grow_from_the_first_exponent_to_the_largest_until_the_sender_gives_up(
    exponents: tuple[int, int], backoffs: int
) -> None:
    """On a channel that is always busy: the sum of uniform waits, and as often 128 us to listen."""
    low, high = exponents
    count = 400
    radio = CHIP.model_copy(
        update={
            "min_exponent": low,
            "max_exponent": high,
            "backoffs": backoffs,
            "acknowledged": False,
        }
    )
    lasted = [time_until_given_up(radio, seed) for seed in range(count)]
    units = (np.array(lasted) - (backoffs + 1) * 128e-6) / 320e-6
    assert np.allclose(units, np.round(units), atol=1e-6)
    sizes = np.array([2 ** min(low + k, high) for k in range(backoffs + 1)])
    assert units.min() >= -1e-6
    assert units.max() <= (sizes - 1).sum() + 1e-6
    error = np.sqrt(((sizes**2 - 1) / 12).sum() / count)
    assert abs(units.mean() - ((sizes - 1) / 2).sum()) <= 3 * error


def time_until_given_up(radio: Ieee802154Cc2420, seed: int) -> float:
    """Have a node send while another sends without end, and give the seconds that it tries."""
    clock = SimClock()
    free = DutyCycle(1.0, 1.0)
    sender, jammer = (
        Node(
            index,
            f"node-{index}",
            np.zeros((1, 1)),
            radio,
            Battery(1e9),
            AlwaysOn(),
            free,
            up=(-80.0,),
            down=(-80.0,),
            gate=clock.gate(1),
            rng=default_rng((seed, index)),
            phase=0.0,
        )
        for index in range(2)
    )
    gateways = [Gateway(0, "gateway", free, default_rng(seed))]
    medium = Medium(gateways, [[-60.0, -60.0]] * 2, QUIET)
    log = Log(1.0)
    medium.begin_up(jammer, 10, 0.0, 1e6)
    traffic = Traffic(SecondsClock(clock, 1.0), medium, gateways, log)
    fate = clock.run(traffic.send_up(sender, Errand("report", 10)))
    assert fate is PacketFate.CHANNEL_BUSY
    assert len(log.packets) == 1
    return float(clock.now)


# Acknowledgements


def at_the_edge(retransmissions: int) -> Outcome:
    """One node with a bad link, which may send again."""
    radio = {
        **CC2420,
        "acknowledged": retransmissions > 0,
        "retransmissions": retransmissions,
        "chip_sensitivity": -100.0,
    }
    nodes = [{"name": "site-0", "distance": AT_THE_EDGE}]
    listening = {"kind": "wake-ups", "every": 10.0, "lasting": 1e-4}
    return report(0.1, lasting=150.0, radio=radio, nodes=nodes, payload=60, listening=listening)


def test_retransmissions_deliver_more_and_cost_energy() -> None:
    outcomes = [at_the_edge(times) for times in (0, 1, 3)]
    shares = [delivered(each) for each in outcomes]
    assert shares[0] < 0.8
    assert shares[0] + 0.05 < shares[1] < shares[2]
    energies = [each.energy[0] for each in outcomes]
    assert energies[0] < energies[1] < energies[2]
    sent = [each.nodes["sent"][0] for each in outcomes]
    assert sent[0] < sent[1] < sent[2]


def test_one_retransmission_delivers_what_two_independent_tries_do() -> None:
    outcome = at_the_edge(1)
    tries = outcome.select(purpose="report")
    once = (tries["fate"] == "delivered").mean()
    readings = len(outcome.select(purpose="report", attempt=1)["number"])
    expected = 1 - (1 - once) ** 2
    error = np.sqrt(expected * (1 - expected) / readings)
    assert abs(delivered(outcome) - expected) <= 3 * error


def test_a_reading_that_is_sent_twice_arrives_once() -> None:
    """What is acknowledged in vain is sent again, and known already."""
    radio = {**SF7, "acknowledged": True, "retransmissions": 2, "gateway_duty_limit": 1e-9}
    outcome = report(30.0, lasting=300.0, radio=radio)
    attempts = outcome.select(purpose="report", fate="delivered")["attempt"].tolist()
    assert attempts[:27] == [1, 2, 3] * 9
    assert delivered(outcome) == 1.0
    acknowledgements = outcome.select(purpose="acknowledgement")
    assert set(acknowledgements["fate"]) == {"duty cycle"}


def test_an_acknowledgement_comes_in_the_first_window_and_ends_the_matter() -> None:
    radio = {**SF7, "acknowledged": True, "retransmissions": 3}
    outcome = report(30.0, lasting=300.0, radio=radio, listening={"kind": "windows"})
    up, down = outcome.select(direction="up"), outcome.select(direction="down")
    assert set(outcome.packets["fate"]) == {"delivered"}
    assert set(outcome.packets["attempt"]) == {1}
    assert down["started_at"] == pytest.approx(up["ended_at"][: len(down["number"])] + 1.0)
    lasted = down["ended_at"] - down["started_at"]
    assert lasted == pytest.approx(np.full(len(lasted), LORA.ack_airtime))
    expected = LORA.receive * lasted.sum()
    assert outcome.nodes["energy_receive"] == pytest.approx([expected])


def test_an_acknowledgement_of_ieee802154_takes_352_us_after_192() -> None:
    outcome = report(1.0, lasting=30.0, radio=CC2420)
    up, down = outcome.select(direction="up"), outcome.select(purpose="acknowledgement")
    assert down["started_at"] - up["ended_at"] == pytest.approx(np.full(len(up["number"]), 192e-6))
    assert down["ended_at"] - down["started_at"] == pytest.approx(
        np.full(len(up["number"]), 352e-6)
    )


def test_a_query_that_is_lost_is_sent_again_as_often_as_allowed() -> None:
    radio = {**CC2420, "chip_sensitivity": -110.0}
    outcome = play_town(
        sensors(radio=radio, nodes=[{"name": "site-0", "distance": 2 * AT_THE_EDGE}]),
        rounds=2,
        caller=Caller(calls={1: (0,)}),
    )
    assert outcome.select(purpose="query")["attempt"].tolist() == [1, 2, 3, 4]
    assert outcome.asked["fate"].tolist() == ["lost"]
    assert outcome.asked["reason"].tolist() == ["site-0 did not receive the query: faded"]
    lost = outcome.table("phases")
    assert (lost["phase"] == "lost").sum() == 4


# Energy


def test_windows_cost_as_long_as_it_takes_to_notice_that_nothing_comes() -> None:
    outcome = report(60.0, lasting=1200.0, radio=SF7, listening={"kind": "windows"})
    expected = outcome.nodes["sent"][0] * 2 * LORA.shortest_listen * LORA.listen
    assert outcome.nodes["energy_listen"] == pytest.approx([expected], rel=1e-3)


def test_windows_that_are_listened_to_cost_the_same_as_those_that_are_counted_at_once() -> None:
    """A query that waits makes a node open its windows; without acknowledgement they are short."""
    every = {"kind": "windows", "every": 1e6}
    push = {"kind": "periodic", "every": 30.0}
    # The gateway may send nothing, so windows are opened in vain.
    radio = {**SF7, "gateway_duty_limit": 1e-9}
    asked = play_town(
        sensors(radio=radio, listening=every, push=push),
        rounds=1,
        caller=Caller(calls={1: (0,)}),
        period=29.0,
    )
    alone = play_town(sensors(radio=radio, listening=every, push=push), rounds=1, period=29.0)
    assert asked.asked["fate"].tolist() == ["unavailable"]
    assert asked.nodes["energy_listen"] == pytest.approx(alone.nodes["energy_listen"], rel=1e-3)


def test_sending_costs_the_draw_at_the_power_times_the_airtime() -> None:
    for power, draw in ((14.0, 0.1452), (2.0, 0.0792)):
        radio = {**SF7, "transmit_power": power}
        outcome = report(60.0, lasting=1200.0, radio=radio)
        expected = draw * outcome.nodes["airtime"]
        assert outcome.nodes["energy_send"] == pytest.approx(expected)
        assert outcome.nodes["airtime"] == pytest.approx(outcome.nodes["sent"] * LORA.airtime(12))


@pytest.mark.parametrize("measuring_time", [0.0, 0.5])
def test_a_measurement_takes_its_energy_also_while_a_query_comes(measuring_time: float) -> None:
    """A query that falls into a measurement takes nothing from it, nor it from the query."""
    model = sensors(
        radio={**SF7, "duty_limit": 1.0},
        push={"kind": "periodic", "every": 1.0},
        measuring_time=measuring_time,
        measuring_energy=0.01,
    )
    outcome = play_town(model, rounds=40, caller=Caller(each_round=(0,)), period=1.1)
    readings = len(outcome.select(attempt=1, direction="up")["number"])
    assert readings > 50
    used, one = outcome.nodes["energy_measure"][0], 0.01
    # One more may be under way or just sent when the play ends.
    assert readings * one * (1 - 1e-9) <= used <= (readings + 1) * one * (1 + 1e-9)
    received = outcome.select(purpose="query", fate="delivered")
    expected = LORA.receive * (received["ended_at"] - received["started_at"])
    assert received["energy"] == pytest.approx(expected)


def test_an_answer_waits_until_the_node_has_sent_its_report() -> None:
    model = sensors(
        radio={**SF7, "duty_limit": 1.0}, push={"kind": "periodic", "every": 0.3}, payload=100
    )
    outcome = play_town(model, rounds=30, caller=Caller(each_round=(0,)), period=0.77)
    down, up = LORA.airtime(4), LORA.airtime(100)
    answered = latencies(select(outcome.asked, fate="answered"))
    assert max(answered) > down + up + 0.01
    assert min(answered) == pytest.approx(down + up)
