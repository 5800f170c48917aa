"""Who may import whom, what the public names are, and what is loaded when."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
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
PLUGINS = HOMES.keys() - {"sparq_sim"}


def sources() -> dict[str, Path]:
    """Give the file of each module, by its full name."""
    found = {}
    for home in HOMES.values():
        for file in home.rglob("*.py"):
            parts = file.relative_to(home.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


SOURCES = sources()
TREES = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in SOURCES.items()}


class Imports(ast.NodeVisitor):
    """Gathers what a module imports at run time, at the top and, if *lazy*, within functions."""

    def __init__(self, module: str, *, package: bool, lazy: bool = True) -> None:
        self._package = module.split(".") if package else module.split(".")[:-1]
        self._lazy = lazy
        self.names: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if self._lazy:
            self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast calls it so

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.names.update(alias.name for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        above = self._package[: len(self._package) - node.level + 1] if node.level else []
        base = ".".join([*above, *filter(None, [node.module])])
        # What is imported from a package may be a module of it.
        self.names.update({base}, (f"{base}.{alias.name}" for alias in node.names))

    def visit_Call(self, node: ast.Call) -> None:
        if ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            self.names.update(
                argument.value
                for argument in node.args[:1]
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            )
        self.generic_visit(node)


def imports(tree: ast.Module, module: str, *, package: bool = False, lazy: bool = True) -> set[str]:
    visitor = Imports(module, package=package, lazy=lazy)
    visitor.visit(tree)
    return visitor.names


def with_parents(names: Iterable[str]) -> set[str]:
    """Add the packages that are imported on the way to each name."""
    return {
        ".".join(parts[:i])
        for parts in (name.split(".") for name in names)
        for i in range(1, len(parts) + 1)
    }


def graph(*, lazy: bool) -> dict[str, set[str]]:
    """Return what each module of ours imports, by its name; also later on, if *lazy*."""
    return {
        name: with_parents(
            imports(TREES[name], name, package=file.name == "__init__.py", lazy=lazy)
        )
        for name, file in SOURCES.items()
    }


GRAPH = graph(lazy=True)
GRAPH_AT_IMPORT = graph(lazy=False)


def reach(modules: Iterable[str], graph: Mapping[str, set[str]] = GRAPH) -> set[str]:
    """Return all that *modules* import, also by way of other modules of ours."""
    seen: set[str] = set()
    todo = with_parents(modules)
    while todo:
        seen |= todo
        todo = {name for module in todo for name in graph.get(module, ())} - seen
    return seen


def within(*packages: str) -> list[str]:
    chosen = [n for n in SOURCES if any(n == p or n.startswith(f"{p}.") for p in packages)]
    assert chosen, f"no module in {packages}"
    return sorted(chosen)


def importers(name: str, modules: Iterable[str]) -> set[str]:
    return {module for module in modules if name in GRAPH[module]}


# The reader of imports is itself worth a test.


def test_imports_are_read_at_the_top_in_functions_and_in_other_branches() -> None:
    text = """
import a.b
from c import d
from . import e
from ..f import g
if TYPE_CHECKING:
    import hidden
else:
    import h
try:
    import i
except ImportError:
    pass
def function():
    import j
    import_module("k")
