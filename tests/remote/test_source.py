"""Real sources in live plays: answers, failures and readings become those of the play."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest

from sparq_experts.http import Http
from sparq_experts.program import Program
from sparq_sim import Channel, Expert, Rules, Trace, play, play_live
from sparq_sim.errors import LiveOnlyError, PeerError, Unavailable
from sparq_sim.remote.source import find_moment, find_unit, read_estimate
from sparq_sim.remote.wire import encode
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.testing import Asker, Slope
from tests.remote import web
from tests.remote.children import for_each_message, python
from tests.remote.web import reply, response, serve


@dataclass
class Stopped:
    """A clock that stands still."""

    now: float = 10.0
    seconds: float | None = 2.0

    def held_since(self, unix: float) -> float:
        return 0.0


def clock(now: float = 10.0, seconds: float | None = 2.0) -> Clock:
    return cast(Clock, Stopped(now, seconds))


def answer(**fields: Any) -> dict[str, Any]:
    return {"type": "answer", "id": "a", "values": [1.0, 2.0]} | fields


# What a reply says


def test_an_answer_becomes_an_estimate() -> None:
    given = answer(stds=[0.1, 0.2], notes={"rssi": -80})
    estimate = read_estimate(given, 2, clock(), skew=1.0)
    assert estimate.values.tolist() == [1.0, 2.0]
    assert np.array(estimate.stds).tolist() == [0.1, 0.2]
    assert estimate.measured_at == 10.0
    assert estimate.notes == {"rssi": -80.0}


def test_null_is_a_value_that_is_not_known_with_the_reason() -> None:
    given = answer(values=[1.0, None], stds=[0.1, None], absent="blind\nspot")
    estimate = read_estimate(given, 2, clock(), skew=1.0)
    assert np.isnan(estimate.values).tolist() == [False, True]
    assert estimate.absent == "blind spot"
    assert read_estimate(answer(values=[None, 1.0]), 2, clock(), skew=1.0).absent == "nothing known"


def test_a_failure_is_unavailable_with_its_reason() -> None:
    with pytest.raises(Unavailable, match=r"^closed$"):
        read_estimate({"type": "failure", "id": "a", "reason": "closed"}, 2, clock(), skew=1.0)


@pytest.mark.parametrize("count", [1, 3])
def test_an_answer_needs_one_value_for_each_point(count: int) -> None:
    with pytest.raises(PeerError, match=f"^sent 2 values for {count} points$"):
        read_estimate(answer(), count, clock(), skew=1.0)


# When something was measured


def test_a_date_becomes_a_moment_of_the_play() -> None:
    assert find_moment(time.time() - 6.0, clock(), skew=1.0) == pytest.approx(7.0, abs=0.4)
    assert find_moment(None, clock(), skew=1.0) == 10.0


def test_a_date_a_little_in_the_future_is_now() -> None:
    assert find_moment(time.time() + 0.9, clock(), skew=1.0) == 10.0


def test_a_date_a_little_before_the_play_is_its_beginning() -> None:
    assert find_moment(time.time() - 20.5, clock(), skew=1.0) == 0.0


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (100.0, r"^measured 100 s in the future, as it says; check the clock of the source$"),
        (-120.0, r"^measured 100 s before the play began, as it says; check the clock"),
    ],
)
def test_a_date_that_cannot_be_is_told_of(seconds: float, told: str) -> None:
    with pytest.raises(PeerError, match=told):
        find_moment(time.time() + seconds, clock(), skew=1.0)


def test_a_date_in_milliseconds_is_told_of() -> None:
    with pytest.raises(PeerError, match=r"in the future.*; it must be in seconds since 1970$"):
        find_moment(1000 * time.time(), clock(), skew=1.0)


def test_virtual_time_has_no_unit() -> None:
    with pytest.raises(LiveOnlyError, match="real time only"):
        find_unit(clock(seconds=None))


# Plays


async def played(
    expert: Expert,
    claim: Callable[[list[dict[str, Any]]], bool],
    *,
    rounds: int = 4,
    channel: Channel | None = None,
) -> Trace:
    """Play until the replies are as claimed, each time more slowly, as the machine may be busy."""
    experts = {"lab": (expert, channel or Channel())}
    for seconds in (0.05, 0.2, 1.0):
        trace = await play_live(
            Asker(), Slope(), Rules(rounds=rounds), experts=experts, seconds=seconds
        )
        if claim(replies(trace)):
            break
    return trace


def is_answered(replies: list[dict[str, Any]]) -> bool:
    return any(each["fate"] == "answered" for each in replies)


def replies(trace: Trace, source: str = "lab") -> list[dict[str, Any]]:
    table = trace.replies
    rows = np.flatnonzero(table["source"] == source)
    return [{name: table[name][row] for name in table} for row in rows]


@pytest.mark.asyncio
async def test_each_failure_of_a_service_has_its_reason_and_the_play_goes_on() -> None:
    count = 0

    async def handle(request: web.Request, writer: Any) -> None:
        nonlocal count
        count += 1
        message = request.message
        wrongs: list[dict[str, Any]] = [
            {"values": ["warm"] * len(message["points"])},
            {"values": [1.0] * 9},
            {"measured_at": time.time() + 1e6},
            {"type": "failure", "reason": "closed"},
        ]
        made = web.answer(message) | wrongs[count % 4]
        if "reason" in made:
            del made["values"]
        writer.write(response(encode(made)))

    def fates(heard: list[dict[str, Any]]) -> set[tuple[str, str]]:
        return {(each["fate"], each["reason"][:12]) for each in heard}

    expected = {
        ("invalid", "lab measured"),  # in the future
        ("invalid", "lab sent 9 v"),  # alues for 2 points
        ("invalid", "lab sent an "),  # answer whose values[0] is 'warm'
        ("unavailable", "closed"),
    }
    async with serve(handle) as served:
        trace = await played(
            Http(url=served.url), lambda heard: expected <= fates(heard), rounds=12
        )
    assert len(trace) == 12
    assert expected <= fates(replies(trace))


@pytest.mark.asyncio
async def test_a_service_is_told_who_is_asked_what_and_when() -> None:
    async with serve(reply(web.answer)) as served:
        trace = await played(Http(url=served.url), is_answered)
        asked = [request.message for request in served.requests]
    assert {each["source"] for each in asked} == {"lab"}
    assert {tuple(each["names"]) for each in asked} == {("x0",)}
    assert {each["unit"] for each in asked} <= {0.05, 0.2, 1.0}
    assert len({each["id"] for each in asked}) == len(asked)
    assert all(abs(each["asked_at"] - time.time()) < 60.0 for each in asked)
    got = [each for each in replies(trace) if each["fate"] == "answered"]
    assert got
    assert {each["value"] for each in got} <= {
        2 * point[0] for each in asked for point in each["points"]
    }


@pytest.mark.asyncio
async def test_of_a_channel_to_a_real_source_no_latency_and_no_noise_is_simulated() -> None:
    channel = Channel(transit=100.0, noise=5.0, loss=1.0, cost=0.5)
    async with serve(reply(web.answer)) as served:
        trace = await played(Http(url=served.url), is_answered, channel=channel)
    got = [each for each in replies(trace) if each["fate"] == "answered"]
    assert got
    assert sum(each["cost"] for each in got)


READING = """
for value in (1.0, 2.0):
    print(json.dumps({"type": "reading", "points": [[0.25]], "values": [value], "stds": 0.1}))
