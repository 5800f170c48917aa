from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr
from io import StringIO
from pathlib import Path

import pytest

from sparq_sim import PluginError, play
from sparq_sim.cli.main import main
from sparq_sim.optimizers.shared.routing import Shares
from sparq_sim.plugin.frames import MOST_FRAMES, describe_error, locate_error
from sparq_sim.plugin.registry import load
from sparq_sim.simulation.rules import Rules
from sparq_sim.testing import Asker, Slope

HELPER = """\
import numpy as np


def read(count):
    return np.linalg.cholesky(-np.eye(count))
"""
EXPERT = """\
from sparq_sim import Estimate, Expert

from deep_helper import read


class Deep(Expert):
    '''Raises in another file, within numpy.'''

    async def answer(self, query, world):
        return Estimate(read(len(query.points)))


class Seer(Expert):
    '''Raises in the world that it is given.'''

    async def answer(self, query, world):
        return Estimate(world.rewards(query.points, world.clock.now + 1))
"""
ENVIRONMENT = """\
from sparq_sim import Box, Environment

from deep_helper import read


class Pit(Environment):
    '''A world that cannot be computed.'''

    def start(self, rng):
        return PitLandscape()


class PitLandscape:
    domain = Box(0.0, 1.0)

    def rewards(self, points, time):
        return [read(2) for _ in points]

    def best(self, time):
        return [0.5], 1.0
"""
NUMPY = "LinAlgError: Matrix is not positive definite"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder with plug-ins of a user's own, from which they can be imported."""
    files = {"deep_helper": HELPER, "deep_expert": EXPERT, "deep_environment": ENVIRONMENT}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in files:
        sys.modules.pop(name, None)


def raised_by(plugin: str, *, rounds: int = 3) -> str:
    """Give the reason of the last reply of an expert."""
    expert = load("expert", plugin, allow_import=True)()
    trace = play(Asker(batch=1), Slope(), Rules(rounds=rounds), experts={"deep": expert})
    reasons: list[str] = trace.replies["reason"][trace.replies["source"] == "deep"].tolist()
    return reasons[-1]


def test_a_reply_says_where_in_the_files_of_the_expert_it_went_wrong(home: Path) -> None:
    where = "(deep_expert.py:10 in answer > deep_helper.py:5 in read)"
    assert raised_by("deep_expert:Deep") == f"deep raised {NUMPY} {where}"


def test_what_the_core_raises_is_placed_where_the_expert_called_it(home: Path) -> None:
    assert raised_by("deep_expert:Seer") == (
        "deep raised ValueError: rewards are known from 0 to now (3.0), not at 4.0 "
        "(deep_expert.py:17 in answer)"
    )


def test_what_a_reply_says_does_not_depend_on_where_the_expert_is_installed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package with an entry point is a plug-in also among the installed ones."""
    first = raised_by("deep_expert:Seer")
    sys.modules.pop("deep_expert")
    site = tmp_path / "lib" / "site-packages"
    info = site / "deep-1.0.dist-info"
    info.mkdir(parents=True)
    (home / "deep_expert.py").rename(site / "deep_expert.py")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deep\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sparq_sim.experts]\nseer = deep_expert:Seer\n")
    monkeypatch.syspath_prepend(site)
    assert raised_by("seer") == first


def test_a_plugin_that_comes_with_it_is_one_as_well() -> None:
    with pytest.raises(PluginError) as refused:
        Shares(shares=(("a", 1.0),)).check(["b"])
    assert re.search(r" > routing\.py:\d+ in check\)$", locate_error(refused.value))


def test_only_the_deepest_frames_are_shown() -> None:
    def fall(depth: int) -> None:
        if depth == 0:
            raise ValueError("the ground")
        fall(depth - 1)

    with pytest.raises(ValueError, match="ground") as error:
        fall(20)
    shown = locate_error(error.value)
    assert shown.startswith(" (… > test_frames.py:")
    assert shown.count(" in fall") == MOST_FRAMES


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert locate_error(ValueError("x")) == ""
    assert describe_error(ValueError("x"), anywhere=True) == "ValueError: x"


def test_what_no_plugin_has_to_do_with_can_be_placed_where_it_was_raised() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        # This file would count as one of a plug-in's.
        caught = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
    assert describe_error(caught).endswith("(char 1)")
    assert re.search(r"decoder\.py:\d+ in raw_decode\)$", describe_error(caught, anywhere=True))


def test_an_error_for_users_is_its_message() -> None:
    assert describe_error(PluginError("rename it")) == "rename it"


def test_a_machine_without_enough_memory_is_told_in_words() -> None:
    told = describe_error(MemoryError("Unable to allocate 7.28 TiB"))
    assert told == "out of memory: Unable to allocate 7.28 TiB; ask for less at a time"
    assert describe_error(MemoryError()).startswith("out of memory: no more can be had; ")


# In the terminal


def ran(home: Path, *arguments: str) -> str:
    """Run the command in *home*, and give what it said; nothing is told by a traceback."""
    said = StringIO()
    with chdir(home), redirect_stderr(said), pytest.raises(SystemExit) as ended:
        main([*arguments, "--allow-import"])
    assert ended.value.code in (1, 2)
    assert "Traceback" not in said.getvalue()
    return said.getvalue()


@pytest.mark.parametrize("executor", ["in-process", "processes"])
@pytest.mark.parametrize("design", [0, 3])
def test_a_play_that_fails_says_where_in_the_files_of_the_environment(
    home: Path, executor: str, design: int
) -> None:
    text = (
        f"rounds = 3\ndesign = {design}\noptimizers = ['uniform']\n"
        "environment.kind = 'deep_environment:Pit'\n"
    )
    (home / "pit.toml").write_text(text, encoding="utf-8")
    said = ran(home, "run", "pit.toml", "--executor", executor)
    where = "(deep_environment.py:17 in rewards > deep_helper.py:5 in read)"
    assert f"Failed: uniform (1 of 1): {NUMPY} {where}\n" in said


def test_an_environment_that_cannot_be_drawn_says_where(home: Path) -> None:
    said = ran(home, "show", "environment", "deep_environment:Pit", "--plot", "pit.png")
    assert said.startswith(f"Error: {NUMPY} (")
    assert said.endswith("deep_environment.py:17 in rewards > deep_helper.py:5 in read)\n")


def test_a_plugin_that_cannot_be_imported_says_where(home: Path) -> None:
    (home / "deep_expert.py").write_text("import math\n\nlimit = math.sqrt(-1)\n")
    text = "rounds = 3\noptimizers = ['uniform']\nenvironment.kind = 'synthetic'\n"
    (home / "s.toml").write_text(f"{text}experts.deep.kind = 'deep_expert:Deep'\n")
    said = ran(home, "check", "s.toml")
    assert said.startswith("Error: s.toml:4: experts.deep.kind: 'deep_expert:Deep': ")
    assert said.endswith("ValueError: math domain error (deep_expert.py:3 in <module>)\n")
