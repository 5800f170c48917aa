"""Real systems in live plays: points are applied, rewards come back, safe states are reached."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from sparq_environments.http import Http
from sparq_environments.program import Program
from sparq_sim import Rules, Trace, play, play_live
from sparq_sim.domain import Box, Sites
from sparq_sim.errors import LiveOnlyError, PeerError, ProgramError
from sparq_sim.fields import ScenarioString
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import SafeMoment
from sparq_sim.remote.system import RealEnvironment, RemoteSystem, SafeCommand, SafeStates
from tests.remote import web
from tests.remote.children import ANSWERING, for_each_message
from tests.remote.web import reply, serve

URL = "http://localhost:1/"
BOUNDS = ((0.0, 1.0),)


async def played(environment: RealEnvironment, *, applied: list[Any] | None = None) -> Trace:
    """Play until each round has its reply, each time more slowly, as the machine may be busy."""
    for seconds in (0.1, 0.4, 2.0):
        if applied is not None:
            applied.clear()
        trace = await play_live(Uniform(), environment, Rules(rounds=4), seconds=seconds)
        if len(trace.replies["fate"]) == 4 and "unanswered" not in trace.replies["fate"]:
            break
    return trace


# Steering


@pytest.mark.asyncio
async def test_each_point_is_applied_and_its_reward_observed() -> None:
    async with serve(reply(web.answer)) as served:
        plant = Http(url=served.url, bounds=((0.0, 1.0), (5.0, 6.0)))
        trace = await played(plant, applied=served.requests)
        applied = [request.message for request in served.requests]
    assert {each["type"] for each in applied} == {"apply"}
    assert [each["points"][0] for each in applied] == np.stack(
        [trace.rounds["x0"], trace.rounds["x1"]], axis=1
    ).tolist()
    assert trace.rounds["reward"].tolist() == [2 * each["points"][0][0] for each in applied]
    assert np.isnan(trace.rounds["regret"]).all()


@pytest.mark.asyncio
async def test_a_reward_that_does_not_come_is_a_failure_with_its_reason() -> None:
    child = for_each_message("reply(type='failure', reason='jammed', values=[1])")
    trace = await played(Program(command=child, bounds=BOUNDS, restarts=0))
    assert len(trace) == 4
    (told,) = {*trace.replies["reason"]}
    assert "unknown field 'values'" in told


@pytest.mark.asyncio
async def test_a_system_may_have_sites() -> None:
    sites = ((0.25,), (0.75,))
    trace = await played(Program(command=ANSWERING, sites=sites, names=("valve",)))
    assert {*trace.rounds["valve"]} <= {0.25, 0.75}


def test_a_real_system_is_refused_in_virtual_time() -> None:
    with pytest.raises(LiveOnlyError, match="environment Http"):
        play(Uniform(), Http(url=URL, bounds=BOUNDS), Rules(rounds=2))


# Safe states

MOMENTS: tuple[SafeMoment, ...] = ("start", "end", "interrupt", "failure")


def system(**fields: Any) -> RemoteSystem:
    made = Http(url=URL, **({"bounds": BOUNDS} | fields))
    return RemoteSystem(made, made.make_domain(), made.safe_states)


def test_a_system_holds_by_default() -> None:
    assert [system().safe_action(moment) for moment in MOMENTS] == ["hold"] * 4


def test_one_safe_state_is_for_all_moments() -> None:
    assert [system(safe_state=[0.5]).safe_action(m) for m in MOMENTS] == ["apply [0.5]"] * 4


def test_a_safe_state_may_differ_by_moment() -> None:
    stop = {"command": ["./stop.sh", "--now"]}
    made = system(safe_state={"start": [0.5], "interrupt": "hold", "failure": stop})
    assert [made.safe_action(moment) for moment in MOMENTS] == [
        "apply [0.5]",
        "hold",
        "hold",
        "run ['./stop.sh', '--now']",
    ]


@pytest.mark.asyncio
async def test_a_safe_point_is_applied_and_holding_does_nothing() -> None:
    async with serve(reply(web.answer)) as served:
        made = Http(url=served.url, bounds=BOUNDS, safe_state={"end": [0.5]})
        async with RemoteSystem(made, made.make_domain(), made.safe_states) as steered:
            await steered.make_safe("start")
            assert not served.requests
            await steered.make_safe("end")
    (message,) = [request.message for request in served.requests]
    assert (message["type"], message["points"]) == ("apply", [[0.5]])
    assert message["id"].endswith("/safe/end")


@pytest.mark.asyncio
async def test_a_safe_point_that_cannot_be_applied_is_an_error() -> None:
    jammed = reply(lambda message: {"type": "failure", "id": message["id"], "reason": "jammed"})
    async with serve(jammed) as served:
        made = Http(url=served.url, bounds=BOUNDS, safe_state=[0.5])
        async with RemoteSystem(made, made.make_domain(), made.safe_states) as steered:
            with pytest.raises(PeerError, match=r"could not be brought to \[0\.5\]: 'jammed'"):
                await steered.make_safe("failure")


def command(code: str, **fields: Any) -> SafeCommand:
    return SafeCommand(command=(sys.executable, "-c", code), **fields)


@pytest.mark.asyncio
async def test_a_safe_command_is_run(tmp_path: Path) -> None:
    done = tmp_path / "done"
    safe = command(f"open({str(done)!r}, 'w').write('safe')")
    async with system(safe_state=safe) as steered:
        await steered.make_safe("interrupt")
    assert done.read_text() == "safe"


@pytest.mark.asyncio
async def test_a_safe_command_is_given_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_TOKEN", "s3cret")
    found = tmp_path / "found"
    safe = command(f"import os; open({str(found)!r}, 'w').write(' '.join(os.environ))")
    async with system(safe_state=safe) as steered:
        await steered.make_safe("end")
    assert "PATH" in found.read_text().split()
    assert "LAB_TOKEN" not in found.read_text()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("safe", "told"),
    [
        (command("raise SystemExit('stuck')"), r"exit code 1: stuck"),
        (command("import time; time.sleep(60)", timeout=0.2), r"did not end within 0\.2 s"),
        (SafeCommand(command=("no-such-program",)), r"no program 'no-such-program' is found"),
    ],
)
async def test_a_safe_command_that_fails_is_an_error(safe: SafeCommand, told: str) -> None:
    async with system(safe_state=safe) as steered:
        with pytest.raises(ProgramError, match=told):
            await steered.make_safe("end")


# What is written in a scenario


def test_bounds_are_a_box_and_sites_are_sites() -> None:
    box = Http(url=URL, bounds=((0.0, 1.0), (20.0, 80.0)), names=("valve", "heat")).make_domain()
    assert isinstance(box, Box)
    assert box.names == ("valve", "heat")
    sites = Http(url=URL, sites=((0.0,), (0.5,)), site_names=("shut", "half")).make_domain()
    assert isinstance(sites, Sites)
    assert sites.site_names == ("shut", "half")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "give either bounds, as .*, or sites"),
        ({"bounds": BOUNDS, "sites": ((0.5,),)}, "give either bounds, as .*, or sites"),
        ({"bounds": ((1.0, 0.0),)}, "lower"),
        ({"bounds": BOUNDS, "names": ("a", "b")}, "1 coordinates need as many different names"),
        ({"bounds": BOUNDS, "site_names": ("a",)}, "site_names needs sites"),
        ({"sites": ((0.5,), (0.5, 1.0))}, "all sites need the same number of coordinates"),
        ({"bounds": BOUNDS, "safe_state": [1.5]}, r"safe_state \(start\): \[1\.5\] lies outside"),
        ({"bounds": BOUNDS, "safe_state": [0.5, 0.5]}, "has 2 coordinates, and the domain has 1"),
        ({"bounds": BOUNDS, "safe_state": {"end": [2.0]}}, r"safe_state \(end\): .* lies outside"),
        ({"sites": ((0.5,),), "safe_state": [0.4]}, "is none of the 1 sites"),
        ({"bounds": BOUNDS, "safe_state": "stop"}, 'should be "hold", a point as .*, or a table'),
        ({"bounds": BOUNDS, "safe_state": 0.5}, 'should be "hold", a point as'),
        ({"bounds": BOUNDS, "safe_state": {"stop": "hold"}}, r"safe_state\.stop"),
        ({"bounds": BOUNDS, "safe_state": {"command": []}}, r"safe_state\.command"),
        ({"bounds": BOUNDS, "safe_state": {"end": True}}, r"safe_state\.end"),
    ],
)
def test_a_domain_or_a_safe_state_that_is_none_is_refused_when_it_is_written(
    fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValidationError, match=told):
        Http(url=URL, **fields)


def test_a_safe_command_in_a_scenario_file_starts_from_its_folder(tmp_path: Path) -> None:
    stop = ScenarioString.within(tmp_path, "./stop.sh")
    made = Http(url=URL, bounds=BOUNDS, safe_state={"command": [stop]})
    assert made.safe_states.end == SafeCommand(command=(str(tmp_path / "stop.sh"),))


def test_a_model_is_read_from_what_it_writes() -> None:
    safe = SafeStates(start=(0.5,), end=SafeCommand(command=("stop",)))
    made = Http(url=URL, bounds=BOUNDS, safe_state=safe)
    assert Http.model_validate_json(made.model_dump_json()) == made


def test_a_system_says_whether_it_honours_keys() -> None:
    assert not Http(url=URL, bounds=BOUNDS).honours_keys()
    assert Http(url=URL, bounds=BOUNDS, idempotent=True).honours_keys()
