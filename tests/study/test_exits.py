"""A plug-in that would end the program fails its play, and no other."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from numpy.random import Generator

from sparq_environments.synthetic import Synthetic
from sparq_sim import PluginError, Rules, play
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Briefing, Environment, Expert, Optimizer
from sparq_sim.simulation.play import play_live
from sparq_sim.study.executors import InProcess, PlayExecutor, Processes
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope, WaitlessLoop
from tests.cli.invoking import ends_with
from tests.study.exiting import PLACES, WAYS, Leaver, Way
from tests.study.plays import scenario

RULES = Rules(rounds=3)


def cast(leaver: Optimizer | Expert | Environment, way: Way) -> tuple[Any, ...]:
    """Give who takes part: optimizer, environment, rules and experts."""
    leaver = leaver.model_copy(update={"way": way})
    optimizer = leaver if isinstance(leaver, Optimizer) else Asker()
    environment = leaver if isinstance(leaver, Environment) else Slope()
    return optimizer, environment, RULES, [leaver] if isinstance(leaver, Expert) else []


def named(leaver: object) -> str:
    return f"{type(leaver).__name__}-{getattr(leaver, 'where', '')}"


def told_of(way: Way) -> str:
    return rf"(?s){WAYS[way]}.*exiting\.py.*in go.*must not end the program"


# Where, and how


@pytest.mark.parametrize("leaver", PLACES, ids=named)
@pytest.mark.parametrize("way", WAYS)
def test_a_plug_in_that_would_end_the_program_fails_its_play_wherever_it_is(
    leaver: Optimizer | Expert | Environment, way: Way
) -> None:
    *parts, experts = cast(leaver, way)
    with pytest.raises(PluginError, match=told_of(way)):
        play(*parts, experts={f"expert-{n}": each for n, each in enumerate(experts)})
    assert os._exit.__module__ in ("posix", "nt")


@pytest.mark.parametrize("leaver", PLACES, ids=named)
@pytest.mark.parametrize("way", ["exits", "interrupts", "ends"])
def test_in_real_time_as_well(leaver: Optimizer | Expert | Environment, way: Way) -> None:
    *parts, experts = cast(leaver, way)
    named = {f"expert-{n}": each for n, each in enumerate(experts)}
    with (
        asyncio.Runner(loop_factory=WaitlessLoop) as runner,
        pytest.raises(PluginError, match=told_of(way)),
    ):
        runner.run(play_live(*parts, experts=named))


@pytest.mark.parametrize("executor", [InProcess(), Processes(1)], ids=["here", "worker"])
def test_one_play_fails_and_its_neighbour_plays(tmp_path: Path, executor: PlayExecutor) -> None:
    leavers = {way: Leaver(where="ask", way=way) for way in WAYS}
    both = scenario(rounds=3, optimizers={**leavers, "uniform": Uniform()}, replications=1)
    done = Study(both, tmp_path).run(executor)
    assert done.done == 1
    assert [failed.play.optimizer for failed in done.failed_plays] == [*WAYS]
    assert all("must not end the program" in failed.reason for failed in done.failed_plays)


class Forking(Optimizer):
    """Has a child of its own end, as programs that fork do."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        child = os.fork()
        if not child:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        return Uniform().start(briefing, rng)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on Unix")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Of threads that xdist has.
def test_a_child_of_a_plug_in_may_end() -> None:
    assert len(play(Forking(), Slope(), RULES)) == 3


class Stopped(Optimizer):
    """Is stopped by Ctrl-C."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        signal.raise_signal(signal.SIGINT)
        return Uniform().start(briefing, rng)


def test_ctrl_c_still_ends_a_play() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            play(Stopped(), Synthetic(), RULES)
    finally:
        signal.signal(signal.SIGINT, before)


# At the command line


def write(folder: Path, text: str) -> str:
    file = folder / "leaving.toml"
    file.write_text(f"rounds = 3\nreplications = 1\n{text}", encoding="utf-8")
    return str(file)


HERE = ["--allow-import", "--executor", "in-process"]


@pytest.mark.parametrize("way", ["exits", "ends"])
def test_a_command_whose_plug_in_exits_says_so_and_ends_with_1(tmp_path: Path, way: Way) -> None:
    leaver = (
        f'optimizers.a = {{ kind = "tests.study.exiting:Leaver", where = "ask", way = "{way}" }}'
    )
    parts = 'environment.kind = "synthetic"\nexperts.sage.kind = "truth"\n'
    file = write(tmp_path, f"{parts}{leaver}\n")
    said = ends_with(1, "run", file, "--out", str(tmp_path / "out"), *HERE)
    assert "Failed: a (1 of 1): SystemExit: " in said


def test_levels_and_reports_that_end_the_program_leave_the_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plays in a worker are sound; what the command computes itself is not."""
    text = 'environment = { kind = "tests.study.exiting:Void" }\noptimizers = ["uniform"]\n'
    file, out = write(tmp_path, text), tmp_path / "out"
    monkeypatch.setattr("sparq_sim.analysis.levels.compute_levels", lambda *_, **__: sys.exit(0))
    monkeypatch.setattr("sparq_sim.cli.run.write_report", lambda *_, **__: os._exit(0))
    said = ends_with(0, "run", file, "--out", str(out), *HERE)
    assert "Note: no reference levels: SystemExit: 0" in said
    assert "Note: no report: SystemExit: os._exit(0)" in said


@pytest.mark.parametrize(
    "how", ["raise SystemExit(0)", "import os; os._exit(0)", "raise KeyboardInterrupt"]
)
@pytest.mark.parametrize("command", ["check", "run"])
def test_a_module_that_ends_the_program_when_it_is_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, how: str
) -> None:
    name = f"gone_{abs(hash((command, how)))}"
    (tmp_path / f"{name}.py").write_text(f"{how}\n")
    monkeypatch.syspath_prepend(tmp_path)
    file = write(tmp_path, f'environment.kind = "{name}:World"\noptimizers = ["uniform"]\n')
    said = ends_with(2, command, file, "--allow-import")
    assert f"'{name}:World' ({name}:World) cannot be loaded: " in said
    assert "must not end the program" in said


VALIDATING = """
from sparq_sim.testing import Slope
class World(Slope):
    def model_post_init(self, _):
        raise SystemExit(0)
"""


def test_fields_whose_check_ends_the_program_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "validating.py").write_text(VALIDATING)
    monkeypatch.syspath_prepend(tmp_path)
    file = write(tmp_path, 'environment.kind = "validating:World"\noptimizers = ["uniform"]\n')
    said = ends_with(2, "check", file, "--allow-import")
    assert "leaving.toml:3" in said
    assert "fails on its fields: SystemExit: 0 (validating.py:5 in model_post_init)" in said
