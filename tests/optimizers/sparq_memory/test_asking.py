from __future__ import annotations

import numpy as np
import pytest

from sparq_sim import Channel, Query
from sparq_sim.arrays import Points
from sparq_sim.optimizers.sparq_memory import SparQMemory
from sparq_sim.optimizers.sparq_memory.asking import Asking
from sparq_sim.optimizers.sparq_memory.members import SENTINEL
from sparq_sim.optimizers.sparq_memory.memory import DriftMemory
from sparq_sim.plugin.briefing import SourceTerms
from sparq_sim.testing import Teller
from tests.optimizers.sparq_memory.plays import (
    FIELDS,
    HONEST,
    MODEL,
    asked,
    played,
    start_memory,
)

EXACT, VAGUE = SourceTerms(std=0.1), SourceTerms(std=0.6)


def ready(model: SparQMemory = MODEL, **briefing: object) -> DriftMemory:
    """Return a memory that has observed a few points, and plays one of them."""
    memory = start_memory(model, **{"experts": {"expert": EXACT}, **briefing})
    for t, (x, value) in enumerate([(0.1, 0.3), (0.5, 0.9), (0.8, 0.6), (0.3, 0.2)], start=1):
        memory.predictor(float(t))
        memory.record_play(np.array([x]), float(t))
        memory.learn(Query(t, "reward", np.array([[x]]), float(t)).answer([value], stds=0.1))
    memory.predictor(5.0)
    memory.record_play(np.array([0.5]), 5.0)
    return memory


def asking_of(memory: DriftMemory) -> Asking:
    return memory._asking


def count(memory: DriftMemory, now: float = 5.0) -> dict[str, int]:
    return {name: len(points) for name, points in memory.choose_points_to_ask(now).items()}


# Whom.


@pytest.mark.parametrize(
    "worse",
    [
        SourceTerms(std=0.6),
        SourceTerms(std=0.1, cost_per_point=0.05),
        SourceTerms(std=0.1, cost=0.05),
        SourceTerms(std=0.1, latency=12.0),
    ],
    ids=["noisier", "dearer a point", "dearer a query", "later"],
)
@pytest.mark.parametrize("first", ["better", "worse"])
def test_of_two_experts_the_better_is_asked(worse: SourceTerms, first: str) -> None:
    terms = {"better": EXACT, "worse": worse}
    order = sorted(terms, key=lambda name: name != first)
    memory = ready(experts={name: terms[name] for name in order})
    assert count(memory) == {"better": 2}


def test_only_those_are_asked_who_may_be() -> None:
    model = SparQMemory(**FIELDS, experts=("worse",))
    memory = ready(model, experts={"better": EXACT, "worse": VAGUE})
    assert count(memory) == {"worse": 2}


def test_nobody_is_asked_where_none_may_be() -> None:
    assert count(ready(SparQMemory(**FIELDS, queries=0))) == {}
    assert count(ready(experts={})) == {}


# How much.


@pytest.mark.parametrize("queries", [1, 2, 3])
def test_no_more_is_asked_than_may_be(queries: int) -> None:
    memory = ready(SparQMemory(**FIELDS, queries=queries))
    chosen = memory.choose_points_to_ask(5.0)["expert"]
    assert len(chosen) == queries == memory.notes()["queries"]
    assert len(np.unique(chosen, axis=0)) == queries


def test_an_answer_must_be_worth_its_price() -> None:
    counts = [
        sum(count(ready(SparQMemory(**FIELDS, queries=4, price=price))).values())
        for price in (0.0, 0.1, 100.0)
    ]
    assert counts[0] >= counts[1] > counts[2] == 0


def test_by_default_the_price_is_what_the_channel_charges() -> None:
    assert count(ready(experts={"expert": SourceTerms(std=0.1, cost_per_point=100.0)})) == {}
    assert count(ready(experts={"expert": SourceTerms(std=0.1, cost=100.0)})) == {}
    free = SparQMemory(**FIELDS, price=0.0)
    assert count(ready(free, experts={"expert": SourceTerms(std=0.1, cost=100.0)}))


