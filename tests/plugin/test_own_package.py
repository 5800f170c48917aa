"""The plug-ins of the guides, in a package of one's own: as short as said, installed, played."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from sparq_sim import Results
from tests.commands import run, run_commands

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "my-package"
version = "1.0"

[tool.hatch.build.targets.wheel]
only-include = ["my_package.py"]

[project.entry-points."sparq_sim.experts"]
solver = "my_package:Solver"

[project.entry-points."sparq_sim.environments"]
chemostat = "my_package:Chemostat"

"""
IMPORTS = """
import numpy as np
from sparq_sim import Estimate, Expert
"""
PARTS = """
rounds = 12
environment.kind = "synthetic"
feedback.noise = 0.1
"""
PROGRAM_AND_WORLD = """
rounds = 6
environment = { kind = "chemostat", nodes = 9 }
feedback.noise = 0.1
record = "full"

[experts.program]
kind = "solver"
channel.noise = 0.1

[optimizers.sparq]
kind = "sparq-gp-ucb"
kernel.kind = "squared-exponential"
"""


def block(guide: str, language: str, having: str) -> str:
    """Return the block of a guide with a line that begins so."""
    text = (GUIDES / f"{guide}.md").read_text("utf-8")
    fenced = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    (found,) = (each for each in fenced if re.search(f"^{re.escape(having)}", each, re.MULTILINE))
    return str(found)


def definitions(guide: str, name: str) -> str:
    """Return the block of a guide that defines a class, without what is done with it there."""
    text = block(guide, "python", f"class {name}")
    kept = (ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)
    return "\n\n".join(
        ast.get_source_segment(text, node) or ""
        for node in ast.parse(text).body
        if isinstance(node, kept)
    )


@pytest.mark.parametrize(
    ("guide", "name", "most"),
    [
        ("plugins", "Weibull", 12),
        ("plugins", "Periodic", 12),
        ("plugins", "Solver", 15),
        ("environments", "Chemostat", 16),
    ],
)
def test_each_plug_in_of_the_guides_is_as_short_as_said(guide: str, name: str, most: int) -> None:
    text = block(guide, "python", f"class {name}")
    (model,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
    lines = (ast.get_source_segment(text, model) or "").splitlines()
    assert len([line for line in lines if line.strip()]) <= most


def test_latency_kernel_program_and_world_of_the_guides_play_from_toml_once_installed(
    tmp_path: Path,
) -> None:
    plug_ins = [definitions("plugins", name) for name in ("Weibull", "Periodic", "Solver")]
    plug_ins.append(definitions("environments", "Chemostat"))
    home, site = tmp_path / "home", tmp_path / "site"
    home.mkdir()
    (home / "my_package.py").write_text("\n\n".join([IMPORTS, *plug_ins]))
    entries = block("plugins", "toml", '[project.entry-points."sparq_sim.draws"]')
    (home / "pyproject.toml").write_text(PROJECT + entries)
    parts = block("plugins", "toml", '[experts.sensor]\nkind = "truth"')
    (tmp_path / "parts.toml").write_text(PARTS + parts)
    (tmp_path / "play.toml").write_text(PROGRAM_AND_WORLD)
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    run("-m", "pip", "install", *offline, "--target", str(site), str(home), cwd=tmp_path)

    commands = (
        "run parts.toml --jobs 1 --no-report",
        "list draws",
        "show kernel periodic",
        "run play.toml --out play --jobs 1 --no-report",
    )
    told = run_commands(*commands, cwd=tmp_path, PYTHONPATH=str(site))
    assert "4 plays" in told
    assert "weibull      Times to failure" in told
    assert "period = 1.0" in told
    assert "1 play" in told
    # The program is really run, and takes the half clock unit that it declares.
    study = Results.open(tmp_path / "play")
    (found,) = study.finished()
    replies = study.read(found.key).trace.replies
    asked = replies["source"] == "program"
    assert set(replies["fate"][asked]) == {"answered"}
    assert_allclose((replies["arrived_at"] - replies["asked_at"])[asked], 0.5)
