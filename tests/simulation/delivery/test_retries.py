from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sparq_sim import (
    Answer,
    Channel,
    Estimate,
    Expert,
    Failure,
    PluginError,
    Query,
    Rules,
    Trace,
    World,
    play,
    play_live,
)
from sparq_sim.arrays import Values
from sparq_sim.errors import Unavailable
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.channel.policy import Policy, Rate
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.records import Record
from sparq_sim.testing import Asker, Slope, Teller, WaitlessLoop
from tests.conftest import Run, on_sim_clock
from tests.delivery import ask, connect, context_on

LANDSCAPE = Slope().start(np.random.default_rng(0))
Experts = Mapping[str, tuple[Expert, Channel]]


# Sources, and a way to ask them over their desks.


class Awake(Expert):
    """Knows the reward as it is, but raises at points from *above* on before *wakes*."""

    wakes: float = inf
    above: float = 0.0

    async def answer(self, query: Query, world: World) -> Estimate:
        now = world.clock.now
        if now >= self.wakes or (query.points < self.above).all():
            return Estimate(world.rewards(query.points, now))
        raise RuntimeError("asleep")


class HalfAwake(Expert):
    """Gives NaN beyond 0.5 before *wakes*."""

    wakes: float

    async def answer(self, query: Query, world: World) -> Estimate:
        known = (query.points[:, 0] <= 0.5) | (world.clock.now >= self.wakes)
        return Estimate(np.where(known, world.rewards(query.points, world.clock.now), nan))


class Ignorant(Expert):
    """Knows that it does not know."""

    async def answer(self, query: Query, world: World) -> Estimate:
        raise Unavailable("not my field")


class Relay(Expert):
    """Asks *other* as soon as *hops* instants are over, and passes on what it hears."""

    other: str
    hops: int = 0

    async def answer(self, query: Query, world: World) -> Estimate:
        for _ in range(self.hops):
            hop = world.clock.signal()
            world.clock.call_at(world.clock.now, hop.set)
            await hop
        values: Values = np.full(len(query.points), nan)
        replies = await world.ask(self.other, query.points)
        for reply in replies:
            if isinstance(reply, Answer):
                values[reply.rows] = reply.values
        return Estimate(values, notes={"replies": float(len(replies))})


@dataclass
class Heard:
    """All records, in the order in which they came."""

    context: PlayContext

    @property
    def records(self) -> list[Record]:
        return self.context.recorder.records

    def of(self, *what: str, source: str | None = None) -> list[tuple[Any, ...]]:
        """Give some facts of each record."""
        return [
            tuple(self._fact(record, name) for name in what)
            for record in self.records
            if source in (None, record.reply.query.source)
        ]

    def _fact(self, record: Record, name: str) -> Any:
        superseded = record in self.context.recorder.superseded
        match name:
            case "source":
                return record.reply.query.source
            case "id":
                return record.reply.query.id
            case "rows":
                return record.reply.rows.tolist()
            case "arrived_at" | "asked_at" | "cost":
                return getattr(record.reply, name)
            case "measured_at":
                return record.reply.measured_at if isinstance(record.reply, Answer) else None
            case "superseded":
                return superseded
            case "heard":
                return record.heard and not superseded
        return getattr(record, name)


def consult(
    run: Run,
    experts: Experts,
    asks: Sequence[tuple[float, str, Sequence[float]]],
    *,
    budget: float = inf,
    until: float = 1000.0,
    seed: int = 0,
) -> Heard:
    """Put points to experts at moments, in the agent's name, and listen until the end."""

    async def main(clock: Clock) -> Heard:
        context = context_on(clock, LANDSCAPE, seed=seed, budget=Budget(budget))
        for name, (expert, channel) in experts.items():
            connect(name, expert, channel, context)
        for number, (moment, name, points) in enumerate(asks, 1):
            await clock.until(moment)
            context.round = int(moment)
            query = Query(number, name, np.array(points, dtype=float)[:, None], clock.now)
            ask(context, query)
        await clock.until(until)
        context.close()
        return Heard(context)

    heard: Heard = run(main)
    return heard


def ask_one(
    run: Run, expert: Expert, channel: Channel, *points: float, until: float = 1000.0, **more: Any
) -> Heard:
    """Ask one expert once, at 0."""
    asks = [(0.0, "expert", points or (0.5,))]
    return consult(run, {"expert": (expert, channel)}, asks, until=until, **more)


def retrying(retries: int = 3, backoff: float = 1.0, **more: Any) -> Policy:
    return Policy(retries=retries, backoff=backoff, **more)


# Retries.


def test_waits_between_attempts_double(run: Run) -> None:
    heard = ask_one(run, Awake(), Channel(policy=retrying()))
    assert heard.of("attempt", "served_at", "arrived_at") == [
        (1, 0, 0),
        (2, 1, 1),
        (3, 3, 3),
        (4, 7, 7),
    ]


def test_waits_between_attempts_grow_by_the_factor_given(run: Run) -> None:
    policy = retrying(backoff=0.5, growth=3)
    heard = ask_one(run, Awake(), Channel(policy=policy))
    assert heard.of("served_at") == [(0,), (0.5,), (2,), (6.5,)]


