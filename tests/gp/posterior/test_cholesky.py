"""The posterior by a Cholesky factor is that of the textbook, at any points."""

import numpy as np
import pytest

from sparq_sim.gp.kernels import Matern52, SquaredExponential
from sparq_sim.gp.posterior import CholeskyPosterior
from sparq_sim.gp.posterior.cholesky import factor
from tests.gp.posterior.reference import MEAN, closed_form


def test_no_candidates_are_needed() -> None:
    rng = np.random.default_rng(9)
    gp = CholeskyPosterior(Matern52(), mean=MEAN)
    gp.add(rng.random((12, 2)), rng.normal(size=12), variances=0.1)
    gp.mean(rng.random((3, 2)))
    gp.remove([2, 5])
    points = rng.random((4, 2))
    mean, std, log_determinant = closed_form(gp, points)
    np.testing.assert_allclose(gp.mean(points), mean, atol=1e-10)
    np.testing.assert_allclose(gp.std(points), std, atol=1e-10)
    assert gp.log_determinant == pytest.approx(log_determinant, abs=1e-10)


def test_factor_of_a_singular_matrix_is_right_to_rounding() -> None:
    points = np.repeat(np.linspace(0, 1, 30), 4)[:, None]
    matrix = SquaredExponential()(points, points)
    variances = np.full(len(points), 1e-16)
    lower = factor(matrix, variances)
    np.testing.assert_allclose(lower @ lower.T, matrix, atol=1e-13)
    assert (np.diagonal(lower) > 0).all()
    assert (np.triu(lower, 1) == 0).all()


def test_predicting_nowhere_is_refused() -> None:
    gp = CholeskyPosterior(SquaredExponential())
    with pytest.raises(ValueError, match="say at which points"):
        gp.mean()
    gp.add([[0.0]], [1.0], variances=0.1)
    with pytest.raises(ValueError, match="points of 2 coordinates join points of 1"):
        gp.add([[0.0, 1.0]], [1.0], variances=0.1)
