"""The posterior as the textbook has it, to compare with; and both kinds to be compared."""

import numpy as np
import pytest

from sparq_sim.arrays import Points, Values
from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.posterior import CholeskyPosterior, FeaturePosterior, Features, Posterior

MEAN = 1.5


def closed_form(gp: Posterior, points: Points) -> tuple[Values, Values, float]:
    """Return mean, std and log determinant as in Rasmussen and Williams, equation 2.23."""
    seen = gp.observations
    if not len(seen):
        return np.full(len(points), gp.prior_mean), np.sqrt(gp.kernel.diagonal(points)), 0.0
    prior = gp.kernel(seen.points, seen.points)
    cross = gp.kernel(seen.points, points)
    solved = np.linalg.solve(prior + np.diag(seen.variances), cross)
    mean: Values = gp.prior_mean + solved.T @ (seen.values - gp.prior_mean)
    variances = gp.kernel.diagonal(points) - np.einsum("ij,ij->j", solved, cross)
    scale = 1 / np.sqrt(seen.variances)
    sign, log_determinant = np.linalg.slogdet(np.eye(len(seen)) + prior * np.outer(scale, scale))
    assert sign == 1
    return mean, np.sqrt(np.maximum(variances, 0)), float(log_determinant)


def assert_exact(gp: Posterior, points: Points, *, tolerance: float = 1e-8) -> None:
    assert gp.candidates is not None
    for where, (mean, std) in (
        (gp.candidates, (gp.mean(), gp.std())),
        (points, (gp.mean(points), gp.std(points))),
    ):
        expected_mean, expected_std, log_determinant = closed_form(gp, where)
        np.testing.assert_allclose(mean, expected_mean, atol=tolerance)
        np.testing.assert_allclose(std, expected_std, atol=tolerance)
    assert gp.log_determinant == pytest.approx(log_determinant, abs=tolerance)


def by_cholesky(kernel: Kernel, candidates: Points) -> Posterior:
    return CholeskyPosterior(kernel, candidates=candidates, mean=MEAN)


def by_features(kernel: Kernel, candidates: Points) -> Posterior:
    return FeaturePosterior(Features.of(kernel, candidates), mean=MEAN)
