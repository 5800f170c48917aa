"""TV-GP-UCB is GP-UCB where nothing is forgotten, and its filter is the dense posterior."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparq_environments.synthetic import Synthetic
from sparq_sim import Box, Briefing, Channel, Query, Rules, play
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.widths import LogarithmicWidth
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB

KERNEL = SquaredExponential(variance=0.23, length_scale=5.7)


NOISE = Channel(noise=0.1)


def test_tv_gp_ucb_that_hardly_forgets_hardly_differs_from_gp_ucb() -> None:
    # The filter itself, not the short cut for epsilon 0.
    rules = Rules(rounds=40)
    plain = play(GPUCB(kernel=KERNEL, mean=1.5), Synthetic(), rules, feedback=NOISE)
    tiny = TVGPUCB(kernel=KERNEL, mean=1.5, epsilon=1e-14)
    assert_array_equal(play(tiny, Synthetic(), rules, feedback=NOISE).points, plain.points)


@pytest.mark.parametrize("late", [0.0, 2.0])
def test_tv_gp_ucb_filters_to_the_dense_posterior_also_when_observations_are_late(
    late: float,
) -> None:
    trace = play(
        TVGPUCB(kernel=KERNEL, mean=1.5, epsilon=0.05),
        Synthetic(),
        Rules(rounds=80),
        feedback=Channel(noise=0.1, transit=late),
    )
    domain = Box(-50.0, 50.0)
    by_filter, dense = (
        TVGPUCB(epsilon=0.05).start_memory(
            GPPrior(
                kernel=KERNEL,
                mean=1.5,
                noise_variance=None,
                width=LogarithmicWidth(),
                candidates=domain.grid(501),
                on_candidates_only=on_candidates,
            ),
            Briefing(domain),
            _rng(),
        )
        for on_candidates in (True, False)
    )
    replies = trace.replies
    for row in np.flatnonzero(replies["fate"] == "answered"):
        now = float(replies["arrived_at"][row])
        query = Query(int(row) + 1, "reward", np.array([[replies["x"][row]]]), 0.0)
        answer = query.answer(
            [replies["value"][row]],
            stds=0.1,
            measured_at=float(replies["measured_at"][row]),
            arrived_at=now,
        )
        for memory in (by_filter, dense):
            memory.learn(answer)
        first, second = by_filter.predictor(now + 1.0), dense.predictor(now + 1.0)
        np.testing.assert_allclose(first.mean(), second.mean(), atol=1e-9)
        np.testing.assert_allclose(first.std(), second.std(), atol=1e-9)
        assert first.log_determinant == pytest.approx(second.log_determinant, abs=1e-8)


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)
