"""Files extend each other, and take out what they do not want."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim import Channel
from sparq_sim.scenario.model import Scenario
from tests.scenario.samples import (
    SENSOR,
    SMALL,
    problem,
    problems,
    write,
)


def test_tables_merge_deeply_and_the_child_wins(tmp_path: Path) -> None:
    write(tmp_path, SMALL + SENSOR, "base.toml")
    child = 'extends = "base.toml"\nrounds = 9\n[experts.sensor.channel]\nloss = 0.3\n'
    scenario = Scenario.load(write(tmp_path, child))
    assert scenario.rounds == 9
    assert scenario.experts["sensor"].channel == Channel(noise=0.1, loss=0.3)


def test_another_kind_replaces_the_table_but_keeps_the_channel(tmp_path: Path) -> None:
    base = SMALL + SENSOR + '[feedback]\nservice = { kind = "gamma", shape = 1, scale = 2 }\n'
    write(tmp_path, base, "base.toml")
    child = (
        'extends = "base.toml"\n[feedback]\nservice = { kind = "exponential", mean = 3 }\n'
        '[experts.sensor]\nkind = "tests.scenario.samples:Lagged"\n'
    )
    scenario = Scenario.load(write(tmp_path, child), allow_import=True)
    assert scenario.feedback == Channel(service={"kind": "exponential", "mean": 3})
    assert scenario.experts["sensor"].channel == Channel(noise=0.1)
    assert type(scenario.experts["sensor"].expert).__name__ == "Lagged"


def test_a_bundled_scenario_can_be_extended(tmp_path: Path) -> None:
    scenario = Scenario.load(write(tmp_path, 'extends = "synthetic"\nrounds = 7\n'))
    assert (scenario.rounds, scenario.replications) == (7, 12)


def test_a_list_of_optimizers_replaces_and_a_table_adds(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "base.toml")
    listed = write(tmp_path, 'extends = "base.toml"\noptimizers = ["gp-ucb"]\n', "listed.toml")
    added = 'extends = "base.toml"\n[optimizers.mine]\nkind = "gp-ucb"\n'
    assert [*Scenario.load(listed).optimizers] == ["gp-ucb"]
    assert [*Scenario.load(write(tmp_path, added)).optimizers] == ["uniform", "mine"]


def test_an_error_in_an_extended_file_is_told_with_that_file_and_its_line(tmp_path: Path) -> None:
    base = write(tmp_path, SMALL + "perod = 3\n", "base.toml")
    child = write(tmp_path, '# first\nextends = "base.toml"\nseed = -1\n')
    assert problems(child) == (
        f"{base}:4: perod: 3: no such field; did you mean 'period'?",
        f"{child}:3: seed: -1: should be greater than or equal to 0",
    )


def test_files_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    one = write(tmp_path, 'extends = "two.toml"\n', "one.toml")
    two = write(tmp_path, '\nextends = "one.toml"\n', "two.toml")
    assert problem(one).startswith(f"{two}:2: extends: 'one.toml': extends itself; ")


@pytest.mark.parametrize("extends", ['"nowhere.toml"', '"nowhere"', "3", '""', "[]", r'"a\u0000"'])
def test_what_cannot_be_extended_is_told_with_the_line(tmp_path: Path, extends: str) -> None:
    file = write(tmp_path, f"{SMALL}extends = {extends}\n")
    assert problem(file).startswith(f"{file}:4: extends: ")


SWEPT = """
[optimizers]
one.kind = "gp-ucb"
two.kind = "uniform"
[sweep]
"feedback.noise" = [0.1, 0.2]
feedback.loss = [0.0, 0.5]
"""


def test_a_sweep_axis_and_an_optimizer_of_a_base_can_be_taken_out(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace('optimizers = ["uniform"]\n', "") + SWEPT, "base.toml")
    child = 'extends = "base.toml"\nwithout = ["optimizers.one", "sweep.feedback.{}"]\n'
    for axis, left in (("noise", "feedback.loss"), ("loss", "feedback.noise")):
        scenario = Scenario.load(write(tmp_path, child.format(axis)))
        assert [*scenario.optimizers] == ["two"]
        assert [*scenario.sweep.values] == [left]


def test_all_axes_of_a_sweep_can_be_taken_out(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace('optimizers = ["uniform"]\n', "") + SWEPT, "base.toml")
    for paths in ('"sweep"', '"sweep.feedback.loss", "sweep.feedback.noise"'):
        child = f'extends = "base.toml"\nwithout = [{paths}]\n'
        assert len(Scenario.load(write(tmp_path, child)).settings()) == 1


def test_what_is_taken_out_can_be_given_anew(tmp_path: Path) -> None:
    write(tmp_path, SMALL + "[feedback]\nnoise = 0.1\nloss = 0.5\n", "base.toml")
    child = 'extends = "base.toml"\nwithout = ["feedback"]\n[feedback]\ntransit = 2\n'
    assert Scenario.load(write(tmp_path, child)).feedback == Channel(transit=2)


def test_one_of_a_list_of_kinds_can_be_taken_out_also_for_one_run(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL.replace('["uniform"]', '["uniform", "gp-ucb"]'))
    scenario = Scenario.load(file, overrides=['without=["optimizers.uniform"]'])
    assert [*scenario.optimizers] == ["gp-ucb"]


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ('["optimizers.tow"]', ":2: without: 'optimizers.tow': is not in what is extended; did "),
        ('["rounds",\n"sweep.feedback.nois"]', ":3: without: 'sweep.feedback.nois': is not in "),
        ('["optimizers.tow"]', "did you mean 'optimizers.two'?"),
        ('["sweep.feedback.nois"]', "did you mean 'sweep.feedback.noise'?"),
        ('"optimizers.one"', ":2: without: 'optimizers.one': expected a list of paths, as in ["),
        ("[3]", ":2: without: [3]: expected a list of paths"),
    ],
)
def test_what_cannot_be_taken_out_is_told_with_the_line(
    tmp_path: Path, without: str, words: str
) -> None:
    write(tmp_path, SMALL.replace('optimizers = ["uniform"]\n', "") + SWEPT, "base.toml")
    file = write(tmp_path, f'extends = "base.toml"\nwithout = {without}\n')
    assert words in problem(file)


def test_what_a_list_of_settings_sweeps_is_taken_out_with_the_list(tmp_path: Path) -> None:
    write(tmp_path, f"{SMALL}sweep.settings = [{{ feedback.transit = 1 }}]\n", "base.toml")
    child = 'extends = "base.toml"\nwithout = ["sweep.{}"]\n'
    file = write(tmp_path, child.format("feedback.transit"))
    assert problem(file).endswith("is not in what is extended; there are: sweep.settings")
    assert not Scenario.load(write(tmp_path, child.format("settings"))).sweep


def test_nothing_can_be_taken_out_where_nothing_is_extended(tmp_path: Path) -> None:
    file = write(tmp_path, f'{SMALL}without = ["optimizers.uniform"]\n')
    assert problem(file) == (
        f"{file}:4: without: goes with `extends`; there is nothing to take out of"
    )