def test_a_round_may_not_cost_more_than_its_budget() -> None:
    dear = {"expert": SourceTerms(std=0.1, cost_per_point=1.0)}
    free = SparQMemory(**FIELDS, queries=4, price=0.0)
    assert count(ready(free, experts=dear, budget_per_round=2.5)) == {"expert": 2}
    assert count(ready(free, experts=dear, budget_per_round=0.5)) == {}


def test_a_query_of_several_points_pays_its_own_cost_once() -> None:
    free = SparQMemory(**FIELDS, queries=3, price=0.0)
    whole = {"expert": SourceTerms(std=0.1, cost=2.0)}
    split = {"expert": SourceTerms(std=0.1, cost=2.0, split=True)}
    assert count(ready(free, experts=whole, budget_per_round=4.0)) == {"expert": 3}
    assert count(ready(free, experts=split, budget_per_round=4.0)) == {"expert": 2}


def test_what_is_not_answered_yet_is_not_asked_again() -> None:
    memory = ready(SparQMemory(**FIELDS, price=0.02), experts={"expert": EXACT})
    asked = 0
    for _ in range(20):
        chosen = memory.choose_points_to_ask(5.0)
        if not chosen:
            break
        memory.record_queries((Query(asked + 1, "expert", chosen["expert"], 5.0),))
        asked += len(chosen["expert"])
    assert 1 <= asked < 20


# Where.


def test_only_points_that_were_played_are_asked_about_in_the_past() -> None:
    memory = ready(SparQMemory(**FIELDS, queries=8), access="past")
    chosen = memory.choose_points_to_ask(5.0)["expert"][:, 0]
    assert set(chosen) <= {0.1, 0.5, 0.8, 0.3}


def test_where_any_point_may_be_asked_others_are() -> None:
    memory = ready(SparQMemory(**FIELDS, queries=8), access="domain")
    chosen = memory.choose_points_to_ask(5.0)["expert"][:, 0]
    assert set(chosen) - {0.1, 0.5, 0.8, 0.3}
    assert ((chosen >= 0) & (chosen <= 1)).all()


def test_at_first_the_point_that_is_played_is_asked_about_to_compare() -> None:
    memory = ready()
    assert 0.5 in memory.choose_points_to_ask(5.0)["expert"]


def test_where_it_waits_nothing_is_compared() -> None:
    memory = ready(SparQMemory(**FIELDS, waits=True, queries=1))
    memory.record_play(np.array([0.98]), 5.0)
    assert not asking_of(memory).offers.trust["expert"]._audited
    memory.choose_points_to_ask(5.0)
    assert not asking_of(memory).offers.trust["expert"]._audited


def test_the_points_to_choose_from_do_not_grow() -> None:
    asking = asking_of(start_memory(experts={"expert": EXACT}))
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(500, 1))
    for point in points:
        asking.record_play(point, 0.0)
        assert len(asking._points) <= 160
    newest = {point.tobytes() for point in points[-16:]}
    assert newest <= set(asking._points)


def at_one_point(*, waits: bool, std: float) -> DriftMemory:
    """Return a memory that knows of one point, plays it, and may ask thrice for free."""
    model = SparQMemory(**FIELDS, waits=waits, queries=3, price=0.0)
    memory = start_memory(model, experts={"expert": SourceTerms(std=std)})
    memory.learn(Query(1, "reward", np.array([[0.5]]), 1.0).answer([0.5], stds=0.1))
    memory.predictor(8.0)
    memory.record_play(np.array([0.5]), 8.0)
    return memory


def test_what_a_play_will_tell_is_not_asked() -> None:
    assert count(at_one_point(waits=False, std=0.1), 8.0) == {}
    assert count(at_one_point(waits=True, std=0.1), 8.0) == {"expert": 1}


