"""The timeline of a play as trace events is valid, and is what the trace says."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparq_sim import Channel
from sparq_sim.errors import SparqError
from sparq_sim.report.trace_events import write_timeline
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope, Teller
from tests.plants import steer
from tests.report.networks import Gauges

SLOW = Channel(
    service={"kind": "exponential", "mean": 0.7},
    transit=1.5,
    capacity=1,
    patience=5,
    loss=0.2,
    cost=0.1,
    outages=((3.0, 5.0),),
    split=True,
    policy={"retries": 1, "backoff": 0.5},
)


def run(folder: Path, record: Literal["full", "rounds"]) -> Results:
    """Play one who asks a slow source and a network."""
    asked = Scenario(
        environment=Slope(),
        rounds=15,
        record=record,
        experts={"gauges": (Gauges(), Channel()), "sage": (Teller(), SLOW)},
        optimizers={"asker": Asker(batch=3)},
    )
    study = Study(asked, folder)
    study.run(InProcess())
    return study.results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(tmp_path_factory.mktemp("study"), "full")


def read(results: Results, folder: Path, **how: Any) -> dict[str, Any]:
    write_timeline(results, folder / "play.json", results.finished()[0], **how)
    told: dict[str, Any] = json.loads((folder / "play.json").read_text(encoding="utf-8"))
    return told


@pytest.fixture(scope="module")
def told(results: Results, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return read(results, tmp_path_factory.mktemp("told"))


@pytest.fixture(scope="module")
def trace(results: Results) -> Trace:
    return results.read(results.finished()[0].key).trace


def find(told: dict[str, Any], **fields: object) -> list[dict[str, Any]]:
    return [e for e in told["traceEvents"] if all(e.get(k) == v for k, v in fields.items())]


def test_every_event_has_what_its_phase_demands_in_the_order_of_time(told: dict[str, Any]) -> None:
    needed = {
        "M": {"args"},
        "b": {"ts", "cat", "id"},
        "e": {"ts", "cat", "id"},
        "n": {"ts", "cat", "id"},
        "i": {"ts", "s"},
        "C": {"ts", "args"},
        "X": {"ts", "dur"},
    }
    events = told["traceEvents"]
    assert {event["ph"] for event in events} == needed.keys()
    for event in events:
        assert {"name", "pid", "tid", *needed[event["ph"]]} <= event.keys()
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    assert "1 clock unit" in told["otherData"]["time"]


def test_what_begins_ends_and_lies_within_what_began_before_it(told: dict[str, Any]) -> None:
    stacks: dict[tuple[str, str], list[str]] = defaultdict(list)
    names = defaultdict(set)
    for event in told["traceEvents"]:
        if event["ph"] == "b":
            stacks[event["cat"], event["id"]].append(event["name"])
            names[event["cat"]].add(event["name"])
        elif event["ph"] == "e":
            assert stacks[event["cat"], event["id"]].pop() == event["name"]
    assert not any(stacks.values())
    assert names["sage"] == {"query", "waiting", "service", "transit"}
    assert {"query", "uplink", "measure", "downlink", "asleep"} <= names["gauges"]


def test_queries_moves_and_counters_are_those_of_the_trace(
    told: dict[str, Any], trace: Trace
) -> None:
    replies, rounds = trace.replies, trace.rounds
    queries = find(told, ph="b", name="query")
    assert sum(len(event["args"]["points"]) for event in queries) == len(replies["row"])
    for name in ("asked_at", "arrived_at"):
        times = [event["args"][name] for event in queries for _ in event["args"]["points"]]
        assert_allclose(np.sort(times), np.sort(replies[name]))
    assert_allclose([e["ts"] for e in queries], [e["args"]["asked_at"] * 1e6 for e in queries])
    ages = [e["args"]["age"] for e in queries if "age" in e["args"] for _ in e["args"]["points"]]
    answered = ~np.isnan(replies["measured_at"])
    expected = (replies["arrived_at"] - replies["measured_at"])[answered]
    assert_allclose(np.sort(ages), np.sort(expected), atol=1e-12)
    failed = [e for e in queries if e["args"]["fate"] != "answered"]
    assert len(find(told, ph="i", cat="failure")) == len(failed) > 0
    for counter in ("spent", "regret"):
        values = [e["args"][counter] for e in find(told, ph="C", name=counter)]
        assert_allclose(values, rounds[counter])
    moves = find(told, ph="i", cat="move")
    assert_allclose([e["ts"] / 1e6 for e in moves], rounds["played_at"])
    (outage,) = find(told, ph="X", name="outage")
    assert (outage["ts"], outage["dur"]) == (3e6, 2e6)
    flying = [e["args"]["points"] for e in find(told, ph="C", name="points on their way")]
    assert min(flying) == 0 < max(flying)


def test_processes_are_called_as_the_play_and_its_sources(told: dict[str, Any]) -> None:
    names = {e["pid"]: e["args"]["name"] for e in find(told, ph="M", name="process_name")}
    assert list(names.values()) == [told["otherData"]["play"], "reward", "gauges", "sage"]
    assert {e["pid"] for e in told["traceEvents"]} == names.keys()


def test_replies_that_were_not_recorded_are_found_by_playing_again(
    told: dict[str, Any], tmp_path: Path
) -> None:
    brief = run(tmp_path / "study", "rounds")
    assert read(brief, tmp_path, allow_import=True)["traceEvents"] == told["traceEvents"]
    with pytest.raises(SparqError, match="allow"):
        read(brief, tmp_path)


def test_regret_that_is_not_known_is_left_out(tmp_path: Path) -> None:
    told = read(steer(tmp_path / "study", replications=1), tmp_path, allow_import=True)
    assert not find(told, ph="C", name="regret")
    assert find(told, ph="C", name="spent")
    assert all(event["args"]["regret"] is None for event in find(told, cat="move"))


def test_a_timeline_that_cannot_be_written_is_refused(results: Results, tmp_path: Path) -> None:
    play = results.finished()[0]
    with pytest.raises(
        SparqError, match=r"cannot export a timeline to play\.csv; end it in \.json"
    ):
        write_timeline(results, tmp_path / "play.csv", play)
    with pytest.raises(SparqError, match=r"No such file.*make its folder"):
        write_timeline(results, tmp_path / "none" / "play.json", play)
