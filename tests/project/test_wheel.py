"""What users install: the wheel, away from the repository."""

from __future__ import annotations

import shutil
import tomllib
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.commands import run

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOMES = [
    ROOT / "sparq_sim",
    ROOT / "experts" / "sparq_experts",
    ROOT / "environments" / "sparq_environments",
    ROOT / "scenarios" / "sparq_scenarios",
]
QUICK_TESTS = [
    "__init__.py",
    "conftest.py",
    "delivery.py",
    "simulation/test_engine.py",
    "simulation/delivery/test_connection.py",
]


@dataclass(frozen=True)
class Installation:
    """A wheel, and the folder *site* into which it was installed."""

    wheel: Path
    site: Path
    sources: frozenset[str]
    """What the packages held when the wheel was built, as paths in the wheel."""

    @property
    def contents(self) -> set[str]:
        with ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def python(self, *arguments: str, cwd: Path) -> str:
        """Run Python with this installation before all others; give what it printed."""
        return run("-P", *arguments, cwd=cwd, PYTHONPATH=str(self.site))


def sources() -> frozenset[str]:
    return frozenset(
        file.relative_to(home.parent).as_posix()
        for home in HOMES
        for file in home.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith(".")
    )


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("wheel")
    site = folder / "site"
    before = sources()
    build = ("--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT))
    run("-m", "build", *build, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    options = ("--no-deps", "--no-index", "--disable-pip-version-check", "--target", str(site))
    run("-m", "pip", "install", *options, str(wheel), cwd=folder)
    return Installation(wheel, site, before & sources())


def test_the_wheel_holds_all_of_the_four_packages_and_nothing_else(
    installation: Installation,
) -> None:
    contents = installation.contents
    info = f"sparq_sim-{PROJECT['version']}.dist-info"
    assert {name.split("/")[0] for name in contents} == {home.name for home in HOMES} | {info}
    assert installation.sources <= contents
    assert {f"{home.name}/py.typed" for home in HOMES} <= contents
    assert not [name for name in contents if "/test_" in name or "conftest" in name]


def test_the_wheel_announces_its_plug_ins_its_command_and_its_licence(
    installation: Installation,
) -> None:
    info = installation.site / f"sparq_sim-{PROJECT['version']}.dist-info"
    entries = ConfigParser()
    entries.read(info / "entry_points.txt", encoding="utf-8")
    announced = {group: dict(entries[group]) for group in entries.sections()}
    assert announced == {"console_scripts": PROJECT["scripts"], **PROJECT["entry-points"]}
    assert (info / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


PLAYS = """
from importlib.metadata import entry_points
from pathlib import Path

import sparq_sim
from sparq_sim import Channel, Rules, play
from sparq_sim.plugin.registry import list_names, list_simulated, load

RECORD = Path("record.csv")
rows = [f"2020-01-{day:02},{site},1,{site},{day}" for day in range(1, 9) for site in (1, 2)]
RECORD.write_text("\\n".join(["date,site,lat,lon,value", *rows]))
TABLE = Path("table.csv")
TABLE.write_text("time,x,value\\n0,0,1\\n")
REQUIRED = {
    "fixed": {"point": (0.0,)},
    "recorded": {"files": (str(RECORD),)},
    "blind-spot": {"lower": (0.0,), "upper": (1.0,)},
    "replay": {"file": str(TABLE)},
    "committee": {"members": ("other",)},
    "sensors": {"nodes": {"scattered": 5}, "roughness": 0.1},
}


def make(kind, name):
    return load(kind, name)(**REQUIRED.get(name, {}))


def played(optimizer, environment, expert):
    channel = Channel(transit=1.0, noise=0.1, cost=0.1)
    made = {"expert": (make("expert", expert), channel), "other": make("expert", "truth")}
    trace = play(
        make("optimizer", optimizer), make("environment", environment), Rules(rounds=5),
        experts=made if optimizer == "uniform" else {"expert": made["expert"]},
        feedback=Channel(noise=0.1),
    )
    assert len(trace) == 5, trace


print(Path(sparq_sim.__file__).parent.parent)
for environment in list_simulated("environment"):
    played("uniform", environment, "truth")
    print("environments", environment)
for expert in list_simulated("expert"):
    played("uniform", "rod" if expert == "simulator" else "synthetic", expert)
    print("experts", expert)
for optimizer in list_names("optimizer"):
    played(optimizer, "synthetic", "truth")
    print("optimizers", optimizer)
for kind in ("environment", "expert"):
    for name in sorted({*list_names(kind)} - {*list_simulated(kind)}):
        load(kind, name)  # At least: nothing real is here to be played.
        print(f"{kind}s", name)
for entry in entry_points(group="sparq_sim.scenarios"):
    folder = Path(entry.load().__file__).parent
    assert list(folder.glob("*.toml")), folder
    print("scenarios", entry.name)
"""


def test_every_bundled_plug_in_plays_from_the_wheel(
    installation: Installation, tmp_path: Path
) -> None:
    home, *played = installation.python("-c", PLAYS, cwd=tmp_path).splitlines()
    assert Path(home) == installation.site
    assert sorted(played) == sorted(
        f"{group.removeprefix('sparq_sim.')} {name}"
        for group, entries in PROJECT["entry-points"].items()
        if group.startswith("sparq_sim.")
        for name in entries
    )


ORIGIN = """
from importlib import import_module
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "package", ["sparq_sim", "sparq_experts", "sparq_environments", "sparq_scenarios"]
)
def test_what_is_tested_is_the_wheel(package: str) -> None:
    assert Path(str(import_module(package).__file__)).parents[1] == Path({site!r})
    assert Path(str(import_module("tests.conftest").__file__)).parents[1] == Path({copy!r})
"""


def test_the_tests_pass_against_the_wheel(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name in QUICK_TESTS:
        to = tmp_path / "tests" / name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / name, to)
    origin = ORIGIN.format(site=str(installation.site), copy=str(tmp_path))
    (tmp_path / "tests" / "test_origin.py").write_text(origin)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\n"
        "asyncio_mode = strict\n"
        "asyncio_default_fixture_loop_scope = function\n"
        "filterwarnings = error\n"
        "addopts = --strict-markers -p no:cacheprovider -q\n"
    )
    said = installation.python("-m", "pytest", "tests", cwd=tmp_path)
    assert " passed" in said
    assert "failed" not in said


def test_the_command_runs_from_the_wheel(installation: Installation, tmp_path: Path) -> None:
    (command,) = (installation.site / "bin").iterdir()
    assert command.name == "sparq-sim"
    said = installation.python(str(command), "--help", cwd=tmp_path)
    assert "Usage: sparq-sim" in said