def test_a_wait_begins_when_the_attempt_has_failed(run: Run) -> None:
    heard = ask_one(run, Awake(), Channel(service=0.5, transit=0.25, policy=retrying(2)))
    assert heard.of("served_at", "sent_at", "arrived_at") == [
        (0, 0.5, 0.75),
        (1.75, 2.25, 2.5),
        (4.5, 5.0, 5.25),
    ]


def test_many_retries_without_a_wait_are_no_trouble() -> None:
    policy = Policy(retries=3000)
    assert policy.wait(2000) == 0


def test_the_first_attempt_that_succeeds_is_the_last(run: Run) -> None:
    heard = ask_one(run, Awake(wakes=2.0), Channel(policy=retrying(9)))
    assert heard.of("fate", "measured_at", "asked_at") == [
        ("invalid", None, 0),
        ("invalid", None, 0),
        ("answered", 3, 0),
    ]


def test_each_attempt_is_charged(run: Run) -> None:
    heard = ask_one(run, Awake(wakes=2.0), Channel(cost=2, cost_per_point=0.5, policy=retrying(9)))
    assert heard.of("cost") == [(2.5,)] * 3
    assert heard.context.budget.spent == 7.5


def test_the_asker_hears_of_the_last_attempt_only(run: Run) -> None:
    heard = ask_one(run, Awake(), Channel(policy=retrying()))
    assert heard.of("heard", "superseded") == [(False, True)] * 3 + [(True, False)]


def test_an_expert_who_asks_another_hears_of_the_last_attempt_only(run: Run) -> None:
    experts = {
        "relay": (Relay(other="source"), Channel()),
        "source": (Awake(wakes=2.0), Channel(policy=retrying(9))),
    }
    heard = consult(run, experts, [(0.0, "relay", [0.5])])
    assert heard.of("fate", "arrived_at", source="relay") == [("answered", 3)]
    answer = heard.records[-1].reply
    assert isinstance(answer, Answer)
    assert answer.notes == {"replies": 1.0}


def test_the_trace_tells_attempts_apart() -> None:
    experts = {"expert": (Awake(), Channel(cost=1, policy=retrying(9, backoff=1.25)))}
    replies = play(Asker(batch=1), Slope(), Rules(rounds=2), experts=experts).replies
    of_first = (replies["query"] == 1) & (replies["source"] == "expert")
    columns = ("attempt", "superseded", "heard", "fate", "round", "cost")
    assert [replies[name][of_first].tolist() for name in columns] == [
        [1, 2, 3],
        [True, True, False],
        [False, False, False],
        ["invalid", "invalid", "unanswered"],
        [1, 2, 2],
        [1, 1, 0],
    ]


def test_only_rows_that_failed_are_put_again(run: Run) -> None:
    channel = Channel(cost=1, cost_per_point=0.25, policy=retrying(9))
    heard = ask_one(run, HalfAwake(wakes=2.0), channel, 0.1, 0.9, 0.3, 0.8)
    assert heard.of("rows", "fate", "arrived_at", "heard", "attempt", "cost") == [
        ([0, 2], "answered", 0, True, 1, 2),
        ([1, 3], "invalid", 0, False, 1, 0),
        ([1, 3], "invalid", 1, False, 2, 1.5),
        ([1, 3], "answered", 3, True, 3, 1.5),
    ]
    last = heard.records[-1].reply
    assert isinstance(last, Answer)
    assert_array_equal(last.values, LANDSCAPE.rewards(np.array([[0.9], [0.8]]), 3.0))


def test_split_rows_are_retried_one_by_one(run: Run) -> None:
    channel = Channel(split=True, policy=retrying(9))
    heard = ask_one(run, HalfAwake(wakes=1.0), channel, 0.1, 0.9)
    assert heard.of("rows", "fate", "arrived_at") == [
        ([0], "answered", 0),
        ([1], "invalid", 0),
        ([1], "answered", 1),
    ]


def test_an_outage_is_tried_again_and_costs_nothing_until_it_is_over(run: Run) -> None:
    channel = Channel(cost=1, outages=((0, 2),), policy=retrying(5, growth=1))
    heard = ask_one(run, Teller(), channel)
    assert heard.of("fate", "arrived_at", "cost") == [
        ("outage", 0, 0),
        ("outage", 1, 0),
        ("answered", 2, 1),
    ]


def test_a_late_answer_is_asked_for_again(run: Run) -> None:
    heard = ask_one(run, Teller(), Channel(service=5, patience=2, policy=retrying(1)))
    assert heard.of("fate", "served_at", "arrived_at") == [("late", 0, 2), ("late", 3, 5)]


def test_a_loss_is_noticed_when_patience_ends_and_then_retried(run: Run) -> None:
    channel = Channel(loss=1.0, transit=2, patience=5, cost=1, policy=retrying(1))
    heard = ask_one(run, Teller(), channel)
    assert heard.of("fate", "served_at", "arrived_at", "heard", "cost") == [
        ("lost", 0, 5, False, 1),
        ("lost", 6, 11, True, 1),
    ]
    last = heard.records[-1].reply
    assert isinstance(last, Failure)
    assert last.reason == "late"


def test_each_attempt_has_luck_of_its_own() -> None:
    channel = Channel(
        loss=0.5,
        patience=1,
        cost={"kind": "uniform", "low": 1, "high": 2},
        transit={"kind": "uniform", "low": 0.1, "high": 0.9},
        policy=retrying(20, backoff=0),
    )
    heard = ask_one(on_sim_clock, Teller(), channel, seed=3)
    fates = [fate for (fate,) in heard.of("fate")]
    assert fates[0] == "lost"
    assert fates[-1] == "answered"
    assert len(set(heard.of("cost"))) == len(fates)


