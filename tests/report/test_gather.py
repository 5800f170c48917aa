from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import Environment, Expert, World
from sparq_sim.plugin.environment import UNNAMED, read_units
from sparq_sim.report.data import ReportData, describe_curve, describe_series
from sparq_sim.report.gather import _choose, gather
from sparq_sim.report.html.replay import pack
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.results import Results
from sparq_sim.study.store.layout import SCENARIO
from tests.report.conftest import played


def test_the_report_of_an_opened_folder_is_that_of_the_study_run(study: Results) -> None:
    opened = gather(Results.open(study.folder), replays=False)
    fresh = gather(study, replays=False)
    assert opened.finding == fresh.finding
    assert opened.paragraphs == fresh.paragraphs
    assert opened.charts.levels == fresh.charts.levels
    assert opened.planned == fresh.planned == 16


def test_folders_without_a_description_are_told_from_their_plays(tmp_path: Path) -> None:
    study = played(tmp_path, sweep={}, replications=1)
    (tmp_path / SCENARIO).unlink()
    told = gather(Results.open(tmp_path), replays=False)
    assert told.finished == told.planned == 2
    assert told.paragraphs[0].about == "What drifts"
    assert len(told.charts.levels) == 2
    assert len(study.finished()) == len(study.plays())


def test_a_spoilt_description_does_no_harm(tmp_path: Path) -> None:
    played(tmp_path, sweep={}, replications=1)
    (tmp_path / SCENARIO).write_text('{"plays": [{"optimizer": 3}]}')
    told = gather(Results.open(tmp_path), replays=False)
    assert told.finished == 2
    assert any(SCENARIO in note for note in told.notes)


class Powered(Expert):
    """Knows the reward, and notes what that took."""

    async def answer(self, query: Query, world: World) -> Estimate:
        world.note(energy=2.5)
        return Estimate(world.rewards(query.points, world.clock.now))


def test_what_sources_note_is_charted(tmp_path: Path) -> None:
    experts = {"sage": {"expert": Powered(), "channel": {}}}
    study = played(tmp_path, experts=experts, sweep={}, replications=1)
    told = gather(study, replays=False)
    (each,) = [each for each in told.charts.series if each.name == "reply energy"]
    assert set(each.means) == {2.5}
    assert any("no reference levels" in note for note in told.notes)  # a class of this file


def test_points_asked_and_staleness_are_those_of_the_replies(tmp_path: Path) -> None:
    told = gather(played(tmp_path, sweep={}, replications=1), replays=False)
    series = {each.name: each for each in told.charts.series if each.optimizer == "curious"}
    (row,) = [row for row in told.charts.summaries if row.optimizer == "curious"]
    assert series["asked"].means.mean() == pytest.approx(row.asked_per_round)
    assert set(series["staleness"].means) == {1.5}
    assert series["spent"].means[-1] == pytest.approx(row.spent.mean)


def test_points_asked_are_the_same_where_only_rounds_are_kept(tmp_path: Path) -> None:
    # In the first rounds, SparQ-GP-UCB asks nothing, and notes nothing of it.
    study = played(tmp_path, optimizers=["sparq-gp-ucb"], record="rounds", sweep={}, replications=2)
    told = gather(study, replays=False)
    (noted,) = [each for each in told.charts.series if each.name == "note queries"]
    (row,) = told.charts.summaries
    assert len(noted.means) == row.rounds
    assert noted.means.mean() == pytest.approx(row.asked_per_round)


def test_plays_of_unequal_length_share_a_band(tmp_path: Path) -> None:
    told = gather(
        played(tmp_path, sweep={}, replications=3, budget=0.3, ends_when_spent=True), replays=False
    )
    for band in told.charts.bands:
        assert band.plays[0] == 3
        assert band.rounds[-1] <= 30


def test_of_too_many_settings_some_are_chosen_evenly() -> None:
    many = [{"a": i} for i in range(101)]
    assert [each["a"] for each in _choose(many, 5)] == [0, 25, 50, 75, 100]


def test_where_the_best_is_not_known_there_are_no_levels(steered: Results) -> None:
    def find(scenario: Scenario, *, replications: Sequence[int]) -> Any:
        raise AssertionError("nobody may start what is steered")

    told = gather(steered, levels=find)
    assert not told.charts.levels
    assert any("reference levels are left out" in note for note in told.notes)
    assert all("no landscape to show" in replay.missing for replay in told.replays)
    assert len(told.commands) == 1


def test_the_command_of_a_report_asks_for_the_best_seen_as_well(steered: Results) -> None:
    told = gather(steered, replays=False, best_seen=True)
    assert told.commands[0].endswith("--against best-seen")


def test_units_that_an_environment_names_are_on_the_axes(tmp_path: Path) -> None:
    study = played(
        tmp_path,
        environment={"kind": "sensor-network"},
        experts={},
        sweep={},
        replications=1,
        optimizers={"careless": {"kind": "uniform"}},
    )
    told = gather(study)
    assert told.charts.judged_label == "average regret (ppb)"
    words = describe_curve(told.charts.criterion, average=False, units=told.charts.units)
    assert words.label == "cumulative regret (ppb)"
    assert describe_series("staleness", told.charts.units).label == "staleness (days)"
    (replay,) = told.replays
    assert pack(replay)["labels"] == {
        "reward": "reward (ppb)",
        "time": "time (days)",
        "coordinates": ["lat (°)", "lon (°)"],
    }


def test_without_units_axes_are_as_they_were(told: ReportData) -> None:
    assert told.charts.judged_label == "average regret"
    assert describe_series("staleness", told.charts.units).label == "staleness (clock units)"


def test_a_field_that_is_called_units_is_no_unit() -> None:
    with pytest.warns(UserWarning, match="shadows"):

        class Shop(Environment):
            """How many things are sold."""

            units: int = 3  # type: ignore[misc,assignment]

    assert read_units(Shop) == read_units(Shop()) == UNNAMED
