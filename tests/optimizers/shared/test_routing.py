"""Which of several experts is asked: by shares, price, speed, and information for the money."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_environments.synthetic import Synthetic
from sparq_sim import Channel, PluginError, Rules, Trace, play
from sparq_sim.analysis.summary import Spread, spread
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.posterior import CholeskyPosterior
from sparq_sim.optimizers.shared.routing import (
    AnyRouting,
    Cheapest,
    Fastest,
    Information,
    Offer,
    Shares,
    estimate_rounds_late,
)
from sparq_sim.optimizers.shared.schedules import LogarithmicSchedule
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.plugin.contract import SourceTerms
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.measures import average_regret
from sparq_sim.testing import Teller

KERNEL = SquaredExponential(variance=0.23, length_scale=5.7)
CHEAP = Offer("cheap", cost=1.0, variance=1.0, latency=6.0)
DEAR = Offer("dear", cost=3.5, variance=0.1, latency=2.0)


def asked(trace: Trace, source: str) -> list[int]:
    """Count the points asked of a source, round by round."""
    rounds = trace.replies["round"][trace.replies["source"] == source]
    return [int((rounds == number).sum()) for number in range(1, len(trace) + 1)]


def sparq(routing: AnyRouting | None = None, expert: str | None = None) -> SparQGPUCB:
    return SparQGPUCB(kernel=KERNEL, mean=1.5, routing=routing, expert=expert)


def played(
    model: SparQGPUCB,
    *,
    cheap: Channel,
    dear: Channel,
    rounds: int = 40,
) -> Trace:
    return play(
        model,
        Synthetic(),
        Rules(rounds=rounds),
        experts={"cheap": (Teller(), cheap), "dear": (Teller(), dear)},
        feedback=Channel(noise=0.1),
    )


# Shares


@given(
    shares=st.lists(st.integers(1, 20), min_size=1, max_size=3),
    points=st.integers(0, 80),
)
def test_shares_of_up_to_three_experts_are_within_a_point_whatever_the_size(
    shares: list[int], points: int
) -> None:
    names = "abc"[: len(shares)]
    routes = Shares(shares=dict(zip(names, shares, strict=True))).route([], np.eye(points))
    assert sorted(row for rows in routes.values() for row in rows) == list(range(points))
    for name, share in zip(names, shares, strict=True):
        assert abs(len(routes[name]) - points * share / sum(shares)) < 1


@given(points=st.integers(0, 80))
def test_of_two_equal_shares_each_has_every_other_point(points: int) -> None:
    routes = Shares(shares=(("a", 0.3), ("b", 0.3))).route([], np.eye(points))
    assert routes == {"a": list(range(0, points, 2)), "b": list(range(1, points, 2))}


def test_a_share_of_nothing_is_refused_and_so_are_two_shares_of_one() -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        Shares(shares=(("a", 0.0),))
    with pytest.raises(ValidationError, match="an expert has two shares: a, a"):
        Shares(shares=(("a", 1.0), ("a", 2.0)))


# One expert for all


def test_the_cheapest_is_asked_about_everything_if_its_noise_will_do() -> None:
    assert Cheapest().route([DEAR, CHEAP], np.eye(3)) == {"cheap": [0, 1, 2]}
    assert Cheapest(adequate=0.5).route([DEAR, CHEAP], np.eye(3)) == {"dear": [0, 1, 2]}


def test_the_fastest_is_asked_about_everything_if_its_noise_will_do() -> None:
    quick = Offer("quick", cost=9.0, variance=4.0, latency=0.0)
    assert Fastest().route([CHEAP, quick, DEAR], np.eye(2)) == {"quick": [0, 1]}
    assert Fastest(adequate=1.0).route([CHEAP, quick, DEAR], np.eye(2)) == {"dear": [0, 1]}


def test_where_nobody_is_adequate_the_most_exact_is_asked() -> None:
    assert Cheapest(adequate=0.01).route([CHEAP, DEAR], np.eye(1)) == {"dear": [0]}
    assert Fastest(adequate=0.01).route([CHEAP, DEAR], np.eye(1)) == {"dear": [0]}


def test_of_two_equally_cheap_the_more_exact_is_asked() -> None:
    exact = Offer("exact", cost=1.0, variance=0.5, latency=9.0)
    assert Cheapest().route([CHEAP, exact], np.eye(1)) == {"exact": [0]}


# Information


def test_a_point_goes_to_whoever_tells_most_for_the_money_given_the_answers_before_it() -> None:
    # By hand: 1/2 log 2 = 0.347 a unit of cost against 1/2 log 11 / 3.5 = 0.343: cheap. Then the
    # second point's variance is 1 - 0.5^2 / (1 + 1) = 0.875, and 1/2 log 1.875 = 0.314 falls below
    # 1/2 log 9.75 / 3.5 = 0.325: dear.
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert Information().route([CHEAP, DEAR], covariance) == {"cheap": [0], "dear": [1]}
    assert Information().route([CHEAP, DEAR], np.eye(2)) == {"cheap": [0, 1], "dear": []}
    assert covariance[1, 1] == 1.0  # as it was handed in


def test_nothing_is_asked_where_nobody_offers_the_least() -> None:
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    # The first point is worth 0.347 and the second 0.325, as above.
    assert Information(least=0.335).route([CHEAP, DEAR], covariance) == {"cheap": [0], "dear": []}
    assert Information(least=0.35).route([CHEAP, DEAR], covariance) == {"cheap": [], "dear": []}


def test_free_experts_come_first_and_of_them_the_most_exact() -> None:
    free = Offer("free", cost=0.0, variance=5.0, latency=0.0)
    better = Offer("better", cost=0.0, variance=2.0, latency=9.0)
    routes = Information(least=100.0).route([CHEAP, free, better, DEAR], np.eye(2))
    assert routes == {"cheap": [], "free": [], "better": [0, 1], "dear": []}


def test_an_exact_expert_tells_much_but_not_without_end() -> None:
    exact = Offer("exact", cost=1.0, variance=0.0, latency=0.0)
    # A claim of no noise counts as a billionth of the variance: 1/2 log(1 + 1e9) = 10.4.
    assert Information(least=10.3).route([exact], np.eye(1)) == {"exact": [0]}
    assert Information(least=10.4).route([exact], np.eye(1)) == {"exact": []}


@given(seed=st.integers(0, 2**32 - 1), price=st.floats(1.0, 20.0))
def test_what_is_reckoned_with_is_the_posterior_of_the_answers_before(
    seed: int, price: float
) -> None:
    points = np.random.default_rng(seed).uniform(-20, 20, size=(12, 1))
    offers = [
        Offer("cheap", cost=1.0, variance=0.25, latency=0.0),
        Offer("dear", cost=price, variance=0.0025, latency=0.0),
    ]
    routes = Information().route(offers, KERNEL(points, points))
    whom = {row: name for name, rows in routes.items() for row in rows}
    posterior = CholeskyPosterior(KERNEL)
    for row, point in enumerate(points):
        unknown = float(posterior.std(point[None])[0]) ** 2
        worth = {each.name: 0.5 * log(1 + unknown / each.variance) / each.cost for each in offers}
        assert worth[whom[row]] >= max(worth.values()) * (1 - 1e-6)
        variance = next(each.variance for each in offers if each.name == whom[row])
        posterior.add(point[None], [0.0], variances=[variance])


# Offers


def test_the_cost_of_a_query_is_shared_by_its_points_unless_each_travels_alone() -> None:
    terms = SourceTerms(cost=1.0, cost_per_point=0.1)
    together = Offer.of("a", terms, points=4, rate=0.0, rounds_late=0)
    assert together.cost == 0.35
    apart = SourceTerms(cost=1.0, cost_per_point=0.1, split=True)
    assert Offer.of("a", apart, points=4, rate=0.0, rounds_late=0).cost == 1.1


@pytest.mark.parametrize(
    ("latency", "waits", "late"),
    [
        *((0.0, False, 0), (2.0, False, 0), (2.1, False, 1), (12.0, False, 5)),
        *((0.0, True, 0), (2.0, True, 1)),
    ],
)
def test_an_answer_that_serves_the_next_round_is_new_unless_one_waits(
    latency: float, waits: bool, late: int
) -> None:
    assert estimate_rounds_late(SourceTerms(latency=latency), period=2.0, waits=waits) == late


def test_an_offer_has_the_variance_that_an_answer_has_when_it_can_be_used() -> None:
    offer = Offer.of("a", SourceTerms(std=0.1), points=1, rate=0.01, rounds_late=5)
    assert offer.variance == pytest.approx(0.26)


# In a play


def test_sparq_asks_both_experts_as_their_shares_say() -> None:
    shares = Shares(shares=(("cheap", 3.0), ("dear", 1.0)))
    trace = played(sparq(shares), cheap=Channel(noise=0.3), dear=Channel(noise=0.1))
    both = np.array([asked(trace, "cheap"), asked(trace, "dear")])
    assert both.sum(axis=0).max() > 8
    assert np.abs(both[1] - both.sum(axis=0) / 4).max() < 1


def test_sparq_asks_only_the_cheapest_or_the_fastest_when_told_so() -> None:
    slow, prompt = Channel(transit=3.0, cost_per_point=1.0), Channel(cost_per_point=2.0)
    cheapest = played(sparq(Cheapest()), cheap=slow, dear=prompt)
    fastest = played(sparq(Fastest()), cheap=slow, dear=prompt)
    assert sum(asked(cheapest, "cheap")) > 0 == sum(asked(cheapest, "dear"))
    assert sum(asked(fastest, "dear")) > 0 == sum(asked(fastest, "cheap"))


def test_sparq_asks_both_where_each_is_the_better_buy_somewhere() -> None:
    cheap = Channel(noise=0.5, cost_per_point=0.001)
    dear = Channel(noise=0.05, cost_per_point=0.01)
    trace = played(sparq(Information()), cheap=cheap, dear=dear)
    assert min(sum(asked(trace, "cheap")), sum(asked(trace, "dear"))) > 20


def test_of_two_alike_sparq_asks_the_cheaper_and_plays_as_if_alone_with_it() -> None:
    cheap = Channel(noise=0.1, cost_per_point=0.001)
    dear = Channel(noise=0.1, cost_per_point=0.01)
    routed = played(sparq(Information()), cheap=cheap, dear=dear)
    alone = played(sparq(expert="cheap"), cheap=cheap, dear=dear)
    assert routed.points.tolist() == alone.points.tolist()
    assert routed.spent == alone.spent > 0


def test_sparq_asks_nobody_where_all_are_too_dear() -> None:
    road = Channel(noise=0.1, cost_per_point=1.0)
    trace = played(sparq(Information(least=100.0)), cheap=road, dear=road)
    assert trace.spent == 0


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (sparq(Information(), "cheap"), "`expert` names one to ask, `routing` shares among all"),
        (sparq(), "there are several experts.*`routing = ...`; there are: cheap, dear"),
        (sparq(Shares(shares=(("chaep", 1.0),))), "called 'chaep': did you mean 'cheap'"),
        (sparq(expert="deer"), "called 'deer': did you mean 'dear'"),
    ],
)
def test_it_must_be_clear_whom_to_ask(model: SparQGPUCB, told: str) -> None:
    with pytest.raises(PluginError, match=told):
        played(model, cheap=Channel(), dear=Channel(), rounds=1)


# What it saves


def plays(scenario: Scenario, optimizer: str | SparQGPUCB) -> list[Trace]:
    return [scenario.play(optimizer, each) for each in range(scenario.replications)]


def more_regret(of: list[Trace], than: list[Trace]) -> Spread:
    """Return by how much the average regret is higher, paired over replications."""
    pairs = zip(of, than, strict=True)
    return spread(average_regret(one)[-1] - average_regret(other)[-1] for one, other in pairs)


def spends_no_more(of: list[Trace], than: list[Trace]) -> bool:
    """Return whether the mean paired difference exceeds 0 by no more than its standard error."""
    more = spread(one.spent - other.spent for one, other in zip(of, than, strict=True))
    return more.mean <= more.std / sqrt(more.count)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cheap_or_dear", "slow_or_prompt", "same_noise_two_prices"])
def test_routing_by_information_costs_no_more_than_any_single_expert_of_no_more_regret(
    name: str,
) -> None:
    # Of no more regret: the 95 % interval of the difference does not lie above 0.
    scenario = Scenario.load(f"experts/{name}")
    routed = plays(scenario, "information")
    as_good = 0
    for single in (each for each in scenario.optimizers if each.endswith("-only")):
        alone = plays(scenario, single)
        if more_regret(alone, than=routed).low <= 0:
            as_good += 1
            assert spends_no_more(routed, than=alone), single
    assert as_good


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "better"), [("cheap_or_dear", "dear"), ("slow_or_prompt", "prompt")]
)
def test_the_better_expert_alone_asked_less_until_it_costs_as_much_has_no_less_regret(
    name: str, better: str
) -> None:
    # The better expert alone has less regret, and costs more. Asked a third as much, 2 log t
    # points, it costs about what routing does, or still more.
    scenario = Scenario.load(f"experts/{name}")
    routed = plays(scenario, "information")
    sparing = plays(scenario, SparQGPUCB(expert=better, schedule=LogarithmicSchedule(factor=2.0)))
    assert spends_no_more(routed, than=sparing)
    assert more_regret(sparing, than=routed).high > 0
