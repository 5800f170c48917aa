from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from sparq_experts.sensors import Sensors
from sparq_experts.wireless.lifetime import compute_lifetime
from sparq_experts.wireless.presets import LoraSx1272Eu868
from sparq_sim import Scenario, Trace, play_live
from sparq_sim.simulation.trace import first_difference
from sparq_sim.study.executors import Processes
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from sparq_sim.testing import Slope, WaitlessLoop, check_expert
from tests.experts import consult
from tests.experts.wireless.networks import (
    CC2420,
    SF7,
    Caller,
    Outcome,
    Town,
    play_town,
    select,
    sensors,
)
from tests.gappy import Gappy

DAYS = 86_400.0
ACKNOWLEDGED = {**SF7, "acknowledged": True, "retransmissions": 2}
LISTENINGS: list[dict[str, Any]] = [
    {"kind": "always"},
    {"kind": "windows", "every": 0.3},
    {"kind": "wake-ups", "every": 0.4, "lasting": 0.1},
]
PUSH = {"kind": "periodic", "every": 30.0}


# The laws


@pytest.mark.parametrize(
    "expert",
    [
        sensors(seconds=DAYS, scale=0.02, battery=np.inf),
        sensors(
            seconds=DAYS,
            scale=0.02,
            ends_when_dead=1.0,
            push={"kind": "periodic", "every": 7200.0},
        ),
        sensors(seconds=DAYS, scale=0.02, listening={"kind": "windows"}, remember=0.5),
        sensors(
            seconds=DAYS,
            scale=0.02,
            radio={"kind": "lora-whole-node", "acknowledged": True, "retransmissions": 1},
            push={"kind": "on-delta", "every": 7200.0, "delta": 2.0},
            listening={"kind": "wake-ups", "every": 600.0, "lasting": 1.0},
            harvest={"kind": "daylight", "power": 0.01},
            noise=0.5,
            drift=0.01,
            cost_per_joule=0.1,
        ),
    ],
    ids=["asked", "push", "class-a", "all"],
)
def test_it_obeys_the_laws_on_a_network_of_sites(expert: Sensors) -> None:
    check_expert(expert, "sensor-network")


@pytest.mark.parametrize("radio", [SF7, CC2420], ids=["lora", "ieee802154"])
def test_it_obeys_the_laws_over_a_field(radio: dict[str, Any]) -> None:
    expert = sensors(
        radio=radio,
        seconds=600.0,
        scale=3.0,
        nodes={"scattered": 12, "seed": 1},
        roughness=0.5,
        push={"kind": "periodic", "every": 300.0},
    )
    check_expert(expert, "plume")


# The same play, wherever and however


def play_virtually_and_live(model: Sensors, **fields: Any) -> tuple[Outcome, Outcome]:
    def live(*args: Any, **keywords: Any) -> Trace:
        with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
            return runner.run(play_live(*args, **keywords))

    town, caller = Town(sites=5), Caller(each_round=(0, 3, 3))
    return (
        play_town(model, town, rounds=12, caller=caller, **fields),
        play_town(model, town, rounds=12, caller=caller, played=live, **fields),
    )


@pytest.mark.parametrize("listening", LISTENINGS, ids=lambda each: each["kind"])
@pytest.mark.parametrize("radio", [ACKNOWLEDGED, CC2420], ids=["lora", "ieee802154"])
def test_both_clocks_give_one_trace(radio: dict[str, Any], listening: dict[str, Any]) -> None:
    lora = radio["kind"].startswith("lora")
    kind = "oulu" if lora else "castalia-2.4ghz"
    model = sensors(
        radio={**radio, "duty_limit": 0.5},
        listening=listening,
        push={"kind": "periodic", "every": 1.7},
        path_loss={"kind": kind, "shadowing": 3.0, "fading": "rayleigh"},
        scale=10.0 if lora else 0.05,
        battery=0.3,
        measuring_time=0.05,
        measuring_energy=1e-3,
        noise=0.1,
    )
    virtual, real = play_virtually_and_live(model, channel={"patience": 0.9})
    assert len(virtual.packets["number"]) > 20
    assert first_difference(virtual.trace, real.trace) is None
    assert virtual.trace.digest() == real.trace.digest()


