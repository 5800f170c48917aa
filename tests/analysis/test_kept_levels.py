from __future__ import annotations

import json
from math import isnan, nan
from pathlib import Path

import pytest

from sparq_sim.analysis.kept_levels import KEPT, keep_levels, read_levels
from sparq_sim.analysis.levels import Level, Levels
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.study.plays import scenario

LEVELS: list[Level] = [
    ({"a.b": 1}, Levels(1.0, 0.5, 0.1, worlds=1, different_worlds=3, uniform_std=nan))
]


@pytest.fixture
def study(tmp_path: Path) -> Results:
    one = Study(scenario(optimizers=["uniform"], replications=2), tmp_path)
    one.run(InProcess())
    return one.results


def test_levels_that_were_kept_are_read_again(study: Results) -> None:
    keep_levels(study, LEVELS)
    ((setting, level),) = read_levels(Results.open(study.folder))
    assert (setting, level.fixed, level.different_worlds) == ({"a.b": 1}, 0.5, 3)
    assert isnan(level.uniform_std)


def test_levels_of_other_plays_are_not_shown(study: Results) -> None:
    keep_levels(study, LEVELS)
    next((study.folder / "rounds").iterdir()).unlink()
    assert read_levels(Results.open(study.folder)) == []


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"plays": 3}', "\x00"])
def test_a_file_that_cannot_be_read_holds_no_levels(study: Results, content: str) -> None:
    (study.folder / KEPT).write_text(content)
    assert read_levels(study) == []


def test_levels_with_unknown_fields_are_not_shown(study: Results) -> None:
    keep_levels(study, LEVELS)
    held = json.loads((study.folder / KEPT).read_text())
    held["levels"][0]["sideways"] = 1.0
    (study.folder / KEPT).write_text(json.dumps(held))
    assert read_levels(study) == []
