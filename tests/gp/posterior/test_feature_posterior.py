"""The posterior in features keeps to its candidates, and to their own observations."""

import numpy as np
import pytest

from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.posterior import FeaturePosterior, Features
from sparq_sim.gp.posterior import feature_posterior as features_module
from tests.gp.posterior.reference import assert_exact, by_features


def test_features_average_observations_that_contradict() -> None:
    candidates = np.linspace(0, 1, 50)[:, None]
    gp = by_features(SquaredExponential(length_scale=0.3), candidates)
    gp.add(candidates[[7, 7]], [1.0, 3.0], variances=1e-14)
    assert gp.mean()[7] == pytest.approx(2.0, abs=1e-9)


def test_shared_features_keep_posteriors_apart() -> None:
    candidates = np.linspace(0, 1, 20)[:, None]
    shared = Features.of(SquaredExponential(), candidates)
    one, other = FeaturePosterior(shared), FeaturePosterior(shared)
    one.add(candidates[3], 1.0, variances=0.1)
    assert one.mean()[3] > 0.5
    assert other.mean()[3] == 0


def test_updates_of_rank_one_are_refreshed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features_module, "_FRESH", 10)
    rng = np.random.default_rng(8)
    candidates = rng.random((30, 2))
    gp = by_features(SquaredExponential(length_scale=0.5), candidates)
    for _ in range(35):
        gp.add(candidates[rng.integers(30)], rng.normal(), variances=0.1)
        gp.mean()
    assert_exact(gp, candidates[:2])


def test_features_refuse_points_that_are_no_candidates() -> None:
    gp = by_features(SquaredExponential(), np.linspace(0, 1, 5)[:, None])
    gp.add([0.0], 1.0, variances=0.1)
    gp.add([-0.0], 1.0, variances=0.1)
    with pytest.raises(ValueError, match=r"\[0\.3\] is not among the 5 candidates"):
        gp.add([[0.0], [0.3]], [1.0, 1.0], variances=0.1)
