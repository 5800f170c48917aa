"""Plug-ins are known by their source, as it was when it was loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module, invalidate_caches
from pathlib import Path
from textwrap import indent
from types import FunctionType
from typing import Any
from zipfile import ZipFile

import pytest

from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin import origins, sources
from sparq_sim.plugin.adaptors import from_function
from sparq_sim.plugin.origins import Origin, find_entry_points
from sparq_sim.plugin.sources import NOT_COMPUTING
from sparq_sim.study.store.keys import list_plugins
from tests.commands import run
from tests.project.test_contracts import loaded_after
from tests.study.plays import scenario

EXPERT = """
from sparq_sim import Estimate, Expert

class Sage(Expert):
    async def answer(self, query, world):
        return Estimate(world.rewards(query.points, world.clock.now))
"""

Lab = Callable[[str], type]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.fixture
def sage(site: Path) -> Iterator[Lab]:
    """Import Sage of a module as a new process would."""
    before = set(sys.modules)

    def forget() -> None:
        for name in set(sys.modules) - before:
            del sys.modules[name]
        invalidate_caches()

    def imported(module: str) -> type:
        forget()
        found: type = import_module(module).Sage
        return found

    yield imported
    forget()


def write(home: Path, texts: Mapping[str, str]) -> None:
    """Write modules, by their paths."""
    for name, text in texts.items():
        path = home / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def package(home: Path, texts: Mapping[str, str] | None = None) -> None:
    """Write a package `lab`, whose module `experts` has a Sage, and more *texts*."""
    usual = {"lab/__init__": "", "lab/experts": EXPERT, "lab/helper": "A = 1\n"}
    write(home, {**usual, **(texts or {})})


def origin(plugin: type | FunctionType) -> Origin:
    (found,) = origins.find_origins([plugin])
    return found


# Packages and modules


@pytest.mark.parametrize("edited", ["experts", "helper", "more"])
def test_a_plug_in_of_a_small_package_is_known_by_all_its_modules(
    site: Path, sage: Lab, edited: str
) -> None:
    package(site)
    before = origin(sage("lab.experts"))
    assert origin(sage("lab.experts")) == before
    assert before.covers == "package lab"
    with (site / "lab" / f"{edited}.py").open("a") as file:
        file.write("B = 2\n")
    assert origin(sage("lab.experts")).source != before.source


def test_line_endings_and_files_that_are_no_code_make_no_difference(site: Path, sage: Lab) -> None:
    package(site)
    before = origin(sage("lab.experts"))
    (site / "lab" / "experts.py").write_bytes(EXPERT.replace("\n", "\r\n").encode())
    (site / "lab" / "table.csv").write_text("a,b\n")
    assert origin(sage("lab.experts")) == before


def test_of_a_large_package_the_part_around_the_plug_in_counts(site: Path, sage: Lab) -> None:
    package(site, {"lab/deep/__init__": "", "lab/deep/experts": EXPERT})
    write(site, {f"lab/more{n}": "" for n in range(sources.MOST_FILES)})
    before = origin(sage("lab.deep.experts"))
    assert before.covers == "package lab.deep"
    write(site, {"lab/helper": "A = 2\n"})
    assert origin(sage("lab.deep.experts")) == before
    alone = origin(sage("lab.experts"))
    assert alone.covers == "module lab.experts"
    write(site, {"lab/experts": f"{EXPERT}\n\n"})
    assert origin(sage("lab.experts")).source != alone.source


def test_a_package_of_many_bytes_is_large(site: Path, sage: Lab) -> None:
    package(site, {"lab/helper": "#" * sources.MOST_BYTES})
    assert origin(sage("lab.experts")).covers == "module lab.experts"


def test_a_namespace_that_others_share_is_no_package(site: Path, sage: Lab) -> None:
    write(site, {"space/experts": EXPERT})
    assert origin(sage("space.experts")).covers == "module space.experts"


def test_a_module_in_no_package_is_known_with_those_beside_it_that_it_imports(
    site: Path, sage: Lab
) -> None:
    texts = {
        "mine": f"import helper\n{EXPERT}",
        "helper": "from deep import A\n",
        "deep": "A = 1\n",
    }
    write(site, {**texts, "stranger": "A = 1\n"})
    before = origin(sage("mine"))
    assert before.covers == "module mine"
    write(site, {"stranger": "A = 22\n"})
    assert origin(sage("mine")) == before
    write(site, {"deep": "A = 22\n"})
    assert origin(sage("mine")).source != before.source


def test_bases_take_part_wherever_they_are_defined(site: Path, sage: Lab) -> None:
    package(site)
    write(site, {"mine": "from lab.experts import Sage as Base\nclass Sage(Base):\n    pass\n"})
    names = [each.name for each in origins.find_origins([sage("mine")])]
    assert names == ["lab.experts:Sage", "mine:Sage"]


def test_what_is_loaded_counts_and_not_what_the_file_has_become(site: Path, sage: Lab) -> None:
    package(site)
    model = sage("lab.experts")
    with (site / "lab" / "experts.py").open("a") as file:
        file.write("B = 2\n")
    stale = origin(model)
    assert origin(sage("lab.experts")).source != stale.source
    with (site / "lab" / "experts.py").open("w") as file:
        file.write(EXPERT)
    assert origin(sage("lab.experts")).source == stale.source


TELLING = f"""
from lab import helper
from sparq_sim.plugin.origins import find_origins
{EXPERT}
print(find_origins([Sage])[0].to_provenance())
"""


def test_a_module_that_python_runs_is_known_by_its_package(tmp_path: Path) -> None:
    package(tmp_path, {"lab/main": TELLING})
    before = run("-m", "lab.main", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert "'class': '__main__:Sage'" in before
    assert "'covers': 'package lab'" in before
    write(tmp_path, {"lab/helper": "A = 22\n"})
    assert run("-m", "lab.main", cwd=tmp_path, PYTHONPATH=str(tmp_path)) != before


# Without files


def test_functions_of_python_are_no_plug_ins() -> None:
    assert isinstance(indent, FunctionType)
    assert origins.find_origins([indent]) == []


def test_what_is_in_an_archive_is_known_by_its_version_and_that_is_told(
    tmp_path: Path, sage: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("packed.py", "class Sage:\n    pass\n")
        archive.writestr("packed-3.1.dist-info/METADATA", "Name: packed\nVersion: 3.1\n")
        archive.writestr("packed-3.1.dist-info/top_level.txt", "packed\n")
    monkeypatch.syspath_prepend(tmp_path / "all.zip")
    assert origin(sage("packed")).to_provenance() == {
        "class": "packed:Sage",
        "distribution": "packed",
        "version": "3.1",
        "covers": "version",
        "source": None,
    }


CELL = """
from sparq_sim import Estimate, Expert

