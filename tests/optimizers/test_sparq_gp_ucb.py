from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from sparq_environments.synthetic import Synthetic
from sparq_sim import (
    Answer,
    Box,
    Briefing,
    Channel,
    Estimate,
    Expert,
    Failure,
    Query,
    Rules,
    Trace,
    World,
    play,
)
from sparq_sim.errors import PluginError
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.shared.prior import Fitting, PriorWarning
from sparq_sim.optimizers.shared.schedules import ConstantSchedule
from sparq_sim.optimizers.shared.ucb import UCBAgent
from sparq_sim.optimizers.sparq_gp_ucb import Discard, SparQGPUCB
from sparq_sim.plugin.contract import Access, SourceTerms
from sparq_sim.simulation.measures import average_regret, regret, tally
from sparq_sim.testing import Slope, Teller

VARIANCE, SCALE, MEAN, NOISE = 0.25, 4.0, 1.5, 0.01
KERNEL = SquaredExponential(variance=VARIANCE, length_scale=SCALE)
FEEDBACK = Channel(noise=0.1)
GRID = np.linspace(-50.0, 50.0, 501)


def played(model: SparQGPUCB, rounds: int, *, channel: Channel = FEEDBACK, seed: int = 0) -> Trace:
    return play(
        model,
        Synthetic(),
        Rules(rounds=rounds),
        experts={"expert": (Teller(), channel)},
        feedback=FEEDBACK,
        seed=seed,
    )


# Algorithm 1, transcribed with nothing but numpy.


