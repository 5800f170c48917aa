"""Data that a scenario names are in its folder, unless they are allowed to be elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sparq_sim.scenario.model import Scenario
from tests.scenario.samples import SMALL, problem, write

CSV = "delay\n1.5\n"


def draw(file: str) -> str:
    return f'feedback.service = {{ kind = "empirical", file = "{file}", column = "delay" }}\n'


def nodes(file: str) -> str:
    return f'[experts.net]\nkind = "sensors"\nnodes = {{ file = "{file}" }}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, CSV, "outside.csv")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.csv").symlink_to(tmp_path / "outside.csv")
    return inner


@pytest.mark.parametrize("lines", [draw, nodes])
@pytest.mark.parametrize("file", ["../outside.csv", "/etc/passwd", "~/x.csv", "link.csv"])
def test_a_file_outside_is_refused_with_where_it_leads(
    folder: Path, lines: Callable[[str], str], file: str
) -> None:
    said = problem(write(folder, SMALL + lines(file)))
    assert f"out of the folder of the scenario, {folder.resolve()}" in said
    assert "--allow-outside" in said
    assert "file: " in said


def test_what_a_pattern_finds_by_a_link_is_refused(folder: Path) -> None:
    text = 'environment = { kind = "recorded", files = ["*.csv"] }\n'
    said = problem(write(folder, f"rounds = 3\noptimizers = ['uniform']\n{text}"))
    assert "environment.files.0: '*.csv': leads to" in said


def test_a_file_outside_that_is_allowed_is_read(folder: Path) -> None:
    file = write(folder, SMALL + draw("../outside.csv"))
    assert Scenario.load(file, allow_outside=True).feedback.service.expected == 1.5


def test_a_file_outside_that_the_user_names_is_read(folder: Path) -> None:
    said = f"feedback.service={{kind='empirical', file='{folder}/../outside.csv', column='delay'}}"
    found = Scenario.load(write(folder, SMALL), overrides=[said])
    assert found.feedback.service.expected == 1.5


def test_an_installed_scenario_may_name_what_lies_beside_it(folder: Path) -> None:
    shown = Scenario.load("paper/ozone").resolve()["environment"]
    assert isinstance(shown, dict)
    files = shown["files"]
    text = f'extends = "paper/ozone"\nenvironment.files = ["{files[0]}"]\n'
    again = Scenario.load(write(folder, text)).resolve()["environment"]
    assert again == shown


@pytest.mark.parametrize("base", ["/dev/zero", "/etc/passwd", "pipe.toml"])
def test_only_scenarios_can_be_extended(folder: Path, base: str) -> None:
    os.mkfifo(folder / "pipe.toml")
    said = problem(write(folder, f'extends = "{base}"\n'))
    assert f"scenario.toml:1: extends: {base!r}: " in said
    assert "leads to" in said or "is no file" in said


def test_a_path_too_long_for_a_file_is_refused_in_words(folder: Path) -> None:
    said = problem(write(folder, SMALL + nodes("a" * 300)))
    assert "experts.net.nodes.file: " in said
    assert "is too long for the name of a file; shorten it" in said
