"""Cases are drawn, left out of, shrunk and played again; what is found is told with a command."""

from __future__ import annotations

import shlex

import pytest

from sparq_sim.cli.main import app
from sparq_sim.errors import SparqError
from sparq_sim.scenario.tables import Table
from sparq_sim.vopr import Case, check_case, run_vopr, shrink
from sparq_sim.vopr.coverage import Coverage, find_kinds, list_unmet
from sparq_sim.vopr.executors import run_on_executor
from tests.cli.invoking import ends_with, runner, said
from tests.vopr.planted import BUGS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_a_seed_gives_the_same_scenario_each_time() -> None:
    assert Case(3).table == Case(3).table
    assert Case(3).scenario == Case(3).scenario != Case(4).scenario


def test_some_seeds_break_no_law() -> None:
    assert [check_case(Case(seed)).broken for seed in (11, 16, 19, 37)] == [()] * 4


def test_few_seeds_meet_most_kinds_and_what_is_not_met_is_named() -> None:
    met: Coverage = Coverage()
    for seed in range(60):
        met.update(find_kinds(Case(seed)))
    unmet = list_unmet(met)
    assert not {"draw", "noise", "loss", "fault", "policy", "charged"} & unmet.keys()
    assert unmet["executor"]


def test_what_is_left_out_is_not_in_the_scenario() -> None:
    assert "feedback" in Case(0).table
    smaller = Case(0, ("feedback.noise", "feedback"), rounds=3)
    assert "feedback" not in smaller.table
    assert smaller.scenario.rounds == 3


def test_what_is_not_there_cannot_be_left_out() -> None:
    with pytest.raises(SparqError, match=r"seed 0 has no experts\.nobody to leave out"):
        _ = Case(0, ("experts.nobody",)).table


def test_a_case_shrinks_to_what_breaks_the_law() -> None:
    def breaks(case: Case) -> bool:
        return "faults" in case.table.get("feedback", {})

    seed = next(seed for seed in range(100) if breaks(Case(seed)))
    smallest = shrink(Case(seed), breaks)
    assert smallest.table["rounds"] == 1
    assert not smallest.table["experts"]
    left: Table = smallest.table["feedback"]
    # A patience, where the fault that is left needs one.
    assert left.keys() <= {"faults", "patience"}
    assert len(left["faults"]) <= 1


def test_a_failure_is_shrunk_and_its_command_plays_it_again() -> None:
    with BUGS["cost not charged"]():
        (failed,) = run_vopr([Case(39, rounds=3)]).failed
        words = shlex.split(failed.command)
        assert words[:3] == ["sparq-sim", "vopr", "--seed"]
        again = runner.invoke(app, words[1:])
    assert again.exit_code == 1
    assert "Broken: each attempt costs what its channel says (source " in again.output
    assert "Play it again: sparq-sim vopr --seed 39 --without" in again.output
    assert runner.invoke(app, words[1:]).exit_code == 0


def test_plays_that_raise_an_error_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("sparq_sim.vopr.check.find_untrue", fail)
    (broken,) = check_case(Case(20)).broken
    assert "a valid scenario can be played: RuntimeError: planted" in str(broken)


@pytest.mark.parametrize("executor", ["in-process", "pooled"])
def test_executors_give_the_digests_of_this_process(executor: str) -> None:
    digests = {Case(seed): check_case(Case(seed)).digest for seed in (16, 19)}
    assert list(run_on_executor(executor, digests)) == []
    wrong = dict.fromkeys(digests, "0" * 32)
    assert [case for case, _ in run_on_executor(executor, wrong)] == [*digests]


def test_every_executor_there_is_plays_some_of_the_seeds() -> None:
    tested = run_vopr([Case(16), Case(19)], executors=["processes", "in-process"], every=2)
    assert tested.failed == []
    assert tested.met["executor", "processes"] == tested.met["executor", "in-process"] == 1


def test_the_command_tells_what_was_met_and_that_all_laws_hold() -> None:
    told = ends_with(0, "vopr", "--seeds", "2", "--from", "38", "--executor", "none")
    assert "2 seeds: every law holds" in told
    assert "Warning: of environment, never met: " in told


def test_several_processes_find_what_one_does() -> None:
    cases = [Case(seed) for seed in (11, 16, 19)]
    assert run_vopr(cases, jobs=2).met == run_vopr(cases).met


def test_bad_options_are_refused_with_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert "give its --seed" in said(capsys, "vopr", "--rounds", "3")
    assert "leave out --seeds" in said(capsys, "vopr", "--seed", "3", "--seeds", "3")
    assert "did you mean 'pooled'" in said(capsys, "vopr", "--executor", "pool")
