from __future__ import annotations

from math import inf

import numpy as np
import pytest
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
    World,
    play,
)
from sparq_sim.simulation.channel.policy import Policy
from sparq_sim.testing import Asker, Slope, Teller
from tests.conftest import Run, on_sim_clock
from tests.simulation.delivery.asking import (
    LANDSCAPE,
    Awake,
    HalfAwake,
    Ignorant,
    Relay,
    ask_one,
    consult,
    retrying,
    with_backup,
)

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
