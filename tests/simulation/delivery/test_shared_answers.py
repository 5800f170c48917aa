from __future__ import annotations

import numpy as np

from sparq_sim import (
    Answer,
    Channel,
    Estimate,
    Expert,
    Query,
    World,
)
from sparq_sim.simulation.channel.policy import Policy
from sparq_sim.testing import Teller
from tests.conftest import Run
from tests.simulation.delivery.asking import (
    Awake,
    Relay,
    ask_one,
    consult,
    retrying,
    with_backup,
)

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


def test_nothing_is_remembered_by_a_policy_that_does_not_say_so(run: Run) -> None:
    asks = [(moment, "expert", [0.5]) for moment in (0.0, 0.5)]
    heard = consult(run, {"expert": (Teller(), Channel(cost=1, policy=retrying()))}, asks)
    assert heard.of("attempt", "measured_at", "cost") == [(1, 0, 1), (1, 0.5, 1)]


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


def test_what_is_put_to_a_fallback_later_is_not_merged_with_an_answer_of_before(run: Run) -> None:
    experts = {
        "a": (Teller(), Channel(cost=1, policy=Policy(merge=True))),
        "b": (Teller(), Channel(service=9, patience=1.5, policy=Policy(fallback="a"))),
    }
    heard = consult(run, experts, [(1.0, "a", [0.3]), (1.0, "b", [0.3])])
    assert heard.of("id", "attempt", "measured_at", "cost", source="a") == [
        (1, 1, 1.0, 1),
        (2, 1, 2.5, 1),
    ]
