from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_sim.arrays import Points
from sparq_sim.plugin.contract import Landscape
from tests.experts.wireless.networks import (
    SF7,
    Caller,
    Outcome,
    Town,
    TownLandscape,
    play_town,
    select,
    sensors,
)


def play_reports(push: dict[str, Any] | None, *, rounds: int = 10, **fields: Any) -> Outcome:
    model = sensors(radio=SF7, push=push, battery=np.inf, **fields)
    return play_town(model, Town(sites=4), rounds=rounds, period=60.0)


class LateTown(Town):
    """A town where for a while the first site alone has readings."""

    opens: ClassVar[float] = 40.0

    def start(self, rng: Generator) -> Landscape:
        return LateLandscape(self)


class LateLandscape(TownLandscape):
    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        there: NDArray[np.bool_] = (points[:, 0] == 0.0) | (time >= LateTown.opens)
        return there


def test_nodes_report_at_regular_times_each_at_its_own() -> None:
    outcome = play_reports({"kind": "periodic", "every": 30.0})
    phases = []
    for node in range(4):
        starts = outcome.select(node=node)["started_at"]
        assert np.diff(starts) == pytest.approx(np.full(len(starts) - 1, 30.0))
        assert len(starts) in (21, 22)
        phases.append(starts[0])
    assert (np.array(phases) < 30.0).all()
    assert len(set(phases)) == 4


@pytest.mark.parametrize("every", [1.0, 7200.0])
def test_first_reports_are_spread_over_the_time_between_two_whenever_nodes_wake_up(
    every: float,
) -> None:
    model = sensors(
        radio=SF7,
        battery=np.inf,
        push={"kind": "periodic", "every": 600.0},
        listening={"kind": "wake-ups", "every": every, "lasting": 0.1},
    )
    outcome = play_town(model, Town(sites=40, apart=1.0), rounds=1, period=599.0)
    first = [outcome.select(node=node)["started_at"][0] for node in range(40)]
    assert max(first) < 600.0
    # Ten of 40 are expected in each quarter: fewer than 3 in one has a probability below 0.5 %.
    assert (np.histogram(first, bins=4, range=(0.0, 600.0))[0] >= 3).all()


def test_signs_of_life_come_only_where_readings_do_not() -> None:
    windows = {"kind": "windows", "every": 200.0}
    never = {"kind": "on-delta", "every": 50.0, "delta": 10.0}
    silent = play_reports(never, listening=windows)
    for node in range(4):
        own = silent.select(node=node)
        assert own["purpose"].tolist() == ["report"] + ["heartbeat"] * (len(own["number"]) - 1)
        assert np.diff(own["started_at"]) == pytest.approx([200.0] * (len(own["number"]) - 1))
        assert len(own["number"]) >= 3
    busy = play_reports({"kind": "periodic", "every": 50.0}, listening=windows)
    assert set(busy.packets["purpose"]) == {"report"}


def test_a_sign_of_life_has_no_payload() -> None:
    outcome = play_reports(None, listening={"kind": "windows", "every": 100.0})
    lasted = outcome.packets["ended_at"] - outcome.packets["started_at"]
    airtime = outcome.model.radio.airtime(0)
    assert lasted == pytest.approx(np.full(len(lasted), airtime))
    assert not len(outcome.pushed["value"])


def test_silence_ends_after_its_time_whatever_the_reading() -> None:
    push = {"kind": "on-delta", "every": 50.0, "delta": 10.0, "silence": 150.0}
    outcome = play_reports(push)
    starts = outcome.select(node=0)["started_at"]
    assert np.diff(starts) == pytest.approx(np.full(len(starts) - 1, 150.0))


def test_signs_of_life_do_not_put_off_the_end_of_a_silence() -> None:
    push = {"kind": "on-delta", "every": 50.0, "delta": 10.0, "silence": 200.0}
    outcome = play_reports(push, rounds=20, listening={"kind": "windows", "every": 100.0})
    for node in range(4):
        own = outcome.select(node=node)
        reports = select(own, purpose="report")["started_at"]
        assert len(reports) >= 6
        assert np.diff(reports) == pytest.approx(np.full(len(reports) - 1, 200.0))
        # Between any two of them there is one sign of life.
        starts = own["started_at"]
        assert np.diff(starts) == pytest.approx(np.full(len(starts) - 1, 100.0))


def test_signs_of_life_keep_their_time_where_readings_are_rarer() -> None:
    """Some nodes would have their first reading after several silences."""
    push = {"kind": "periodic", "every": 1000.0}
    outcome = play_reports(push, rounds=50, listening={"kind": "windows", "every": 100.0})
    for node in range(4):
        own = outcome.select(node=node)
        starts, reports = own["started_at"], select(own, purpose="report")["started_at"]
        assert np.diff(reports) == pytest.approx(np.full(len(reports) - 1, 1000.0))
        assert len(reports) in (3, 4)
        assert starts[0] < 100.0
        assert (np.diff(starts) < 100.0 + 1e-6).all()
        assert len(starts) >= 30


def test_a_node_without_a_first_reading_sends_nothing() -> None:
    """Only where it has windows would it give a sign of life."""
    model = sensors(radio=SF7, push={"kind": "periodic", "every": 30.0})
    outcome = play_town(model, LateTown(sites=5), rounds=100)
    assert set(outcome.packets["purpose"]) == {"report"}
    early = outcome.packets["started_at"] < LateTown.opens
    assert set(outcome.packets["node"][early]) == {0}
    assert set(outcome.packets["node"][~early]) == set(range(5))


def test_what_a_busy_node_misses_is_left_out_and_it_keeps_its_beat() -> None:
    # Each measurement takes longer than the time to the next.
    push = {"kind": "periodic", "every": 30.0}
    outcome = play_reports(push, measuring_time=40.0)
    starts = outcome.select(node=0)["started_at"]
    assert np.diff(starts) == pytest.approx(np.full(len(starts) - 1, 60.0))


def test_a_report_waits_for_an_answer_under_way() -> None:
    model = sensors(
        radio={**SF7, "duty_limit": 1.0},
        push={"kind": "periodic", "every": 5.0},
        measuring_time=2.0,
    )
    outcome = play_town(model, rounds=20, caller=Caller(each_round=(0,)), period=6.3)
    up = outcome.select(direction="up")
    order = np.argsort(up["started_at"])
    assert {"report", "answer"} == set(up["purpose"])
    # Between the ends of any two packets lies a measurement of 2 s.
    assert (np.diff(up["ended_at"][order]) >= 2.0).all()


def test_only_readings_that_arrive_are_told() -> None:
    # Ten kilometres are too far for some packets under fading.
    outcome = play_reports(
        {"kind": "periodic", "every": 30.0},
        path_loss={"kind": "oulu", "shadowing": 0.0, "fading": "rayleigh"},
        scale=10.0,
        gateways=((0.0,),),
    )
    delivered = outcome.select(fate="delivered")
    assert 0 < len(delivered["number"]) < len(outcome.packets["number"])
    assert sorted(outcome.pushed["arrived_at"]) == pytest.approx(sorted(delivered["ended_at"]))
    for node in range(4):
        told = select(outcome.pushed, x0=100.0 * node)
        assert len(told["value"]) == outcome.nodes["delivered"][node]
