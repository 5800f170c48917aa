"""SparQ-GP-UCB that asks its expert now and then only, and holds the answers until then."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from sparq_environments.synthetic import Synthetic
from sparq_sim import Box, Briefing, Channel, Rules, Trace, play
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.messages import Query
from sparq_sim.optimizers.shared.schedules import (
    EverySchedule,
    LogarithmicSchedule,
    Schedule,
    WindowedSchedule,
)
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.plugin.briefing import SourceTerms
from sparq_sim.plugin.optimizer import Believing
from sparq_sim.simulation.measures import average_regret, tally
from sparq_sim.testing import Teller

VARIANCE, SCALE, MEAN, NOISE = 0.23, 5.7, 1.5, 0.01
KERNEL = SquaredExponential(variance=VARIANCE, length_scale=SCALE)
ROAD = Channel(noise=0.1)
GRID = np.linspace(-50.0, 50.0, 501)


def played(
    schedule: Schedule,
    rounds: int = 500,
    *,
    retain: float = 0.0,
    rate: float | None = None,
    replication: int = 0,
) -> Trace:
    model = SparQGPUCB(kernel=KERNEL, mean=MEAN, schedule=schedule, retain=retain, rate=rate)
    return play(
        model,
        Synthetic(),
        Rules(rounds=rounds),
        experts={"expert": (Teller(), ROAD)},
        feedback=ROAD,
        replication=replication,
    )


# W-SparQ-GP-UCB, as far as it is known: windows that grow.


def test_in_windows_the_average_number_of_queries_falls_with_the_length_of_the_play() -> None:
    asked = [tally(played(WindowedSchedule(), rounds)).asked / rounds for rounds in (50, 200, 800)]
    assert asked == sorted(asked, reverse=True)
    assert asked[2] < 0.7 * asked[0]
    always = tally(played(LogarithmicSchedule(), 200)).asked / 200
    assert asked[1] < 0.5 * always


def test_between_windows_answers_are_held_and_age() -> None:
    schedule = WindowedSchedule(factor=4.0, power=0.5)
    begins = [t for t in range(2, 60) if schedule(t)]
    trace = played(schedule, 60)
    expert = trace.replies["source"] == "expert"
    assert_array_equal(np.unique(trace.replies["round"][expert]), begins)
    model = SparQGPUCB(kernel=KERNEL, mean=MEAN, schedule=schedule, rate=0.01)
    briefing = Briefing(Box(-50.0, 50.0), experts={"expert": SourceTerms(std=0.1)})
    agent = model.start(briefing, np.random.default_rng(0))
    assert isinstance(agent, Believing)
    stds: list[float] = []
    place = np.zeros((1, 1))
    for t in range(1, 14):  # Windows begin in 1, 5 and 14.
        move = agent.ask(float(t))
        if stds or t > 5:
            believed = agent.belief(place, float(t))
            assert believed is not None
            stds.append(float(believed.std[0]))
        for query in move.queries:
            assert t == 5
            place = query.points[:1]
            alone = Query(query.id, query.source, place, query.asked_at)
            agent.tell(alone.answer([1.5], stds=0.1))
    # Nothing else is told: the answer ages by s^2 + 0.01 a^2, a = 0 in the round after.
    noise = NOISE + 0.01 * np.arange(8.0) ** 2
    assert_allclose(stds, np.sqrt(VARIANCE * noise / (VARIANCE + noise)), rtol=1e-6)


def every(rounds: int) -> EverySchedule:
    return EverySchedule(rounds=rounds, schedule=LogarithmicSchedule())


def test_it_asks_in_full_every_third_round_and_nothing_between() -> None:
    trace, always = played(every(3), 60), played(LogarithmicSchedule(), 60)
    rounds = trace.replies["round"][trace.replies["source"] == "expert"]
    assert_array_equal(np.unique(rounds), np.arange(3, 61, 3))
    for t in (3, 6):  # As long as all that was played is asked about, both ask alike.
        assert (rounds == t).sum() == len(np.unique(trace.points[:t]))
    assert 0.25 < tally(trace).asked / tally(always).asked < 0.45


# The moves between batches, transcribed with nothing but numpy.


def kernel(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    matrix: NDArray[np.float64] = VARIANCE * np.exp(
        -((a[:, None] - b[None, :]) ** 2) / (2 * SCALE**2)
    )
    return matrix


@pytest.mark.parametrize("batches", [1, 2], ids=["held", "retained for one batch more"])
def test_answers_are_held_until_the_next_batch_and_age_meanwhile(batches: int) -> None:
    # Teacher-forced: each move is compared with that of the transcription from the same history.
    pause = 4
    trace = played(every(pause), 60, retain=pause * (batches - 1))
    replies, plays = trace.replies, trace.points[:, 0]
    own, expert = replies["source"] == "reward", replies["source"] == "expert"
    observed, decided = replies["value"][own], 0
    for t in range(pause, 60):
        ages = np.arange(t - 1, -1, -1.0)
        kept = ages**2 + 1 <= log(t)
        kept[-1] = True
        newest = t // pause * pause
        held: dict[float, tuple[float, float]] = {}
        for batch in range(newest - pause * (batches - 1), newest + 1, pause):
            rows = expert & (replies["round"] == batch)
            for x, value in zip(replies["x"][rows], replies["value"][rows], strict=True):
                held[x] = value, float(t - batch)
        told = np.array([value for value, _ in held.values()])
        staleness = np.array([age for _, age in held.values()])
        points = np.concatenate([plays[:t][kept], np.array(list(held))])
        values = np.concatenate([observed[:t][kept], told])
        noise = NOISE * (np.concatenate([ages[kept], staleness]) ** 2 + 1)
        inverse = np.linalg.inv(kernel(points, points) + np.diag(noise))
        cross = kernel(GRID, points)
        mean = MEAN + cross @ inverse @ (values - MEAN)
        std = np.sqrt(VARIANCE - np.einsum("ij,jk,ik->i", cross, inverse, cross))
        bounds = mean + sqrt(0.8 * log(4 * (t + 1))) * std
        mine = np.abs(GRID - plays[t]).argmin()
        assert bounds[mine] >= bounds.max() - 1e-9
        if (bounds >= bounds.max() - 1e-7).sum() == 1:
            assert GRID[bounds.argmax()] == plays[t]
            decided += 1
    assert decided > 45


def test_the_longer_the_pause_the_fewer_queries_and_the_more_regret() -> None:
    traces = [played(every(pause), 300) for pause in (1, 5, 20)]
    regrets = [average_regret(trace)[-1] for trace in traces]
    asked = [tally(trace).asked for trace in traces]
    assert regrets == sorted(regrets)
    assert asked == sorted(asked, reverse=True)


# Levels of findings, with their rate and the std of a play here.
LEVELS = [
    (2, 0.01, 0.042, 0.008),
    (2, 0.001, 0.044, 0.009),
    (3, 0.01, 0.057, 0.010),
    (5, 0.01, 0.092, 0.011),
    (5, 0.001, 0.081, 0.009),
    (10, 0.01, 0.139, 0.008),
    (20, 0.01, 0.223, 0.022),
]


@pytest.mark.slow
@pytest.mark.parametrize(("pause", "rate", "level", "std"), LEVELS)
def test_a_full_batch_every_k_rounds_reaches_its_known_level(
    pause: int, rate: float, level: float, std: float
) -> None:
    finals = [
        average_regret(played(every(pause), rate=rate, replication=replication))[-1]
        for replication in range(6)
    ]
    assert abs(np.mean(finals) - level) < 2 * std
