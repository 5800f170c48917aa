"""The expert `program` in a scenario file, and in C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparq_experts.program import Program
from sparq_sim import Rules, Scenario, play_live
from sparq_sim.errors import SparqError
from sparq_sim.testing import Asker, Slope
from tests.remote.children import compile_lab

SCENARIO = """
rounds = 3
environment.kind = "synthetic"
optimizers = ["uniform"]

[experts.lab]
kind = "program"
command = ["./lab", "--fast"]
"""


def load(folder: Path) -> Scenario:
    file = folder / "live.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    return Scenario.load(file)


def test_a_relative_program_starts_from_the_folder_of_the_scenario(tmp_path: Path) -> None:
    expert = load(tmp_path).experts["lab"].expert
    assert expert == Program(command=(str(tmp_path / "lab"), "--fast"))


def test_so_it_does_where_the_scenario_is_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(tmp_path)
    monkeypatch.chdir(tmp_path)
    expert = Scenario.load("live.toml").experts["lab"].expert
    assert expert == Program(command=(str(tmp_path / "lab"), "--fast"))


def test_a_missing_program_is_found_by_the_check_of_a_scenario(tmp_path: Path) -> None:
    scenario = load(tmp_path)
    with pytest.raises(SparqError, match=r"no program '.*lab' is found"):
        scenario.experts["lab"].expert.check_play(10.0)


@pytest.mark.asyncio
async def test_a_program_in_c_answers_in_a_play(tmp_path: Path) -> None:
    lab = Program(command=compile_lab(tmp_path))
    for seconds in (0.05, 0.2, 1.0):  # The machine may be busy.
        trace = await play_live(
            Asker(), Slope(), Rules(rounds=5), experts={"lab": lab}, seconds=seconds
        )
        replies = trace.replies
        answered = (replies["source"] == "lab") & (replies["fate"] == "answered")
        if answered.any():
            break
    points = replies["x0"][answered]
    np.testing.assert_allclose(replies["value"][answered], 1 - (points - 0.3) ** 2, rtol=1e-14)
    assert answered.any()
