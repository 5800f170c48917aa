"""What is printed is TOML that a scenario takes, and lines fit a terminal."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from sparq_sim import Channel
from sparq_sim.live.calibrate.channels import FittedChannel, calibrate
from sparq_sim.live.calibrate.fits import Fit
from sparq_sim.live.calibrate.toml import write_toml
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.channel.noise import Bursts, Gaussian
from tests.live.calibrate.plays import hear

SCENARIO = """
rounds = 3
environment.kind = "synthetic"
optimizers = ["uniform"]
experts.lab.kind = "truth"
"""
EMPIRICAL = {"kind": "empirical", "values": [0.5, 0.6, 5.0, 5.1]}
LOGNORMAL = {"kind": "lognormal", "median": 2.0, "sigma": 0.5}
BURSTS = {"kind": "bursts", "good_spell": 20.0, "bad_spell": 5.0}

CHANNELS: list[dict[str, Any]] = [
    {"transit": LOGNORMAL, "loss": 0.1, "noise": 0.1, "cost": 0.5, "patience": 6.0},
    {"service": EMPIRICAL, "capacity": 2, "cost_per_point": 0.25, "split": True},
    {"loss": BURSTS, "noise": {"kind": "gaussian", "std": 0.1, "claimed": 0.5}},
    {"service": 2.0, "cost": 1.0, "charged": "served", "capacity": 1, "patience": 8.0},
    {},
]


@pytest.mark.parametrize("fields", CHANNELS)
def test_a_scenario_takes_what_is_printed(fields: dict[str, Any], tmp_path: Path) -> None:
    channels = calibrate(hear(Channel(**fields), rounds=150))
    text = write_toml(channels, "play.jsonl")
    file = tmp_path / "scenario.toml"
    file.write_text(f"{SCENARIO}\n{text}", encoding="utf-8")
    scenario = Scenario.load(file)
    assert scenario.experts["lab"].channel == channels["lab"].channel
    assert scenario.feedback == channels["reward"].channel
    assert max(map(len, text.splitlines())) < 80


def test_the_title_and_the_counts_are_comments() -> None:
    text = write_toml(calibrate(hear(Channel(loss=0.3), rounds=40)), "play.jsonl")
    assert text.startswith("# Channels fitted to play.jsonl.")
    assert "lost" in text.split("[experts.lab.channel]\n")[1].splitlines()[0]


def test_names_and_values_are_written_as_toml_has_them() -> None:
    fits = {
        "loss": Fit(Bursts(good_spell=1e22, bad_spell=1e-7)),
        "noise": Fit(Gaussian(std=2.0)),
        "capacity": Fit(3),
    }
    fitted = FittedChannel('a "strange" name', fits, {"answered": 1}, 0)
    text = write_toml({fitted.source: fitted}, "x\ny = 1")
    channel = tomllib.loads(text)["experts"][fitted.source]["channel"]
    assert Channel(**channel) == fitted.channel


def test_answers_that_could_not_be_used_are_told_of() -> None:
    fitted = FittedChannel("lab", {}, {"answered": 80, "invalid": 20}, 3)
    text = write_toml({"lab": fitted}, "play.jsonl")
    assert "share = 0.2 }" in text
    assert "3 more had an injected fault" in text
