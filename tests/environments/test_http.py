"""The environment `http` in a scenario file."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_environments.http import Http
from sparq_sim import Scenario
from sparq_sim.errors import LiveOnlyError, ScenarioError

HTTP = """
rounds = 3
optimizers = ["uniform"]

[environment]
kind = "http"
url = "https://plant.example/apply"
bounds = [[0.0, 1.0], [20.0, 80.0]]
names = ["valve", "temperature"]
safe_state = [0.5, 20.0]
"""


def load(folder: Path, text: str) -> Scenario:
    file = folder / "live.toml"
    file.write_text(text, encoding="utf-8")
    return Scenario.load(file)


def test_it_is_read_from_a_scenario_file(tmp_path: Path) -> None:
    environment = load(tmp_path, HTTP).environment
    assert isinstance(environment, Http)
    assert environment.make_domain().names == ("valve", "temperature")
    assert environment.safe_states.interrupt == (0.5, 20.0)


def test_it_is_played_live_only(tmp_path: Path) -> None:
    with pytest.raises(LiveOnlyError, match="environment Http"):
        load(tmp_path, HTTP).play("uniform")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("[0.5, 20.0]", "[0.5, 10.0]"), r"safe_state \(start\): \[0\.5, 10\.0\] lies outside"),
        (("[0.5, 20.0]", '"park"'), r'safe_state: .*should be "hold", a point'),
        (("[20.0, 80.0]", "[80.0, 20.0]"), r"environment.*lower"),
        (("safe_state", "save_state"), r"did you mean 'safe_state'"),
    ],
)
def test_what_is_wrong_is_refused_when_the_scenario_is_loaded(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    with pytest.raises(ScenarioError, match=rf"live\.toml:\d+: .*{told}"):
        load(tmp_path, HTTP.replace(*change))
