"""Plays that stick, in what a table shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest

from sparq_sim import Scenario
from sparq_sim.analysis.cautions import cautions
from sparq_sim.analysis.summary import count_stuck, spread, summary
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoredSummary
from sparq_sim.study.study import Study


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Results:
    scenario = Scenario.load(
        "synthetic", overrides=["rounds=40", "replications=3", "optimizers=['uniform']"]
    )
    study = Study(scenario, Path(tmp_path_factory.mktemp("stuck")))
    study.run(InProcess())
    return study.results


def ending(plays: Sequence[StoredSummary], *regrets: float | None) -> list[StoredSummary]:
    """Give plays with these regrets in the last quarter."""
    (first, *_) = plays
    return [
        replace(first, measures={**first.measures, "last_quarter_regret": regret})
        for regret in regrets
    ]


def test_a_play_far_above_the_median_is_stuck(played: Results) -> None:
    plays = [*played.finished()]
    assert count_stuck(ending(plays, 0.03, 0.02, 0.9, 0.03, 0.16)) == 2
    assert count_stuck(ending(plays, 0.03, 0.02, 0.04, 0.14)) == 0
    assert count_stuck(ending(plays, 0.9, 0.9, 0.9, 0.03)) == 0  # Most are: there is no other way.


def test_nobody_knows_who_stuck_without_regrets(played: Results) -> None:
    plays = [*played.finished()]
    assert count_stuck(ending(plays, None, None)) is None
    assert count_stuck(ending(plays, 0.0, 0.0, 1.0)) is None


def test_a_row_has_its_least_and_most_play_and_its_share_of_stuck_ones(played: Results) -> None:
    (row,) = summary(played)
    regrets = [play.measures["average_regret"] or 0.0 for play in played.finished()]
    assert (row.average_regret.least, row.average_regret.most) == (min(regrets), max(regrets))
    assert row.stuck == 0
    told = row.flat()
    assert (told["average_regret_least"], told["average_regret_most"]) == (
        min(regrets),
        max(regrets),
    )
    assert not [each for each in cautions(played) if each.topic == "stuck"]


def test_the_ends_of_a_spread_change_places_with_its_sign() -> None:
    assert ((-spread([1.0, 5.0])).least, (-spread([1.0, 5.0])).most) == (-5.0, -1.0)
    assert isnan(spread([]).least)
