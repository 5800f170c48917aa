from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from rich.table import Table
from typer.testing import CliRunner

from sparq_sim import Environment, Estimate, Expert, Query, World
from sparq_sim.analysis.cautions import NO_REGRET, Caution, cautions
from sparq_sim.analysis.standings import find_standings
from sparq_sim.analysis.summary import summary
from sparq_sim.arrays import Point
from sparq_sim.cli.main import app
from sparq_sim.plugin.contract import Landscape
from sparq_sim.report.gather import gather
from sparq_sim.report.html.page import render
from sparq_sim.report.terminal import legend, summary_table
from sparq_sim.study.results import Results
from sparq_sim.testing import Asker, Slope
from tests.commands import run
from tests.plants import steer_and_simulate
from tests.report.test_terminal import finished

ASKER = {"asker": Asker(batch=1)}


def of(study: Results, topic: str) -> Caution:
    (found,) = (caution for caution in cautions(study) if caution.topic == topic)
    return found


def sage(**channel: Any) -> dict[str, Any]:
    return {"sage": {"kind": "truth", "channel": channel}}


def test_a_sound_study_needs_no_caution(tmp_path: Path) -> None:
    assert cautions(finished(tmp_path, experts=sage(), optimizers=ASKER)) == []


# An expert of whom little is heard


def test_an_expert_that_answers_less_than_half_is_named_with_what_became_of_the_rest(
    tmp_path: Path,
) -> None:
    study = finished(tmp_path, experts=sage(loss=0.8, transit=0.5), optimizers=ASKER)
    told = of(study, "unanswered")
    (row,) = summary(study)
    answered = round(25 * row.answered)
    assert told.text == (
        "the expert 'sage' answered less than half of what it was asked: "
        f"{answered} of 25 points (lost {25 - answered})"
    )
    assert not told.grave
    columns = {str(column.header): [*column.cells] for column in tabulate(study).columns}
    assert columns["answered"] == [f"{100 * row.answered:.0f} %"]


def test_of_several_settings_those_are_counted_in_which_little_was_answered(tmp_path: Path) -> None:
    sweep = {"experts.sage.channel.loss": [0.0, 0.9]}
    study = finished(tmp_path, experts=sage(), optimizers=ASKER, sweep=sweep)
    told = of(study, "unanswered")
    assert "what it was asked in 1 of 2 rows: " in told.text
    assert [setting for _, setting in told.rows] == ['{"experts.sage.channel.loss":0.9}']


def test_an_expert_behind_whom_another_steps_in_is_judged_by_its_own_answers(
    tmp_path: Path,
) -> None:
    policy = {"fallback": "friend"}
    experts = {**sage(outages=[(0, 1000)], policy=policy), "friend": {"kind": "truth"}}
    study = finished(tmp_path, experts=experts, optimizers=ASKER)
    assert "expert 'sage' answered less than half" in of(study, "unanswered").text
    assert "0 of 25 points (outage 25)" in of(study, "unanswered").text


# A wrong best


class Modest(Environment):
    """Says that its best is less than it is."""

    def start(self, rng: Generator) -> Landscape:
        return _Modest()


class _Modest:
    def __init__(self) -> None:
        self._slope = Slope().start(np.random.default_rng(0))
        self.domain = self._slope.domain
        self.rewards = self._slope.rewards

    def best(self, time: float) -> tuple[Point, float]:
        return self._slope.best(time)[0], 0.8


def tabulate(study: Results) -> Table:
    return summary_table("", find_standings(study))


def modest(folder: Path, **changes: Any) -> Results:
    return finished(folder, environment=Modest(), experts=sage(), **changes)


def test_regret_below_zero_is_grave_and_the_row_is_marked(tmp_path: Path) -> None:
    study = modest(tmp_path, optimizers=ASKER, replications=2)
    told = of(study, "impossible")
    assert told.grave
    assert told.text.startswith("regret is below 0 in 2 of 2 plays of asker: ")
    (cells,) = [each.cells for each in tabulate(study).columns if each.header == "average regret"]
    assert [str(cell).endswith(" !") for cell in cells] == [True]
    assert "regret below 0, which is impossible" in legend(tabulate(study), find_standings(study))


