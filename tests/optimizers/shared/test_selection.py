"""Divergences count what was played and what was answered."""

from __future__ import annotations

import numpy as np
import pytest

from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.divergence import SparseFit
from sparq_sim.optimizers.shared.played import PlayedPoints, measure_divergences

KERNEL = SquaredExponential(variance=0.25, length_scale=4.0)


def test_divergences_count_each_play_of_a_point_but_only_one_answer() -> None:
    points = PlayedPoints(KERNEL)
    for x in [0.0] * 10 + [1.0] + [30.0] * 3:
        points.add(np.array([x]))
    rows = np.array([0, 1])
    noted = measure_divergences(points, rows, 0.01)
    plays = np.array([0.0] * 10 + [1.0] + [30.0] * 3)[:, None]
    whole = SparseFit(KERNEL(plays, plays), [0, 10], noise_variances=0.01)
    assert noted["kl_bound"] == pytest.approx(whole.trace_bound)
    assert noted["kl"] == pytest.approx(whole.expected_divergence)
    assert noted["kl_subset"] == pytest.approx(whole.subset_divergence)
