from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sparq_sim.analysis.axis import find_axis
from sparq_sim.analysis.criteria import REGRET
from sparq_sim.analysis.intervals import find_p_value
from sparq_sim.analysis.standings import _reject, find_standings, rank_plays
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.store import canonical
from sparq_sim.study.study import Study
from tests.analysis.results import make_plays
from tests.study.plays import scenario


def test_the_chance_of_a_mean_is_that_of_the_t_test() -> None:
    numbers = [0.3, -0.1, 0.4, 0.2, 0.05]
    chance = find_p_value(float(np.mean(numbers)), float(np.std(numbers, ddof=1)), 5)
    assert chance == pytest.approx(stats.ttest_1samp(numbers, 0).pvalue)
    assert (find_p_value(1.0, 0.0, 1), find_p_value(0.0, 0.0, 4)) == (1.0, 1.0)
    assert find_p_value(1.0, 0.0, 4) == 0.0


def test_hypotheses_are_rejected_together_as_by_holm() -> None:
    # The levels of Holm (1979): 0.05 / 3, 0.05 / 2 and 0.05.
    assert _reject([0.01, 0.02, 0.04]) == [True, True, True]
    assert _reject([0.03, 0.01, 0.04]) == [False, True, False]
    assert _reject([0.02, 0.3, 0.04]) == [False, False, False]
    assert _reject([]) == []


def test_one_that_would_be_worse_alone_may_be_unclear_among_many() -> None:
    best = make_plays("best", [1.0, 1.1, 0.9, 1.05, 0.95])
    close = make_plays("close", [1.1, 1.22, 0.92, 1.15, 1.0])
    others = [make_plays(f"other {k}", [1.0 + 0.1 * j * k for j in range(5)]) for k in range(1, 9)]
    (alone,) = rank_plays([*best, *close], REGRET).rankings
    (among,) = rank_plays(sum(others, [*best, *close]), REGRET).rankings
    verdicts = {place.row.optimizer: place.verdict for place in among.places}
    assert alone.rivals[0].verdict == "worse"
    assert verdicts["close"] == "unclear"


def test_of_optimizers_that_are_alike_one_is_seldom_called_worse_than_the_luckiest() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(200):
        plays = [
            play
            for name, numbers in zip("abcde", rng.normal(1, 0.2, (5, 8)).tolist(), strict=True)
            for play in make_plays(name, numbers)
        ]
        (ranking,) = rank_plays(plays, REGRET).rankings
        wrong += any(place.verdict == "worse" for place in ranking.rivals)
    # At most 5 %, and two standard errors; against the best alone, it would be 8.5 %.
    assert wrong / 200 < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


def test_verdicts_follow_the_pairs_and_not_the_means_of_unequal_numbers_of_plays() -> None:
    # In the mean, the first is better; where both played, the second is.
    first = make_plays("first", [0.5, 0.6, 0.0, 0.0, 0.0])
    second = make_plays("second", [0.4, 0.5])
    (ranking,) = rank_plays([*first, *second], REGRET).rankings
    assert ranking.best.row.optimizer == "first"
    assert ranking.rivals[0].verdict == "unclear"
    assert ranking.rivals[0].behind.mean < 0


def test_a_row_of_all_settings_has_a_verdict_only_where_it_is_the_same_in_all() -> None:
    still = make_plays("still", [0.5] * 3)
    for last, verdict in (([0.1] * 3, "worse"), ([0.9] * 3, "")):
        moving = [
            play
            for value, numbers in ((0, [0.1] * 3), (1, last))
            for play in make_plays("moving", numbers, setting={"x": value})
        ]
        standings = rank_plays([*still, *moving], REGRET)
        row = next(row for row in standings.rows if row.optimizer == "still")
        assert standings.judge(row) == verdict


def test_what_was_planned_is_known_of_a_folder_whose_plays_are_not_all_finished(
    tmp_path: Path,
) -> None:
    study = Study(scenario(optimizers=["uniform"], replications=3), tmp_path)
    study.run(InProcess())
    next((tmp_path / "rounds").iterdir()).unlink()
    standings = find_standings(Results.open(tmp_path))
    assert standings.planned == study.results.count_planned() == {("uniform", canonical({})): 3}
    assert [row.plays for row in standings.rows] == [2]


def test_settings_of_which_two_things_change_apart_lie_on_no_axis() -> None:
    grid = [{"a.x": x, "b.x": y} for x in (0, 1) for y in (0, 1)]
    assert find_axis(grid) is None
    assert find_axis(grid[:1]) is None
    along = find_axis([{"a.x": 0, "b.kind": "one"}, {"a.x": 2, "b.kind": "two"}])
    assert along is not None
    assert (along.path, along.name, along.values) == ("a.x", "x", [0, 2])
    assert along.describe({"a.x": 2, "b.kind": "two"}) == "x 2"
