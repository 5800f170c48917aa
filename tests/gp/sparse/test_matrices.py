"""Kernel matrices: what is refused, and what the tail of their eigenvalues bounds."""

from itertools import combinations

import numpy as np
import pytest

from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.matrices import spectrum, tail_sum


def test_tail_sum_leaves_out_the_largest() -> None:
    matrix = np.diag([4.0, 1.0, 3.0, 2.0])
    assert [tail_sum(matrix, size) for size in range(6)] == [10, 6, 3, 1, 0, 0]


def test_expected_trace_of_the_dpp_keeps_its_tail_bound(
    rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    points = rng.uniform(0, 5, (9, 1))
    matrix = kernel(points, points)
    for size in (1, 2, 3, 4):
        weights, traces = [], []
        for rows in combinations(range(9), size):
            block, columns = matrix[np.ix_(rows, rows)], matrix[list(rows)]
            weights.append(np.linalg.det(block))
            traces.append(np.trace(matrix - columns.T @ np.linalg.solve(block, columns)))
        mean = np.average(traces, weights=weights)
        assert tail_sum(matrix, size) <= mean <= (size + 1) * tail_sum(matrix, size)


def test_bad_matrices_and_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="eigenvalue -1"):
        spectrum(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="not symmetric"):
        spectrum(np.array([[1.0, 0.5], [0.1, 1.0]]))
    with pytest.raises(ValueError, match="not finite"):
        spectrum(np.array([[1.0, np.inf], [np.inf, 1.0]]))
    with pytest.raises(ValueError, match="size is -2"):
        tail_sum(np.eye(2), -2)