def test_what_a_source_says_it_cannot_know_is_not_put_again(run: Run) -> None:
    heard = ask_one(run, Ignorant(), Channel(policy=retrying()))
    assert heard.of("fate", "attempt", "heard") == [("unavailable", 1, True)]


def test_a_retry_that_cannot_be_paid_is_the_last(run: Run) -> None:
    heard = ask_one(run, Awake(), Channel(cost=1, policy=retrying(9)), budget=2.5)
    assert heard.of("fate", "arrived_at", "cost", "heard") == [
        ("invalid", 0, 1, False),
        ("invalid", 1, 1, False),
        ("budget", 3, 0, True),
    ]


# The timeout.


def test_the_timeout_ends_all_attempts(run: Run) -> None:
    policy = retrying(100, growth=1, timeout=2.5)
    heard = ask_one(run, Awake(), Channel(cost=1, policy=policy))
    assert heard.of("attempt", "fate", "arrived_at", "cost", "heard") == [
        (1, "invalid", 0, 1, False),
        (2, "invalid", 1, 1, False),
        (3, "invalid", 2, 1, False),
        (4, "late", 2.5, 0, True),  # It was waiting for its turn at 3.
    ]


def test_an_attempt_under_way_is_given_up_at_the_timeout(run: Run) -> None:
    channel = Channel(service=4, capacity=1, cost=1, policy=Policy(timeout=3))
    experts = {"expert": (Teller(), channel)}
    heard = consult(run, experts, [(0.0, "expert", [0.1]), (2.0, "expert", [0.2])])
    assert heard.of("id", "fate", "served_at", "arrived_at", "cost") == [
        (1, "late", 0, 3, 1),
        (2, "late", 3, 5, 1),  # The slot was free from 3 on.
    ]


def test_an_answer_in_the_very_moment_of_the_timeout_is_in_time(run: Run) -> None:
    heard = ask_one(run, Teller(), Channel(service=3, policy=Policy(timeout=3)))
    assert heard.of("fate", "arrived_at") == [("answered", 3)]


def test_a_loss_is_noticed_at_the_timeout_where_patience_is_without_end(run: Run) -> None:
    heard = ask_one(run, Teller(), Channel(loss=1.0, policy=Policy(timeout=3)))
    assert heard.of("fate", "arrived_at", "heard") == [("lost", 3, True)]