def test_no_point_is_asked_twice_in_a_round() -> None:
    assert count(at_one_point(waits=True, std=0.6), 8.0) == {"expert": 1}


# What is hoped of a play.


def test_the_later_and_the_less_reliable_answers_are_the_more_is_explored_by_plays() -> None:
    hopes = [
        asking_of(start_memory(experts={"expert": SourceTerms(std=0.1, latency=latency)})).hoped
        for latency in (0.0, 1.0, 3.0, 11.0, 1e9)
    ]
    assert hopes == pytest.approx([0.2, 0.2, 0.28, 0.6, 1.0])
    unreliable = asking_of(ready())
    before = unreliable.hoped
    for _ in range(60):
        unreliable.offers.trust["expert"].count_answer(came=False)
    assert before == pytest.approx(0.2)
    assert unreliable.hoped > 0.99


def test_what_cannot_be_paid_is_explored_by_plays() -> None:
    dear = {"expert": SourceTerms(std=0.1, cost_per_point=1.0)}
    memory = ready(SparQMemory(**FIELDS, price=0.0), experts=dear, budget_per_round=0.5)
    assert asking_of(memory).hoped == pytest.approx(0.2)
    for _ in range(60):
        assert count(memory) == {}
    assert asking_of(memory).hoped > 0.99


def test_the_best_of_the_experts_counts() -> None:
    terms = {"late": SourceTerms(std=0.1, latency=11.0), "prompt": EXACT}
    assert asking_of(start_memory(experts=terms)).hoped == pytest.approx(0.2)


def test_without_experts_all_is_explored_by_plays() -> None:
    memory = start_memory()
    predictor = memory.predictor(1.0)
    assert memory.hopes(predictor) is predictor


# How much of a budget, and of what is left of a play.


def test_a_small_budget_is_spent_evenly() -> None:
    model = SparQMemory(**FIELDS, price=0.0)
    experts = {"expert": (Teller(), Channel(noise=0.1, cost_per_point=1.0))}
    spent = asked(played(model, rounds=100, experts=experts, budget=20.0))
    assert spent.sum() <= 20
    assert 5 <= spent[:50].sum() <= 12


def test_a_later_expert_beside_an_equal_prompt_one_is_hardly_asked() -> None:
    later = Channel(noise=0.1, transit=8.0)
    trace = played(experts={"prompt": (Teller(), HONEST), "later": (Teller(), later)})
    assert asked(trace, "later").sum() < 0.2 * asked(trace, "prompt").sum()


def test_new_places_are_worth_less_the_fewer_rounds_are_left() -> None:
    asking = asking_of(start_memory(experts={"expert": EXACT}, rounds=400))
    worths = [asking.find_worth_of_new(moment) for moment in (1.0, 200.0, 390.0)]
    assert worths[0] > 1.0 > worths[2]
    assert worths == sorted(worths, reverse=True)


def test_without_an_end_new_places_are_worth_the_same_for_ever() -> None:
    asking = asking_of(start_memory(experts={"expert": EXACT}, rounds=None))
    assert asking.find_worth_of_new(1.0) == asking.find_worth_of_new(1e6) == 1.0


def test_now_and_then_what_matters_to_the_sentinel_is_asked() -> None:
    def ask(number: int) -> Points:
        memory = ready()
        sentinel = memory._filter.bank._members[SENTINEL]
        sentinel.evidence = -9.0  # It has no say in the other decisions.
        # It alone has heard of a high reward at a place that may be asked.
        place = memory._places.features.at(np.array([[0.3]]))
        sentinel.hypothesis.learn(place, np.array([9.0]), np.ones(1))
        asking_of(memory).offers.trust["expert"]._next_audit = 1000
        return memory.choose_points_to_ask(float(number))["expert"]

    assert 0.3 not in ask(6)
    assert 0.3 in ask(10)
