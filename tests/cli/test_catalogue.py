"""`list` and `show` tell what is installed."""

from __future__ import annotations

import json
import tomllib
from math import inf
from pathlib import Path

import pytest

from sparq_sim.cli.main import app
from tests.cli.invoking import runner, said


def test_list_names_what_is_installed() -> None:
    everything = runner.invoke(app, ["list"]).output
    for words in ("environments:\n", "  synthetic", "truth", "sparq-gp-ucb", "draws:\n  constant"):
        assert words in everything


@pytest.mark.parametrize(
    ("sort", "name", "about"),
    [
        ("scenarios", "synthetic", "The paper's synthetic function"),
        ("experts", "truth", "Knows the current reward"),
        ("draws", "constant", "The same *value* each time."),
        ("losses", "bursts", "Loss in bursts"),
        ("kernels", "matern-1/2", "A kernel of rough rewards"),
    ],
)
def test_a_list_of_one_sort_has_a_line_about_each(sort: str, name: str, about: str) -> None:
    lines = runner.invoke(app, ["list", sort]).output.splitlines()
    width = max(len(line.split()[0]) for line in lines)
    assert any(line.startswith(f"{name:{width}}  {about}") for line in lines)


def test_a_list_for_programs_has_an_object_a_thing() -> None:
    things = json.loads(runner.invoke(app, ["list", "--json"]).output)
    truth = next(each for each in things if each["name"] == "truth")
    assert truth == {"kind": "experts", "name": "truth", "about": truth["about"]}
    assert truth["about"].startswith("Knows the current reward")
    draws = json.loads(runner.invoke(app, ["list", "draws", "--json"]).output)
    assert draws == [each for each in things if each["kind"] == "draws"]


def test_show_tells_the_fields_of_a_plugin_and_the_whole_of_a_scenario() -> None:
    shown = runner.invoke(app, ["show", "optimizer", "sparq-gp-ucb"]).output
    assert "Algorithm 1" in shown
    assert "schedule = " in shown
    assert "how many points to ask about" in shown
    whole = ["show", "synthetic", "--set", "rounds=7"]
    resolved = json.loads(runner.invoke(app, [*whole, "--json"]).output)
    assert resolved["rounds"] == 7
    assert resolved["period"] == 1.0
    written = tomllib.loads(runner.invoke(app, whole).output)
    assert written["rounds"] == 7
    assert written["horizon"] == inf
    assert runner.invoke(app, ["show", "optimizers", "sparq-gp-ucb"]).output == shown
    assert "length_scale = 1.0" in runner.invoke(app, ["show", "kernel", "matern-5/2"]).output
    assert "lost_in_bad = 1.0" in runner.invoke(app, ["show", "losses", "bursts"]).output


def test_an_environment_is_drawn_with_its_fields_set(tmp_path: Path) -> None:
    to = tmp_path / "peaks.html"
    drawn = ["show", "environment", "moving-peaks", "--plot", str(to), "--horizon", "5"]
    assert runner.invoke(app, [*drawn, "--set", "peaks=3"]).output == f"{to}\n"
    assert "moving-peaks" in to.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["environment", "recorded"], "by --set FIELD=VALUE): files: missing; add it"),
        (["environment", "plume", "--set", "cels=4"], "cels: 4: no such field; did you mean 'cel"),
        (["environment", "plume", "--set", "cells=x"], "cells: 'x': should be a whole number"),
        (["environment", "recorded", "--set", "x=1"], "--set x=1: x: 1: no such field; there are:"),
        (["environments", "a:B"], "--allow-import"),
        (["environments", "a:B", "--allow-import"], "No module named 'a'"),
        (["environment", "sinthetic"], "did you mean 'synthetic'?"),
        (["synthetic"], "--plot draws environments"),
    ],
)
def test_a_drawing_that_cannot_be_is_refused(
    arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = str(tmp_path / "world.html")
    assert reason in said(capsys, "show", *arguments, "--plot", to)