def test_readings_that_nobody_asked_for_are_lost_at_once_whatever_the_timeout() -> None:
    class Beacon(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(np.zeros(1))

        async def broadcast(self, world: World) -> None:
            await world.clock.sleep(1)
            world.send(world.open(np.array([[0.5]])), Estimate(np.zeros(1)))

    experts = {"expert": (Beacon(), Channel(loss=1.0, transit=0.5, policy=Policy(timeout=3)))}
    replies = play(Asker(batch=1), Slope(), Rules(rounds=4), experts=experts).replies
    own = replies["asker"] == "expert"
    assert replies["fate"][own].tolist() == ["lost"]
    assert replies["arrived_at"][own].tolist() == [1.5]


# The fallback.


def with_backup(channel: Channel, expert: Expert | None = None, **others: Any) -> Experts:
    return {"expert": (expert or Awake(), channel), "backup": (Teller(), Channel(cost=3)), **others}


def test_the_fallback_is_asked_when_all_attempts_have_failed(run: Run) -> None:
    channel = Channel(cost=1, policy=retrying(1, fallback="backup"))
    heard = consult(run, with_backup(channel), [(0.0, "expert", [0.5])])
    assert heard.of("source", "fate", "arrived_at", "cost", "attempt", "superseded", "heard") == [
        ("expert", "invalid", 0, 1, 1, True, False),
        ("expert", "invalid", 1, 1, 2, True, False),
        ("backup", "answered", 1, 3, 1, False, True),
    ]


def test_the_answer_of_a_fallback_is_to_the_query_of_the_asker(run: Run) -> None:
    channel = Channel(policy=Policy(fallback="backup"))
    asks = [(2.0, "expert", [0.1]), (3.0, "expert", [0.5])]
    heard = consult(run, with_backup(channel), asks)
    assert heard.of("id", "asker", "asked_at", source="backup") == [
        (1, "agent", 2),
        (2, "agent", 3),
    ]


def test_only_rows_that_failed_are_put_to_the_fallback(run: Run) -> None:
    channel = Channel(policy=Policy(fallback="backup"))
    experts = with_backup(channel, HalfAwake(wakes=inf))
    heard = consult(run, experts, [(0.0, "expert", [0.9, 0.1, 0.8])])
    assert heard.of("source", "rows", "fate", "heard") == [
        ("expert", [1], "answered", True),
        ("expert", [0, 2], "invalid", False),
        ("backup", [0, 2], "answered", True),
    ]
    answer = heard.records[-1].reply
    assert isinstance(answer, Answer)
    assert_array_equal(answer.values, LANDSCAPE.rewards(np.array([[0.9], [0.8]]), 0.0))


@pytest.mark.parametrize(
    ("channel", "expert", "fate"),
    [
        (Channel(outages=((0, 9),)), Teller(), "outage"),
        (Channel(cost=100), Teller(), "budget"),
        (Channel(service=9, patience=2), Teller(), "late"),
        (Channel(loss=1.0, patience=2), Teller(), "lost"),
        (Channel(), Ignorant(), "unavailable"),
        (Channel(), Awake(), "invalid"),
    ],
)
def test_a_fallback_stands_in_whatever_went_wrong(
    run: Run, channel: Channel, expert: Expert, fate: str
) -> None:
    channel = Channel(**{**dict(channel), "policy": Policy(fallback="backup")})
    heard = consult(run, with_backup(channel, expert), [(0.0, "expert", [0.5])], budget=50)
    assert heard.of("source", "fate") == [("expert", fate), ("backup", "answered")]


def test_a_fallback_may_have_a_fallback(run: Run) -> None:
    def falling_to(name: str) -> Channel:
        return Channel(policy=retrying(1, fallback=name))

    experts = {
        "expert": (Awake(), falling_to("second")),
        "second": (Awake(), falling_to("third")),
        "third": (Teller(), Channel()),
    }
    heard = consult(run, experts, [(0.0, "expert", [0.5])])
    assert heard.of("source", "attempt", "arrived_at", "heard", "id", "asker") == [
        ("expert", 1, 0, False, 1, "agent"),
        ("expert", 2, 1, False, 1, "agent"),
        ("second", 1, 1, False, 1, "agent"),
        ("second", 2, 2, False, 1, "agent"),
        ("third", 1, 2, True, 1, "agent"),
    ]


def test_what_the_fallback_cannot_answer_has_failed(run: Run) -> None:
    experts = {
        "expert": (Awake(), Channel(policy=Policy(fallback="backup"))),
        "backup": (Teller(), Channel(outages=((0, 9),))),
    }
    heard = consult(run, experts, [(0.0, "expert", [0.5])])
    assert heard.of("source", "fate", "heard") == [
        ("expert", "invalid", False),
        ("backup", "outage", True),
    ]


def test_the_timeout_hands_over_to_the_fallback_in_the_middle_of_a_retry(run: Run) -> None:
    channel = Channel(policy=retrying(100, growth=1, timeout=1.5, fallback="backup"))
    heard = consult(run, with_backup(channel), [(0.0, "expert", [0.5])])
    assert heard.of("source", "fate", "arrived_at") == [
        ("expert", "invalid", 0),
        ("expert", "invalid", 1),
        ("expert", "late", 1.5),
        ("backup", "answered", 1.5),
    ]


def test_an_expert_who_asks_gets_the_answer_of_the_fallback(run: Run) -> None:
    channel = Channel(policy=Policy(fallback="backup"))
    experts = with_backup(channel, relay=(Relay(other="expert"), Channel()))
    heard = consult(run, experts, [(0.0, "relay", [0.5])])
    assert heard.of("fate", source="relay") == [("answered",)]
    assert heard.of("asker", source="backup") == [("relay",)]


def test_being_a_fallback_shifts_nobodys_luck() -> None:
    def replies(policy: Policy) -> list[list[float]]:
        noisy = Channel(
            noise=0.5, loss=0.3, patience=5, cost={"kind": "exponential", "mean": 1}, split=True
        )
        experts = {"expert": (Awake(), Channel(policy=policy)), "backup": (Teller(), noisy)}
        trace = play(Asker(batch=3), Slope(), Rules(rounds=20), experts=experts)
        columns = trace.replies
        # Queries with even numbers are those to the backup itself.
        own = (columns["source"] == "backup") & (columns["query"] % 2 == 0)
        return [np.nan_to_num(columns[name][own]).tolist() for name in ("value", "cost", "row")]

    assert replies(Policy()) == replies(Policy(fallback="backup"))


@pytest.mark.parametrize(
    ("fallbacks", "told"),
    [
        ({"a": "bb"}, "the fallback of 'a' is 'bb', no expert of this play: did you mean 'b'"),
        ({"a": "reward"}, "the fallback of 'a' is 'reward', no expert of this play"),
        ({"a": "a"}, "fallbacks lead in a circle: a > a"),
        ({"a": "b", "b": "c", "c": "a"}, "fallbacks lead in a circle: a > b > c > a"),
    ],
)
def test_a_fallback_that_leads_nowhere_is_refused(fallbacks: dict[str, str], told: str) -> None:
    experts = {
        name: (Teller(), Channel(policy=Policy(fallback=fallbacks.get(name))))
        for name in ("a", "b", "c")
    }
    with pytest.raises(PluginError, match=told):
        play(Asker(), Slope(), Rules(rounds=3), experts=experts)


# The rate.


def ask_at(
    run: Run, rate: Rate, *asks: tuple[float, int], split: bool = False, **policy: Any
) -> Heard:
    """Ask about so many points at each moment."""
    channel = Channel(cost_per_point=1, split=split, policy=Policy(rate=rate, **policy))
    all_asks = [(moment, "expert", np.linspace(0, 1, size).tolist()) for moment, size in asks]
    return consult(run, {"expert": (Teller(), channel)}, all_asks)


def test_a_burst_is_sent_at_the_rate(run: Run) -> None:
    heard = ask_at(run, Rate(points=2, every=1.5), (0.0, 5), split=True)
    assert heard.of("rows", "served_at", "fate") == [
        ([0], 0, "answered"),
        ([1], 0, "answered"),
        ([2], 1.5, "answered"),
        ([3], 1.5, "answered"),
        ([4], 3, "answered"),
    ]


def test_who_comes_later_waits_behind_those_who_wait(run: Run) -> None:
    heard = ask_at(run, Rate(points=1, every=2), (0.0, 3), (1.0, 1), (9.0, 1), split=True)
    assert heard.of("id", "served_at") == [(1, 0), (1, 2), (1, 4), (2, 6), (3, 9)]


def test_points_that_travel_together_wait_until_all_may_pass(run: Run) -> None:
    heard = ask_at(run, Rate(points=3, every=2), (0.0, 2), (0.0, 2), (0.0, 1), (0.0, 3))
    assert heard.of("id", "served_at") == [(1, 0), (2, 2), (3, 2), (4, 4)]


def test_what_is_more_than_a_stretch_allows_waits_as_if_it_went_singly(run: Run) -> None:
    heard = ask_at(run, Rate(points=2, every=1), (0.0, 5), (0.0, 1))
    assert heard.of("id", "served_at") == [(1, 2), (2, 3)]


def test_what_is_beyond_the_rate_is_refused_and_costs_nothing(run: Run) -> None:
    heard = ask_at(run, Rate(points=2, every=1, beyond="refuse"), (0.0, 3), (1.0, 2), split=True)
    assert heard.of("id", "fate", "cost", "arrived_at", "heard") == [
        (1, "rate", 0, 0, True),
        (1, "answered", 1, 0, True),
        (1, "answered", 1, 0, True),
        (2, "answered", 1, 1, True),
        (2, "answered", 1, 1, True),
    ]


def test_what_the_rate_refuses_goes_to_the_fallback_and_not_into_retries(run: Run) -> None:
    rate = Rate(points=1, every=1, beyond="refuse")
    channel = Channel(policy=retrying(5, rate=rate, fallback="backup"), split=True)
    heard = consult(run, with_backup(channel, Teller()), [(0.0, "expert", [0.1, 0.2])])
    assert heard.of("source", "rows", "fate", "attempt") == [
        ("expert", [1], "rate", 1),
        ("expert", [0], "answered", 1),
        ("backup", [1], "answered", 1),
    ]


def test_retries_count_for_the_rate_when_they_are_sent(run: Run) -> None:
    experts: Experts = {
        "expert": (
            Awake(above=0.5),
            Channel(policy=retrying(1, backoff=5, rate=Rate(points=1, every=2))),
        )
    }
    # The retry of the first, at 5, is no reason for others to wait before it.
    asks = [(0.0, "expert", [0.9]), (2.0, "expert", [0.1]), (4.0, "expert", [0.2])]
    heard = consult(run, experts, asks)
    assert heard.of("id", "attempt", "served_at") == [(1, 1, 0), (2, 1, 2), (3, 1, 4), (1, 2, 6)]


def test_who_is_given_up_while_waiting_takes_nobodys_turn(run: Run) -> None:
    # Two points a round where one may pass: half are given up, and the source is never idle.
    asks = [(float(moment), 2) for moment in range(10)]
    heard = ask_at(run, Rate(points=1, every=1), *asks, split=True, timeout=2.5)
    served = [at for at, fate in heard.of("served_at", "fate") if fate == "answered"]
    assert served == list(range(12))
    given_up = [cost for cost, fate in heard.of("cost", "fate") if fate == "late"]
    assert given_up == [0] * 8


def test_a_retry_is_refused_too_when_it_comes_too_soon(run: Run) -> None:
    policy = retrying(3, backoff=0.5, rate=Rate(points=1, every=1, beyond="refuse"))
    heard = ask_one(run, Awake(), Channel(cost=1, policy=policy))
    assert heard.of("attempt", "fate", "arrived_at", "cost", "heard") == [
        (1, "invalid", 0, 1, False),
        (2, "rate", 0.5, 0, True),
    ]
    assert not heard.context.in_flight


@given(
    asks=st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(1, 3)), max_size=15),
    points=st.integers(3, 5),
    every=st.sampled_from([0.3, 1.0, 2.5]),
    split=st.booleans(),
)
def test_no_stretch_of_time_sees_more_points_than_the_rate_allows(
    asks: list[tuple[float, int]], points: int, every: float, split: bool
) -> None:
    moments = np.cumsum([pause for pause, _ in asks]).tolist()
    sizes = [size for _, size in asks]
    heard = ask_at(
        on_sim_clock,
        Rate(points=points, every=every),
        *zip(moments, sizes, strict=True),
        split=split,
    )
    sent = [(at, len(rows)) for at, rows in heard.of("served_at", "rows")]
    assert sum(count for _, count in sent) == sum(sizes)
    for start, _ in sent:
        within = sum(count for at, count in sent if start <= at < start + every * (1 - 1e-6))
        assert within <= points
    firsts = [(number, rows[0]) for number, rows in heard.of("id", "rows")]
    assert firsts == sorted(firsts)


