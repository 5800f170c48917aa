"""GP-UCB under a reward that wanders off."""

from __future__ import annotations

import warnings
from math import log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from sparq_environments.synthetic import Synthetic
from sparq_sim import Box, Briefing, Channel, Query, Rules, Trace, play
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior, PriorWarning
from sparq_sim.optimizers.shared.ucb import GPOptimizer
from sparq_sim.optimizers.shared.widths import LogarithmicWidth
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB
from sparq_sim.optimizers.ui_tvbo import UITVBO
from sparq_sim.testing import check_optimizer

VARIANCE, SCALE, MEAN, NOISE, RATE = 0.23, 5.7, 1.5, 0.01, 0.03
KERNEL = SquaredExponential(variance=VARIANCE, length_scale=SCALE)
FEEDBACK = Channel(noise=0.1)
GRID = np.linspace(-50.0, 50.0, 501)
RANDOM = Channel(noise=0.1, transit={"kind": "exponential", "mean": 3.0})


def played(model: GPOptimizer, rounds: int, feedback: Channel = FEEDBACK, seed: int = 0) -> Trace:
    return play(model, Synthetic(), Rules(rounds=rounds), feedback=feedback, replication=seed)


def test_it_obeys_the_laws_of_optimizers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        check_optimizer(UITVBO())


@pytest.mark.parametrize("seed", range(3))
def test_with_rate_0_it_is_gp_ucb_move_by_move(seed: int) -> None:
    plain = GPUCB(kernel=KERNEL, mean=MEAN, width=1.5)
    still = UITVBO(kernel=KERNEL, mean=MEAN, width=1.5, rate=0.0)
    assert_array_equal(played(still, 150, seed=seed).points, played(plain, 150, seed=seed).points)


def test_when_it_hardly_wanders_it_hardly_differs_from_gp_ucb() -> None:
    # The filter itself, not the short cut for rate 0.
    plain, tiny = GPUCB(kernel=KERNEL, mean=MEAN), UITVBO(kernel=KERNEL, mean=MEAN, rate=1e-14)
    assert_array_equal(played(tiny, 40).points, played(plain, 40).points)


# The model, transcribed with nothing but numpy: the full covariance in space and time.


