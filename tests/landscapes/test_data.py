"""What is wrong with data files is told before anything is played, by `check` as well."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from numpy.random import Generator
from pydantic import PositiveFloat

from sparq_sim import Environment, Rules, Scenario
from sparq_sim.errors import ScenarioError, SparqError
from sparq_sim.plugin.contract import Landscape
from sparq_sim.study.executors import InProcess
from sparq_sim.study.study import Study
from sparq_sim.testing import Slope
from tests.cli.invoking import ends_with

DAYS = 10
EXPERT = '[experts.log]\nkind = "replay"\nfile = "log.csv"\n'
LOG = "time,lat,lon,value\n1,0,0,5\n"


def record(folder: Path, days: int = DAYS) -> Path:
    file = folder / "record.csv"
    rows = [f"{day},{site},{site},0,{site + day}" for day in range(days) for site in (0, 1)]
    file.write_text("\n".join(["time,site,lat,lon,value", *rows]), encoding="utf-8")
    return file


def scenario(folder: Path, *more: str, rounds: int = DAYS - 1) -> Path:
    file = folder / "s.toml"
    lines = (f"rounds = {rounds}", 'optimizers = ["uniform"]', "", "[environment]")
    world = ('kind = "recorded"', 'files = ["record.csv"]', "")
    file.write_text("\n".join([*lines, *world, *more]), encoding="utf-8")
    return file


def told(folder: Path, command: str, *arguments: str) -> str:
    """Run a command that must end with 2 and write nothing."""
    out = folder / "out"
    more = ("--out", str(out)) if command == "run" else ()
    said = ends_with(2, command, str(folder / "s.toml"), *arguments, *more)
    assert not out.exists()
    return said.removeprefix("Error: ")


both = pytest.mark.parametrize("command", ["check", "run"])


def test_a_scenario_whose_data_are_there_is_sound(tmp_path: Path) -> None:
    record(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    assert "valid, 1 setting" in ends_with(0, "check", str(scenario(tmp_path, EXPERT)))


@both
def test_a_missing_record_is_told_with_file_line_field_and_remedy(
    tmp_path: Path, command: str
) -> None:
    file = scenario(tmp_path)
    said = told(tmp_path, command)
    assert f"{file}:6: environment.files: {tmp_path / 'record.csv'}: No such file" in said
    assert "check `files`" in said


@both
def test_a_missing_table_of_an_expert_is_told_with_its_line(tmp_path: Path, command: str) -> None:
    record(tmp_path)
    file = scenario(tmp_path, EXPERT)
    said = told(tmp_path, command)
    assert f"{file}:10: experts.log.file: {tmp_path / 'log.csv'} cannot be read: No such" in said


def test_all_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    scenario(tmp_path, EXPERT)
    assert len(told(tmp_path, "check").strip().splitlines()) == 2


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("time,lat,lon,value\n1,0,0,much\n", "line 2, value: 'much' is no number"),
        ("time,lat,lon\n1,0,0\n", "has no column 'value'"),
        ("time,lat,lon,value\n", "has no rows"),
        ("time,lat,lon,value\n99,0,0,5\n", "its first row is of time 99 of the play, which ends"),
    ],
)
def test_a_table_that_cannot_serve_is_told(tmp_path: Path, log: str, reason: str) -> None:
    record(tmp_path)
    (tmp_path / "log.csv").write_text(log)
    scenario(tmp_path, EXPERT)
    assert reason in told(tmp_path, "check")


def test_an_unreadable_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "record.csv").write_bytes(b"\xff\xfe\x00")
    scenario(tmp_path)
    assert "not UTF-8 text" in told(tmp_path, "check")


@pytest.mark.parametrize(("rounds", "sound"), [(DAYS - 1, True), (DAYS, False)])
def test_a_record_shorter_than_the_play_is_told(tmp_path: Path, rounds: int, sound: bool) -> None:
    record(tmp_path)
    file = scenario(tmp_path, rounds=rounds)
    if sound:
        ends_with(0, "check", str(file))
        return
    said = told(tmp_path, "check")
    assert f"{file}:6: environment.files: the record has 10 steps and ends at time 10" in said
    assert "before the play does, at 11; play at most 9 periods of 1, or add files" in said


def test_each_swept_setting_is_looked_at_and_named(tmp_path: Path) -> None:
    record(tmp_path)
    scenario(tmp_path, "[sweep]", "rounds = [5, 9, 30, 40]")
    first, second = told(tmp_path, "check").strip().splitlines()
    assert first.endswith("(where rounds = 30)")
    assert second.endswith("(where rounds = 40)")


def test_files_can_be_given_to_check(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    given = f'environment.files=["{record(elsewhere)}"]'
    scenario(tmp_path)
    ends_with(0, "check", str(tmp_path / "s.toml"), "--set", given)
    said = told(tmp_path, "check", "--set", 'environment.files=["nowhere/*.csv"]')
    assert (
        """--set environment.files=["nowhere/*.csv"]: environment.files: no file matches""" in said
    )


def test_a_scenario_without_its_data_can_be_loaded_and_shown(tmp_path: Path) -> None:
    file = scenario(tmp_path, EXPERT)
    assert "record.csv" in ends_with(0, "show", str(file))
    with pytest.raises(ScenarioError, match=r"^environment.files: .*No such file"):
        Scenario.load(file).check_data()


def test_a_study_in_python_plays_nothing_without_its_data(tmp_path: Path) -> None:
    study = Study(Scenario.load(scenario(tmp_path)), tmp_path / "out")
    with pytest.raises(ScenarioError, match="No such file"):
        study.run(InProcess())
    assert not (tmp_path / "out").exists()
    record(tmp_path)
    assert Study(Scenario.load(tmp_path / "s.toml"), tmp_path / "out").run(InProcess()).done == 1


class Short(Slope):
    """Can be played for a while; counts how often it is asked about that."""

    lasts: PositiveFloat = 5.0

    def check_play(self, until: float) -> None:
        ASKED.append(until)
        if until > self.lasts:
            raise SparqError(f"lasts {self.lasts}, not {until}; play less")


ASKED: list[float] = []


def test_a_plugin_is_asked_once_for_all_optimizers_and_settings_that_do_not_matter() -> None:
    ASKED.clear()
    Scenario.model_validate(
        {
            "rounds": 3,
            "environment": Short(),
            "optimizers": ["uniform", "gp-ucb"],
            "sweep": {"feedback.noise": [0.1, 0.2, 0.3]},
        }
    ).check_data()
    assert ASKED == [4.0]


class Buggy(Environment):
    def check_play(self, until: float) -> None:
        raise ZeroDivisionError("one over nothing")

    def start(self, rng: Generator) -> Landscape:
        return Slope().start(rng)


def test_a_mistake_in_the_check_of_a_plugin_is_told_without_a_traceback() -> None:
    scenario = Scenario(rounds=3, environment=Buggy(), optimizers={"u": {"kind": "uniform"}})
    told = "environment: Buggy.check_play raised ZeroDivisionError: one over nothing"
    with pytest.raises(ScenarioError, match=re.escape(told)):
        scenario.check_data()


@pytest.mark.parametrize(
    ("rules", "ends_at"),
    [
        (Rules(rounds=4), 5.0),
        (Rules(rounds=4, period=0.5), 2.5),
        (Rules(horizon=3.5), 3.5),
        (Rules(rounds=2, horizon=9.0), 3.0),
    ],
    ids=repr,
)
def test_a_play_ends_with_its_last_round(rules: Rules, ends_at: float) -> None:
    assert rules.ends_at == ends_at
