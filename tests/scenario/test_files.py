"""Files, overrides and paths are read as they are meant, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparq_sim.plugin.registry import list_names
from sparq_sim.scenario.model import Scenario
from tests.scenario.samples import (
    FULL,
    LIBRARIAN,
    SENSOR,
    SMALL,
    librarian,
    problem,
    write,
)


def test_a_number_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    huge = f"0x{'f' * 5000}"
    said = problem(write(tmp_path, f"{SMALL}thinking = {{ kind = {huge} }}\n"))
    assert "scenario.toml:4: thinking.kind: a whole number of more than 64 bits" in said
    said = problem(write(tmp_path, SMALL), f"sweep.seed=[1, {huge}]")
    assert "sweep.seed: a whole number of more than 64 bits" in said


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("rounds=7", "rounds", 7),
        ("record=full", "record", "full"),
        ("title=two words", "title", "two words"),
        ("title=", "title", ""),
        ('title="3"', "title", "3"),
        ("ends_when_spent=true", "ends_when_spent", True),
        ("experts.sensor.channel.capacity=3", "experts.sensor.channel.capacity", 3),
        ("experts.sensor.channel={split=true}", "experts.sensor.channel.split", True),
        ("optimizers.uniform.kind=uniform", "optimizers.uniform.kind", "uniform"),
    ],
)
def test_an_override_wins_over_the_file(
    tmp_path: Path, override: str, path: str, value: object
) -> None:
    found: Any = Scenario.load(write(tmp_path, SMALL + SENSOR), overrides=[override]).resolve()
    assert found["experts"]["sensor"]["channel"]["noise"]["std"] == 0.1
    for key in path.split("."):
        found = found[key]
    assert found == value


def test_the_last_override_wins_and_reaches_into_lists() -> None:
    changed = ["rounds=3", "rounds=4", "experts.sensor.channel.outages.1.0=3.25"]
    scenario = Scenario.load(FULL, overrides=changed)
    assert scenario.rounds == 4
    assert scenario.experts["sensor"].channel.outages == ((1.0, 2.0), (3.25, 3.5))


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("rounds=-1", "rounds: -1: should be greater than 0"),
        ("acces=past", "acces: 'past': no such field; did you mean 'access'?"),
        (
            "experts.senzor.channel.loss=0.3",
            f"experts.senzor.kind: missing; say which expert: {', '.join(list_names('expert'))}; "
            "or did you mean 'sensor'?",
        ),
        ("rounds", "expected FIELD=VALUE, as in seed=3"),
        ("=3", "expected FIELD=VALUE, as in seed=3"),
        ("rounds=[1", "not TOML: Unclosed array (at end of document)"),
    ],
)
def test_a_wrong_override_is_named_itself(tmp_path: Path, override: str, told: str) -> None:
    assert problem(write(tmp_path, SMALL + SENSOR), override) == f"--set {override}: {told}"


def test_a_file_in_a_scenario_is_sought_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "delay\n1.5\n2.5\n", "delays.csv")
    service = '{ kind = "empirical", file = "delays.csv", column = "delay" }'
    write(tmp_path, f"{SMALL}[feedback]\nservice = {service}\n", "base.toml")
    (tmp_path / "inner").mkdir()
    child = write(tmp_path / "inner", 'extends = "../base.toml"\n')
    scenario = Scenario.load(child)
    assert scenario.feedback.service.expected == 2.0


def test_a_swept_file_is_sought_beside_the_scenario(tmp_path: Path) -> None:
    write(tmp_path, "delay\n1.5\n", "delays.csv")
    service = '{ kind = "empirical", file = "delays.csv", column = "delay" }'
    file = write(tmp_path, f"{SMALL}[sweep]\nfeedback.service = [{service}]\n")
    ((_, scenario),) = Scenario.load(file).settings()
    assert scenario.feedback.service.expected == 1.5


def test_a_path_in_a_field_of_any_name_is_sought_beside_the_scenario(tmp_path: Path) -> None:
    found = librarian(
        Scenario.load(write(tmp_path, SMALL + LIBRARIAN), allow_import=True, allow_outside=True)
    )
    assert found.book == tmp_path / "book.txt"
    assert found.shelf == (tmp_path / "shelf/one.txt", Path("/two.txt"))


def test_a_path_is_sought_from_the_file_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, SMALL + LIBRARIAN, "base.toml")
    inner = tmp_path / "inner"
    inner.mkdir()
    text = 'extends = "../base.toml"\n[experts.librarian]\nshelf = ["three.txt"]\n'
    found = librarian(Scenario.load(write(inner, text), allow_import=True))
    assert found.book.resolve() == tmp_path.resolve() / "book.txt"
    assert found.shelf == (inner / "three.txt",)


def test_a_path_of_an_override_is_one_from_the_working_directory(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL + LIBRARIAN)
    override = "experts.librarian.book=other.txt"
    found = librarian(
        Scenario.load(file, overrides=[override], allow_import=True, allow_outside=True)
    )
    assert found.book == Path("other.txt")


def test_a_swept_path_is_sought_beside_the_scenario(tmp_path: Path) -> None:
    sweep = '[sweep]\n"experts.librarian.book" = ["a.txt", "b.txt"]\n'
    file = write(tmp_path, SMALL + LIBRARIAN + sweep)
    settings = Scenario.load(file, allow_import=True, allow_outside=True).settings()
    assert [librarian(each).book for _, each in settings] == [
        tmp_path / "a.txt",
        tmp_path / "b.txt",
    ]
    assert [setting["experts.librarian.book"] for setting, _ in settings] == ["a.txt", "b.txt"]


def test_files_are_sought_beside_the_scenario(tmp_path: Path) -> None:
    file = tmp_path / "record.toml"
    file.write_text(
        'rounds = 3\nenvironment = { kind = "recorded", files = ["a.csv", "b/*.csv"] }\n'
        'optimizers = ["uniform"]\n'
    )
    files = Scenario.load(file).resolve()["environment"]["files"]  # type: ignore[index]
    assert files == [str(tmp_path / "a.csv"), str(tmp_path / "b/*.csv")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'extends = "{"a" * 20_000}"\n', "extends: a text of 20,000 characters; give at most"),
        (f'title = "{"a" * 20_000}"\n', "title: a text of 20,000 characters; give at most"),
        (f"{'a' * 20_000} = 1\n", "a name of 20,000 characters; give at most 10,000"),
    ],
)
def test_a_text_that_no_message_could_show_is_refused(tmp_path: Path, text: str, told: str) -> None:
    said = problem(write(tmp_path, text + SMALL))
    assert told in said
    assert len(said) < 500