def space(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    matrix: NDArray[np.float64] = VARIANCE * np.exp(
        -((a[:, None] - b[None, :]) ** 2) / (2 * SCALE**2)
    )
    return matrix


def believed(
    points: NDArray[np.float64], times: NDArray[np.float64], values: NDArray[np.float64], now: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """k = k_S sigma_w^2 (min(t, t') - c_0), c_0 = -1 / sigma_w^2, as it stands in the paper."""
    start = -1 / RATE
    covariance = space(points, points) * RATE * (np.minimum.outer(times, times) - start)
    inverse = np.linalg.inv(covariance + NOISE * np.eye(len(points)))
    cross = space(GRID, points) * RATE * (np.minimum(times, now) - start)
    mean = MEAN + cross @ inverse @ (values - MEAN)
    explained = np.einsum("ij,jk,ik->i", cross, inverse, cross)
    return mean, np.sqrt(VARIANCE * RATE * (now - start) - explained)


@pytest.mark.parametrize("feedback", [FEEDBACK, RANDOM], ids=["prompt", "out of order"])
@pytest.mark.parametrize("seed", range(2))
def test_it_is_the_published_algorithm_to_the_letter(feedback: Channel, seed: int) -> None:
    # Teacher-forced: each move is compared with that of the transcription from the same history.
    trace = played(UITVBO(kernel=KERNEL, mean=MEAN, rate=RATE), 60, feedback, seed)
    replies = trace.replies
    heard, decided = replies["fate"] == "answered", 0
    first = 2 + int(replies["arrived_at"][heard].min())
    for t in range(first, 61):
        by_now = heard & (replies["arrived_at"] <= t) & (replies["round"] < t)
        times, points = replies["measured_at"][by_now], replies["x"][by_now]
        mean, std = believed(points, times, replies["value"][by_now], float(t))
        bounds = mean + sqrt(0.8 * log(4 * t)) * std
        mine = np.abs(GRID - trace.points[t - 1, 0]).argmin()
        assert bounds[mine] >= bounds.max() - 1e-9
        if (bounds >= bounds.max() - 1e-7).sum() == 1:
            assert GRID[bounds.argmax()] == pytest.approx(trace.points[t - 1, 0])
            decided += 1
    assert decided > 40


# Ways to compute it.


def memory(optimizer: GPOptimizer, *, on_candidates_only: bool = True) -> Memory:
    prior = GPPrior(
        kernel=KERNEL,
        mean=MEAN,
        noise_variance=None,
        width=LogarithmicWidth(),
        candidates=GRID[:, None],
        on_candidates_only=on_candidates_only,
    )
    return optimizer.start_memory(
        prior, Briefing(Box(-50.0, 50.0), rounds=80), np.random.default_rng(0)
    )


def answers(trace: Trace, shuffled: bool) -> list[tuple[Query, float, float]]:
    own = [
        (Query(t, "reward", point[None], float(t)), value, float(t))
        for t, (point, value) in enumerate(
            zip(trace.points, trace.replies["value"], strict=True), start=1
        )
    ]
    order = np.random.default_rng(1).permutation(len(own)) if shuffled else range(len(own))
    return [own[number] for number in order]


@pytest.mark.parametrize("shuffled", [False, True])
def test_filter_and_dense_posterior_agree_in_whatever_order_observations_come(
    shuffled: bool,
) -> None:
    model = UITVBO(rate=RATE)
    one, other = memory(model), memory(model, on_candidates_only=False)
    for query, value, then in answers(played(UITVBO(kernel=KERNEL, mean=MEAN), 80), shuffled):
        told = query.answer([value], stds=0.1, measured_at=then, arrived_at=80.0)
        one.learn(told)
        other.learn(told)
    first, second = one.predictor(81.0), other.predictor(81.0)
    assert_allclose(first.mean(), second.mean(), atol=1e-9)
    assert_allclose(first.std(), second.std(), atol=1e-9)
    assert first.log_determinant == pytest.approx(second.log_determinant, abs=1e-8)
    # Anywhere, the dense one says the same as at the candidates.
    assert_allclose(second.mean(GRID[::50, None]), second.mean()[::50], atol=1e-9)
    assert_allclose(second.std(GRID[::50, None]), second.std()[::50], atol=1e-9)


def test_slopes_are_those_of_mean_and_std() -> None:
    dense = memory(UITVBO(rate=RATE), on_candidates_only=False)
    for query, value, _ in answers(played(UITVBO(kernel=KERNEL, mean=MEAN), 20), False):
        dense.learn(query.answer([value], stds=0.1))
    belief, point, step = dense.predictor(30.0), np.array([1.23]), 1e-5
    around = np.array([point + step, point - step])
    mean, std = belief.mean(around), belief.std(around)
    assert belief.mean_gradient(point)[0] == pytest.approx((mean[0] - mean[1]) / (2 * step), 1e-6)
    assert belief.std_gradient(point)[0] == pytest.approx((std[0] - std[1]) / (2 * step), 1e-6)


def test_it_plays_in_four_dimensions() -> None:
    briefing = Briefing(Box(np.zeros(4), np.ones(4)), rounds=20)
    agent = UITVBO(kernel=SquaredExponential(), mean=0.0).start(briefing, np.random.default_rng(3))
    for t in range(1, 21):
        point = agent.ask(float(t)).point
        assert point is not None
        briefing.domain.check(point[None])
        agent.tell(Query(t, "reward", point[None], float(t)).answer([point.sum()], stds=0.1))


def test_an_answer_off_the_grid_is_taken_in() -> None:
    model = UITVBO(kernel=SquaredExponential(length_scale=0.2), mean=0.0)
    agent = model.start(Briefing(Box(0.0, 1.0), rounds=10), np.random.default_rng(3))
    for t in range(1, 6):
        off = Query(t, "expert", np.array([[0.1234567]]), float(t))
        agent.tell(off.answer([3.0], stds=0.01))
        agent.tell(Query(t, "reward", np.array([[0.9]]), float(t)).answer([0.0], stds=0.01))
    point = agent.ask(6.0).point
    assert point is not None
    assert abs(point[0] - 0.12) < 0.15


# What it means.


def test_while_nothing_is_observed_the_mean_stays_and_the_variance_grows_by_the_rate() -> None:
    wanders, forgets = memory(UITVBO(rate=RATE)), memory(TVGPUCB(epsilon=RATE))
    query = Query(1, "reward", np.array([[0.0]]), 1.0)
    for one in (wanders, forgets):
        one.learn(query.answer([2.5], stds=0.1))
    soon, late = wanders.predictor(2.0), wanders.predictor(102.0)
    assert_array_equal(late.mean(), soon.mean())
    assert_allclose(late.std() ** 2 - soon.std() ** 2, 100 * RATE * VARIANCE, rtol=1e-9)
    # TV-GP-UCB falls back to the prior instead.
    assert forgets.predictor(102.0).mean()[250] < 1.8 < 2.3 < late.mean()[250]
