"""GP-UCB for rewards that arrive late."""

from __future__ import annotations

import warnings
from math import log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from sparq_environments.switching import Switching
from sparq_environments.synthetic import Synthetic
from sparq_sim import Box, Briefing, Channel, PluginError, Query, Rules, play
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.gp_ucb_sdf import GPUCBSDF
from sparq_sim.optimizers.shared.acquisition import Acquisition
from sparq_sim.optimizers.shared.prior import PriorWarning
from sparq_sim.optimizers.shared.ucb import GPOptimizer, UCBAgent
from sparq_sim.plugin.contract import SourceTerms
from sparq_sim.simulation.measures import average_regret
from sparq_sim.testing import check_optimizer

VARIANCE, SCALE, MEAN, NOISE = 1.0, 0.12, 1.5, 0.01
KERNEL = SquaredExponential(variance=VARIANCE, length_scale=SCALE)
GRID = np.linspace(0.0, 1.0, 501)
STILL = Switching(dimensions=1, dwell=1e6)
EXPONENTIAL = {"kind": "exponential", "mean": 3.0}


def test_it_obeys_the_laws_of_optimizers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        check_optimizer(GPUCBSDF())


@pytest.mark.parametrize("replication", range(3))
def test_without_latency_it_is_gp_ucb_with_the_same_width_move_by_move(replication: int) -> None:
    kernel = SquaredExponential(variance=0.23, length_scale=5.7)
    delayed = GPUCBSDF(kernel=kernel, mean=1.5, width=1.5, bound=3.0, censored=-7.0)
    plain = GPUCB(kernel=kernel, mean=1.5, width=1.5)
    got, expected = (
        play(
            model,
            Synthetic(),
            Rules(rounds=150),
            feedback=Channel(noise=0.1),
            replication=replication,
        )
        for model in (delayed, plain)
    )
    assert_array_equal(got.points, expected.points)


# The algorithm, transcribed with nothing but numpy.


