"""Asking: when queries reach nodes, what becomes of them, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparq_environments.sensor_network import SensorNetwork
from sparq_experts.sensors import Sensors
from sparq_experts.wireless.listening import WakeUps
from sparq_experts.wireless.presets import Ieee802154Cc2420, LoraSx1272Eu868
from sparq_experts.wireless.reporting import Periodic
from sparq_sim import Channel, Rules, Trace, play
from sparq_sim.testing import Asker
from tests.experts.wireless.networks import (
    CC2420,
    SF7,
    Caller,
    Outcome,
    Town,
    latencies,
    play_town,
    select,
    sensors,
)

RADIO = LoraSx1272Eu868(spreading_factor=7)
DOWN, UP = RADIO.airtime(4), RADIO.airtime(12)
"""Seconds on the air of a query and of its answer."""


def ask(*calls: int, rounds: int = 2, town: Town | None = None, **fields: Any) -> Outcome:
    """Ask nodes, by number, in the first round of 10 s."""
    caller = Caller(calls={1: calls})
    return play_town(
        sensors(**{"radio": SF7, **fields}), town, rounds=rounds, caller=caller, period=10.0
    )


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


# When


def test_a_node_that_always_listens_is_asked_at_once() -> None:
    outcome = ask(0, measuring_time=0.25, computing_time=0.125)
    assert latencies(outcome.asked) == pytest.approx([DOWN + 0.25 + 0.125 + UP])
    assert outcome.asked["measured_at"] == pytest.approx([10.0 + DOWN + 0.25])


def test_queries_to_several_nodes_go_one_after_the_other() -> None:
    """The gateway cannot send while it receives, so each waits for the answer before it."""
    outcome = ask(0, 1, 2, town=Town(sites=3))
    once, guard = DOWN + UP, 0.01
    expected = [once, 2 * once + guard, 3 * once + 2 * guard]
    assert latencies(outcome.asked) == pytest.approx(expected)
    assert outcome.gateways["busiest"].tolist() == [1]


def test_a_second_gateway_asks_its_own_nodes_meanwhile() -> None:
    # Far from each other, so that neither hears the other's nodes.
    town = Town(sites=2, apart=20_000.0)
    outcome = ask(0, 1, town=town, gateways=((0.0,), (20_000.0,)))
    assert outcome.nodes["gateway"].tolist() == [0, 1]
    assert latencies(outcome.asked) == pytest.approx([DOWN + UP] * 2)


def test_a_node_with_windows_is_asked_after_its_own_packet() -> None:
    outcome = ask(0, rounds=3, listening={"kind": "windows", "every": 15.0})
    heartbeats = outcome.select(purpose="heartbeat")
    (query,) = outcome.select(purpose="query")["started_at"]
    (heard,) = [end for end in heartbeats["ended_at"] if 10.0 <= end <= query]
    assert query == pytest.approx(heard + 1.0)
    (latency,) = latencies(outcome.asked)
    assert latency == pytest.approx(heard - 10.0 + 1.0 + DOWN + UP)
    assert 1.0 < latency <= 15.0 + 1.0 + DOWN + 2 * UP
    phases = outcome.table("phases")
    asleep = select(phases, phase="asleep")
    assert asleep["ended_at"] - asleep["started_at"] == pytest.approx([query - 10.0])


def test_two_queries_to_a_node_with_windows_go_one_after_the_other() -> None:
    outcome = ask(0, 0, rounds=4, listening={"kind": "windows", "every": 15.0})
    assert outcome.asked["fate"].tolist() == ["answered"] * 2
    first, second = outcome.select(purpose="query")["started_at"]
    answered, _ = outcome.select(purpose="answer")["ended_at"]
    # The answer to the first is a packet of the node's own, after which it listens.
    assert second == pytest.approx(answered + 1.0)
    assert first + DOWN + UP == pytest.approx(answered)


def test_a_push_opens_windows_as_well_as_a_heartbeat() -> None:
    push = {"kind": "periodic", "every": 12.0}
    outcome = ask(0, rounds=3, listening={"kind": "windows", "every": 100.0}, push=push)
    assert not len(outcome.select(purpose="heartbeat")["number"])
    (query,) = outcome.select(purpose="query")["started_at"]
    assert np.isclose(outcome.select(purpose="report")["ended_at"] + 1.0, query).any()


@pytest.mark.parametrize("factor", [7, 11, 12])
def test_a_query_stands_for_the_acknowledgement_of_the_packet_before_it(factor: int) -> None:
    """Both are due in the first window: the query goes, and says that the packet was heard."""
    radio = {**SF7, "spreading_factor": factor, "acknowledged": True, "retransmissions": 2}
    outcome = play_town(
        sensors(
            radio=radio,
            push={"kind": "periodic", "every": 600.0},
            listening={"kind": "windows", "every": 600.0},
        ),
        rounds=30,
        caller=Caller(calls={1: (0,)}),
        period=60.0,
    )
    assert outcome.asked["fate"].tolist() == ["answered"]
    assert set(outcome.packets["fate"]) == {"delivered"}
    assert set(outcome.packets["attempt"]) == {1}
    up, down = outcome.select(direction="up"), outcome.select(direction="down")
    assert up["purpose"][:3].tolist() == ["report", "answer", "report"]
    assert down["purpose"][:3].tolist() == ["query", "acknowledgement", "acknowledgement"]
    assert down["started_at"] == pytest.approx(up["ended_at"] + 1.0)
    # The second window stays closed, so the answer follows the query at once.
    assert up["started_at"][1] == pytest.approx(down["ended_at"][0])


@pytest.mark.parametrize(
    ("radio", "first"),
    [
        ({**SF7, "acknowledged": True, "retransmissions": 2}, 5.0),
        (CC2420, 1.0),
        ({**CC2420, "acknowledged": False, "retransmissions": 0}, 1.0),
    ],
    ids=["LoRa", "IEEE 802.15.4", "IEEE 802.15.4 without acknowledgements"],
)
def test_windows_may_open_at_another_time_than_acknowledgements_come(
    radio: dict[str, object], first: float
) -> None:
    outcome = play_town(
        sensors(
            radio=radio,
            push={"kind": "periodic", "every": 60.0},
            listening={"kind": "windows", "every": 60.0, "first": first, "second": first + 1.0},
            scale=0.01,
        ),
        Town(sites=2),
        rounds=10,
        caller=Caller(calls={1: (1,), 4: (1,), 7: (0,)}),
        period=100.0,
    )
    assert outcome.asked["fate"].tolist() == ["answered"] * 3
    assert set(outcome.packets["fate"]) == {"delivered"}
    up, acknowledged = outcome.select(direction="up"), outcome.select(purpose="acknowledgement")
    expected = up["ended_at"] + outcome.model.radio.ack_delay
    if outcome.model.radio.acknowledged:
        assert acknowledged["started_at"] == pytest.approx(expected)
    queries = outcome.select(purpose="query")
    carrier_sense = 0.01  # At most: the longest first wait is 2.24 ms.
    for node, start in zip(queries["node"], queries["started_at"], strict=True):
        waited = start - up["ended_at"][up["node"] == node] - first
        assert waited[waited > -1e-6].min() < carrier_sense


def test_a_query_is_given_up_when_nothing_is_heard_from_a_node_with_windows() -> None:
    # Its battery is too small for one packet.
    nodes = [{"name": "site-0", "battery": 1e-4}]
    outcome = ask(0, rounds=6, nodes=nodes, listening={"kind": "windows", "every": 15.0})
    assert outcome.asked["fate"].tolist() == ["lost"]
    assert outcome.asked["reason"].tolist() == ["nothing was heard from site-0 for 30 s"]


def test_a_node_that_wakes_up_is_asked_when_it_does() -> None:
    every, lasting = 3.0, 0.2
    caller = Caller(each_round=(0,))
    model = sensors(radio=SF7, listening={"kind": "wake-ups", "every": every, "lasting": lasting})
    outcome = play_town(model, rounds=20, caller=caller, period=10.1)
    waited = np.array(latencies(outcome.asked)) - DOWN - UP
    assert (waited < every).all()
    assert waited.max() > 1.0
    starts = outcome.select(purpose="query")["started_at"]
    phases = starts[waited > 1e-6] % every
    # All at one phase of the cycle, but for queries that come while it is awake.
    assert np.allclose(phases, phases[0])
    awake = (starts[waited <= 1e-6] - phases[0]) % every
    assert (awake <= lasting).all()
    assert set(outcome.packets["fate"]) == {"delivered"}


# What becomes of it


def test_a_dead_node_loses_the_query_and_says_why() -> None:
    nodes = [{"name": "site-0", "battery": 1e-3}, {"name": "site-1"}]
    outcome = ask(0, 1, town=Town(sites=2), nodes=nodes)
    assert outcome.asked["fate"].tolist() == ["lost", "answered"]
    assert outcome.asked["heard"].tolist() == [True, True]
    assert outcome.asked["reason"][0] == "site-0 did not receive the query: node dead"
    assert outcome.nodes["died_at"][0] == pytest.approx(1e-3 / RADIO.listen)


def test_a_node_that_dies_while_it_answers_loses_the_answer() -> None:
    # Enough to listen for 10 s and to hear the query, not to send an answer.
    enough = RADIO.listen * 10 + RADIO.receive * DOWN + 0.5 * RADIO.send_draw * UP
    outcome = ask(0, nodes=[{"name": "site-0", "battery": enough}])
    assert outcome.asked["fate"].tolist() == ["lost"]
    assert outcome.asked["reason"].tolist() == ["the answer of site-0 was lost: node dead"]
    (answer,) = outcome.select(purpose="answer")["ended_at"]
    assert answer == pytest.approx(10.0 + DOWN + 0.5 * UP)
    assert outcome.nodes["died_at"].tolist() == pytest.approx([answer])


def test_a_site_without_a_node_has_no_answer() -> None:
    outcome = ask(0, 1, town=Town(sites=2), nodes=[{"name": "site-1"}])
    assert sorted(outcome.asked["fate"]) == ["answered", "unavailable"]
    (missing,) = select(outcome.asked, fate="unavailable")["reason"]
    assert missing == "no node is near enough"


def test_the_duty_cycle_refuses_what_exceeds_it_and_counts_it() -> None:
    radio = {**SF7, "duty_limit": 0.01, "duty_window": 60.0, "gateway_duty_limit": 1.0}
    allowed = int(0.01 * 60 / UP)
    caller = Caller(calls={1: (0,) * 15})
    outcome = play_town(sensors(radio=radio), rounds=1, caller=caller, period=60.0)
    assert allowed == 9
    assert outcome.asked["fate"].tolist() == ["answered"] * 9 + ["unavailable"] * 6
    assert set(outcome.asked["reason"][9:]) == {"site-0 may not send its answer: duty cycle"}
    assert (outcome.nodes["sent"][0], outcome.nodes["refused"][0]) == (9, 6)
    refused = outcome.select(fate="duty cycle")
    assert (refused["started_at"] == refused["ended_at"]).all()
    assert (refused["energy"] == 0).all()


def test_an_hour_later_the_duty_cycle_admits_again() -> None:
    radio = {**SF7, "duty_limit": 0.01, "duty_window": 60.0, "gateway_duty_limit": 1.0}
    caller = Caller(calls={1: (0,) * 15, 2: (0,) * 15})
    outcome = play_town(sensors(radio=radio), rounds=2, caller=caller, period=61.0 + 15)
    assert outcome.nodes["sent"].tolist() == [18]


def test_the_duty_cycle_of_a_gateway_refuses_queries() -> None:
    radio = {**SF7, "gateway_duty_limit": 0.01, "duty_window": 60.0, "duty_limit": 1.0}
    allowed = int(0.01 * 60 / DOWN)
    caller = Caller(calls={1: (0,) * 15})
    outcome = play_town(sensors(radio=radio), rounds=1, caller=caller, period=60.0)
    refused = select(outcome.asked, fate="unavailable")
    assert len(refused["reason"]) == 15 - allowed == 4
    assert set(refused["reason"]) == {"the duty cycle of gateway gateway is used up"}
    assert outcome.gateways["refused"].tolist() == [4]


def test_a_query_that_is_refused_leaves_the_gateway_free_at_once() -> None:
    """The next does not wait for the answer to one that was never sent."""
    radio = {**SF7, "gateway_duty_limit": 1e-9}
    outcome = ask(0, 1, 2, town=Town(sites=3), radio=radio, measuring_time=5.0)
    assert outcome.asked["fate"].tolist() == ["unavailable"] * 3
    assert latencies(outcome.asked) == pytest.approx([0.0] * 3, abs=1e-5)


# Patience


@pytest.mark.parametrize(
    ("listening", "patience"),
    [
        ({"kind": "always"}, 0.02),
        ({"kind": "always"}, 0.08),
        ({"kind": "always"}, 0.3),
        ({"kind": "windows", "every": 15.0}, 0.08),
        ({"kind": "windows", "every": 15.0}, 8.0),
        ({"kind": "wake-ups", "every": 7.0, "lasting": 0.2}, 0.08),
        ({"kind": "wake-ups", "every": 7.0, "lasting": 0.2}, 4.0),
    ],
    ids=str,
)
def test_who_gives_up_leaves_the_network_as_it_was(
    listening: dict[str, object], patience: float
) -> None:
    """Queries of all rounds but the last are given up sooner or later; that one finds all free."""
    model = sensors(radio={**SF7, "duty_limit": 1.0}, listening=listening)
    hurried = play_town(
        model,
        Town(sites=3),
        rounds=6,
        caller=Caller(each_round=(0, 1, 2, 0, 1, 2)),
        channel={"patience": patience},
        period=40.0,
    )
    assert "late" in hurried.asked["fate"]
    last = hurried.trace.rounds["meter_network_waiting"]
    assert (last == 0).all()  # After 40 s nobody waits any more.
    again = play_town(
        model,
        Town(sites=3),
        rounds=6,
        caller=Caller(calls={6: (0, 1, 2)}),
        channel={"patience": patience},
        period=40.0,
    )
    patient = play_town(
        model, Town(sites=3), rounds=6, caller=Caller(calls={6: (0, 1, 2)}), period=40.0
    )
    answered = again.asked["fate"] == "answered"
    expected = np.array(latencies(patient.asked)) <= patience
    assert answered.tolist() == expected.tolist()


def test_the_answer_to_one_who_has_given_up_is_sent_all_the_same() -> None:
    outcome = play_town(
        sensors(radio=SF7),
        rounds=2,
        caller=Caller(calls={1: (0,), 2: (0,)}),
        channel={"patience": DOWN + 0.5 * UP},
    )
    assert outcome.asked["fate"].tolist() == ["late", "late"]
    assert outcome.nodes["delivered"].tolist() == [2]


def test_an_answer_that_comes_too_late_serves_those_who_ask_later() -> None:
    outcome = play_town(
        sensors(radio=SF7, measuring_time=5.0, remember=1000.0),
        rounds=40,
        caller=Caller(calls={1: (0,), 20: (0,)}),
        channel={"patience": 2.0},
    )
    assert outcome.asked["fate"].tolist() == ["late", "answered"]
    assert latencies(outcome.asked)[1] == 0.0
    assert outcome.asked["measured_at"][1] == pytest.approx(1.0 + DOWN + 5.0)
    assert len(outcome.select(purpose="query")["number"]) == 1


def test_a_query_given_up_before_it_was_sent_never_is() -> None:
    outcome = play_town(
        sensors(radio=SF7, listening={"kind": "windows", "every": 15.0}),
        rounds=4,
        caller=Caller(calls={1: (0,)}),
        channel={"patience": 0.001},
        period=10.0,
    )
    assert outcome.asked["fate"].tolist() == ["late"]
    assert not len(outcome.select(purpose="query")["number"])


# What it costs


def test_the_asker_pays_for_the_energy_of_its_query() -> None:
    outcome = ask(0, cost_per_joule=100.0, measuring_energy=0.003)
    energy = RADIO.receive * DOWN + 0.003 + RADIO.send_draw * UP
    assert outcome.asked["cost"] == pytest.approx([100.0 * energy])
    assert outcome.trace.spent == pytest.approx(100.0 * energy)
    used = outcome.nodes["energy_receive"] + outcome.nodes["energy_send"]
    assert used + outcome.nodes["energy_measure"] == pytest.approx([energy])


def test_a_budget_stops_a_query_before_it_takes_energy() -> None:
    cost = 100.0 * (RADIO.receive * DOWN + RADIO.send_draw * UP)
    outcome = play_town(
        sensors(radio=SF7, cost_per_joule=100.0),
        rounds=5,
        caller=Caller(each_round=(0,)),
        budget=2.5 * cost,
    )
    assert outcome.asked["fate"].tolist() == ["answered"] * 2 + ["budget"] * 3
    assert outcome.trace.spent <= 2.5 * cost
    # What is left pays for hearing one more query or two, but for no answer.
    assert outcome.nodes["sent"].tolist() == [2]


@pytest.mark.parametrize(
    ("fields", "fate"),
    [
        ({"battery": 0.01}, "lost"),
        ({"radio": {**SF7, "gateway_duty_limit": 1e-9}}, "unavailable"),
    ],
    ids=["the node is dead", "the gateway may not send"],
)
def test_nobody_pays_for_energy_that_no_node_used(fields: dict[str, Any], fate: str) -> None:
    outcome = ask(0, cost_per_joule=1000.0, measuring_energy=0.01, **fields)
    assert outcome.asked["fate"].tolist() == [fate]
    assert outcome.nodes["energy_receive"].tolist() == [0.0]
    assert outcome.asked["cost"].tolist() == [0.0]
    assert outcome.trace.spent == 0.0


def test_an_answer_that_may_not_be_sent_is_not_paid() -> None:
    outcome = ask(0, cost_per_joule=1000.0, radio={**SF7, "duty_limit": 1e-9})
    assert outcome.asked["fate"].tolist() == ["unavailable"]
    assert outcome.asked["cost"] == pytest.approx([1000.0 * RADIO.receive * DOWN])


def test_what_is_sent_again_until_it_arrives_is_paid_too() -> None:
    chip = Ieee802154Cc2420()
    # Half a decibel below the noise, every third packet or so is lost.
    radio = {"kind": "ieee802154-cc2420", "chip_sensitivity": -100.0}
    nodes = [{"name": "site-0", "distance": 10 ** ((95.51 + 0.5 - 55.0) / 24.0)}]
    outcome = play_town(
        sensors(radio=radio, nodes=nodes, cost_per_joule=100.0, payload=60),
        rounds=60,
        caller=Caller(each_round=(0,)),
    )
    answered = select(outcome.asked, fate="answered")
    tries = []
    for query, cost in zip(answered["query"], answered["cost"], strict=True):
        queries = len(outcome.select(query=query, purpose="query")["number"])
        answers = outcome.select(query=query, purpose="answer")["fate"].tolist()
        sent = 1 + answers.index("delivered")
        energy = chip.receive * chip.airtime(4) * queries
        energy += chip.send_draw * chip.airtime(60) * sent
        assert cost == pytest.approx(100.0 * energy)
        tries.append((queries, sent))
    assert max(queries for queries, _ in tries) > 1
    assert max(sent for _, sent in tries) > 1