# What is remembered.


def test_what_is_remembered_is_answered_at_once_and_free(run: Run) -> None:
    channel = Channel(service=2, transit=1, cost=1, noise=0.3, policy=Policy(remember=5))
    asks = [(0.0, "expert", [0.5]), (4.0, "expert", [0.5])]
    heard = consult(run, {"expert": (Teller(), channel)}, asks)
    assert heard.of("id", "attempt", "arrived_at", "measured_at", "cost", "fate") == [
        (1, 1, 3, 2, 1, "answered"),
        (2, 0, 4, 2, 0, "answered"),
    ]
    first, second = (record.reply for record in heard.records)
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert (first.values, first.stds) == (second.values, second.stds)
    assert not second.values.flags.writeable


def test_memory_lasts_as_long_as_stated_from_the_measurement_on(run: Run) -> None:
    channel = Channel(transit=1, policy=Policy(remember=5))
    asks = [(moment, "expert", [0.5]) for moment in (0.0, 5.0, 5.5)]
    heard = consult(run, {"expert": (Teller(), channel)}, asks)
    assert heard.of("id", "attempt", "measured_at") == [(1, 1, 0), (2, 0, 0), (3, 1, 5.5)]


def test_memory_serves_the_same_point_only(run: Run) -> None:
    channel = Channel(cost_per_point=1, policy=Policy(remember=5))
    near = np.nextafter(0.5, 1)
    asks = [(0.0, "expert", [0.5, 0.0]), (1.0, "expert", [near, 0.5, -0.0])]
    heard = consult(run, {"expert": (Teller(), channel)}, asks)
    assert heard.of("id", "rows", "attempt", "cost")[1:] == [
        (2, [1], 0, 0),
        (2, [2], 0, 0),
        (2, [0], 1, 1),
    ]