def kernel(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    matrix: NDArray[np.float64] = VARIANCE * np.exp(
        -((a[:, None] - b[None, :]) ** 2) / (2 * SCALE**2)
    )
    return matrix


def upper_bounds(
    points: NDArray[np.float64], values: NDArray[np.float64], noise: NDArray[np.float64], t: int
) -> NDArray[np.float64]:
    """mu_t + beta_{t+1} sigma_t on the grid, from (K + Sigma)^-1 as it stands in the paper."""
    inverse = np.linalg.inv(kernel(points, points) + np.diag(noise))
    cross = kernel(GRID, points)
    mean = MEAN + cross @ inverse @ (values - MEAN)
    variance = VARIANCE - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    bounds: NDArray[np.float64] = mean + sqrt(0.8 * log(4 * (t + 1))) * np.sqrt(variance)
    return bounds


def check_greedy(past: NDArray[np.float64], chosen: NDArray[np.float64]) -> None:
    """Each chosen point has the largest Schur complement given those before it, or one as large."""
    for m in range(len(chosen)):
        before = chosen[:m]
        cross = kernel(past, before)
        block = np.linalg.inv(kernel(before, before)) if m else np.zeros((0, 0))
        schur = VARIANCE - np.einsum("ij,jk,ik->i", cross, block, cross)
        assert schur[past == chosen[m]][0] >= schur.max() - 1e-6 * VARIANCE
    assert len(np.unique(chosen)) == len(chosen)


def replies_of(trace: Trace, source: str, t: int) -> Mapping[str, NDArray[np.float64]]:
    rows = (trace.replies["source"] == source) & (trace.replies["round"] == t)
    return {name: trace.replies[name][rows] for name in ("x", "value", "row")}


@pytest.mark.parametrize("seed", range(5))
def test_with_instant_answers_it_is_algorithm_1_to_the_letter(seed: int) -> None:
    # Teacher-forced: each move is compared with the one that the transcription makes from the
    # same history, because rounding at 1e-12 decides where two bounds are equal to that.
    trace = played(SparQGPUCB(kernel=KERNEL, mean=MEAN), 200, seed=seed)
    plays = trace.points[:, 0]
    observed = np.array([replies_of(trace, "reward", t)["value"][0] for t in range(1, 201)])
    decided = 0
    for t in range(1, 200):
        # Observe y_t; discard what has a variance above sigma^2 log t, but for the newest.
        ages = np.arange(t - 1, -1, -1.0)
        noise = NOISE * (ages**2 + 1)
        kept = noise <= NOISE * log(t)
        kept[-1] = True
        # Sparse inference on X_t, and the expert's answers about f_t.
        expert = replies_of(trace, "expert", t)
        order = np.argsort(expert["row"])
        past = np.unique(plays[:t])
        wanted = min(ceil(6 * log(t)), len(past))
        assert len(order) <= wanted
        if len(order) < wanted:  # The numerical rank was reached: all else is known, to 1e-8.
            block = kernel(expert["x"], expert["x"])
            cross = kernel(past, expert["x"])
            left = VARIANCE - np.einsum("ij,ij->i", cross, np.linalg.solve(block, cross.T).T)
            assert left.max() < 1e-6
        check_greedy(past, expert["x"][order])
        # Update, and choose x_{t+1}.
        bounds = upper_bounds(
            np.concatenate([plays[:t][kept], expert["x"]]),
            np.concatenate([observed[:t][kept], expert["value"]]),
            np.concatenate([noise[kept], np.full(len(order), NOISE)]),
            t,
        )
        mine = np.abs(GRID - plays[t]).argmin()
        assert bounds[mine] >= bounds.max() - 1e-9
        ties = (bounds >= bounds.max() - 1e-7).sum()
        if ties == 1:
            assert GRID[bounds.argmax()] == plays[t]
            decided += 1
    # Where the bounds are equal the agent's own stream decides; that is rare.
    assert decided > 150


# Ways to choose.


@pytest.mark.parametrize("selection", ["greedy", "chain", "exact"])
def test_all_ways_to_choose_ask_about_distinct_past_points(selection: str) -> None:
    model = SparQGPUCB(kernel=KERNEL, mean=MEAN, selection=selection, steps=100)
    trace = played(model, 60)
    asked = trace.replies["source"] == "expert"
    assert set(trace.replies["fate"][asked]) == {"answered"}
    for t in range(2, 61):
        of_round = trace.replies["x"][asked & (trace.replies["round"] == t)]
        assert len(np.unique(of_round)) == len(of_round) <= ceil(6 * log(t))


@pytest.mark.parametrize("selection", ["greedy", "chain", "exact"])
def test_all_ways_to_choose_track_the_optimum(selection: str) -> None:
    long = SquaredExponential(variance=0.23, length_scale=5.7)
    model = SparQGPUCB(kernel=long, mean=MEAN, selection=selection, steps=200)
    assert average_regret(played(model, 300))[-1] < 0.12


def test_the_chain_stops_where_it_is_near_enough() -> None:
    steps = SparQGPUCB(kernel=KERNEL, mean=MEAN, selection="chain", steps=10**6, epsilon=0.5)
    assert tally(played(steps, 12)).asked > 0


def test_the_growth_of_queries_follows_the_schedule() -> None:
    schedule = {"kind": "every", "rounds": 5, "schedule": {"kind": "constant", "count": 3}}
    trace = played(SparQGPUCB(kernel=KERNEL, mean=MEAN, schedule=schedule), 40)
    rounds = trace.replies["round"][trace.replies["source"] == "expert"]
    assert_array_equal(np.unique(rounds), [5, 10, 15, 20, 25, 30, 35, 40])
    assert tally(trace).asked == 8 * 3


# What is kept.


def test_the_newest_observation_is_always_kept_and_the_window_grows_as_published() -> None:
    kept = played(SparQGPUCB(kernel=KERNEL, mean=MEAN), 160).rounds["note_kept"]
    # Ages a with a^2 + 1 <= log t: 0 up to t = 7, 1 from 8, 2 from 149 on; the floor before 3.
    assert kept[0] == 0
    assert_array_equal(kept[1:8], 1)
    assert_array_equal(kept[8:149], 2)
    assert_array_equal(kept[149:], 3)


@pytest.mark.parametrize(
    ("discard", "kept"),
    [(Discard(kind="never"), 49), (Discard(factor=100.0), 20), (Discard(kind="power"), 2)],
)
def test_other_rules_of_discarding_keep_more_or_less(discard: Discard, kept: int) -> None:
    trace = played(SparQGPUCB(kernel=KERNEL, mean=MEAN, discard=discard), 50)
    assert trace.rounds["note_kept"][-1] == kept


# Late, lost, waiting.


def test_late_answers_have_aged_by_when_they_come() -> None:
    long = SquaredExponential(variance=0.23, length_scale=5.7)
    regrets = [
        average_regret(
            played(
                SparQGPUCB(kernel=long, mean=MEAN),
                250,
                channel=Channel(noise=0.1, transit=1.0 + late),
            )
        )[-1]
        for late in (0.0, 2.0, 10.0)
    ]
    assert regrets[0] < regrets[1] < regrets[2]


def test_without_an_expert_or_with_one_who_is_silent_it_goes_on() -> None:
    model = SparQGPUCB(kernel=KERNEL, mean=MEAN)
    alone = play(model, Synthetic(), Rules(rounds=40), feedback=FEEDBACK)
    silent = played(model, 40, channel=Channel(loss=1.0))
    assert_array_equal(alone.points[:2], silent.points[:2])
    assert tally(silent).lost == tally(silent).asked > 0


def test_waiting_it_plays_on_answers_about_today() -> None:
    long = SquaredExponential(variance=0.23, length_scale=5.7)
    road = Channel(noise=0.1, transit=0.25)
    late = {}
    for waits in (False, True):
        model = SparQGPUCB(kernel=long, mean=MEAN, waits=waits)
        traces = [played(model, 300, channel=road, seed=seed) for seed in range(6)]
        # Once the hill is found: before that, both search alike.
        late[waits] = np.mean([regret(trace)[150:].mean() for trace in traces])
    assert set(traces[-1].rounds["played_at"][5:] % 1) == {0.25}
    assert traces[-1].rounds["moved"].all()
    assert late[True] < late[False]


def test_waiting_for_what_is_lost_ends_with_the_round() -> None:
    model = SparQGPUCB(kernel=KERNEL, mean=MEAN, waits=True)
    trace = played(model, 30, channel=Channel(loss=0.5, transit=0.25))
    assert 0.2 < trace.rounds["moved"].mean() < 1


@pytest.mark.parametrize("transit", [1.0, 1.5])
def test_waiting_for_what_takes_longer_than_a_round_it_plays_every_other_round(
    transit: float,
) -> None:
    model = SparQGPUCB(kernel=KERNEL, mean=MEAN, waits=True)
    trace = played(model, 40, channel=Channel(transit=transit, noise=0.1))
    assert trace.rounds["moved"].mean() >= 0.45


def test_waiting_while_it_thinks_for_longer_than_a_round_it_still_plays() -> None:
    trace = play(
        SparQGPUCB(kernel=KERNEL, mean=MEAN, waits=True),
        Synthetic(),
        Rules(rounds=40, thinking=1.5),
        experts={"expert": Teller()},
        feedback=FEEDBACK,
    )
    assert trace.rounds["moved"].sum() >= 8


class Beacon(Expert):
    """Sends readings of one far point, which nobody asked for."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.rewards(query.points, world.clock.now))

    async def broadcast(self, world: World) -> None:
        while True:
            await world.clock.sleep(1.0)
            query = world.open(np.array([[40.0]]))
            world.send(query, Estimate(world.rewards(query.points, world.clock.now)))


def test_readings_of_others_do_not_displace_the_answers_of_the_expert() -> None:
    long = SquaredExponential(variance=0.23, length_scale=5.7)
    model = SparQGPUCB(kernel=long, mean=MEAN, expert="expert")
    road = Channel(noise=0.1, transit=1.5)
    trace = play(
        model,
        Synthetic(),
        Rules(rounds=150),
        experts={"expert": (Teller(), road), "beacon": (Beacon(), Channel(noise=0.1))},
        feedback=FEEDBACK,
    )
    assert average_regret(trace)[-1] < 0.25


def test_what_was_said_before_an_outage_is_not_forgotten_by_asking_in_vain() -> None:
    long = SquaredExponential(variance=0.23, length_scale=5.7)
    agent = SparQGPUCB(kernel=long, mean=MEAN, rate=0.0).start(
        Briefing(Box(-50.0, 50.0), experts={"expert": SourceTerms()}), np.random.default_rng(0)
    )
    points = np.array([[-20.0], [0.0], [20.0]])
    asked = Query(1, "expert", points, 1.0)
    agent.tell(asked.answer([0.5, 3.0, 0.5], stds=0.01))
    agent.tell(Query(1, "reward", points[:1], 1.0).answer([0.5], stds=0.01))
    in_vain = Query(2, "expert", points, 2.0)
    agent.tell(Failure(in_vain, np.arange(3), "outage", 2.0, 2.0))
    chosen = agent.ask(3.0).point
    assert chosen is not None
    assert abs(chosen[0]) < 5.0


def believed(agent: UCBAgent, now: float) -> Mapping[float, float]:
    """What the agent believes of some points, all but certainly, by where."""
    where = np.array([[-20.0], [0.0], [20.0], [40.0]])
    agent.ask(now)
    belief = agent.belief(where, now)
    assert belief is not None
    return dict(zip(where[:, 0].tolist(), belief.mean.tolist(), strict=True))


def told_by(source: str, number: int, said: Mapping[float, float], *, asked: float) -> Answer:
    query = Query(number, source, np.array([[x] for x in said]), asked)
    return query.answer([*said.values()], stds=0.001)


def listening(**fields: float) -> UCBAgent:
    long = SquaredExponential(variance=0.23, length_scale=5.7)
    model = SparQGPUCB(kernel=long, mean=MEAN, rate=0.0, expert="one", **fields)
    briefing = Briefing(Box(-50.0, 50.0), experts={"one": SourceTerms(), "two": SourceTerms()})
    agent = model.start(briefing, np.random.default_rng(0))
    assert isinstance(agent, UCBAgent)
    return agent


def test_what_was_measured_later_stands_whichever_comes_last() -> None:
    for first, second in ((1, 2), (2, 1)):
        agent = listening()
        for number in (first, second):
            # Nobody waits for these: they are readings of a source's own accord.
            agent.tell(told_by("one", -number, {0.0: 1.0 + number, 20.0: 1.0}, asked=number))
        assert believed(agent, 3.0)[0.0] == pytest.approx(3.0, abs=0.01)


def test_a_point_told_twice_at_once_has_its_last_value_wherever_zero_is() -> None:
    agent = listening()
    query = Query(-1, "one", np.array([[-0.0], [0.0]]), 1.0)
    agent.tell(query.answer([1.0, 2.0], stds=0.001))
    assert believed(agent, 2.0)[0.0] == pytest.approx(2.0, abs=0.01)


def test_sources_do_not_displace_each_other() -> None:
    agent = listening()
    agent.tell(told_by("one", -1, {0.0: 1.0}, asked=1.0))
    agent.tell(told_by("two", -2, {0.0: 2.0}, asked=1.0))
    assert believed(agent, 2.0)[0.0] == pytest.approx(1.5, abs=0.01)


def test_rows_that_come_one_by_one_stand_until_newer_ones_come() -> None:
    long = SquaredExponential(variance=0.23, length_scale=5.7)
    road = Channel(noise=0.1, split=True, transit={"kind": "exponential", "mean": 2.0})
    trace = played(SparQGPUCB(kernel=long, mean=MEAN), 150, channel=road)
    assert average_regret(trace)[-1] < 0.25


def test_waiting_over_a_channel_that_splits_it_waits_for_every_row() -> None:
    road = Channel(split=True, service={"kind": "uniform", "high": 0.4}, noise=0.1)
    trace = played(SparQGPUCB(kernel=KERNEL, mean=MEAN, waits=True), 30, channel=road)
    for t in range(5, 31):
        asked = (trace.replies["source"] == "expert") & (trace.replies["round"] == t)
        assert trace.rounds["played_at"][t - 1] == trace.replies["arrived_at"][asked].max()


def test_points_played_before_there_was_a_prior_are_asked_about_too() -> None:
    trace = played(SparQGPUCB(schedule={"kind": "constant", "count": 50}), 14)
    asked = trace.replies["x"][trace.replies["source"] == "expert"]
    assert set(trace.points[:10, 0]) <= set(asked)


def test_a_prior_fitted_anew_forgets_no_points_and_reuses_no_ids() -> None:
    model = SparQGPUCB(fitting=Fitting(every=10))
    trace = played(model, 45)
    of_last = (trace.replies["source"] == "expert") & (trace.replies["round"] == 45)
    assert of_last.sum() > 8
    regrets = [average_regret(played(model, 45, seed=seed))[-1] for seed in range(3)]
    assert np.mean(regrets) < 1.0


def test_answers_can_be_retained_beyond_the_newest() -> None:
    few = {"kind": "constant", "count": 2}
    long = SquaredExponential(variance=0.23, length_scale=5.7)
    forgetful = SparQGPUCB(kernel=long, mean=MEAN, schedule=few)
    retentive = SparQGPUCB(kernel=long, mean=MEAN, schedule=few, retain=10)
    assert average_regret(played(retentive, 300))[-1] < average_regret(played(forgetful, 300))[-1]


# Notes and errors.


def test_divergences_are_noted_and_their_bound_holds() -> None:
    model = SparQGPUCB(kernel=KERNEL, mean=MEAN, diagnose=True)
    notes = played(model, 60).rounds
    told = notes["note_queries"] > 0
    assert told.sum() > 50
    assert (notes["note_kl"][told] <= notes["note_kl_bound"][told] + 1e-12).all()
    assert (notes["note_kl"][told] <= notes["note_kl_subset"][told] + 1e-9).all()


@pytest.mark.parametrize(
    ("expert", "message"),
    [(None, "there are several experts"), ("senser", "did you mean 'sensor'")],
)
def test_whom_to_ask_must_be_clear(expert: str | None, message: str) -> None:
    model = SparQGPUCB(kernel=KERNEL, expert=expert)
    with pytest.raises(PluginError, match=message):
        play(model, Slope(), Rules(rounds=3), experts={"sensor": Teller(), "other": Teller()})


# Access to the whole domain


@pytest.mark.parametrize(("access", "asked"), [("past", False), ("domain", True)])
def test_where_the_rules_allow_it_nodes_are_asked_that_were_never_played(
    access: Access, asked: bool
) -> None:
    trace = play(
        SparQGPUCB(
            kernel=SquaredExponential(length_scale=0.3), schedule=ConstantSchedule(count=30)
        ),
        Slope(place="sites"),
        Rules(rounds=4, access=access),
        experts={"network": Teller()},
        feedback=Channel(noise=0.1),
        seed=3,
    )
    replies = trace.replies["source"] == "network"
    sites = {tuple(row) for row in trace.points.tolist()}
    places = np.stack([trace.replies[name][replies] for name in trace.coordinates], axis=1)
    there = {tuple(row) for row in places.tolist()}
    assert (trace.replies["fate"][replies] == "answered").all()
    assert (there > sites and len(there) == 9) == asked


def test_asking_anywhere_follows_a_hill_at_once() -> None:
    def mean_regret(access: Access) -> float:
        trace = play(
            SparQGPUCB(
                kernel=SquaredExponential(length_scale=0.2), schedule=ConstantSchedule(count=8)
            ),
            Slope(),
            Rules(rounds=12, access=access),
            experts={"sage": Teller()},
            feedback=Channel(noise=0.05),
            seed=1,
        )
        return float(trace.rounds["regret"].mean())

    assert mean_regret("domain") < 0.5 * mean_regret("past")


def test_fewer_points_than_the_rank_under_a_width_from_theory_give_a_warning() -> None:
    width = {"kind": "paper", "norm": 4.0}
    kernel = SquaredExponential(variance=0.25, length_scale=2.0)
    model = SparQGPUCB(kernel=kernel, mean=1.5, width=width)
    with pytest.warns(PriorWarning, match="points asked a round do not reach the"):
        play(model, Synthetic(), Rules(rounds=3), experts={"expert": Teller()}, feedback=FEEDBACK)
