"""A plug-in that would end the program fails its play, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from numpy.random import Generator

from sparq_environments.synthetic import Synthetic
from sparq_sim import PluginError, Rules, play
from sparq_sim.messages import Query
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import (
    Agent,
    Answering,
    Briefing,
    Expert,
    Landscape,
    Optimizer,
    World,
)
from sparq_sim.study.executors import InProcess, PlayExecutor, Processes
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker
from tests.cli.invoking import ends_with
from tests.study.plays import scenario


class Leaving(Optimizer):
    """Ends the program as if all were well."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        raise SystemExit(0)


class Vanishing(Synthetic):
    """Ends the program as if all were well."""

    def start(self, rng: Generator) -> Landscape:
        raise SystemExit(0)


class Deserting(Expert):
    """Ends the program when it is asked."""

    def start(self, briefing: Briefing) -> Answering:
        return _Deserter()


class _Deserter:
    async def answer(self, query: Query, world: World) -> NoReturn:
        raise SystemExit(0)


class Stopped(Optimizer):
    """Is stopped by Ctrl-C."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        raise KeyboardInterrupt


@pytest.mark.parametrize("executor", [InProcess(), Processes(1)], ids=["here", "worker"])
def test_an_optimizer_that_exits_fails_and_its_neighbour_plays(
    tmp_path: Path, executor: PlayExecutor
) -> None:
    both = scenario(rounds=3, optimizers={"leaving": Leaving(), "uniform": Uniform()})
    done = Study(both, tmp_path).run(executor)
    assert done.done == 1
    (failed,) = done.failed_plays
    assert failed.play.optimizer == "leaving"
    assert failed.reason.startswith("SystemExit: 0 (test_exits.py:")


def test_an_environment_that_exits_fails_its_play() -> None:
    with pytest.raises(PluginError, match=r"SystemExit: 0 \(test_exits.py:\d+ in start\)"):
        play(Uniform(), Vanishing(), Rules(rounds=3))


def test_an_expert_that_exits_fails_its_play() -> None:
    experts = {"deserter": Deserting()}
    with pytest.raises(PluginError, match=r"SystemExit: 0 \(test_exits.py:\d+ in answer\)"):
        play(Asker(), Synthetic(), Rules(rounds=3), experts=experts)


def test_ctrl_c_still_ends_a_play() -> None:
    with pytest.raises(KeyboardInterrupt):
        play(Stopped(), Synthetic(), Rules(rounds=3))


def test_a_command_whose_plug_in_exits_says_so_and_ends_with_1(tmp_path: Path) -> None:
    file = tmp_path / "leaving.toml"
    file.write_text(
        'rounds = 3\nenvironment.kind = "synthetic"\n'
        'optimizers.leaving.kind = "tests.study.test_exits:Leaving"\n',
        encoding="utf-8",
    )
    options = ["--out", str(tmp_path / "out"), "--allow-import", "--executor", "in-process"]
    assert "Failed: leaving (1 of 1): SystemExit: 0" in ends_with(1, "run", str(file), *options)