def kernel(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    matrix: NDArray[np.float64] = VARIANCE * np.exp(
        -((a[:, None] - b[None, :]) ** 2) / (2 * SCALE**2)
    )
    return matrix


@pytest.mark.parametrize("model", [GPUCBSDF(), GPUCBSDF(window=3, censored=0.0, bound=0.5)])
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_it_is_the_published_algorithm_to_the_letter(model: GPUCBSDF, loss: float) -> None:
    # Teacher-forced: each move is compared with that of the transcription from the same history.
    model = model.model_copy(update={"kernel": KERNEL, "mean": MEAN})
    road = Channel(noise=0.1, transit=EXPONENTIAL, loss=loss)
    trace = play(model, STILL, Rules(rounds=60), feedback=road)
    window = 6 if model.window is None else model.window
    constant = MEAN if model.censored is None else model.censored
    plays, replies = trace.points[:, 0], trace.replies
    latencies = np.where(
        replies["fate"] == "answered", replies["arrived_at"] - replies["asked_at"], np.inf
    )[np.argsort(replies["round"])]
    values = replies["value"][np.argsort(replies["round"])]
    decided = 0
    for t in range(2, 61):
        past, rounds = plays[: t - 1], np.arange(1, t)
        # y_s if d_s <= min(m, t - s), and otherwise the constant.
        arrived = latencies[: t - 1] <= np.minimum(window, t - rounds)
        censored = np.where(arrived, values[: t - 1], constant)
        # The variance knows of all plays.
        inverse = np.linalg.inv(kernel(past, past) + NOISE * np.eye(t - 1))
        cross = kernel(GRID, past)
        mean = MEAN + cross @ inverse @ (censored - MEAN)
        std = np.sqrt(VARIANCE - np.einsum("ij,jk,ik->i", cross, inverse, cross))
        doubt = sum(np.interp(point, GRID, std) for point in past[-window:])
        width = sqrt(0.8 * log(4 * t)) + model.bound * doubt
        assert trace.rounds["note_width"][t - 1] == pytest.approx(width, abs=1e-6)
        bounds = mean + width * std
        mine = np.abs(GRID - plays[t - 1]).argmin()
        assert bounds[mine] >= bounds.max() - 1e-7
        if (bounds >= bounds.max() - 1e-5).sum() == 1:
            assert GRID[bounds.argmax()] == pytest.approx(plays[t - 1])
            decided += 1
    assert decided > 45


# Late, lost, unexpected.


def started(model: GPUCBSDF, latency: float) -> UCBAgent:
    briefing = Briefing(Box(0.0, 1.0), SourceTerms(std=0.1, latency=latency), rounds=50)
    agent = model.model_copy(update={"kernel": KERNEL, "mean": 0.0}).start(
        briefing, np.random.default_rng(3)
    )
    assert isinstance(agent, UCBAgent)
    return agent


def test_the_window_is_twice_the_expected_latency_unless_given() -> None:
    briefing = Briefing(Box(0.0, 1.0), SourceTerms(latency=3.2), period=2.0)
    assert GPUCBSDF().choose_window(briefing) == 4
    assert GPUCBSDF(window=9).choose_window(briefing) == 9
    assert GPUCBSDF().choose_window(Briefing(Box(0.0, 1.0))) == 0


def test_an_infinite_latency_is_refused_with_the_remedy() -> None:
    heavy = Channel(transit={"kind": "pareto", "minimum": 1.0, "shape": 0.9})
    with pytest.raises(PluginError, match="say for how many rounds to wait"):
        play(GPUCBSDF(kernel=KERNEL, mean=MEAN), STILL, Rules(rounds=3), feedback=heavy)


@pytest.mark.parametrize(("arrived", "counts"), [(4.0, True), (6.0, False)])
def test_what_arrives_within_the_window_counts_and_later_not(arrived: float, counts: bool) -> None:
    agent = started(GPUCBSDF(window=3), 1.0)
    first = agent.ask(1.0).point
    assert first is not None
    for t in range(2, int(arrived)):
        agent.ask(float(t))
    query = Query(1, "reward", first[None], 1.0)
    agent.tell(query.answer([3.0], stds=0.1, measured_at=1.0, arrived_at=arrived))
    belief = agent.belief(first[None], arrived)
    assert belief is not None
    assert (belief.mean[0] > 2.0) == counts


def test_what_is_lost_is_waited_for_no_longer_than_the_window() -> None:
    model = GPUCBSDF(kernel=KERNEL, mean=MEAN, window=4)
    trace = play(model, STILL, Rules(rounds=40), feedback=Channel(noise=0.1, loss=0.999))
    assert trace.rounds["note_unheard"].tolist() == [0.0, 1.0, 2.0, 3.0] + [4.0] * 36


def test_a_late_answer_is_not_taken_for_that_of_a_later_play_at_the_same_point() -> None:
    def believed(latency: float) -> float:
        # Two candidates, so that it must play the same ones again and again.
        model = GPUCBSDF(window=2, acquisition=Acquisition(grid=2))
        agent = started(model, 1.0)
        points = [agent.ask(float(t)).point for t in range(1, 9)]
        (point, *_) = points
        assert point is not None
        query = Query(1, "reward", point[None], 8.0 - latency)
        agent.tell(query.answer([3.0], stds=0.1, measured_at=1.0, arrived_at=8.0))
        belief = agent.belief(point[None], 8.0)
        assert belief is not None
        return float(belief.mean[0])

    assert believed(7.0) == 0.0
    assert believed(2.0) > 0.0


def test_while_nothing_is_heard_it_looks_elsewhere_and_gp_ucb_does_not() -> None:
    def next_plays(model: GPOptimizer) -> list[float]:
        briefing = Briefing(Box(0.0, 1.0), SourceTerms(std=0.1, latency=5.0))
        agent = model.start(briefing, np.random.default_rng(3))
        agent.tell(Query(1, "reward", np.array([[0.5]]), 1.0).answer([2.0], stds=0.1))
        agent.tell(Query(2, "reward", np.array([[0.6]]), 2.0).answer([1.5], stds=0.1))
        points = [agent.ask(float(t)).point for t in range(3, 9)]
        return [float(point[0]) for point in points if point is not None]

    assert len(set(next_plays(GPUCB(kernel=KERNEL, mean=0.0, width=0.5)))) == 1
    assert len(set(next_plays(GPUCBSDF(kernel=KERNEL, mean=0.0, width=0.5)))) == 6


def test_watching_its_beliefs_does_not_change_its_moves() -> None:
    watched, unwatched = (started(GPUCBSDF(), 2.0) for _ in range(2))
    pending: list[Query] = []
    for t in range(1, 40):
        moves = []
        for agent in (watched, unwatched):
            for query in pending[-3:-2]:
                value = float(np.sin(9 * query.points[0, 0]))
                agent.tell(query.answer([value], stds=0.1, arrived_at=float(t)))
            moves.append(agent.ask(float(t)))
        watched.belief(np.array([[0.5]]), float(t))
        point = moves[0].point
        assert point is not None
        assert_array_equal(point, moves[1].point)
        assert moves[0].notes == moves[1].notes
        pending.append(Query(t, "reward", point[None], float(t)))


def test_an_answer_off_the_grid_or_of_someone_else_is_taken_in() -> None:
    agent = started(GPUCBSDF(), 1.0)
    for t in range(1, 6):
        agent.tell(Query(t, "expert", np.array([[0.1234567]]), float(t)).answer([3.0], stds=0.01))
        agent.tell(Query(t, "reward", np.array([[0.9]]), float(t)).answer([0.0], stds=0.01))
        point = agent.ask(float(t + 1)).point
    assert point is not None
    assert abs(point[0] - 0.12) < 0.15


def test_it_plays_in_four_dimensions() -> None:
    briefing = Briefing(Box(np.zeros(4), np.ones(4)), SourceTerms(std=0.1, latency=1.0), rounds=20)
    agent = GPUCBSDF(kernel=SquaredExponential(), mean=0.0).start(
        briefing, np.random.default_rng(3)
    )
    for t in range(1, 21):
        point = agent.ask(float(t)).point
        assert point is not None
        briefing.domain.check(point[None])
        if t % 2:
            agent.tell(Query(t, "reward", point[None], float(t)).answer([point.sum()], stds=0.1))


@pytest.mark.slow
def test_where_there_is_much_to_search_it_beats_gp_ucb_that_waits_for_nothing() -> None:
    # In one dimension, where the top is soon found, it does not.
    world = Switching(dimensions=2, dwell=1e6)
    road = Channel(noise=0.1, transit=5.0)
    gains = []
    for replication in range(10):
        naive, patient = (
            average_regret(
                play(model, world, Rules(rounds=120), feedback=road, replication=replication)
            )[-1]
            for model in (GPUCB(kernel=KERNEL, mean=0.8), GPUCBSDF(kernel=KERNEL, mean=0.8))
        )
        gains.append(naive - patient)
    assert np.mean(gains) > 2 * np.std(gains, ddof=1) / sqrt(len(gains))
