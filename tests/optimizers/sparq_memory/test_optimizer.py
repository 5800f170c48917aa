from __future__ import annotations

import asyncio
import warnings
from functools import cache, partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparq_environments.function import from_function
from sparq_experts.biased import Biased
from sparq_sim import (
    Box,
    Briefing,
    Channel,
    Environment,
    Estimate,
    Expert,
    Query,
    Rules,
    World,
    play_live,
)
from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Sites
from sparq_sim.errors import PluginError
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.shared.prior import PriorWarning
from sparq_sim.optimizers.shared.ucb import UCBAgent
from sparq_sim.optimizers.sparq_memory import SparQMemory
from sparq_sim.optimizers.sparq_memory.memory import DriftMemory, ExpertWarning
from sparq_sim.plugin.briefing import SourceTerms
from sparq_sim.simulation.measures import average_regret, regret, spent, tally
from sparq_sim.simulation.trace import first_difference
from sparq_sim.testing import Teller, WaitlessLoop, check_optimizer
from tests.optimizers.sparq_memory.plays import (
    ALONE,
    CHANGING,
    FIELDS,
    HONEST,
    LINE,
    MODEL,
    STILL,
    Experts,
    asked,
    hill,
    played,
    teller,
)

LIAR: Experts = {
    "liar": (Teller(), Channel(noise={"kind": "gaussian", "std": 0.8, "claimed": 0.05}))
}
ASTRAY: Experts = {"astray": (Biased(bias=1.0), Channel(noise=0.05))}


# As any optimizer.


def test_it_obeys_the_laws_of_optimizers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        check_optimizer(SparQMemory(**{**FIELDS, "acquisition": {"grid": 9}}), rounds=8)


