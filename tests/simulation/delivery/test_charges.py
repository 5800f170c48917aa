"""What an expert charges itself, and answers that are lost on its own way."""

from __future__ import annotations

from fractions import Fraction
from math import fsum, inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparq_sim import (
    AnswerLost,
    Channel,
    Estimate,
    Expert,
    Policy,
    Query,
    Rules,
    Trace,
    Unaffordable,
    World,
    play,
)
from sparq_sim.arrays import all_rows
from sparq_sim.simulation.channel.channel import Due
from sparq_sim.simulation.channel.faults import Fault
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.delivery.budget import Budget, Charges
from sparq_sim.simulation.delivery.request import Drawn, Question, Request
from sparq_sim.simulation.measures import tally
from sparq_sim.testing import Asker, Slope
from tests.conftest import Run
from tests.delivery import ask, connect, context_on
from tests.simulation.delivery.asking import LANDSCAPE, Relay, ask_one, consult, retrying


class Charging(Expert):
    """Charges *each* before and after a wait of *takes*, and gives the reward."""

    each: float = 0.1
    takes: float = 0.0
    fails: str = ""

    async def answer(self, query: Query, world: World) -> Estimate:
        world.charge(self.each)
        await world.clock.sleep(self.takes)
        world.charge(self.each)
        if self.fails == "lost" or (self.fails == "sometimes" and world.rng.random() < 0.5):
            raise AnswerLost("collided")
        if self.fails == "raises":
            raise RuntimeError("broken")
        values = world.rewards(query.points, world.clock.now)
        if self.fails == "partly":
            values = np.where(query.points[:, 0] > 0.5, nan, values)
        return Estimate(values, absent="blind" if self.fails == "partly" else "")


def test_what_an_expert_charges_is_added_to_what_the_channel_charges(run: Run) -> None:
    heard = ask_one(run, Charging(each=0.25), Channel(cost=1.0))
    assert heard.of("fate", "cost") == [("answered", 1.5)]
    assert heard.context.budget.spent == 1.5


@pytest.mark.parametrize("due", ["asked", "served", "answered"])
def test_a_charge_is_paid_at_once_whenever_the_rest_falls_due(run: Run, due: Due) -> None:
    channel = Channel(cost=1.0, charged=due)
    heard = ask_one(run, Charging(each=0.25, takes=2.0), channel, until=1.0)
    cost = 0.25 + (due != "answered")
    assert heard.of("fate", "cost") == [("unanswered", cost)]
    assert heard.context.budget.spent == cost
    (answered,) = ask_one(run, Charging(each=0.25, takes=2.0), channel).of("fate", "cost")
    assert answered == ("answered", 1.5)


@pytest.mark.parametrize(
    ("expert", "channel", "fate"),
    [
        (Charging(), Channel(loss=1.0), "lost"),
        (Charging(takes=3.0), Channel(patience=2.0), "late"),
        (Charging(fails="raises"), Channel(cost=1.0, charged="answered"), "invalid"),
        (Charging(fails="lost"), Channel(cost=1.0, charged="answered"), "lost"),
    ],
)
def test_a_charge_is_paid_whatever_becomes_of_the_answer(
    run: Run, expert: Charging, channel: Channel, fate: str
) -> None:
    heard = ask_one(run, expert, channel)
    spent = 0.1 if fate == "late" else 0.2
    assert heard.of("fate", "cost") == [(fate, spent)]
    assert heard.context.budget.spent == spent


def test_of_points_of_which_some_fail_the_first_record_carries_the_charge(run: Run) -> None:
    heard = ask_one(run, Charging(each=0.25, fails="partly"), Channel(cost=1.0), 0.2, 0.8)
    assert heard.of("fate", "cost") == [("answered", 1.5), ("unavailable", 0.0)]


