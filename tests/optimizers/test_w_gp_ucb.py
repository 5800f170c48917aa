from __future__ import annotations

from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparq_sim import Answer, Box, Briefing, Query
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.widths import LogarithmicWidth
from sparq_sim.optimizers.w_gp_ucb import WGPUCB

GRID = np.linspace(-50.0, 50.0, 101)
KERNEL = SquaredExponential(variance=0.25, length_scale=5.7)
WEIGHT, NOISE = 0.9, 0.01


def memory(*, on_candidates_only: bool = True, period: float = 1.0) -> Memory:
    width = LogarithmicWidth()
    prior = GPPrior(KERNEL, 1.5, None, width, GRID[:, None], on_candidates_only)
    briefing = Briefing(Box(-50.0, 50.0), rounds=80, period=period)
    return WGPUCB(weight=WEIGHT).start_memory(prior, briefing, np.random.default_rng(0))


def told(number: int, x: float, value: float, *, std: float = NOISE**0.5) -> Answer:
    """A reward of round *number* that is heard of at the end of the play."""
    query = Query(number, "reward", np.array([[x]]), float(number))
    return query.answer([value], stds=std, measured_at=float(number), arrived_at=80.0)


def history(seed: int) -> list[Answer]:
    rng = np.random.default_rng(seed)
    return [told(t, rng.choice(GRID), rng.normal()) for t in range(1, 61)]


@pytest.mark.parametrize("now", [61.0, 64.5])
@pytest.mark.parametrize("shuffled", [False, True])
def test_it_is_the_published_regression_in_whatever_order_observations_come(
    now: float, shuffled: bool
) -> None:
    answers = history(1)
    x, y = (np.array([part(a) for a in answers]) for part in (_x, _y))
    # w_s = eta^-s and lambda_t = lambda w_t, as it stands in the paper, with W = diag(w).
    weights = WEIGHT ** -np.arange(1.0, 61.0)
    scale = NOISE * WEIGHT ** -(now - 1)
    matrix, cross = KERNEL(x, x), KERNEL(GRID[:, None], x)
    solved = np.linalg.solve(matrix + np.diag(scale / weights), np.column_stack([y - 1.5, cross.T]))
    variances = KERNEL.variance - np.einsum("ij,ji->i", cross, solved[:, 1:])
    doubly = np.eye(60) + np.outer(weights, weights) * matrix / (scale * WEIGHT ** -(now - 1))
    order = np.random.default_rng(2).permutation(60) if shuffled else np.arange(60)
    for on_candidates_only in (True, False):
        remembered = memory(on_candidates_only=on_candidates_only)
        for number in order:
            remembered.learn(answers[number])
        found = remembered.predictor(now)
        assert_allclose(found.mean(), 1.5 + cross @ solved[:, 0], atol=1e-8)
        assert_allclose(found.std() ** 2, variances, atol=1e-9)
        assert found.log_determinant == pytest.approx(np.linalg.slogdet(doubly)[1], abs=1e-8)


def _x(answer: Answer) -> list[float]:
    point: list[float] = answer.points[0].tolist()
    return point


def _y(answer: Answer) -> float:
    return float(answer.values[0])


def test_with_other_periods_and_moments_all_ways_to_weigh_agree() -> None:
    rng = np.random.default_rng(4)
    one, other = (memory(on_candidates_only=way, period=0.5) for way in (True, False))
    for number in range(1, 61):
        # Measured in the middle of a round, some of them late, and not all rounds have one.
        moment = 0.5 * (number - rng.integers(3) * (number > 5)) + rng.choice([0.0, 0.2])
        query = Query(number, "reward", np.array([[rng.choice(GRID)]]), moment)
        answer = query.answer([rng.normal()], stds=0.1, measured_at=moment, arrived_at=moment + 2)
        for remembered in (one, other):
            if number % 5:
                remembered.learn(answer)
        now = 0.5 * (number + 1)
        first, second = one.predictor(now), other.predictor(now)
        assert_allclose(first.mean(), second.mean(), atol=1e-8)
        assert_allclose(first.std(), second.std(), atol=1e-8)
        assert first.log_determinant == pytest.approx(second.log_determinant, abs=1e-7)


def test_a_play_at_minus_nothing_fades_with_the_others() -> None:
    remembered = memory()
    for answer in [told(1, -0.0, 2.0), told(2, 0.0, 2.0)]:
        remembered.learn(answer)
    assert remembered.times.array.size == 0  # One by one, they would be here.
    assert abs(remembered.predictor(3.0).mean()[50] - 2.0) < 0.05


@pytest.mark.parametrize(
    "odd", [told(61, 0.123, 2.0), told(61, 0.0, 2.0, std=1e-9)], ids=["off the grid", "exact"]
)
def test_what_cannot_fade_with_the_others_is_weighed_one_by_one(odd: Answer) -> None:
    one, other = memory(), memory(on_candidates_only=False)
    for answer in [*history(3), odd, told(62, 7.0, 1.0)]:
        for remembered in (one, other):
            remembered.learn(answer)
            remembered.predictor(answer.measured_at + 1)
    first, second = one.predictor(63.0), other.predictor(63.0)
    assert_allclose(first.mean(), second.mean(), atol=1e-6)
    assert_allclose(first.std(), second.std(), atol=1e-6)


def test_the_weight_follows_the_variation_budget() -> None:
    briefing = Briefing(Box(0.0, 1.0), rounds=500)
    prior = GPPrior(
        SquaredExponential(), 0.0, None, LogarithmicWidth(), Box(0.0, 1.0).grid(11), True
    )
    memory = WGPUCB(budget=30.0).start_memory(prior, briefing, None)  # type: ignore[arg-type] # draws none
    expected = 1 - (log(500) ** 2) ** -0.25 * (30 / 500) ** 0.5
    assert memory.weight == pytest.approx(expected)  # type: ignore[attr-defined] # of its own kind
