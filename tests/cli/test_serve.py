"""The command serve-expert, run as users run it; its peers are those of live plays."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from sparq_environments.synthetic import Synthetic
from sparq_experts.lagged import Lagged
from sparq_experts.mqtt import Mqtt
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.remote.http import HttpAddress
from sparq_sim.remote.peer import Address
from sparq_sim.remote.program import ProgramAddress
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.play import play
from sparq_sim.simulation.rules import Rules
from tests.cli.invoking import said
from tests.conftest import PATIENCE
from tests.remote.brokers import Broker, any_broker
from tests.remote.serve.asks import ask

__all__ = ["any_broker"]

TOKEN = "a token of the tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
LAGGED = ["lagged", "--set", "lag=3", "--seed", "5", "--replication", "1"]


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARQ_TOKEN", TOKEN)


@contextmanager
def served(*arguments: str, code: int = 0, **variables: str) -> Iterator[str]:
    """Run the command until Ctrl-C, and give what it says at the start."""
    child = subprocess.Popen(
        [sys.executable, "-m", "sparq_sim", "serve-expert", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    assert child.stdout is not None
    try:
        told = ""
        while "idempotent" not in told:
            line = child.stdout.readline()
            assert line, told
            told += line
        yield told
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=PATIENCE)
    except BaseException:
        child.kill()
        child.communicate()
        raise
    assert child.returncode == code
    assert errors == "Stopped.\n"


def table(told: str) -> dict[str, Any]:
    """Return the table for a scenario file that a server shows."""
    text = told.partition("In a scenario file:\n")[2]
    (fields,) = tomllib.loads(re.sub(r"(?m)^  ", "", text))["experts"].values()
    return dict(fields)


@pytest.fixture(scope="module")
def simulated() -> list[dict[str, float]]:
    """Return the replies of the same expert in a simulated play."""
    experts = {"lab": (Lagged(lag=3.0), Channel(split=True))}
    rules = Rules(rounds=12)
    trace = play(SparQGPUCB(), Synthetic(), rules, experts=experts, seed=5, replication=1)
    asked = np.asarray(trace.replies["source"]) == "lab"
    names = ("x", "asked_at", "value", "measured_at")
    columns = [np.asarray(trace.replies[name])[asked].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def check_same(address: Address, simulated: Sequence[Mapping[str, float]]) -> None:
    """Check that a peer gives the values of the simulated play, for the same questions."""

    async def exchange() -> list[Mapping[str, Any]]:
        async with address.open() as peer:
            asked = [
                ask(str(i), [[row["x"]]], play_time=row["asked_at"], unit=0.5)
                for i, row in enumerate(simulated)
            ]
            return await asyncio.gather(*map(peer.exchange, asked))

    assert len(simulated) >= 10
    for reply, row in zip(asyncio.run(exchange()), simulated, strict=True):
        assert reply["values"] == [row["value"]]
        ago = (row["asked_at"] - row["measured_at"]) * 0.5
        assert reply["measured_at"] == pytest.approx(1000.0 - ago)


def test_an_expert_behind_http_answers_as_in_a_simulated_play(
    simulated: list[dict[str, float]],
) -> None:
    with served(*LAGGED, "--http", "0") as told:
        fields = table(told)
        assert (fields.pop("kind"), fields.pop("idempotent")) == ("http", True)
        check_same(HttpAddress(**fields, timeout=PATIENCE), simulated)


def test_an_expert_behind_mqtt_answers_as_in_a_simulated_play(
    any_broker: Broker, simulated: list[dict[str, float]]
) -> None:
    broker = ["--mqtt", f"127.0.0.1:{any_broker.port}", "--version", any_broker.version]
    with served(*LAGGED, *broker, "--topic", "lab") as told:
        fields = table(told)
        assert fields.pop("kind") == "mqtt"
        check_same(Mqtt(**fields, timeout=PATIENCE), simulated)


def test_an_expert_behind_pipes_answers_as_in_a_simulated_play(
    simulated: list[dict[str, float]],
) -> None:
    command = (sys.executable, "-m", "sparq_sim", "serve-expert", *LAGGED, "--lines")
    check_same(ProgramAddress(command=command, timeout=PATIENCE), simulated)


def test_the_line_for_curl_can_be_answered() -> None:
    with served("truth", "--scenario", "synthetic", "--http", "0") as told:
        found = re.search(r"curl -s (\S+) -H (\".*?\") -d '(.*)'", told)
        assert found is not None
        assert found[2] == '"Authorization: Bearer $SPARQ_TOKEN"'
        reply = httpx.post(
            found[1], content=found[3], headers=BEARER, trust_env=False, timeout=PATIENCE
        ).json()
        assert reply["id"] == json.loads(found[3])["id"]
        assert len(reply["values"]) == 1


def test_a_token_is_needed_and_never_shown() -> None:
    arguments = ["truth", "--http", "0", "--token-env", "SPARQ_TEST_TOKEN"]
    with served(*arguments, SPARQ_TEST_TOKEN="very-secret") as told:
        assert "very-secret" not in told
        assert "$SPARQ_TEST_TOKEN" in told
        assert table(told)["token_env"] == "SPARQ_TEST_TOKEN"
        url = table(told)["url"]
        refused = httpx.post(url, json=ask(), trust_env=False, timeout=PATIENCE)
        assert refused.status_code == 401
        bearer = {"Authorization": "Bearer very-secret"}
        answered = httpx.post(url, json=ask(), headers=bearer, trust_env=False, timeout=PATIENCE)
        assert answered.json()["type"] == "answer"


def test_where_no_token_is_set_a_new_one_is_made_and_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARQ_TOKEN")
    with served("truth", "--http", "0") as told:
        found = re.search(r"export SPARQ_TOKEN=(\S{24})\n", told)
        assert found is not None
        url = table(told)["url"]
        for token, status in (("wrong", 401), (found[1], 200)):
            bearer = {"Authorization": f"Bearer {token}"}
            reply = httpx.post(url, json=ask(), headers=bearer, trust_env=False, timeout=PATIENCE)
            assert reply.status_code == status


def test_without_a_token_programs_of_this_machine_are_answered() -> None:
    with served("truth", "--http", "0", "--no-token") as told:
        assert "token_env" not in table(told)
        reply = httpx.post(table(told)["url"], json=ask(), trust_env=False, timeout=PATIENCE)
        assert reply.status_code == 200


def test_lines_end_with_the_input() -> None:
    command = [sys.executable, "-m", "sparq_sim", "serve-expert", "truth", "--lines"]
    questions = json.dumps(ask("a")) + "\nhello\n"
    ran = subprocess.run(command, input=questions, capture_output=True, text=True, check=True)
    replies = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {reply["type"] for reply in replies} == {"answer", "failure"}
    assert ran.stderr == ""


def test_a_committee_is_served_with_the_experts_of_its_scenario(tmp_path: Path) -> None:
    file = tmp_path / "team.toml"
    file.write_text(
        'rounds = 10\noptimizers = ["uniform"]\n[environment]\nkind = "synthetic"\n'
        '[experts.a]\nkind = "truth"\n[experts.b]\nkind = "lagged"\n'
    )
    arguments = ["committee", "--set", 'members=["a", "b"]', "--http", "0"]
    with served(*arguments, "--scenario", str(file), "--along") as told:
        url = table(told)["url"]
        reply = httpx.post(
            url, json=ask(), headers=BEARER, trust_env=False, timeout=PATIENCE
        ).json()
        assert reply["type"] == "answer"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["lagged"], "say how to serve it, in one way"),
        (["lagged", "--http", "0", "--lines"], "in one way"),
        (["laged", "--http", "0"], "did you mean 'lagged'?"),
        (["lagged", "--http", "0", "--set", "lagg=3"], "did you mean 'lag'?"),
        (["lagged", "--http", "0", "--set", "lag=-1"], "lag"),
        (["lagged", "--mqtt", "localhost"], "--mqtt needs --topic"),
        (["lagged", "--mqtt", "localhost:x", "--topic", "lab"], "'x' is no port"),
        (["lagged", "--mqtt", "localhost", "--topic", "lab/#"], "without the wildcards"),
        (["lagged", "--mqtt", "localhost", "--topic", "lab", "--version", "4"], "--version: "),
        (["lagged", "--topic", "lab", "--http", "0"], "--topic is for --mqtt"),
        (["lagged", "--lines", "--token-env", "T"], "--token-env is for --http"),
        (["lagged", "--http", "0", "--token-env", "SPARQ_NO_TOKEN"], "SPARQ_NO_TOKEN is not set"),
        (["lagged", "--lines", "--no-token"], "--no-token is for --http"),
        (["lagged", "--http", "0", "--no-token", "--host", "0.0.0.0"], "which needs a token"),
        (["lagged", "--http", "0", "--along"], "--along needs --scenario"),
        (["committee", "--set", 'members=["a"]', "--http", "0"], "serve it with --scenario FILE"),
        (["simulator", "--http", "0"], "no coarser version"),
        (["lagged", "--http", "0", "--scenario", "syntetic"], "did you mean 'synthetic'?"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_remedy(
    capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert reason in said(capsys, "serve-expert", *arguments)


def test_a_broker_that_is_not_there_is_told_and_waited_for(any_broker: Broker) -> None:
    any_broker.stop()
    command = [sys.executable, "-m", "sparq_sim", "serve-expert", "truth", "--topic", "lab"]
    child = subprocess.Popen(
        [*command, "--mqtt", f"127.0.0.1:{any_broker.port}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert "Serving the expert truth" in child.stdout.readline()
    child.terminate()
    _, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0
    assert f"no connection to the broker 127.0.0.1:{any_broker.port} yet: " in errors