print(json.dumps({"type": "reading", "points": [[7.0]], "values": [1.0]}))
print(json.dumps({"type": "reading", "names": ["y"], "points": [[0.5]], "values": [1.0]}))
print(json.dumps({"type": "reading", "points": [[0.5]], "values": [None]}))
sys.stdin.read()
"""


@pytest.mark.asyncio
async def test_readings_of_a_program_are_sent_and_those_of_no_use_are_counted() -> None:
    program = Program(command=python(READING))
    trace = await played(program, lambda heard: len(heard) >= 2, rounds=10)
    got = [each["value"] for each in replies(trace) if each["fate"] == "answered"]
    assert got == [1.0, 2.0]
    dropped = trace.accounts["lab/dropped"]
    assert dropped["count"].tolist() == [1, 1, 1]
    told = " ".join(dropped["reason"])
    assert "[7.0] lies outside the domain" in told
    assert 'has the coordinates ["y"]' in told
    assert "values[0] is null" in told


@pytest.mark.asyncio
async def test_a_child_that_dies_in_the_middle_of_a_play_fails_its_queries_only() -> None:
    child = for_each_message("sys.exit('no more paper')")
    program = Program(command=child, restarts=0)
    trace = await played(
        program, lambda heard: any(each["fate"] == "invalid" for each in heard), rounds=6
    )
    assert len(trace) == 6
    told = {each["reason"] for each in replies(trace) if each["fate"] == "invalid"}
    assert told == {"lab ended with exit code 1: no more paper"}


def test_a_real_source_is_refused_in_virtual_time() -> None:
    with pytest.raises(LiveOnlyError, match="'lab'"):
        play(Asker(), Slope(), Rules(rounds=2), experts={"lab": Http(url="http://localhost/")})


def test_a_source_says_whether_it_honours_keys() -> None:
    assert not Http(url="http://localhost/").honours_keys()
    assert Http(url="http://localhost/", idempotent=True).honours_keys()
