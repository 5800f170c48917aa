"""Code that is edited is played anew, however it was installed, and that is said."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

import sparq_environments
import sparq_experts
import sparq_sim
from sparq_sim.analysis.summary import summary
from sparq_sim.study.results import Results
from tests.commands import run

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "lab-experts"
version = "1.0"

[project.entry-points."sparq_sim.experts"]
tardy = "lab.experts:Tardy"

[tool.hatch.build.targets.wheel]
packages = ["lab"]
dev-mode-dirs = ["."]
"""
EXPERTS = """
from lab.helper import LAG
from sparq_sim import Estimate, Expert

class Tardy(Expert):
    async def answer(self, query, world):
        then = max(0.0, world.clock.now - LAG)
        return Estimate(world.rewards(query.points, then), measured_at=then)
"""
SCENARIO = """
rounds = 20
replications = 2
environment = { kind = "synthetic" }
feedback = { noise = 0.1 }
experts.late = { kind = "tardy", channel = { noise = 0.1 } }
optimizers = ["sparq-gp-ucb"]
"""


@dataclass(frozen=True)
class Laboratory:
    """A virtual environment with sparq-sim, and the package `lab` at *home* installed in it."""

    folder: Path
    home: Path

    @property
    def study(self) -> Path:
        return self.folder / "study"

    @property
    def regret(self) -> float:
        (row,) = summary(Results.open(self.study))
        return row.average_regret.mean

    def edit(self, module: str, old: str, new: str) -> None:
        file = self.home / f"{module}.py"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def run(self, *, workers: bool = True) -> str:
        """Run the study with workers, or in one process, and give what was said."""
        where = ("--jobs", "1") if workers else ("--executor", "in-process")
        command = ("run", "scenario.toml", "--out", str(self.study), *where, "--no-report")
        return python(self.folder, "-m", "sparq_sim", *command)


def python(folder: Path, *arguments: str) -> str:
    program = folder / "venv" / "bin" / "python"
    done = subprocess.run(
        [program, "-P", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(params=["editable", "wheel"])
def laboratory(request: pytest.FixtureRequest, tmp_path: Path) -> Laboratory:
    source = tmp_path / "source"
    (source / "lab").mkdir(parents=True)
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "lab" / "__init__.py").touch()
    (source / "lab" / "experts.py").write_text(EXPERTS)
    (source / "lab" / "helper.py").write_text("LAG = 2.0\n")
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    run("-m", "venv", "--without-pip", "venv", cwd=tmp_path)
    asked = ("-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    site = Path(python(tmp_path, *asked).strip())
    # What is installed here is installed there, sparq-sim and pip among it.
    here = sysconfig.get_path("purelib")
    (site / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    editable = request.param == "editable"
    what = ("--editable", str(source)) if editable else (str(source),)
    python(tmp_path, "-m", "pip", "install", "--quiet", *offline, *what)
    return Laboratory(tmp_path, (source if editable else site) / "lab")


@pytest.mark.skipif(sys.platform == "win32", reason="looks for Python in the folder bin")
def test_an_edited_plug_in_is_played_anew_and_then_found(laboratory: Laboratory) -> None:
    assert "2 plays in" in laboratory.run()
    regrets = [laboratory.regret]
    for workers, *edit in (
        (False, "experts", "world.clock.now - LAG", "world.clock.now - 4 * LAG"),
        (True, "helper", "2.0", "1.0"),
        (False, "experts", "    async def", "    unused: float = 1.0\n\n    async def"),
    ):
        laboratory.edit(*edit)
        said = laboratory.run(workers=workers)
        assert "Note: set aside 2 plays: the source of expert 'tardy' (package lab) has" in said
        assert "2 plays in" in said
        assert "0 reused" in said
        regrets.append(laboratory.regret)
        assert "2 reused" in laboratory.run()
    first, lagging, less, same = regrets
    assert len({first, lagging, less}) == 3
    assert same == less
    assert len(list((laboratory.study / "rounds").iterdir())) == 2
    assert len(list((laboratory.study / "set-aside").iterdir())) == 3 * 2


# While a process goes on

LONG_LIVED = """
from pathlib import Path
import mine
from sparq_environments.synthetic import Synthetic
from sparq_sim import Scenario, SparqError, Study
from sparq_sim.study.executors import InProcess, Processes

if __name__ == "__main__":
    scenario = Scenario(environment=Synthetic(), optimizers={"mine": mine.Mine()}, rounds=2)
    with open(mine.__file__, "a") as file:
        file.write("# Edited.\\n")
    try:
        Study(scenario, "study").run(Processes(1))
    except SparqError as error:
        print(error)
    print(Study(scenario, "study").run(InProcess()).done)
"""


def test_workers_that_load_an_edited_plug_in_are_refused_and_told_what_to_do(
    tmp_path: Path,
) -> None:
    mine = "from sparq_sim.optimizers.uniform import Uniform\n\nclass Mine(Uniform):\n    pass\n"
    (tmp_path / "mine.py").write_text(mine)
    (tmp_path / "script.py").write_text(LONG_LIVED)
    *_, said, here = run("script.py", cwd=tmp_path, PYTHONPATH=str(tmp_path)).splitlines()
    assert said.startswith("the code has changed under the study: ")
    assert "restart Python, or the notebook's kernel, and run again" in said
    assert here == "1"  # With the code that is loaded, under its key.


# The core


def test_an_edited_core_plays_anew_where_it_plays_and_not_where_it_reports(tmp_path: Path) -> None:
    for package in (sparq_sim, sparq_experts, sparq_environments):
        home = Path(str(package.__file__)).parent
        shutil.copytree(home, tmp_path / home.name)
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace("tardy", "truth"))
    command = ("run", "scenario.toml", "--out", "study", "--no-report", "--executor", "in-process")

    def said_after_editing(module: str) -> str:
        with (tmp_path / "sparq_sim" / module).open("a") as file:
            file.write("# Edited.\n")
        return run("-m", "sparq_sim", *command, cwd=tmp_path, PYTHONPATH=str(tmp_path))

    assert "0 reused" in said_after_editing("cli.py")
    assert "2 reused" in said_after_editing("report/page.py")
    said = said_after_editing("gp/cholesky.py")
    assert "Note: set aside 2 plays: the source of sparq-sim has changed since" in said
    assert "0 reused" in said