def test_what_cannot_be_paid_fails_as_refused_by_the_budget_and_is_not_charged(run: Run) -> None:
    heard = ask_one(run, Charging(each=0.4), Channel(cost=1.0), budget=1.5)
    assert heard.of("fate", "cost", "heard") == [("budget", 1.4, True)]
    (record,) = heard.records
    assert record.reply.reason == "the budget cannot pay 0.4 more"  # type: ignore[union-attr] # a failure
    assert heard.context.budget.spent == 1.4
    assert heard.context.budget.exhausted


class Frugal(Expert):
    """Answers 0 where it cannot pay for more."""

    async def answer(self, query: Query, world: World) -> Estimate:
        try:
            world.charge(5.0)
        except Unaffordable:
            return Estimate(np.zeros(len(query.points)))
        return Estimate(np.ones(len(query.points)))


def test_an_expert_may_do_without_what_cannot_be_paid(run: Run) -> None:
    heard = ask_one(run, Frugal(), Channel(cost=1.0), budget=4.0)
    assert heard.of("fate", "cost") == [("answered", 1.0)]


class After(Expert):
    """Charges after its answer has arrived."""

    async def answer(self, query: Query, world: World) -> None:  # type: ignore[override] # it sends
        world.send(query, Estimate(np.zeros(len(query.points))))
        await world.clock.sleep(1.0)
        with pytest.raises(Unaffordable, match="query 1 is over"):
            world.charge(1.0)


def test_nobody_pays_for_a_query_that_is_over(run: Run) -> None:
    heard = ask_one(run, After(), Channel(cost=0.5))
    assert heard.of("fate", "cost") == [("answered", 0.5)]
    assert heard.context.budget.spent == 0.5


class Wrong(Expert):
    cost: float

    async def answer(self, query: Query, world: World) -> Estimate:
        world.charge(self.cost)
        return Estimate(np.zeros(len(query.points)))


@pytest.mark.parametrize("cost", [-1.0, inf, nan])
def test_a_cost_that_is_none_is_refused(run: Run, cost: float) -> None:
    (record,) = ask_one(run, Wrong(cost=cost), Channel()).records
    assert record.fate == "invalid"
    assert "finite and not negative" in record.reply.reason  # type: ignore[union-attr] # a failure


def test_a_broadcast_has_no_query_to_charge(run: Run) -> None:
    async def main(clock: Clock) -> None:
        connection = connect("expert", Charging(), Channel(), context_on(clock, LANDSCAPE))
        with pytest.raises(ValueError, match="a broadcast answers no query"):
            connection.own_world().charge(1.0)

    run(main)


def make_request(cost: float = 0.0) -> Request:
    query = Query(1, "expert", np.zeros((1, 1)), 0.0)
    question = Question(query, all_rows(1), lambda record: None)
    drawn = Drawn(all_rows(1), query, (1, 0), cost, 0.0, 0.0, False, None, None)
    return Request(question, drawn, 1, cost)


@settings(max_examples=100)
@given(cost=st.floats(0, 1e6), added=st.lists(st.floats(0, 1e6), max_size=6), due=st.booleans())
def test_what_a_request_states_as_its_cost_is_exactly_what_was_spent(
    cost: float, added: list[float], due: bool
) -> None:
    budget = Budget()
    charges = Charges(budget, "answered" if due else "asked")
    request = make_request(cost)
    assert charges.admit(request)
    assert all(charges.add(each, request, 1) for each in added)
    charges.fall_due(request, "answered")
    assert Fraction(request.cost) == budget._spent
    assert request.cost == pytest.approx(fsum([cost, *added]))
    assert budget._reserved == 0


def test_a_cost_beyond_all_numbers_cannot_be_paid() -> None:
    charges = Charges(Budget(), "asked")
    request = make_request(1.7e308)
    assert charges.admit(request)
    assert not charges.add(1.7e308, request, 1)
    assert request.cost == 1.7e308


# Answers that are lost on the expert's own way.


def test_an_answer_lost_on_the_expert_s_way_is_lost_and_the_asker_hears_why(run: Run) -> None:
    (record,) = ask_one(run, Charging(fails="lost", takes=2.0), Channel(transit=1.0)).records
    assert (record.fate, record.heard, record.reply.arrived_at) == ("lost", True, 3.0)
    assert record.reply.reason == "collided"  # type: ignore[union-attr] # a failure