"""
    names = imports(ast.parse(text), "ours.part.module")
    assert names == {
        *("a.b", "c", "c.d", "ours.part", "ours.part.e", "ours.f", "ours.f.g", "h", "i", "j", "k")
    }
    assert not imports(ast.parse(text), "ours.part.module", lazy=False) & {"j", "k"}
    assert "ours.part.module.e" in imports(
        ast.parse("from . import e"), "ours.part.module", package=True
    )
    assert with_parents(["a.b.c", "d"]) == {"a", "a.b", "a.b.c", "d"}


def test_imports_are_followed_from_module_to_module() -> None:
    assert {"simpy", "asyncio", "sparq_sim.simulation.clock.protocol"} <= reach(
        ["sparq_sim.simulation.play"]
    )


# Who may import whom.


@pytest.mark.parametrize("module", within("sparq_sim.gp", "sparq_sim.optimizers"))
def test_optimizers_and_gaussian_processes_know_nothing_of_time(module: str) -> None:
    assert not reach([module]) & {"simpy", "asyncio", "sparq_sim.simulation.clock"}


def test_only_virtual_time_imports_simpy() -> None:
    assert importers("simpy", SOURCES) == {"sparq_sim.simulation.clock.virtual"}


def test_only_real_time_and_the_loop_that_skips_its_waits_run_on_asyncio() -> None:
    # Virtual time cancels with the exception that experts know.
    assert importers("asyncio", SOURCES) == {
        "sparq_sim.simulation.clock.realtime",
        "sparq_sim.simulation.clock.virtual",
        "sparq_sim.testing.checks",
    }
    names = GRAPH["sparq_sim.simulation.clock.virtual"]
    assert {name for name in names if name.startswith("asyncio.")} == {"asyncio.CancelledError"}


@pytest.mark.parametrize("module", ["base", "lent", "protocol"])
def test_what_both_clocks_share_knows_neither_simpy_nor_asyncio(module: str) -> None:
    assert not reach([f"sparq_sim.simulation.clock.{module}"]) & {"simpy", "asyncio"}


READERS = (
    "sparq_sim.analysis.summary",
    "sparq_sim.simulation.beliefs",
    "sparq_sim.simulation.measures",
    "sparq_sim.simulation.trace",
    "sparq_sim.study.store",
)
"""What reads a stored study."""
PLAYERS = {"simpy", "asyncio", "sparq_sim.simulation.engine"}
"""What only a play needs."""


@pytest.mark.parametrize("module", READERS)
def test_what_reads_a_stored_study_imports_nothing_that_plays(module: str) -> None:
    assert not reach([module], GRAPH_AT_IMPORT) & PLAYERS


@pytest.mark.parametrize("plugin", sorted(PLUGINS))
def test_the_core_imports_no_plug_in(plugin: str) -> None:
    assert not importers(plugin, within("sparq_sim"))


@pytest.mark.parametrize("plugin", sorted(PLUGINS))
def test_plug_ins_import_the_core_and_not_each_other(plugin: str) -> None:
    # Scenarios bring environments and experts together; nobody else does.
    others = PLUGINS if plugin == "sparq_scenarios" else set()
    ours = {
        name.split(".")[0] for module in within(plugin) for name in GRAPH[module]
    } & HOMES.keys()
    assert ours <= {"sparq_sim", plugin, *others}
    modules = [name for name in within(plugin) if SOURCES[name].name != "__init__.py"]
    assert not modules or "sparq_sim" in ours


@pytest.mark.parametrize("module", within("sparq_sim.report"))
def test_reports_know_no_optimizer(module: str) -> None:
    assert not {name for name in GRAPH[module] if name.startswith("sparq_sim.optimizers")}


# Chance comes from a generator that is handed in.


def chances(tree: ast.Module) -> Iterator[str]:
    """Give each use of randomness that no seed of a play decides."""
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
    found = list(chances(TREES[module]))
    if module == "sparq_sim.testing.checks":  # It looks whether others do.
        found = [line for line in found if not line.endswith("np.random.get_state")]
    assert not found


# The public names.


def test_each_public_name_can_be_imported_and_comes_from_the_package() -> None:
    for name in sparq_sim.__all__:
        thing = getattr(sparq_sim, name)
        assert thing.__name__ == name
        assert thing.__module__.startswith("sparq_sim.")


def test_the_public_names_are_those_that_type_checkers_see() -> None:
    (block,) = [node for node in TREES["sparq_sim"].body if isinstance(node, ast.If)]
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
    """Give the modules that a *statement* loads."""
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
    assert not loaded & {"scipy", "plotly", "pyarrow"}


def test_loading_all_optimizers_and_gaussian_processes_loads_no_clock() -> None:
    modules = within("sparq_sim.gp", "sparq_sim.optimizers")
    loaded = loaded_after("\n".join(f"import {name}" for name in modules))
    assert set(modules) <= loaded
    assert not loaded & {"simpy", "sparq_sim.simulation.clock"}


def test_a_scenario_is_checked_without_what_plays_it() -> None:
    loaded = loaded_after(
        "from sparq_sim.scenario.model import Scenario\nScenario.load('synthetic').settings()"
    )
    assert not loaded & {"scipy", "plotly", "pyarrow"}


def test_reading_a_stored_study_loads_nothing_that_plays(of_before: Path) -> None:
    loaded = loaded_after(
        "from sparq_sim.analysis.summary import summary\n"
        "from sparq_sim.study.study import Study\n"
        "study = Study.open(sys.argv[1])\n"
        "summary(study)",
        str(of_before),
    )
    # pyarrow and others may load asyncio.
    assert not loaded & PLAYERS - {"asyncio"}


def test_an_agent_loads_blas_before_the_play_begins_not_within_it() -> None:
    # What is loaded within a play is not held to one thread.
    loaded = loaded_after(
        "import numpy as np\n"
        "from sparq_sim import Box, Briefing\n"
        "from sparq_sim.optimizers.gp_ucb import GPUCB\n"
        "GPUCB().start(Briefing(Box(0.0, 1.0)), np.random.default_rng(0))"
    )
    assert "scipy.linalg" in loaded