def test_processes_play_as_one(tmp_path: Path) -> None:
    scenario = Scenario.model_validate(
        {
            "title": "network",
            "rounds": 15,
            "environment": {"kind": "sensor-network"},
            "experts": {
                "network": {
                    "kind": "sensors",
                    "seconds": DAYS,
                    "scale": 0.02,
                    "push": {"kind": "periodic", "every": 20_000.0},
                    "noise": 0.5,
                    "battery": 40_000.0,
                    "ends_when_dead": 1.0,
                    "channel": {"split": True},
                }
            },
            "optimizers": ["sparq-gp-ucb"],
            "record": "full",
            "replications": 3,
        }
    )

    def digests(name: str, executor: Processes) -> dict[str, str]:
        report = Study(scenario, tmp_path / name).run(executor)
        assert (report.done, report.failed_plays) == (3, ())
        return {each.key: each.digest for each in Results.open(tmp_path / name).finished()}

    one = digests("one", Processes(1))
    assert len(set(one.values())) == 3
    assert digests("two", Processes(2)) == one


def test_what_others_are_asked_changes_neither_noise_nor_phase_of_a_node() -> None:
    model = sensors(radio=SF7, noise=0.3, push=PUSH, battery=np.inf)
    quiet = play_town(model, Town(sites=3), rounds=3, period=30.0)
    asked = play_town(model, Town(sites=3), rounds=3, period=30.0, caller=Caller(each_round=(1,)))
    for node in (0, 2):
        mine, theirs = (select(each.pushed, x0=100.0 * node) for each in (quiet, asked))
        assert mine["value"].tolist() == theirs["value"].tolist()
        assert mine["measured_at"].tolist() == theirs["measured_at"].tolist()


def test_another_replication_has_other_phases_and_the_same_links() -> None:
    model = Sensors.model_validate({"radio": SF7, "push": PUSH, "seed": 4})
    one, other = (play_town(model, Town(sites=4), rounds=2, period=30.0, seed=s) for s in (0, 1))
    assert one.nodes["margin"].tolist() == other.nodes["margin"].tolist()
    assert one.packets["started_at"].tolist() != other.packets["started_at"].tolist()
    moved = play_town(model.model_copy(update={"seed": 5}), Town(sites=4), rounds=2, period=30.0)
    assert one.nodes["margin"].tolist() != moved.nodes["margin"].tolist()


# Lifetime

LORA = LoraSx1272Eu868(spreading_factor=7)
EVERY = 600.0


@pytest.mark.parametrize(
    ("listening", "rest", "extra", "receiving"),
    [
        ({"kind": "windows", "every": 1e6}, LORA.sleep, 0.0, 2 * LORA.shortest_listen),
        (
            {"kind": "wake-ups", "every": 10.0, "lasting": 0.01},
            0.999 * LORA.sleep + 0.001 * LORA.listen,
            0.0,
            0.0,
        ),
        # While it sends it does not listen.
        ({"kind": "always"}, LORA.listen, LORA.listen, 0.0),
    ],
    ids=["windows", "wake-ups", "always"],
)
def test_a_fixed_schedule_lasts_as_long_as_the_closed_form_says(
    listening: dict[str, Any], rest: float, extra: float, receiving: float
) -> None:
    measure, periods = 0.004, 40
    packet = measure + LORA.send_draw * LORA.airtime(12) + LORA.listen * receiving
    battery = periods * (packet + rest * EVERY)
    expected = compute_lifetime(
        battery,
        period=EVERY,
        sleep=rest,
        send=LORA.send_draw - extra,
        airtime=LORA.airtime(12),
        measure=measure,
        receive=LORA.listen,
        receiving=receiving,
    )
    outcome = play_town(
        sensors(
            radio=SF7,
            seconds=60.0,
            battery=battery,
            measuring_energy=measure,
            listening=listening,
            push={"kind": "periodic", "every": EVERY},
        ),
        Town(sites=8),
        rounds=periods + 3,
        period=EVERY / 60,
    )
    assert 35 * EVERY < expected < 41 * EVERY
    died_at = outcome.nodes["died_at"] * 60
    assert (abs(died_at - expected) <= EVERY).all()
    assert (abs(outcome.nodes["sent"] - expected / EVERY) <= 1).all()


def test_a_node_that_only_sends_signs_of_life_lasts_as_the_closed_form_says() -> None:
    packet = LORA.send_draw * LORA.airtime(0) + LORA.listen * 2 * LORA.shortest_listen
    battery = 30 * (packet + LORA.sleep * EVERY)
    outcome = play_town(
        sensors(radio=SF7, battery=battery, listening={"kind": "windows", "every": EVERY}),
        Town(sites=4),
        rounds=33,
        period=EVERY,
    )
    assert set(outcome.packets["purpose"]) == {"heartbeat"}
    assert (abs(outcome.nodes["died_at"] - 30 * EVERY) <= EVERY).all()


