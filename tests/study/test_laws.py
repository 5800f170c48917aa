"""Plays whose laws are checked: a play that breaks one fails, and is not kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from numpy.random import Generator

from sparq_sim.arrays import Point
from sparq_sim.plugin.contract import Environment, Landscape
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess, PlayExecutor, Processes
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope, Teller
from tests.cli.invoking import ends_with


class Modest(Environment):
    """A slope that does not know its own best."""

    def start(self, rng: Generator) -> Landscape:
        return _ModestLandscape(Slope().start(rng))


@dataclass
class _ModestLandscape:
    slope: Landscape

    def __post_init__(self) -> None:
        self.domain = self.slope.domain
        self.rewards = self.slope.rewards

    def best(self, time: float) -> tuple[Point, float]:
        point, reward = self.slope.best(time)
        return point, reward - 5.0


def study(environment: Environment, folder: Path) -> Study:
    experts = {"expert": {"expert": Teller()}}
    scenario = Scenario.model_validate(
        {
            "rounds": 5,
            "environment": environment,
            "experts": experts,
            "optimizers": {"asker": Asker()},
        }
    )
    return Study(scenario, folder)


@pytest.mark.parametrize("executor", [InProcess(), Processes(1)], ids=["in-process", "processes"])
def test_a_play_that_breaks_a_law_fails_with_what_broke_it(
    executor: PlayExecutor, tmp_path: Path
) -> None:
    broken = study(Modest(), tmp_path)
    (failed,) = broken.run(executor, laws=True).failed_plays
    assert "regret is not negative (round 1): reward " in failed.reason
    assert broken.missing() == broken.plays()


def test_checked_plays_are_those_that_are_not_checked(tmp_path: Path) -> None:
    checked, unchecked = study(Slope(), tmp_path / "a"), study(Slope(), tmp_path / "b")
    checked.run(InProcess(), laws=True)
    unchecked.run(InProcess())
    kept = checked.store.finished()
    assert {key: found.digest for key, found in kept.items()} == {
        key: found.digest for key, found in unchecked.store.finished().items()
    }


def test_run_names_the_law_that_a_play_breaks(tmp_path: Path) -> None:
    file = tmp_path / "modest.toml"
    file.write_text(
        "rounds = 5\noptimizers = ['uniform']\n"
        "[environment]\nkind = 'tests.study.test_laws:Modest'\n"
    )
    run = ("run", str(file), "--allow-import", "--executor", "in-process")
    told = ends_with(1, *run, "--out", str(tmp_path / "out"), "--laws", "--no-report")
    assert "regret is not negative (round 1)" in told