def test_failures_are_not_remembered(run: Run) -> None:
    channel = Channel(cost=1, policy=Policy(remember=50))
    asks = [(0.0, "expert", [0.5]), (1.0, "expert", [0.5]), (3.0, "expert", [0.5])]
    heard = consult(run, {"expert": (Awake(wakes=2.0), channel)}, asks)
    assert heard.of("fate", "attempt") == [("invalid", 1), ("invalid", 1), ("answered", 1)]


def test_an_older_answer_that_arrives_later_does_not_replace_a_newer_one(run: Run) -> None:
    class Swift(Expert):
        """Is quick when asked late."""

        async def answer(self, query: Query, world: World) -> Estimate:
            then = world.clock.now
            await world.clock.sleep(5.0 if then == 0 else 0.0)
            return Estimate(world.rewards(query.points, then), measured_at=then)

    channel = Channel(policy=Policy(remember=20))
    asks = [(moment, "expert", [0.5]) for moment in (0.0, 2.0, 6.0)]
    heard = consult(run, {"expert": (Swift(), channel)}, asks)
    assert heard.of("id", "arrived_at", "measured_at", "attempt") == [
        (2, 2, 2, 1),
        (1, 5, 0, 1),
        (3, 6, 2, 0),
    ]


def test_what_a_fallback_said_is_remembered_too(run: Run) -> None:
    channel = Channel(cost=1, policy=Policy(remember=5, fallback="backup"))
    asks = [(0.0, "expert", [0.5]), (1.0, "expert", [0.5])]
    heard = consult(run, with_backup(channel), asks)
    assert heard.of("id", "attempt", "cost", "measured_at")[1:] == [(1, 1, 3, 0), (2, 0, 0, 0)]


# What is merged.


def test_a_point_asked_twice_at_one_moment_is_paid_for_once_and_both_hear(run: Run) -> None:
    channel = Channel(service=2, cost=1, policy=Policy(merge=True))
    asks = [(1.0, "expert", [0.5]), (1.0, "expert", [0.1, 0.5]), (2.0, "expert", [0.5])]
    heard = consult(run, {"expert": (Teller(), channel)}, asks)
    assert heard.of("id", "rows", "attempt", "cost", "arrived_at") == [
        (1, [0], 1, 1, 3),
        (2, [1], 0, 0, 3),
        (2, [0], 1, 1, 3),
        (3, [0], 1, 1, 4),  # Another moment is another question.
    ]
    assert heard.context.budget.spent == 3


def test_two_experts_who_ask_a_third_at_one_moment_share_its_answer(run: Run) -> None:
    experts = {
        "one": (Relay(other="source"), Channel()),
        "two": (Relay(other="source"), Channel()),
        "source": (Teller(), Channel(service=1, cost=1, noise=0.5, policy=Policy(merge=True))),
    }
    heard = consult(run, experts, [(0.0, "one", [0.5]), (0.0, "two", [0.5])])
    assert heard.of("asker", "cost", source="source") == [("one", 1), ("two", 0)]
    replies = [r.reply for r in heard.records if r.reply.query.source != "source"]
    values = [float(reply.values[0]) for reply in replies if isinstance(reply, Answer)]
    assert len(values) == 2
    assert len(set(values)) == 1


def test_one_moment_is_the_same_though_the_answer_is_there_already(run: Run) -> None:
    experts = {
        "one": (Relay(other="source"), Channel()),
        "two": (Relay(other="source", hops=5), Channel()),
        "source": (Teller(), Channel(cost=1, noise=0.5, policy=Policy(merge=True))),
    }
    heard = consult(run, experts, [(0.0, "one", [0.5]), (0.0, "two", [0.5])])
    assert heard.of("asker", "cost", "attempt", source="source") == [("one", 1, 1), ("two", 0, 0)]