def test_an_answer_lost_on_the_expert_s_way_is_tried_again(run: Run) -> None:
    heard = ask_one(run, Charging(fails="lost"), Channel(policy=retrying(2)))
    assert heard.of("fate", "attempt", "superseded", "cost") == [
        ("lost", 1, True, 0.2),
        ("lost", 2, True, 0.2),
        ("lost", 3, False, 0.2),
    ]
    assert heard.context.budget.spent == pytest.approx(0.6)


def test_an_expert_that_asks_another_hears_of_what_was_lost_there(run: Run) -> None:
    experts = {
        "relay": (Relay(other="expert"), Channel()),
        "expert": (Charging(fails="lost"), Channel()),
    }
    heard = consult(run, experts, [(0.0, "relay", [0.5])])
    assert heard.of("source", "fate") == [("expert", "lost"), ("relay", "invalid")]


CHANNELS = st.builds(
    Channel,
    cost=st.sampled_from([0.0, 0.3]),
    charged=st.sampled_from(["asked", "served", "answered"]),
    loss=st.sampled_from([0.0, 0.3]),
    patience=st.sampled_from([100.0, 1.2]),
    transit=st.sampled_from([0.0, 0.7]),
    split=st.booleans(),
    capacity=st.sampled_from([None, 1]),
    faults=st.sampled_from([(), (Fault(kind="duplicate", share=0.5),)]),
    policy=st.sampled_from([Policy(), Policy(retries=2, backoff=0.1), Policy(merge=True)]),
)


def play_charging(expert: Charging, channel: Channel, rules: Rules) -> Trace:
    return play(
        Asker(batch=3), Slope(), rules, experts={"expert": (expert, channel)}, replication=1
    )


@settings(max_examples=60)
@given(
    expert=st.builds(
        Charging,
        each=st.sampled_from([0.0, 0.1]),
        takes=st.sampled_from([0.0, 0.4, 1.1]),
        fails=st.sampled_from(["", "sometimes", "partly", "raises"]),
    ),
    channel=CHANNELS,
    budget=st.sampled_from([inf, 3.0]),
)
def test_costs_and_fates_add_up_where_experts_charge_and_lose(
    expert: Charging, channel: Channel, budget: float
) -> None:
    trace = play_charging(expert, channel, Rules(rounds=12, budget=budget))
    assert fsum(trace.replies["cost"]) == trace.spent <= budget * (1 + 1e-9)
    counts = tally(trace)
    assert counts.asked == 33
    assert counts.asked == sum(
        (
            counts.answered,
            counts.late,
            counts.lost,
            counts.refused,
            counts.invalid,
            counts.unavailable,
            counts.open,
        )
    )


def test_a_play_ends_when_a_charge_cannot_be_paid_if_the_rules_say_so() -> None:
    rules = Rules(rounds=20, budget=0.9, ends_when_spent=True)
    trace = play_charging(Charging(each=0.1), Channel(), rules)
    assert trace.ended == "budget"
    assert trace.spent == pytest.approx(0.9)


def test_a_charge_counts_in_the_round_in_which_it_is_made(run: Run) -> None:
    async def main(clock: Clock) -> list[tuple[str, int, float]]:
        context = context_on(clock, LANDSCAPE, budget=Budget(per_round=0.15))
        connect("expert", Charging(each=0.1, takes=1.5), Channel(), context)
        for number in (1, 2):
            context.round = number
            ask(context, Query(number, "expert", np.full((1, 1), 0.5), clock.now))
            await clock.sleep(1.0)
        context.round = 3
        await clock.sleep(5.0)
        return [(r.fate, r.round, r.reply.cost) for r in context.recorder.records]

    # The second charge for the first query meets the first one for the second, in round 2.
    assert run(main) == [("budget", 1, 0.1), ("answered", 2, 0.2)]
