"""GP-UCB that begins anew when it is surprised."""

from __future__ import annotations

import warnings
from functools import cache
from math import log, pi, sqrt

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from sparq_environments.switching import Switching
from sparq_environments.synthetic import Synthetic
from sparq_sim import Box, Briefing, Channel, Query, Rules, Trace, play
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.et_gp_ucb import ETGPUCB
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.shared.prior import GPPrior, PriorWarning
from sparq_sim.optimizers.shared.widths import LogarithmicWidth
from sparq_sim.plugin.contract import Agent
from sparq_sim.simulation.measures import average_regret
from sparq_sim.testing import check_optimizer

VARIANCE, SCALE, MEAN, NOISE = 1.0, 0.15, 2.0, 0.01
KERNEL = SquaredExponential(variance=VARIANCE, length_scale=SCALE)
FEEDBACK = Channel(noise=0.1)
GRID = np.linspace(0.0, 1.0, 501)
EVENT = ETGPUCB(kernel=KERNEL, mean=MEAN, width=1.5)
PLAIN = GPUCB(kernel=KERNEL, mean=MEAN, width=1.5)


@cache
def switching(model: GPUCB | ETGPUCB, dwell: float, rounds: int, replication: int) -> Trace:
    world = Switching(dimensions=1, dwell=dwell)
    return play(model, world, Rules(rounds=rounds), feedback=FEEDBACK, replication=replication)


def resets(trace: Trace) -> list[int]:
    """Return the rounds whose observations were followed by a reset."""
    return [int(t) + 1 for t in np.flatnonzero(np.diff(trace.rounds["note_resets"]))]


def test_it_obeys_the_laws_of_optimizers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        check_optimizer(ETGPUCB())


@pytest.mark.parametrize("replication", range(3))
def test_where_nothing_surprises_it_is_gp_ucb_move_by_move(replication: int) -> None:
    kernel = SquaredExponential(variance=0.23, length_scale=5.7)
    plain = GPUCB(kernel=kernel, mean=1.5, width=1.5)
    # The limit is 37 (sigma + s) and more, where the whole range of rewards is 19 s.
    deaf = ETGPUCB(kernel=kernel, mean=1.5, width=1.5, delta=1e-300)
    expected, got = (
        play(model, Synthetic(), Rules(rounds=150), feedback=FEEDBACK, replication=replication)
        for model in (plain, deaf)
    )
    assert_array_equal(got.points, expected.points)
    # It is the limit that makes the difference.
    hearing = deaf.model_copy(update={"delta": 0.1})
    heard = play(
        hearing, Synthetic(), Rules(rounds=150), feedback=FEEDBACK, replication=replication
    )
    assert resets(heard)


# The algorithm, transcribed with nothing but numpy.


