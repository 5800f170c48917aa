"""What plays are compared by, where the best reward is known and where it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparq_sim import SparqError
from sparq_sim.analysis.criteria import (
    BEST_SEEN,
    REGRET,
    REWARD,
    Criterion,
    choose_criterion,
)
from sparq_sim.simulation import measures
from sparq_sim.study.results import Results
from tests.plants import Plant, plan, steer_and_simulate


def test_where_the_best_is_known_plays_are_compared_by_regret(study: Results) -> None:
    assert choose_criterion(study.finished()) == REGRET


def test_where_it_is_not_they_are_compared_by_reward(steered: Results) -> None:
    assert choose_criterion(steered.finished()) == REWARD
    assert choose_criterion(steered.finished(), best_seen=True) == BEST_SEEN


def test_regret_against_the_best_seen_is_refused_where_the_best_is_known(study: Results) -> None:
    with pytest.raises(SparqError, match="leave out best-seen"):
        choose_criterion(study.finished(), best_seen=True)


def test_one_play_that_does_not_know_the_best_decides_for_all(tmp_path: Path) -> None:
    plays = steer_and_simulate(tmp_path, replications=1).finished()
    assert [play.knows_best for play in plays] == [True, False]
    assert choose_criterion(plays) == replace(REWARD, mixed=True)
    assert all(REWARD.of(play) is not None for play in plays)


def test_a_study_without_plays_has_nothing_to_refuse() -> None:
    assert choose_criterion([], best_seen=True) == REGRET


def test_what_is_stored_of_a_play_is_what_its_trace_tells(steered: Results) -> None:
    for play in steered.finished():
        trace = steered.read(play.key).trace
        assert REGRET.of(play) is None
        assert REWARD.of(play) == pytest.approx(np.nanmean(measures.reward(trace)))
        assert BEST_SEEN.of(play) == pytest.approx(np.nanmean(measures.regret_to_best_seen(trace)))
        assert play.measures["unobserved_rounds"] == measures.unobserved_rounds(trace)


@pytest.mark.parametrize("criterion", [REWARD, BEST_SEEN])
def test_over_all_rounds_a_curve_ends_at_the_number_of_the_play(
    steered: Results, criterion: Criterion
) -> None:
    for play in steered.finished():
        trace = steered.read(play.key).trace
        curve = criterion.over_rounds(trace)
        assert curve[-1] / len(trace) == pytest.approx(criterion.of(play))


def test_before_the_first_reward_a_curve_is_unknown() -> None:
    trace = plan(environment=Plant(silent=0.6)).play("careless", 0)
    unknown = np.isnan(REWARD.over_rounds(trace))
    first = int(np.flatnonzero(np.isfinite(measures.reward(trace)))[0])
    assert first > 0
    assert unknown[:first].all()
    assert not unknown[first:].any()