def test_the_legend_explains_the_columns_that_are_there(tmp_path: Path) -> None:
    standings = find_standings(finished(tmp_path, experts=sage(), optimizers=ASKER))
    wide, narrow = (
        legend(summary_table("", standings, width=width), standings) for width in (200, 40)
    )
    assert "wall      seconds the agent computed" in wide
    assert "wall" not in narrow
    assert "retries" not in wide


def test_the_headline_never_names_an_impossible_regret_the_best(tmp_path: Path) -> None:
    # The one that stands on the top has a regret below 0; the other stands far off.
    optimizers = {
        "top": {"kind": "fixed", "point": [0.5]},
        "foot": {"kind": "fixed", "point": [0.0]},
    }
    study = modest(tmp_path, optimizers=optimizers, replications=2)
    top, foot = (next(r for r in summary(study) if r.optimizer == name) for name in optimizers)
    assert top.average_regret.mean < foot.average_regret.mean
    assert top.impossible == 2
    told = gather(study, replays=False)
    assert "top" not in told.finding.sentence
    assert any("regret is below 0" in note for note in told.notes)


def test_where_all_regrets_are_impossible_nobody_is_named(tmp_path: Path) -> None:
    study = modest(tmp_path, optimizers={"top": {"kind": "fixed", "point": [0.5]}})
    assert gather(study, replays=False).finding.sentence.startswith(
        "No optimizer can be called the best"
    )


# Plays that are shorter than others


def test_plays_that_ended_early_are_told_and_their_rounds_are_a_column(tmp_path: Path) -> None:
    changes = {"budget": 1.05, "ends_when_spent": True, "experts": sage(cost=0.1)}
    study = finished(tmp_path, optimizers={**ASKER, "idler": {"kind": "uniform"}}, **changes)
    told = of(study, "early")
    assert told.text == (
        "1 of 2 plays ended early, after 11 of 25 rounds (budget): asker; averages over "
        "different numbers of rounds cannot be compared"
    )
    rows = summary(study)
    assert [(row.rounds, row.ended_early) for row in rows] == [(11, 1), (25, 0)]
    assert "rounds" in [column.header for column in tabulate(study).columns]
    page = render(gather(study, replays=False))
    assert ">rounds</th>" in page


def test_a_winner_whose_plays_were_short_is_said_to_be(tmp_path: Path) -> None:
    changes = {"budget": 1.05, "ends_when_spent": True, "experts": sage(cost=0.1)}
    study = finished(tmp_path, optimizers=ASKER, **changes)
    told = gather(study, replays=False).finding.text
    assert told.endswith("1 of 1 play of “asker” ended early, after 11 rounds in the mean.")


def test_rounds_without_a_move_are_told(tmp_path: Path) -> None:
    waiting = {"kind": "sparq-gp-ucb", "waits": True, "kernel": {"kind": "squared-exponential"}}
    study = finished(tmp_path, experts=sage(transit=1.5), optimizers={"waiting": waiting})
    told = of(study, "idle")
    assert told.text.endswith(
        "of 25 rounds of waiting passed without a move: the previous point stayed in force"
    )
    (row,) = summary(study)
    assert row.idle > 0.3
    columns = {str(column.header): [*column.cells] for column in tabulate(study).columns}
    assert columns["idle"] == [f"{100 * row.idle:.0f} %"]
    assert ">idle</th>" in render(gather(study, replays=False))


# One number, one meaning


def test_queries_a_round_are_the_same_in_table_and_chart_whatever_is_retried(
    tmp_path: Path,
) -> None:
    flaky = sage(loss=0.5, patience=1.0, policy={"retries": 3})
    study = finished(tmp_path, experts=flaky, optimizers={"asker": Asker(batch=2)})
    (row,) = summary(study)
    series = {each.name: each for each in gather(study, replays=False).charts.series}
    assert row.asked_per_round == pytest.approx(49 / 25)
    assert series["asked"].means.mean() == pytest.approx(row.asked_per_round)
    assert row.retries_per_round > 0.5
    assert series["retries"].means.mean() == pytest.approx(row.retries_per_round)