LAG = 2.0

def then(world):
    return max(0.0, world.clock.now - LAG)

class Sage(Expert):
    async def answer(self, query, world):
        return Estimate(world.rewards(query.points, then(world)))
"""


def in_a_notebook(text: str) -> type:
    scope: dict[str, Any] = {"__name__": "a_notebook"}
    exec(text, scope)
    found: type = scope["Sage"]
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [("LAG = 2.0", "LAG = 3.0"), ("max(0.0", "max(1.0"), ("then(world))", "then(world) / 2)")],
)
def test_what_is_defined_in_a_notebook_is_known_by_what_it_does(old: str, new: str) -> None:
    before = origin(in_a_notebook(CELL))
    assert origin(in_a_notebook(f"# As it was.\n\n{CELL}")) == before
    assert before.covers == "functions"
    assert origin(in_a_notebook(CELL.replace(old, new))).source != before.source


def test_a_part_in_a_notebook_is_known_by_what_it_does_though_that_is_looked_at() -> None:
    cell = """
import numpy as np
from sparq_sim.simulation.channel.draws import Draw

class Sage(Draw):
    @property
    def expected(self):
        return 1.0

    def sample(self, rng, count):
        return np.full(count, 1.0)
"""
    before = origin(in_a_notebook(cell))
    assert origin(in_a_notebook(cell)) == before
    assert origin(in_a_notebook(cell.replace("count, 1.0", "count, 2.0"))).source != before.source
    assert origin(in_a_notebook(cell.replace("return 1.0", "return 2.0"))).source != before.source


def test_a_function_that_a_plug_in_has_for_a_field_takes_part() -> None:
    used = list_plugins(scenario(experts={"f": from_function(in_a_field)}), "uniform")
    (found,) = (each for each in used if each["class"] == f"{__name__}:in_a_field")
    assert found["covers"] == f"package {__package__}"


def in_a_field(points: Any, time: float) -> Any:
    return points[:, 0]


# The core

A_PLAY = """
import sparq_sim.simulation.play
import sparq_sim.simulation.rules
from sparq_environments.synthetic import Synthetic
from sparq_experts.truth import Truth
from sparq_sim.plugin.registry import list_names, load
made = {"fixed": {"point": (0.0,)}}
for name in list_names("optimizer"):
    optimizer = load("optimizer", name)(**made.get(name, {}))
    experts = {"truth": Truth()}
    rules = sparq_sim.simulation.rules.Rules(rounds=3)
    sparq_sim.simulation.play.play(optimizer, Synthetic(), rules, experts=experts)
import sparq_sim.simulation.measures
"""


def test_all_of_the_core_that_a_play_loads_is_covered() -> None:
    modules = {name for name in loaded_after(A_PLAY) if name.startswith("sparq_sim.")}
    loaded = {name.removeprefix("sparq_sim.").replace(".", "/") for name in modules}
    assert {"simulation/engine", "gp/kernels", "optimizers", "simulation/measures"} <= loaded
    # What hashes sources, and what writes help texts, changes no result.
    not_computing = {"plugin/origins", "plugin/sources", "plugin/field_docs"}
    assert loaded & NOT_COMPUTING <= not_computing


def test_all_that_is_listed_as_not_computing_is_there() -> None:
    home = Path(str(origins.__file__)).parents[1]
    files = [path.relative_to(home) for path in home.rglob("*") if path.suffix != ".pyc"]
    assert {path.with_suffix("").as_posix() for path in files} >= NOT_COMPUTING


def test_an_optimizer_of_the_core_is_known_by_the_core() -> None:
    assert (origin(Uniform).covers, origin(Uniform).source) == (
        "package sparq_sim",
        sources.hash_core(),
    )


# Entry points


def test_what_is_installed_or_removed_later_is_noticed(site: Path) -> None:
    def found() -> list[str]:
        return [entry.name for entry in find_entry_points("sparq_sim.experts")]

    before = found()
    info = site / "late-1.0.dist-info"
    (site / "unpacked").mkdir()
    (site / "unpacked" / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    (site / "unpacked" / "entry_points.txt").write_text("[sparq_sim.experts]\nlate = late:Late\n")
    assert found() == before
    (site / "unpacked").rename(info)
    os.utime(site, ns=(1, 1))  # A moment later, however coarse the clock of files is.
    assert sorted(found()) == sorted([*before, "late"])
    info.rename(site / "unpacked")
    os.utime(site, ns=(2, 2))
    assert found() == before