def test_harvest_makes_a_node_last() -> None:
    def died_at(**fields: Any) -> float:
        outcome = play_town(sensors(radio=SF7, battery=1.0, **fields), rounds=40, period=1.0)
        return float(outcome.nodes["died_at"][0])

    assert died_at() == pytest.approx(1.0 / LORA.listen)
    assert died_at(harvest={"kind": "constant", "power": 0.01}) == pytest.approx(
        1.0 / (LORA.listen - 0.01)
    )
    assert np.isnan(died_at(harvest={"kind": "constant", "power": 0.04}))


# The end


def test_the_play_ends_when_the_first_node_is_dead() -> None:
    nodes = [{"name": "site-0"}, {"name": "site-1", "battery": 0.1}, {"name": "site-2"}]
    outcome = play_town(
        sensors(radio=SF7, nodes=nodes, ends_when_dead="first"), Town(sites=3), rounds=50
    )
    assert outcome.trace.ended == "1 of 3 nodes dead: site-1"
    assert outcome.trace.ended_early
    assert outcome.nodes["died_at"][1] == pytest.approx(0.1 / LORA.listen)
    # It is noticed at the start of the next round.
    assert len(outcome.trace) == int(0.1 / LORA.listen)


def test_the_play_ends_when_a_share_of_nodes_is_dead() -> None:
    nodes = [{"name": f"site-{i}", "battery": 0.1 * (i + 1)} for i in range(4)]
    outcome = play_town(
        sensors(radio=SF7, nodes=nodes, ends_when_dead=0.6), Town(sites=4), rounds=50
    )
    assert outcome.trace.ended == "3 of 4 nodes dead: site-0, site-1, site-2"
    assert len(outcome.trace) == int(0.3 / LORA.listen)
    assert outcome.trace.rounds["meter_network_alive"].tolist() == [4, 4, 3, 3, 3, 2, 2, 2]


def test_a_network_whose_nodes_are_all_dead_is_played_to_the_end_unless_told() -> None:
    outcome = play_town(sensors(radio=SF7, battery=0.1), rounds=20, caller=Caller(each_round=(0,)))
    assert outcome.trace.ended == "rounds"
    assert outcome.asked["fate"].tolist() == ["answered"] * 2 + ["lost"] * 18


# Readings


def test_readings_that_nobody_asked_for_arrive_with_their_age() -> None:
    outcome = play_town(
        sensors(radio=SF7, push=PUSH, noise=0.2, computing_time=2.0, payload=40),
        Town(sites=3),
        rounds=4,
        period=30.0,
    )
    pushed = outcome.pushed
    assert len(pushed["value"]) == len(outcome.select(purpose="report")["number"]) >= 12
    assert set(pushed["fate"]) == {"answered"}
    age = pushed["arrived_at"] - pushed["measured_at"]
    assert age == pytest.approx(np.full(len(age), 2.0 + LORA.airtime(40)))
    assert set(pushed["std"]) == {0.2}


def test_noise_and_drift_have_their_stds() -> None:
    count = 300
    town = Town(sites=count, apart=1.0)

    def errors(**fields: Any) -> tuple[Any, Any]:
        outcome = play_town(
            sensors(radio={**SF7, "capture": "flora"}, push=PUSH, battery=np.inf, **fields),
            town,
            rounds=3,
            period=30.0,
        )
        pushed = outcome.pushed
        truth = np.sin(pushed["x0"] + 0.1 * pushed["measured_at"])
        return pushed, pushed["value"] - truth

    pushed, noise = errors(noise=0.5)
    assert len(noise) > 500
    assert abs(noise.mean()) <= 3 * 0.5 / np.sqrt(len(noise))
    assert abs(noise.std() - 0.5) <= 3 * 0.5 / np.sqrt(2 * len(noise))
    pushed, error = errors(drift=0.02)
    assert set(pushed["std"]) == {0.0}  # Nobody knows of it.
    rates = error / pushed["measured_at"]
    of_node = {x: rates[pushed["x0"] == x] for x in np.unique(pushed["x0"])}
    assert all(np.allclose(each, each[0]) for each in of_node.values())
    firsts = np.array([each[0] for each in of_node.values()])
    assert len(firsts) > 200
    assert abs(firsts.mean()) <= 3 * 0.02 / np.sqrt(len(firsts))
    assert abs(firsts.std() - 0.02) <= 3 * 0.02 / np.sqrt(2 * len(firsts))


