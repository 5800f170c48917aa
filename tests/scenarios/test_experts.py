"""The bundled studies of experts, and the plug-in of their guide."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from math import sqrt
from pathlib import Path

import pytest

from sparq_sim.analysis.summary import Spread, spread
from sparq_sim.scenario.bundled import find_bundled
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.measures import average_regret
from sparq_sim.testing import check_expert
from tests.commands import run, run_commands

NAMES = (
    *("delay", "noise", "loss", "cheap_or_dear", "slow_or_prompt", "same_noise_two_prices"),
    *("plume", "tuning"),
)
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "experts.md"
TRANSIT = "experts.expert.channel.transit"


def test_all_studies_of_experts_are_bundled() -> None:
    assert {f"experts/{name}" for name in NAMES} <= set(find_bundled())


@pytest.mark.parametrize("name", NAMES)
def test_each_study_is_sound_and_begins_to_play(name: str) -> None:
    scenario = Scenario.load(f"experts/{name}", overrides=["rounds=12", "replications=1"])
    _, setting = scenario.settings()[-1]
    for optimizer in setting.optimizers:
        trace = setting.play(optimizer)
        assert len(trace) == 12
        asks = optimizer not in ("nobody", "tv-gp-ucb")
        assert (set(trace.replies["source"]) > {"reward"}) == asks


# Delay


def regrets(scenario: Scenario) -> dict[float, Spread]:
    """Return average regrets by transit."""
    return {
        float(str(values[TRANSIT])): spread(
            average_regret(setting.play("sparq-gp-ucb", each))[-1]
            for each in range(setting.replications)
        )
        for values, setting in scenario.settings()
    }


def test_answers_that_travel_longer_help_less() -> None:
    short = ["rounds=120", "replications=3", f'sweep."{TRANSIT}"=[0, 1, 3, 11]']
    found = regrets(Scenario.load("experts/delay", overrides=short))
    # A transit of one round is in time for the next round, as no transit is.
    assert found[0] == found[1]
    assert found[1].mean < found[3].mean < found[11].mean


@pytest.mark.slow
def test_the_delay_study_finds_the_regrets_of_another_implementation() -> None:
    # Those of a prototype, over 6 plays each, by the rounds that an answer is late when it is
    # used: a transit of 1 + d. It gives no stds, so both means are taken to have the std that is
    # found here, and may differ by two standard errors of their difference, and the rounding.
    prototype = {0: 0.036, 1: 0.048, 2: 0.074, 5: 0.146, 10: 0.227}
    found = regrets(Scenario.load("experts/delay"))
    for late, expected in prototype.items():
        mine = found[late + 1]
        tolerance = 2 * mine.std * sqrt(1 / mine.count + 1 / 6) + 0.0005
        assert abs(mine.mean - expected) <= tolerance, (late, mine, tolerance)
    means = [found[transit].mean for transit in sorted(found)]
    assert means[0] == means[1]
    assert means[1:] == sorted(means[1:])


# The plug-in of the guide


def block(language: str, opening: str) -> str:
    """Return the fenced block of the guide whose first line has *opening*."""
    fenced: Mapping[str, str] = {
        text.splitlines()[0]: text
        for text in re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    }
    (found,) = (text for first, text in fenced.items() if opening in first)
    return found


def test_the_plug_in_of_the_guide_has_at_most_15_lines_and_plays_once_installed(
    tmp_path: Path,
) -> None:
    module = block("python", "# stations.py")
    assert len(module.splitlines()[1:]) <= 15
    home, site = tmp_path / "home", tmp_path / "site"
    home.mkdir()
    (home / "stations.py").write_text(module)
    (home / "pyproject.toml").write_text(block("toml", "# pyproject.toml"))
    (home / "study.toml").write_text(block("toml", "# study.toml"))
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    run("-m", "pip", "install", *offline, "--target", str(site), str(home), cwd=tmp_path)
    (home / "stations.py").unlink()  # Not from the folder, but as installed.
    installed = {"PYTHONPATH": str(site)}
    told = run_commands("run study.toml --jobs 1", "list experts", cwd=home, **installed)
    assert "4 plays" in told
    assert any(line.split()[:1] == ["stations"] for line in told.splitlines())


def test_the_plug_in_of_the_guide_obeys_the_laws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stations.py").write_text(block("python", "# stations.py"))
    monkeypatch.syspath_prepend(str(tmp_path))
    import stations  # type: ignore[import-not-found]

    check_expert(stations.Stations())
    monkeypatch.delitem(sys.modules, "stations")