def test_the_same_seed_gives_the_same_play_and_another_one_another() -> None:
    digests = [played(rounds=20, seed=seed).digest() for seed in (3, 3, 4)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("waits", [False, True])
def test_both_clocks_give_one_trace(waits: bool) -> None:
    model = SparQMemory(**FIELDS, waits=waits)
    experts = teller(transit=0.25)
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        live = runner.run(
            play_live(model, CHANGING, Rules(rounds=20), experts=experts, feedback=HONEST)
        )
    assert first_difference(played(model, rounds=20, experts=experts), live) is None


def drifting(points: Points, time: float) -> Values:
    return hill(points, time, top=0.5 + 0.3 * float(np.sin(0.1 * time)))


def drifting_twice_as_slowly(points: Points, time: float) -> Values:
    return drifting(points, time / 2)


def test_time_is_counted_in_rounds() -> None:
    one = played(world=from_function(drifting, LINE), rounds=30, experts=teller(transit=1.5))
    other = played(
        world=from_function(drifting_twice_as_slowly, LINE),
        rounds=30,
        experts=teller(transit=3.0),
        period=2.0,
    )
    assert_array_equal(one.points, other.points)
    assert_array_equal(asked(one), asked(other))


def test_an_expert_that_there_is_not_cannot_be_asked() -> None:
    with pytest.raises(PluginError, match="no expert of this play is called 'exprt'"):
        played(SparQMemory(**FIELDS, experts=("exprt",)))


# Asking pays.


@cache
def regret_of(model: SparQMemory, kind: str, seed: int) -> float:
    """Return the average regret of 80 rounds in a world that changes."""
    experts: dict[str, Experts] = {
        "nobody": {},
        "honest": teller(),
        "late": teller(transit=2.5),
        "silent": teller(loss=1.0),
        "beacon": {"beacon": (Beacon(), HONEST)},
        "liar": LIAR,
        "astray": ASTRAY,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExpertWarning)
        trace = played(model, rounds=80, experts=experts[kind], seed=seed)
    return float(average_regret(trace)[-1])


def compare(kind: str, *, model: SparQMemory = MODEL, count: int = 6) -> float:
    """Return by how much regret is higher than where nobody is asked, in paired plays."""
    return float(
        np.mean(
            [
                regret_of(model, kind, seed) - regret_of(ALONE, "nobody", seed)
                for seed in range(count)
            ]
        )
    )


class Beacon(Expert):
    """Sends readings of three points in each round, which nobody asked for."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.rewards(query.points, world.clock.now))

    async def broadcast(self, world: World) -> None:
        while True:
            query = world.open(np.array([[0.1], [0.5], [0.9]]))
            world.send(query, Estimate(world.rewards(query.points, world.clock.now)))
            await world.clock.sleep(1.0)


@pytest.mark.parametrize("kind", ["honest", "late"])
def test_answers_lower_regret_also_where_they_are_late(kind: str) -> None:
    # Regret is about 0.2 where nobody is asked.
    assert compare(kind) < -0.05


def test_readings_that_nobody_asked_for_lower_regret() -> None:
    assert compare("beacon", model=ALONE) < -0.03


@pytest.mark.parametrize("kind", ["liar", "astray", "silent"])
def test_bad_experts_do_little_harm(kind: str) -> None:
    # The reward has a std of 1. Over 16 plays, 0.02 to 0.04 were measured.
    assert compare(kind) < 0.1


@pytest.mark.parametrize("experts", [LIAR, ASTRAY], ids=["liar", "astray"])
@pytest.mark.parametrize("seed", range(3))
def test_an_expert_that_misleads_is_named_within_50_rounds(experts: Experts, seed: int) -> None:
    (name,) = experts
    with pytest.warns(ExpertWarning, match=f"the answers of expert '{name}' are less exact"):
        trace = played(rounds=50, experts=experts, seed=seed)
    assert trace.rounds["note_doubted"][0] == 0
    assert trace.rounds["note_doubted"][-1] == 1


@pytest.mark.parametrize("seed", range(3))
def test_an_honest_expert_is_not_doubted(seed: int) -> None:
    trace = played(rounds=100, seed=seed)
    assert not trace.rounds["note_doubted"].any()
    assert not trace.rounds["note_restarts"].any()


# How much it asks.


@pytest.mark.parametrize("queries", [1, 2, 5])
def test_no_round_asks_more_than_it_may(queries: int) -> None:
    trace = played(SparQMemory(**FIELDS, queries=queries), rounds=40)
    assert asked(trace).max() == queries
    assert_array_equal(asked(trace), trace.rounds["note_queries"])


def test_at_a_high_price_nothing_is_asked() -> None:
    assert tally(played(SparQMemory(**FIELDS, price=50.0))).asked == 0
    assert tally(played(experts=teller(cost_per_point=50.0))).asked == 0


def test_the_higher_the_price_the_less_is_asked() -> None:
    counts = [
        tally(played(SparQMemory(**FIELDS, price=price))).asked for price in (0.0, 0.3, 1.0, 3.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 2 * counts[2]


@pytest.mark.parametrize("budget", [60.0, 90.0])
def test_a_budget_lasts_and_is_not_exceeded(budget: float) -> None:
    trace = played(
        SparQMemory(**FIELDS, price=0.0),
        rounds=60,
        experts=teller(cost_per_point=1.0),
        budget=budget,
    )
    assert 0.9 * budget <= spent(trace)[-1] <= budget
    assert tally(trace).failed == 0
    thirds = asked(trace).reshape(3, 20).sum(axis=1)
    assert thirds.min() > 0.2 * budget


def test_where_the_reward_stands_still_hardly_anything_is_asked_in_the_end() -> None:
    for seed in range(2):
        trace = played(world=STILL, rounds=300, seed=seed)
        assert asked(trace)[:100].sum() > 0
        assert asked(trace)[-100:].mean() <= 0.1
        assert regret(trace)[-100:].mean() < 0.01


def test_where_it_changes_it_goes_on_asking() -> None:
    assert asked(played(rounds=100))[-50:].mean() > 1.0


def test_who_never_answers_is_asked_less_and_less() -> None:
    trace = played(rounds=250, experts=teller(loss=1.0))
    by_time = asked(trace).reshape(5, 50).mean(axis=1)
    assert by_time[0] > 0.5
    assert by_time[-1] < 0.25
    assert tally(trace).lost == tally(trace).asked


# Whom and where it asks.


@pytest.mark.parametrize(
    "worse",
    [{"noise": 0.6}, {"cost_per_point": 0.1}, {"transit": 8.0, "noise": 0.6}],
    ids=["noisier", "dearer", "later and noisier"],
)
def test_of_two_experts_the_better_is_asked_more(worse: dict[str, float]) -> None:
    experts = {
        "worse": (Teller(), Channel(**{"noise": 0.1, **worse})),
        "better": (Teller(), HONEST),
    }
    trace = played(rounds=40, experts=experts)
    assert asked(trace, "better").sum() > 40
    assert asked(trace, "worse").sum() < 0.1 * asked(trace, "better").sum()


def test_only_points_already_played_are_asked_about_in_the_past() -> None:
    trace = played(rounds=40, access="past")
    rows = trace.replies["source"] == "expert"
    assert rows.sum() > 20
    for t, x in zip(trace.replies["round"][rows], trace.replies["x0"][rows], strict=True):
        assert x in trace.points[:t, 0]


def test_where_it_may_points_never_played_are_asked_about() -> None:
    trace = played(rounds=40, access="domain")
    rows = trace.replies["source"] == "expert"
    assert set(trace.replies["x0"][rows]) - set(trace.points[:, 0])
    assert tally(trace).failed == 0


# Worlds of other kinds.


def test_in_pure_noise_it_plays_on() -> None:
    def nothing(points: Points, time: float) -> Values:
        return np.zeros(len(points))

    world = from_function(nothing, LINE, best=lambda time: ([0.0], 0.0))
    noisy = Channel(noise=1.0)
    trace = played(world=world, rounds=100, experts={"expert": (Teller(), noisy)})
    assert trace.rounds["moved"].all()
    assert not trace.rounds["note_doubted"].any()


def test_waiting_it_plays_on_answers_about_today() -> None:
    model = SparQMemory(**FIELDS, waits=True)
    trace = played(model, rounds=60, experts=teller(transit=0.25))
    assert trace.rounds["moved"].all()
    waited = trace.rounds["played_at"] % 1
    assert set(waited) <= {0.0, 0.25}
    assert (waited == 0.25).mean() > 0.8
    assert average_regret(trace)[-1] < average_regret(played(ALONE, rounds=60))[-1]


def test_waiting_for_what_is_lost_ends_with_the_round() -> None:
    model = SparQMemory(**FIELDS, waits=True)
    trace = played(model, rounds=40, experts=teller(loss=0.5, transit=0.25))
    assert 0.3 < trace.rounds["moved"].mean() < 1


CUBE = Box([0.0] * 3, [1.0] * 3)
SQUARE = Box([0.0] * 2, [1.0] * 2)
WIDE = SquaredExponential(variance=1.0, length_scale=0.3)


def wide_hill(points: Points, time: float) -> Values:
    heights: Values = np.exp(-0.5 * ((points - 0.6) ** 2).sum(axis=1) / 0.3**2)
    return heights


@pytest.mark.parametrize(
    ("domain", "acquisition", "highest"),
    [
        (SQUARE, {"grid": 11}, 1.0),
        (SQUARE, {"grid": 11, "refine": True}, 1.0),
        (CUBE, {"candidates": 128, "starts": 1}, 1.0),
        (Sites(SQUARE.grid(5)), {}, None),
    ],
    ids=["square", "refined", "cube", "sites"],
)
def test_it_finds_the_top_of_a_hill(
    domain: Box | Sites, acquisition: dict[str, object], highest: float | None
) -> None:
    best = None if highest is None else lambda time: ([0.6] * domain.dimensions, highest)
    world: Environment = from_function(wide_hill, domain, best=best)
    model = SparQMemory(kernel=WIDE, mean=0.0, acquisition=acquisition)
    trace = played(model, world, rounds=40)
    # Now and then it looks elsewhere.
    assert np.median(regret(trace)[-10:]) < 0.06
    assert tally(trace).asked > 5
    assert tally(trace).failed == 0


def test_without_a_kernel_it_plays_at_random_until_it_can_fit_one() -> None:
    model = SparQMemory(acquisition={"grid": 51}, fitting={"plays": 12, "starts": 2})
    trace = played(model, from_function(drifting, LINE, best=top_of_drifting), rounds=50)
    assert_array_equal(asked(trace)[:12], 0)
    assert asked(trace)[12:].sum() > 5
    assert regret(trace)[-20:].mean() < 0.5 * regret(trace)[:12].mean()


def top_of_drifting(time: float) -> tuple[list[float], float]:
    return [0.5 + 0.3 * float(np.sin(0.1 * time))], 1.0


def test_fitted_again_it_has_learnt_all_that_it_was_told_before() -> None:
    model = SparQMemory(acquisition={"grid": 51}, fitting={"plays": 10, "every": 15, "starts": 1})
    trace = played(model, STILL, rounds=40)
    assert regret(trace)[-10:].mean() < 0.05


def test_fitted_again_it_still_expects_the_answers_to_earlier_queries() -> None:
    model = SparQMemory(acquisition={"grid": 51}, fitting={"plays": 5, "every": 10, "starts": 1})
    briefing = Briefing(LINE, experts={"expert": SourceTerms(std=0.1, latency=30.0)})
    agent = model.start(briefing, np.random.default_rng(0))
    open_queries: list[int] = []
    for t in range(1, 21):
        move = agent.ask(float(t))
        assert move.point is not None
        value = hill(move.point[None], float(t))
        agent.tell(Query(-t, "reward", move.point[None], float(t)).answer(value, stds=0.01))
        open_queries += [query.id for query in move.queries]
    assert isinstance(agent, UCBAgent)
    assert isinstance(agent._memory, DriftMemory)
    awaiting = agent._memory._asking.awaiting
    assert open_queries
    assert [query.id for query in awaiting.queries()] == open_queries


@pytest.mark.parametrize("top", [0.1, 0.9])
def test_what_the_design_tells_is_known_in_the_first_round(top: float) -> None:
    world = from_function(partial(hill, top=top), LINE, best=lambda time: ([top], 1.0))
    for seed in range(5):
        assert regret(played(world=world, rounds=1, seed=seed, design=25))[0] < 0.2


# What it notes.


def test_noted_shares_sum_to_1_in_every_round() -> None:
    rounds = played(rounds=60).rounds
    for group in ("time_scale", "drift"):
        parts = [rounds[name] for name in rounds if name.startswith(f"note_{group}/")]
        assert len(parts) > 2
        assert_allclose(np.sum(parts, axis=0), 1.0)


def test_how_the_reward_changes_is_noted() -> None:
    still, moving = (played(world=world, rounds=150).rounds for world in (STILL, CHANGING))
    assert still["note_time_scale/1000"][-50:].mean() > 0.7
    assert moving["note_time_scale/1000"][-50:].mean() < 0.1