def believed(
    at: NDArray[np.float64], points: list[float], values: list[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    def kernel(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        matrix: NDArray[np.float64] = VARIANCE * np.exp(
            -((a[:, None] - b[None, :]) ** 2) / (2 * SCALE**2)
        )
        return matrix

    seen = np.array(points)
    inverse = np.linalg.inv(kernel(seen, seen) + NOISE * np.eye(len(seen)))
    cross = kernel(at, seen)
    mean = MEAN + cross @ inverse @ (np.array(values) - MEAN)
    variance = VARIANCE - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    return mean, np.sqrt(np.maximum(variance, 0.0))


@pytest.mark.parametrize("replication", range(4))
def test_it_is_the_published_algorithm_to_the_letter(replication: int) -> None:
    # Teacher-forced: each move is compared with that of the transcription from the same history.
    trace = switching(EVENT, 20.0, 60, replication)
    own = trace.replies["source"] == "reward"
    observed = trace.replies["value"][own]
    plays = trace.points[:, 0]
    points: list[float] = []
    values: list[float] = []
    since, reset_after, decided = 0, [], 0
    for t in range(1, 60):
        point, value = float(plays[t - 1]), float(observed[t - 1])
        since += 1
        odds = log(2 * (pi**2 * since**2 / 6) / 0.1)
        (mean,), (std,) = believed(np.array([point]), points, values)
        if abs(value - mean) > sqrt(2 * odds) * std + sqrt(2 * NOISE * odds):
            points, values, since = [], [], 0
            reset_after.append(t)
        points.append(point)
        values.append(value)
        means, stds = believed(GRID, points, values)
        bounds = means + 1.5 * stds
        mine = np.abs(GRID - plays[t]).argmin()
        assert bounds[mine] >= bounds.max() - 1e-9
        if (bounds >= bounds.max() - 1e-7).sum() == 1:
            assert GRID[bounds.argmax()] == pytest.approx(plays[t])
            decided += 1
    assert reset_after == resets(trace)
    assert len(reset_after) >= 1
    assert decided > 45


# When it begins anew.


def test_it_begins_anew_soon_after_a_switch_and_never_without_one() -> None:
    for replication in range(8):
        assert resets(switching(EVENT, 1e6, 180, replication)) == []
        after = resets(switching(EVENT, 60.0, 180, replication))
        # The reward switches at 60 and at 120; where it hardly does so at what is played, that is
        # no surprise.
        assert 1 <= len(after) <= 2
        assert all(0 <= t % 60 <= 5 for t in after)


def test_where_the_reward_switches_it_is_better_off_than_gp_ucb() -> None:
    gains = [
        average_regret(switching(PLAIN, 60.0, 180, replication))[-1]
        - average_regret(switching(EVENT, 60.0, 180, replication))[-1]
        for replication in range(8)
    ]
    assert np.mean(gains) > 2 * np.std(gains, ddof=1) / sqrt(len(gains))


def test_on_draws_of_its_prior_false_alarms_are_as_rare_as_promised() -> None:
    rng = np.random.default_rng(5)
    grid = np.linspace(0.0, 1.0, 101)[:, None]
    prior = GPPrior(
        kernel=KERNEL,
        mean=MEAN,
        noise_variance=None,
        width=LogarithmicWidth(),
        candidates=grid,
        on_candidates_only=True,
    )
    values, vectors = np.linalg.eigh(KERNEL(grid, grid))
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    alarms = 0
    for _ in range(100):
        reward = MEAN + roots @ rng.normal(size=len(grid))
        memory = ETGPUCB(delta=0.5).start_memory(prior, Briefing(Box(0.0, 1.0)), rng)
        for t in range(1, 31):
            place = rng.integers(len(grid))
            seen = reward[place] + 0.1 * rng.normal()
            memory.learn(Query(t, "reward", grid[[place]], float(t)).answer([seen], stds=0.1))
        alarms += memory.notes()["resets"] > 0
    assert alarms <= 50


@pytest.mark.parametrize(("share", "surprised"), [(0.999, False), (1.001, True)])
@pytest.mark.parametrize("before", [0, 1, 7])
def test_the_limit_is_the_published_one_with_rounds_counted_from_the_last_reset(
    before: int, share: float, surprised: bool
) -> None:
    one = agent()
    for t in range(1, 4):
        tell(one, t, 2.0)
    tell(one, 4, -2.0)  # The reset.
    for t in range(5, 5 + before):
        tell(one, t, -2.0)
    seen = before + 1
    precision = 1 / VARIANCE + seen / NOISE  # All at one point.
    mean = (MEAN / VARIANCE - 2.0 * seen / NOISE) / precision
    odds = log(2 * (pi**2 * (before + 1) ** 2 / 6) / 0.1)
    limit = sqrt(2 * odds) * precision**-0.5 + sqrt(2 * NOISE * odds)
    tell(one, 5 + before, mean + share * limit)
    assert one.ask(20.0).notes["resets"] == 1 + surprised


def test_what_was_measured_before_the_reset_is_forgotten_even_if_it_comes_later() -> None:
    prompt, late = agent(), agent()
    for t in range(1, 6):
        tell(prompt, t, 2.0)
        if t != 3:
            tell(late, t, 2.0)
    for one in (prompt, late):
        tell(one, 6, -2.0)
    late.tell(
        Query(3, "reward", np.array([[0.5]]), 3.0).answer(
            [2.0], stds=0.1, measured_at=3.0, arrived_at=6.5
        )
    )
    moves = [one.ask(7.0) for one in (prompt, late)]
    assert [move.notes["resets"] for move in moves] == [1.0, 1.0]
    assert moves[0].point == moves[1].point


def test_a_surprise_off_the_grid_is_one_too() -> None:
    one = agent()
    for t in range(1, 6):
        tell(one, t, 2.0)
    off = Query(6, "expert", np.array([[0.5000123]]), 6.0)
    one.tell(off.answer([-2.0], stds=0.1))
    assert one.ask(7.0).notes["resets"] == 1.0


def agent() -> Agent:
    return EVENT.start(Briefing(Box(0.0, 1.0), rounds=20), np.random.default_rng(3))


def tell(told: Agent, t: int, value: float) -> None:
    query = Query(t, "reward", np.array([[0.5]]), float(t))
    told.tell(query.answer([value], stds=0.1))
