"""The expert `http` in a scenario file."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_experts.http import Http
from sparq_sim import Channel, Scenario
from sparq_sim.errors import LiveOnlyError, ScenarioError

SCENARIO = """
rounds = 3
environment.kind = "synthetic"
optimizers = ["uniform"]

[experts.lab]
kind = "http"
url = "https://lab.example/ask"
token_env = "LAB_TOKEN"
headers = { X-Lab = "north" }
timeout = 10.0
channel = { cost = 0.5, capacity = 4 }
"""


def load(folder: Path, text: str) -> Scenario:
    file = folder / "live.toml"
    file.write_text(text, encoding="utf-8")
    return Scenario.load(file)


def test_it_is_read_from_a_scenario_file(tmp_path: Path) -> None:
    entry = load(tmp_path, SCENARIO).experts["lab"]
    assert entry.expert == Http(
        url="https://lab.example/ask",
        token_env="LAB_TOKEN",
        headers={"X-Lab": "north"},
        timeout=10.0,
    )
    assert entry.channel == Channel(cost=0.5, capacity=4)


def test_it_is_played_live_only(tmp_path: Path) -> None:
    with pytest.raises(LiveOnlyError, match="expert 'lab': real"):
        load(tmp_path, SCENARIO).play("uniform")


def test_the_secret_of_a_scenario_is_in_none_of_its_descriptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_TOKEN", "s3cret")
    scenario = load(tmp_path, SCENARIO)
    assert "s3cret" not in repr(scenario) + scenario.model_dump_json()
    fingerprint = scenario.fingerprint("uniform")
    monkeypatch.setenv("LAB_TOKEN", "0ther")
    assert load(tmp_path, SCENARIO).fingerprint("uniform") == fingerprint


def test_an_error_names_the_line_and_the_field(tmp_path: Path) -> None:
    wrong = SCENARIO.replace("https://lab", "http://lab")
    with pytest.raises(ScenarioError, match=r"live\.toml:\d+: experts\.lab.*would send secrets un"):
        load(tmp_path, wrong)


def test_a_password_in_a_url_is_refused_and_not_shown(tmp_path: Path) -> None:
    wrong = SCENARIO.replace("https://lab", "https://me:pw@lab")
    with pytest.raises(ScenarioError, match=r"experts\.lab\.url.*must not hold a user") as caught:
        load(tmp_path, wrong)
    assert "pw" not in str(caught.value)