def test_an_answer_to_an_earlier_question_does_not_part_those_who_ask_now(run: Run) -> None:
    experts = {
        "two": (Relay(other="source", hops=5), Channel()),
        "source": (Teller(), Channel(service=1, cost=1, policy=Policy(merge=True))),
    }
    # The answer to the first arrives at 1, between the two who ask at 1.
    asks = [(0.0, "source", [0.5]), (1.0, "source", [0.5]), (1.0, "two", [0.5])]
    heard = consult(run, experts, asks)
    assert sorted(heard.of("arrived_at", "cost", source="source")) == [(1, 1), (2, 0), (2, 1)]


def test_a_point_named_twice_in_one_query_is_asked_once(run: Run) -> None:
    channel = Channel(cost_per_point=1, policy=Policy(merge=True))
    heard = ask_one(run, Teller(), channel, 0.5, 0.1, 0.5)
    assert heard.of("rows", "cost", "attempt") == [([0, 1], 2, 1), ([2], 0, 0)]


def test_both_hear_of_a_failure_and_retries_are_shared(run: Run) -> None:
    channel = Channel(cost=1, policy=retrying(1, merge=True))
    asks = [(0.0, "expert", [0.5]), (0.0, "expert", [0.5])]
    heard = consult(run, {"expert": (Awake(), channel)}, asks)
    assert heard.of("id", "fate", "arrived_at", "heard", "cost", "attempt") == [
        (1, "invalid", 0, False, 1, 1),
        (1, "invalid", 1, True, 1, 2),
        (2, "invalid", 1, True, 0, 0),
    ]


def test_both_hear_of_what_is_refused_at_once(run: Run) -> None:
    channel = Channel(outages=((0, 9),), policy=Policy(merge=True))
    asks = [(0.0, "expert", [0.5, 0.5]), (0.0, "expert", [0.5])]
    heard = consult(run, {"expert": (Teller(), channel)}, asks)
    assert heard.of("id", "rows", "fate", "heard") == [
        (1, [0], "outage", True),
        (1, [1], "outage", True),
        (2, [0], "outage", True),
    ]


def test_the_answer_of_a_fallback_is_shared_too(run: Run) -> None:
    channel = Channel(cost=1, policy=Policy(merge=True, fallback="backup"))
    asks = [(0.0, "expert", [0.5]), (0.0, "expert", [0.5])]
    heard = consult(run, with_backup(channel), asks)
    assert heard.of("id", "fate", "cost", "heard") == [
        (1, "invalid", 1, False),
        (1, "answered", 3, True),
        (2, "answered", 0, True),
    ]


# The end of the play.


@pytest.mark.parametrize(
    ("expert", "policy", "costs"),
    [
        (Awake(), retrying(9, backoff=50), [1, 0]),
        (Teller(), Policy(rate=Rate(points=1, every=50)), [1, 0]),
        (Teller(), Policy(merge=True), [1]),
    ],
    ids=["a retry to come", "waiting for the rate", "sent"],
)
def test_what_is_open_at_the_end_is_unanswered_and_costs_what_was_sent(
    run: Run, expert: Expert, policy: Policy, costs: list[float]
) -> None:
    waits = policy.rate is not None
    channel = Channel(
        cost=1, split=waits, service=100 if policy.merge else 0, policy=policy, patience=500
    )
    heard = ask_one(run, expert, channel, *((0.1, 0.2) if waits else (0.5,)), until=20.0)
    assert heard.of("cost") == [(cost,) for cost in costs]
    assert heard.of("fate", "arrived_at", "heard")[-1] == ("unanswered", 20, False)
    assert heard.context.budget.spent == 1


def test_followers_of_what_is_open_at_the_end_are_unanswered_too(run: Run) -> None:
    channel = Channel(cost=1, service=100, policy=Policy(merge=True))
    heard = ask_one(run, Teller(), channel, 0.5, 0.5, until=20.0)
    assert heard.of("rows", "fate", "cost") == [([0], "unanswered", 1), ([1], "unanswered", 0)]


# Over the reward's own channel.


def test_observations_are_retried() -> None:
    road = Channel(noise=0.1, loss=0.5, patience=0.25)
    patient = Channel(**{**dict(road), "policy": retrying(6, backoff=0)})

    def observed(feedback: Channel) -> tuple[int, set[int]]:
        trace = play(Asker(), Slope(), Rules(rounds=60), feedback=feedback)
        answered = trace.replies["fate"] == "answered"
        return answered.sum(), set(trace.replies["attempt"][answered].tolist())

    count, attempts = observed(road)
    assert count < 40
    assert attempts == {1}
    count, attempts = observed(patient)
    assert count >= 58
    assert attempts >= {1, 2, 3}


def test_observations_at_a_rate_are_made_when_it_is_their_turn() -> None:
    feedback = Channel(policy=Policy(rate=Rate(points=1, every=1.5)))
    replies = play(Asker(), Slope(), Rules(rounds=5), feedback=feedback).replies
    assert replies["served_at"][:4].tolist() == [1, 2.5, 4, 5.5]
    assert replies["fate"].tolist() == ["answered"] * 4 + ["unanswered"]


def test_the_reward_has_no_fallback() -> None:
    feedback = Channel(policy=Policy(fallback="expert"))
    with pytest.raises(PluginError, match="the reward has no fallback"):
        play(Asker(), Slope(), Rules(rounds=3), feedback=feedback, experts={"expert": Teller()})


