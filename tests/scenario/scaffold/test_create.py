"""What `new` writes works: it installs, passes its test, and plays its scenario."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from sparq_sim.errors import SparqError
from sparq_sim.plugin.field_docs import read_field_docs
from sparq_sim.plugin.registry import Kind, load
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.scaffold.create import Creatable, create
from sparq_sim.scenario.scaffold.names import LONGEST_NAME
from tests.commands import run

ROOT = Path(__file__).resolve().parents[3]
KINDS: tuple[Kind, ...] = ("environment", "expert", "optimizer")

PLAY = """
from pathlib import Path
from sparq_sim.scenario.model import Scenario

scenario = Scenario.load(Path("scenario.toml"))
trace = scenario.play(next(iter(scenario.optimizers)))
print("played", len(trace), "of", scenario.rounds)
"""


def contents(folder: Path) -> dict[str, str]:
    """Give the text of each file in a *folder*, and its folders, by path."""
    return {
        str(file.relative_to(folder)): file.read_text() if file.is_file() else ""
        for file in folder.rglob("*")
    }


# What is written


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plug_in_installs_passes_its_test_and_plays_its_scenario(
    kind: Kind, tmp_path: Path
) -> None:
    create(kind, f"my-{kind}", tmp_path)
    home, site = tmp_path / f"my-{kind}", tmp_path / "site"
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    run("-m", "pip", "install", *offline, "--target", str(site), str(home), cwd=tmp_path)
    assert (site / f"my_{kind}.py").is_file()
    assert not list(site.glob("test_*"))
    installed = {"PYTHONPATH": str(site)}
    # Not from the folder, but as installed.
    options = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib")
    said = run("-m", "pytest", *options, f"test_my_{kind}.py", cwd=home, **installed)
    assert int(re.findall(r"(\d+) passed", said)[0]) > 2 * 10  # Two models, and many laws.
    assert not re.search("failed|skipped|error", said)
    said = run("-c", PLAY, cwd=home, **installed)
    rounds = tomllib.loads((home / "scenario.toml").read_text())["rounds"]
    assert said.split("played")[-1].split() == [str(rounds), "of", str(rounds)]


def test_a_new_scenario_loads_and_plays_and_has_a_comment_a_line(tmp_path: Path) -> None:
    (file,) = create("scenario", "my-study", tmp_path)
    assert file == tmp_path / "my-study.toml"
    assert all("#" in line for line in file.read_text().splitlines() if line)
    scenario = Scenario.load(file)
    trace = scenario.play(next(iter(scenario.optimizers)))
    assert len(trace) == scenario.rounds
    assert 0 < trace.spent <= scenario.budget


def test_the_sweep_in_a_new_scenario_works_without_its_hashes(tmp_path: Path) -> None:
    (file,) = create("scenario", "my-study", tmp_path)
    head, swept = file.read_text().split("\n# [sweep]")
    file.write_text(f"{head}\n[sweep]{swept}".replace('\n# "experts', '\n"experts'))
    assert len(Scenario.load(file).settings()) == 3


@pytest.mark.parametrize("name", ["a", "my-2nd-one", "w" * LONGEST_NAME])
def test_new_code_is_clean_and_typed_whatever_its_name(name: str, tmp_path: Path) -> None:
    homes = []
    for kind in KINDS:
        (tmp_path / kind).mkdir()
        create(kind, name, tmp_path / kind)
        homes.append(tmp_path / kind / name)
    config = str(ROOT / "pyproject.toml")
    for home in homes:
        run("-m", "ruff", "check", "--no-cache", "--config", config, ".", cwd=home)
        run("-m", "ruff", "format", "--no-cache", "--config", config, "--check", ".", cwd=home)
        if name == "a":  # Types do not depend on the name.
            run("-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "types"), ".", cwd=home)


def test_the_files_written_are_given_and_are_all_there_is(tmp_path: Path) -> None:
    files = create("expert", "my-expert", tmp_path)
    assert sorted(contents(tmp_path / "my-expert")) == sorted(file.name for file in files)
    assert [file.name for file in files] == [
        *("pyproject.toml", "README.md", "my_expert.py", "test_my_expert.py", "scenario.toml")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_entry_point_has_the_name_the_module_and_the_class(kind: Kind, tmp_path: Path) -> None:
    project = tomllib.loads(create(kind, "north-sea-2", tmp_path)[0].read_text())["project"]
    assert project["entry-points"] == {
        f"sparq_sim.{kind}s": {"north-sea-2": "north_sea_2:NorthSea2"}
    }
    assert project["dependencies"] == ["sparq-sim"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_field_of_a_new_plug_in_has_a_sentence(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(kind, f"told-{kind}", tmp_path)
    monkeypatch.syspath_prepend(tmp_path / f"told-{kind}")
    model = load(kind, f"told_{kind}:Told{kind.title()}", allow_import=True)
    assert read_field_docs(model).keys() == model.model_fields.keys()


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "my-expert").mkdir()
    assert len(create("expert", "my-expert", tmp_path)) == 5


# Names


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "My-Expert",
            "my_expert",
            "my expert",
            "-my",
            "my-",
            "my--expert",
            "2nd",
            "é",
            "my\n",
        ),
        *("../mine", "a/b", "/tmp/mine", ".", "a.b", "a\\b", "w" * (LONGEST_NAME + 1)),
    ],
)
@pytest.mark.parametrize("kind", ["expert", "scenario"])
def test_what_is_no_name_is_refused_with_the_remedy(
    kind: Creatable, name: str, tmp_path: Path
) -> None:
    with pytest.raises(SparqError, match=r"; use lower-case words|; use a name of at most") as told:
        create(kind, name, tmp_path)
    assert repr(name) in str(told.value)
    assert not contents(tmp_path)


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("expert", "truth", "an expert of this name is installed"),
        ("optimizer", "gp-ucb", "an optimizer of this name is installed"),
        ("environment", "synthetic", "an environment of this name is installed"),
        ("scenario", "synthetic", "a scenario of this name is installed"),
        ("expert", "class", "a word of Python's own"),
        ("expert", "none", "a word of Python's own"),
        ("expert", "key-error", "a word of Python's own"),
        ("expert", "json", "a module 'json' already"),
        ("expert", "numpy", "a module 'numpy' already"),
        ("expert", "sparq-sim", "a module 'sparq_sim' already"),
        ("expert", "pydantic-core", "a module 'pydantic_core' already"),
        ("expert", "scikit-learn", "a package 'scikit-learn' already"),
        ("expert", "test-expert", "pytest would take 'TestExpert' for a test"),
        ("expert", "query", "called 'Query', as one that it uses"),
        ("environment", "landscape", "called 'Landscape', as one that it uses"),
        ("optimizer", "positive-float", "called 'PositiveFloat', as one that it uses"),
    ],
)
def test_a_name_that_would_do_harm_is_refused_with_the_reason(
    kind: Creatable, name: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(SparqError, match=f"^'{name}' cannot name .*{reason}.*; use another name$"):
        create(kind, name, tmp_path)
    assert not contents(tmp_path)


def test_a_folder_called_as_the_module_in_the_current_folder_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tide").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert create("environment", "tide", tmp_path)


def test_a_kind_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SparqError, match="'experts': did you mean 'expert'"):
        create("experts", "mine", tmp_path)  # type: ignore[arg-type]


# Places


@pytest.mark.parametrize(
    ("kind", "taken"),
    [("expert", "mine/notes.txt"), ("expert", "mine"), ("scenario", "mine.toml")],
)
def test_what_exists_is_refused_by_name_and_left_as_it_was(
    kind: Creatable, taken: str, tmp_path: Path
) -> None:
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("dear to me")
    before = contents(tmp_path)
    with pytest.raises(SparqError, match="exists already; move it") as told:
        create(kind, "mine", tmp_path)
    assert str(tmp_path / Path(taken).parts[0]) in str(told.value)
    assert contents(tmp_path) == before


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SparqError, match=r"nowhere: no such folder; make it first"):
        create("expert", "mine", tmp_path / "nowhere")
    assert not contents(tmp_path)


@pytest.mark.parametrize("empty_folder", [False, True])
def test_if_a_file_cannot_be_written_none_is(
    empty_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "mine"
    if empty_folder:
        home.mkdir()
    before = contents(tmp_path)
    opened = Path.open

    def full(self: Path, *arguments: str, **options: str) -> object:
        if self.name == "scenario.toml":
            raise OSError(28, "No space left on device", str(self))
        return opened(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(SparqError, match=r"scenario\.toml: cannot be written: No space left"):
        create("expert", "mine", tmp_path)
    monkeypatch.undo()
    assert contents(tmp_path) == before
