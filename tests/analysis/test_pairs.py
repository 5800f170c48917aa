from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparq_sim.analysis.pairs import compare_optimizers
from sparq_sim.analysis.summary import AnalysisError
from sparq_sim.simulation import measures
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.analysis.conftest import traces
from tests.study.plays import scenario
from tests.study.test_executors import Dawdling


def test_pairs_meet_the_same_chance(study: Results) -> None:
    found = {
        each.setting["feedback.noise"]: each
        for each in compare_optimizers(study, "uniform", "sparq-gp-ucb")
    }
    gaps = [
        measures.regret(a).mean() - measures.regret(b).mean()
        for a, b in zip(traces("uniform", 0.3), traces("sparq-gp-ucb", 0.3), strict=True)
    ]
    assert found.keys() == {0.1, 0.3}
    assert found[0.3].difference.mean == pytest.approx(np.mean(gaps))
    assert found[0.3].difference.std == pytest.approx(np.std(gaps, ddof=1))
    assert found[0.3].better == np.mean(np.array(gaps) < 0)


def test_what_is_not_swept_for_one_is_compared_with_each_of_the_other(tmp_path: Path) -> None:
    optimizers = {"slow": Dawdling(seconds=0.0), "calm": {"kind": "uniform"}}
    swept = scenario(optimizers=optimizers, replications=2, sweep={"optimizers.slow.why": [1, 2]})
    study = Study(swept, tmp_path)
    study.run(InProcess())
    for pair in (("slow", "calm"), ("calm", "slow")):
        found = compare_optimizers(study.results, *pair)
        assert [each.setting["optimizers.slow.why"] for each in found] == [1, 2]
        assert all(each.difference.mean == 0 for each in found)


def test_an_unknown_optimizer_is_refused_with_a_hint(study: Results) -> None:
    with pytest.raises(AnalysisError, match="did you mean 'uniform'"):
        compare_optimizers(study, "unifrom", "sparq-gp-ucb")


def test_where_the_best_is_not_known_the_one_with_more_reward_is_better(steered: Results) -> None:
    for each in compare_optimizers(steered, "careless", "curious"):
        own = [
            {
                play.replication: play.measures["mean_reward"] or 0.0
                for play in steered.finished()
                if play.optimizer == name and play.setting == each.setting
            }
            for name in ("careless", "curious")
        ]
        gaps = [own[0][k] - own[1][k] for k in own[0]]
        assert each.criterion.name == "mean_reward"
        assert each.difference.mean == pytest.approx(np.mean(gaps))
        assert each.gain == each.difference
        assert each.better == np.mean(np.array(gaps) > 0)


def test_on_request_they_are_compared_by_regret_against_the_best_seen(steered: Results) -> None:
    (each, _) = compare_optimizers(steered, "careless", "curious", best_seen=True)
    assert each.criterion.name == "regret_to_best_seen"
    assert each.gain.mean == -each.difference.mean
