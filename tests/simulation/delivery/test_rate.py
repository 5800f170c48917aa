from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparq_sim import (
    Channel,
)
from sparq_sim.simulation.channel.policy import Policy, Rate
from sparq_sim.testing import Teller
from tests.conftest import Run, on_sim_clock
from tests.simulation.delivery.asking import (
    Awake,
    Experts,
    Heard,
    ask_one,
    consult,
    retrying,
    with_backup,
)

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