def test_the_shares_of_what_became_of_queries_sum_to_one(tmp_path: Path) -> None:
    hard = sage(
        loss=0.2,
        transit={"kind": "uniform", "high": 2.0},
        patience=1.8,
        outages=[(5, 9)],
        faults=[{"kind": "raise", "share": 0.2}],
    )
    (row,) = summary(finished(tmp_path, experts=hard, optimizers=ASKER, rounds=100))
    shares = [row.answered, row.late, row.lost, row.refused, row.invalid, row.unavailable, row.open]
    assert sum(shares) == pytest.approx(1.0)
    assert all(share > 0 for share in (row.answered, row.late, row.lost, row.refused, row.invalid))
    page = render(gather(Results.open(tmp_path), replays=False))
    for heading in ("answered", "late", "lost", "refused", "useless"):
        assert f">{heading}</th>" in page


class Beacon(Expert):
    """Sends a reading of its own accord each round."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.rewards(query.points, world.clock.now))

    async def broadcast(self, world: World) -> None:
        while True:
            await world.clock.sleep(1.0)
            query = world.open(np.array([[0.5]]))
            world.send(query, await self.answer(query, world))


def test_readings_sent_unasked_are_counted_apart(tmp_path: Path) -> None:
    optimizers = {"idler": {"kind": "uniform"}}
    study = finished(tmp_path, experts={"beacon": Beacon()}, optimizers=optimizers)
    (row,) = summary(study)
    assert (row.asked_per_round, row.pushed_per_round) == (0.0, 26 / 25)  # The last at the end.
    assert "pushed" in [column.header for column in tabulate(study).columns]


# On the command line

MISTAKEN = '''
from sparq_sim import Estimate, Expert

class Mistaken(Expert):
    """Has a mistake in it."""

    async def answer(self, query, world):
        return Estimate(query.points)
'''
SCENARIO = """
rounds = 5
[environment]
kind = "synthetic"
[experts.mistaken]
kind = "mistaken:Mistaken"
[optimizers]
sparq-gp-ucb = { kind = "sparq-gp-ucb", kernel = { kind = "squared-exponential" } }
"""


def test_under_strict_useless_answers_end_with_three_and_without_it_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mistaken.py").write_text(MISTAKEN, encoding="utf-8")
    (tmp_path / "study.toml").write_text(SCENARIO, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    command = ["run", "study.toml", "--allow-import", "--executor", "in-process", "--no-report"]
    lenient = CliRunner().invoke(app, command)
    assert lenient.exit_code == 0, lenient.output
    assert "answers of 'mistaken' were useless" in lenient.output
    strict = CliRunner().invoke(app, [*command, "--strict"])
    assert strict.exit_code == 3
    assert "some results are meaningless; see the notes" in strict.output


def test_the_json_of_a_comparison_has_the_notes_of_each_row(tmp_path: Path) -> None:
    finished(tmp_path / "made", experts=sage(loss=0.9), optimizers=ASKER)
    printed = run("-m", "sparq_sim", "compare", "--json", str(tmp_path / "made"), cwd=tmp_path)
    (row,) = json.loads(printed[: printed.rindex("]") + 1])
    assert "answered less than half" in row["notes"][0]


def test_where_the_best_is_not_known_it_is_said(steered: Results) -> None:
    told = {caution.topic: caution.text for caution in cautions(steered)}
    assert told.keys() == {"no regret", "no levels", "unobserved"}
    assert told["no regret"] == NO_REGRET
    rounds = sum(play.measures["unobserved_rounds"] or 0 for play in steered.finished())
    assert f"no reward was observed in {rounds:g} of 288 rounds" in told["unobserved"]


def test_what_regret_against_the_best_seen_is_worth_is_said(steered: Results) -> None:
    told = {caution.topic: caution.text for caution in cautions(steered, best_seen=True)}
    assert "the highest reward observed in the same play" in told["no regret"]
    assert "bounds regret from neither side" in told["best seen"]


def test_plays_that_know_the_best_among_others_are_named(tmp_path: Path) -> None:
    mixed = steer_and_simulate(tmp_path, replications=2)
    told = {caution.topic: caution.text for caution in cautions(mixed)}
    assert "all are compared by their mean reward" in told["no regret"]
    assert told["mixed"] == "the best reward is known in 2 of 4 plays, those of simulated"
