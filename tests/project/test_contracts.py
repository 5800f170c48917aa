"""Imports obey their contracts; what the public names are, and what is loaded when."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sparq_sim

ROOT = Path(__file__).resolve().parents[2]
HOMES = {
    "sparq_sim": ROOT / "sparq_sim",
    "sparq_experts": ROOT / "experts" / "sparq_experts",
    "sparq_environments": ROOT / "environments" / "sparq_environments",
    "sparq_scenarios": ROOT / "scenarios" / "sparq_scenarios",
}


def sources() -> dict[str, Path]:
    """Return the file of each module, by its full name."""
    found = {}
    for home in HOMES.values():
        for file in home.rglob("*.py"):
            parts = file.relative_to(home.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


SOURCES = sources()


@cache
def read_tree(module: str) -> ast.Module:
    return ast.parse(SOURCES[module].read_text(encoding="utf-8"))


def within(*packages: str) -> list[str]:
    chosen = [n for n in SOURCES if any(n == p or n.startswith(f"{p}.") for p in packages)]
    assert chosen, f"no module in {packages}"
    return sorted(chosen)


# Who may import whom: the contracts are in pyproject.toml.


def test_modules_import_one_another_as_the_contracts_allow() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    if not command.exists():
        pytest.skip("import-linter is not installed")
    done = subprocess.run(
        [command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


# Whatever is started may hold something open, which is closed where it was started.


def starts_of_landscapes(tree: ast.Module) -> list[str]:
    """Return the calls of the `start` of an environment."""
    calls = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if re.match(r"[\w.]*environment\.start\(", call)]


def test_a_landscape_is_started_in_one_place() -> None:
    assert starts_of_landscapes(ast.parse("a = self.environment.start(rng)"))
    places = {module for module in SOURCES if starts_of_landscapes(read_tree(module))}
    # The laws of environments look at `start` itself.
    assert places == {"sparq_sim.simulation.lifetime", "sparq_sim.testing.laws_of_environments"}


# Chance comes from a generator that is handed in.


def chances(tree: ast.Module) -> Iterator[str]:
    """Yield each use of randomness that no seed of a play decides."""
    types = {"BitGenerator", "Generator", "Philox"}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random")
            ):
                if node.attr not in types:
                    yield f"line {node.lineno}: {ast.unparse(node)}"
            case ast.ImportFrom(module="numpy.random", names=names):
                yield from (
                    f"line {node.lineno}: numpy.random.{alias.name}"
                    for alias in names
                    if alias.name not in types
                )
            case ast.ImportFrom(module="numpy", names=names) if "random" in {a.name for a in names}:
                yield f"line {node.lineno}: from numpy import random"
            case ast.ImportFrom(module="random" | "secrets"):
                yield f"line {node.lineno}: from {node.module} import ..."
            case ast.Import(names=names):
                yield from (
                    f"line {node.lineno}: import {alias.name}"
                    for alias in names
                    if alias.name in ("random", "secrets", "numpy.random")
                )


@pytest.mark.parametrize(
    "text",
    [
        "np.random.rand(3)",
        "numpy.random.seed(1)",
        "rng = np.random.default_rng()",
        "from numpy.random import normal",
        "from numpy import random",
        "import numpy.random as chance",
        "import random",
        "from random import shuffle",
    ],
)
def test_chance_from_elsewhere_is_found(text: str) -> None:
    assert len(list(chances(ast.parse(text)))) == 1


@pytest.mark.parametrize("module", sorted(SOURCES))
def test_no_module_takes_chance_from_elsewhere(module: str) -> None:
    found = list(chances(read_tree(module)))
    if module == "sparq_sim.testing.laws_of_optimizers":  # It looks whether others do.
        found = [line for line in found if not line.endswith("np.random.get_state")]
    if module == "sparq_sim.remote.secrets":  # The token of a server is no part of a play.
        found = [line for line in found if not line.endswith("import secrets")]
    assert not found


# The public names.


def test_each_public_name_can_be_imported_and_comes_from_the_package() -> None:
    for name in sparq_sim.__all__:
        thing = getattr(sparq_sim, name)
        assert thing.__name__ == name
        assert thing.__module__.startswith("sparq_sim.")


def test_the_public_names_are_those_that_type_checkers_see() -> None:
    (block,) = [node for node in read_tree("sparq_sim").body if isinstance(node, ast.If)]
    seen = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(filter(None, seen)) == sparq_sim.__all__
    homes = {name: f"{getattr(sparq_sim, name).__module__}.{name}" for name in sparq_sim.__all__}
    assert seen == homes


def test_the_package_lists_its_public_names_and_nothing_else() -> None:
    assert dir(sparq_sim) == sparq_sim.__all__ == sorted(set(sparq_sim.__all__))
    everything: dict[str, object] = {}
    exec("from sparq_sim import *", everything)
    assert everything.keys() - {"__builtins__"} == set(sparq_sim.__all__)


def test_a_name_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(AttributeError, match=r"sparq_sim has no 'Chanel'; it has: .*Channel"):
        getattr(sparq_sim, "Chanel")  # noqa: B009 - the type checker would refuse it too


# What is loaded when, in a fresh interpreter.


def loaded_after(statement: str, *arguments: str) -> set[str]:
    """Return the modules that a *statement* loads."""
    listing = f"import sys\n{statement}\nprint('\\nloaded:', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", listing, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "80"},
    )
    return set(done.stdout.rpartition("loaded:")[2].split())


def test_importing_the_package_loads_no_heavy_library() -> None:
    loaded = loaded_after("import sparq_sim")
    assert "sparq_sim" in loaded
    assert not loaded & {"numpy", "scipy", "pydantic", "simpy", "asyncio"}


def test_asking_the_command_line_for_help_loads_no_heavy_library() -> None:
    loaded = loaded_after(
        "from sparq_sim.cli.main import main\n"
        "sys.argv = ['sparq-sim', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code"
    )
    assert "sparq_sim.cli" in loaded
    assert not loaded & {"scipy", "pyarrow"}


def test_loading_all_optimizers_and_gaussian_processes_loads_no_clock() -> None:
    modules = within("sparq_sim.gp", "sparq_sim.optimizers")
    loaded = loaded_after("\n".join(f"import {name}" for name in modules))
    assert set(modules) <= loaded
    assert not loaded & {"simpy", "sparq_sim.simulation.clock"}


def test_a_scenario_is_checked_without_what_plays_it() -> None:
    loaded = loaded_after(
        "from sparq_sim.scenario.model import Scenario\nScenario.load('synthetic').settings()"
    )
    assert not loaded & {"scipy", "pyarrow", "simpy", "asyncio", "jinja2"}
    assert not loaded & {"sparq_sim.simulation.engine", "sparq_sim.simulation.delivery"}


PLAYERS = {
    "simpy",
    "sparq_sim.simulation.engine",
    # These alone of our modules import asyncio; pyarrow and others may load it too.
    "sparq_sim.simulation.clock.realtime",
    "sparq_sim.simulation.clock.virtual",
    "sparq_sim.study.executors",
}
"""What only a play needs."""
READERS = (
    "sparq_sim.analysis.cautions",
    "sparq_sim.analysis.contrasts",
    "sparq_sim.analysis.curves",
    "sparq_sim.analysis.export",
    "sparq_sim.analysis.levels",
    "sparq_sim.analysis.monitoring",
    "sparq_sim.analysis.summary",
    "sparq_sim.report.gather",
    "sparq_sim.report.html.page",
    "sparq_sim.report.print",
    "sparq_sim.report.terminal",
    "sparq_sim.simulation.beliefs",
    "sparq_sim.simulation.measures",
    "sparq_sim.simulation.trace",
    "sparq_sim.study.results",
    "sparq_sim.study.store",
)
"""What reads a stored study."""


def test_what_reads_a_stored_study_loads_nothing_that_plays() -> None:
    loaded = loaded_after("\n".join(f"import {name}" for name in READERS))
    assert set(READERS) <= loaded
    assert set(SOURCES) & PLAYERS == PLAYERS - {"simpy"}
    assert not loaded & PLAYERS


def test_reading_a_stored_study_loads_nothing_that_plays(of_before: Path) -> None:
    loaded = loaded_after(
        "from sparq_sim.analysis.summary import summary\n"
        "from sparq_sim import Results\n"
        "summary(Results.open(sys.argv[1]))",
        str(of_before),
    )
    assert not loaded & PLAYERS


def test_an_agent_loads_blas_before_the_play_begins_not_within_it() -> None:
    # What is loaded within a play is not held to one thread.
    loaded = loaded_after(
        "import numpy as np\n"
        "from sparq_sim import Box, Briefing\n"
        "from sparq_sim.optimizers.gp_ucb import GPUCB\n"
        "GPUCB().start(Briefing(Box(0.0, 1.0)), np.random.default_rng(0))"
    )
    assert "scipy.linalg" in loaded


def test_type_checkers_know_the_public_names_that_are_loaded_lazily() -> None:
    (block,) = (node for node in read_tree("sparq_sim").body if isinstance(node, ast.If))
    known = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert known == {name: f"sparq_sim.{home}" for name, home in sparq_sim._HOMES.items()}