# What is refused.


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"loss": 0.1, "policy": {"retries": 1}},
            "a loss is noticed when patience ends: give a patience, to retry then",
        ),
        (
            {"loss": 0.1, "policy": {"retries": 1, "timeout": 3}},
            "a loss is noticed when patience ends: give a patience, to retry then",
        ),
        (
            {"loss": 0.1, "policy": {"fallback": "other"}},
            "a loss is noticed when patience or the policy's timeout ends: give one of them",
        ),
        (
            {"faults": [{"kind": "given-up"}]},
            "the fault given-up needs a finite patience, to end before it",
        ),
        (
            {"faults": [{"kind": "nan", "share": 0.6}, {"kind": "late", "share": 0.6}]},
            "shares of faults sum to 1.2; at most 1 of 1 can go wrong",
        ),
        ({"faults": [{"kind": "nan", "share": 1.1}]}, "less than or equal to 1"),
        ({"faults": [{"kind": "fire"}]}, "no fault is called 'fire': there are: clock-skew"),
        ({"policy": {"growth": 0.5}}, "greater than or equal to 1"),
        ({"policy": {"retries": -1}}, "greater than or equal to 0"),
        ({"policy": {"backoff": inf}}, "finite number"),
        ({"policy": {"timeout": 0}}, "greater than 0"),
        ({"policy": {"rate": {"points": 0}}}, "greater than 0"),
        ({"policy": {"rate": {"points": 1, "beyond": "drop"}}}, "'wait' or 'refuse'"),
        ({"policy": {"retry": 1}}, "Extra inputs are not permitted"),
    ],
)
def test_a_channel_that_cannot_be_is_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Channel.model_validate(fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"loss": 0.1, "patience": 3, "policy": {"retries": 1}},
        {"loss": 0.1, "policy": {"fallback": "other", "timeout": 3}},
        {"faults": [{"kind": "given-up"}], "patience": 3},
        {"faults": [{"kind": "nan", "share": 0.1}] * 10},
    ],
)
def test_a_channel_that_can_be_is_taken(fields: dict[str, Any]) -> None:
    assert Channel.model_validate(fields) is not None


@pytest.mark.parametrize("kind", ["lost", "hang"])
def test_a_fault_that_goes_unnoticed_cannot_be_retried(kind: str) -> None:
    fields = {"faults": [{"kind": kind}], "policy": {"retries": 1}}
    with pytest.raises(ValueError, match="patience"):
        Channel.model_validate(fields)


# In files, and on the other clock.

FILE = """
rounds = 12
seed = 3
environment = { kind = "synthetic" }
feedback = { noise = 0.1 }

[optimizers.sparq]
kind = "sparq-gp-ucb"
expert = "sensor"

[experts.sensor]
kind = "truth"

[experts.sensor.channel]
noise = 0.1
loss = 0.6
patience = 0.5
cost = 1.0
split = true
faults = [{ kind = "nan", share = 0.2 }]

[experts.sensor.channel.policy]
retries = 2
backoff = 0.1
timeout = 3.0
fallback = "archive"
rate = { points = 20, every = 1.0 }
remember = 2.0
merge = true

[experts.archive]
kind = "truth"
channel = { noise = 0.5, transit = 1.0 }

[sweep]
"experts.sensor.channel.policy.retries" = [0, 2, 5]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    file = tmp_path / "policies.toml"
    file.write_text(FILE)
    return Scenario.load(file)


def test_a_policy_is_read_from_a_file(scenario: Scenario) -> None:
    assert scenario.experts["sensor"].channel.policy == Policy(
        retries=2,
        backoff=0.1,
        timeout=3.0,
        fallback="archive",
        rate=Rate(points=20, every=1.0),
        remember=2.0,
        merge=True,
    )


def test_a_policy_is_swept(scenario: Scenario) -> None:
    retries = [
        variant.experts["sensor"].channel.policy.retries for _, variant in scenario.settings()
    ]
    assert retries == [0, 2, 5]
    attempts = [
        variant.play("sparq").replies["attempt"].max() for _, variant in scenario.settings()
    ]
    assert attempts[:2] == [1, 3]
    assert attempts[2] > 3


def test_a_policy_survives_being_written_down(scenario: Scenario) -> None:
    written = json.loads(json.dumps(scenario.fingerprint("sparq")))
    again = Scenario.from_fingerprint(written, seed=scenario.seed, name="sparq")
    assert again.experts == scenario.experts
    assert again.play("sparq").digest() == scenario.play("sparq").digest()


def test_all_of_a_policy_gives_one_trace_on_two_clocks(scenario: Scenario) -> None:
    experts = {name: (each.expert, each.channel) for name, each in scenario.experts.items()}

    async def live() -> Trace:
        return await play_live(
            scenario.optimizers["sparq"],
            scenario.environment,
            scenario.rules,
            experts=experts,
            feedback=scenario.feedback,
            seed=scenario.seed,
        )

    virtual = scenario.play("sparq")
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        assert runner.run(live()).digest() == virtual.digest()
    fates = set(virtual.replies["fate"].tolist())
    assert fates >= {"answered", "lost", "invalid"}
    assert set(virtual.replies["attempt"].tolist()) >= {0, 1, 2, 3}
    assert virtual.replies["superseded"].any()
    assert "archive" in virtual.replies["source"]