def test_what_is_remembered_is_answered_at_once_without_energy() -> None:
    model = sensors(radio=SF7, remember=2.5)
    outcome = play_town(model, rounds=7, caller=Caller(each_round=(0,)))
    asked = outcome.asked
    assert asked["measured_at"] == pytest.approx(np.array([1, 1, 1, 4, 4, 4, 7]) + LORA.airtime(4))
    waited = asked["arrived_at"] - asked["asked_at"]
    assert (waited == 0).tolist() == [False, True, True, False, True, True, False]
    assert outcome.nodes["sent"].tolist() == [3]


def test_what_was_pushed_is_remembered_too() -> None:
    model = sensors(radio=SF7, remember=20.0, push={"kind": "periodic", "every": 8.0})
    outcome = play_town(model, rounds=4, caller=Caller(each_round=(0,)), period=10.0)
    assert not len(outcome.select(purpose="query")["number"])
    assert outcome.asked["fate"].tolist() == ["answered"] * 4
    assert set(outcome.asked["measured_at"]) <= set(outcome.pushed["measured_at"])


def test_send_on_delta_sends_less_and_no_reading_differs_by_more() -> None:
    def reports(push: dict[str, Any]) -> Outcome:
        return play_town(
            sensors(radio=SF7, push=push, battery=np.inf),
            Town(sites=2, speed=0.01),
            rounds=20,
            period=60.0,
        )

    always = reports({"kind": "periodic", "every": 60.0})
    sometimes = reports({"kind": "on-delta", "every": 60.0, "delta": 0.6})
    assert sometimes.nodes["sent"].sum() < 0.8 * always.nodes["sent"].sum()
    for x in (0.0, 100.0):
        known = select(sometimes.pushed, x0=x)
        assert (abs(np.diff(known["value"])) >= 0.6).all()
    still = play_town(
        sensors(radio=SF7, push={"kind": "on-delta", "every": 60.0, "delta": 0.1}),
        Town(speed=0.0),
        rounds=20,
        period=60.0,
    )
    assert still.nodes["sent"].tolist() == [1]


# Fields without sites


def test_a_node_answers_for_the_points_around_it_with_less_certainty() -> None:
    model = sensors(
        radio=SF7,
        nodes=[{"at": [0.25]}, {"at": [0.75]}],
        roughness=2.0,
        noise=0.3,
        reach=0.2,
    )
    heard = consult(model, [3.0], [0.25, 0.35, 0.9, 0.5], environment=Slope())
    (answer,), (failure,) = heard.answers, heard.failures
    assert answer.rows.tolist() == [0, 1, 2]
    expected = np.hypot(0.3, 2.0 * np.array([0.0, 0.1, 0.15]))
    assert answer.stds == pytest.approx(expected)
    assert answer.values[0] != answer.values[2]
    assert failure.rows.tolist() == [3]
    assert failure.reason == "no node is near enough"


def test_a_gap_in_the_record_is_no_reading() -> None:
    model = sensors(radio=SF7, nodes=[{"at": [0.25]}, {"at": [0.75]}], roughness=0.0)
    heard = consult(model, [6.0, 8.0], [0.25, 0.75], environment=Gappy())
    first, second = heard.answers
    assert (first.rows.tolist(), second.rows.tolist()) == ([0], [0, 1])
    (failure,) = heard.failures
    assert (failure.rows.tolist(), failure.reason) == ([1], "no reading")


def test_a_node_reports_no_gap() -> None:
    model = sensors(
        radio={**SF7, "duty_limit": 1.0},
        nodes=[{"at": [0.75]}],
        roughness=0.0,
        push={"kind": "periodic", "every": 0.5},
    )
    heard = consult(model, [], [0.75], environment=Gappy(), patience=10.0)
    measured = np.array([answer.measured_at for answer in heard.answers])
    assert len(measured) > 10
    assert not ((measured >= 5.0) & (measured < 7.0)).any()


# Refusals


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64])
def test_a_seed_out_of_range_is_refused_by_its_name(seed: int) -> None:
    with pytest.raises(ValidationError, match=r"seed\n.*(greater|less) than"):
        Sensors(seed=seed)


def test_retransmissions_need_acknowledgements() -> None:
    with pytest.raises(ValidationError, match=r"retransmissions = 2 without acknowledgements"):
        sensors(radio={**SF7, "retransmissions": 2})


@pytest.mark.parametrize("given", [2, 0, "last", True, -0.5])
def test_when_a_play_ends_is_the_first_death_or_a_share(given: object) -> None:
    with pytest.raises(
        ValidationError, match=r'should be "first", or a share above 0 and at most'
    ) as told:
        Sensors.model_validate({"ends_when_dead": given})
    assert told.value.error_count() == 1
