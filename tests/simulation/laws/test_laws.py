from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sparq_experts.sensors import Sensors
from sparq_sim import Channel, Rules, Trace, play
from sparq_sim.plugin.expert import Expert
from sparq_sim.simulation.channel.faults import Fault
from sparq_sim.simulation.channel.policy import Policy, Rate
from sparq_sim.simulation.laws import BrokenLawError, check_laws, find_broken
from sparq_sim.testing import Asker, Slope, Teller

PLAIN = ("slow", "shy", "kind", "wild", "twin")


@cache
def made() -> Trace:
    """Play with one expert for each part of a channel that laws are about."""
    uneven = {"kind": "uniform", "low": 0.1, "high": 0.6}
    experts: dict[str, Expert | tuple[Expert, Channel]] = {
        "slow": (Teller(), Channel(service=2.3, capacity=2, cost=0.1, cost_per_point=0.05)),
        "shy": (Teller(), Channel(patience=2.0, loss=0.3, transit=uneven, outages=((5.0, 8.0),))),
        "kind": (
            Teller(),
            Channel(
                policy=Policy(retries=1, remember=3.0),
                patience=1.0,
                transit=uneven,
                cost=0.1,
                charged="answered",
                faults=(Fault(kind="nan", share=0.4),),
            ),
        ),
        "wild": (Teller(), Channel(policy=Policy(rate=Rate(points=2, every=2.0)))),
        "twin": (Teller(), Channel(patience=2.0, loss=0.3, transit=uneven)),
        "net": (Sensors(cost_per_joule=1.0), Channel(split=True)),
    }
    rules = Rules(rounds=20, budget=100.0, budget_per_round=10.0)
    return play(Asker(), Slope(place="sites"), rules, experts=experts)


def find_laws(trace: Trace) -> set[str]:
    """Return the laws that a trace breaks."""
    assert trace.played is not None
    return {broken.law for broken in find_broken(trace, trace.played, plain=PLAIN)}


Columns = dict[str, NDArray[Any]]


def spoil(change: Callable[[Columns], object]) -> Trace:
    """Return the trace with its replies changed."""
    replies = {name: column.copy() for name, column in made().replies.items()}
    change(replies)
    return replace(made(), replies=replies)


def spoil_rounds(change: Callable[[Columns], object]) -> Trace:
    """Return the trace with its rounds changed."""
    rounds = {name: column.copy() for name, column in made().rounds.items()}
    change(rounds)
    return replace(made(), rounds=rounds)


def test_a_play_breaks_no_law() -> None:
    assert find_laws(made()) == set()


def row(columns: Columns, source: str, fate: str = "answered", **more: object) -> int:
    """Return the last row of a source with this fate."""
    chosen = (columns["source"] == source) & (columns["fate"] == fate)
    for name, value in more.items():
        chosen &= columns[name] == value
    return int(np.flatnonzero(chosen)[-1])


def put(source: str, column: str, value: object, fate: str = "answered", **more: object) -> Any:
    """Return a change of one cell."""

    def change(columns: Columns) -> None:
        columns[column][row(columns, source, fate, **more)] = value

    return change


def add(source: str, column: str, value: float, fate: str = "answered", **more: object) -> Any:
    """Return a change of one cell by some value."""

    def change(columns: Columns) -> None:
        columns[column][row(columns, source, fate, **more)] += value

    return change


def drop_row(columns: Columns) -> None:
    place = row(columns, "slow", row=0)
    for name in columns:
        columns[name] = np.delete(columns[name], place)


def drop_reward(columns: Columns) -> None:
    place = row(columns, "reward")
    for name in columns:
        columns[name] = np.delete(columns[name], place)


def serve_at_once(columns: Columns) -> None:
    of_slow = columns["source"] == "slow"
    columns["served_at"][of_slow] = columns["asked_at"][of_slow]


def keep_slots(columns: Columns) -> None:
    slow = (columns["source"] == "slow") & (columns["query"] >= columns["query"].max() // 2)
    columns["served_at"][slow] = np.nan
    columns["sent_at"][slow] = np.nan
    columns["fate"][slow] = "unanswered"


def overtake(columns: Columns) -> None:
    slow = np.flatnonzero((columns["source"] == "slow") & np.isfinite(columns["served_at"]))
    columns["served_at"][slow[-1]] = columns["served_at"][slow[0]]
    columns["sent_at"][slow[-1]] = columns["served_at"][slow[0]]


def hasten(columns: Columns) -> None:
    wild = columns["source"] == "wild"
    columns["served_at"][wild] = columns["served_at"][wild] / 3


def share_luck(columns: Columns) -> None:
    for name in ("sent_at", "arrived_at"):
        columns[name][columns["source"] == "twin"] = 1.0
    one = (columns["source"] == "shy") & (columns["fate"] == "answered")
    two = (columns["source"] == "twin") & (columns["fate"] == "answered")
    first = np.intersect1d(columns["round"][one], columns["round"][two])[0]
    mine = np.flatnonzero(one & (columns["round"] == first))
    theirs = np.flatnonzero(two & (columns["round"] == first))
    for name in ("sent_at", "arrived_at"):
        columns[name][theirs] = columns[name][mine[0]]


def swap_rows(columns: Columns) -> None:
    columns["arrived_at"][:] = columns["arrived_at"][::-1]


REPLIES = {
    "an answer goes through every stage": put("slow", "served_at", np.nan),
    "stages come in their order": add("slow", "served_at", 5.0),
    "an answer has a date, and a failure none": put("slow", "measured_at", np.nan),
    "an answer is measured before it is sent": add("shy", "measured_at", 0.05),
    "replies stand in the order of arrival": swap_rows,
    "nothing arrives after the end": put("reward", "arrived_at", 99.0),
    "who gives up has waited": put("shy", "fate", "late"),
    "nobody waits longer than patience": add("shy", "arrived_at", 9.0),
    "nobody is reached in an outage": put("shy", "fate", "lost", "outage"),
    "outages are declared": put("shy", "fate", "outage"),
    "each point asked about has one end": drop_row,
    "each attempt leads to an end": put("kind", "query", 9999, "invalid", superseded=True),
    "an answer has finite values, and a failure none": put("slow", "value", np.nan),
    "a failure has a reason, an answer none": put("slow", "reason", "?"),
    "what is faulty is not served": put("slow", "fault", "nan"),
    "nobody hears of it": put("kind", "heard", True, "invalid", superseded=True),
    "the asker hears of it": put("slow", "heard", False),
    "a loss is noticed when patience ends": put("shy", "heard", False, "lost"),
    "there are no more attempts than allowed": put("slow", "attempt", 2),
    "nothing is tried again unless a policy says so": put("slow", "superseded", True),
    "a shared answer is as it was given": put("kind", "value", 0.123, attempt=0),
    "costs are finite and not negative": put("slow", "cost", -0.1),
    "what is refused, shared or unasked is free": put("shy", "cost", 0.5, "outage"),
    "costs add up to what was spent": add("slow", "cost", 0.1),
    "each attempt costs what its channel says": add("slow", "cost", 0.1, row=0),
    "no round exceeds its budget": add("slow", "cost", 11.0),
    "no source serves more than it can": serve_at_once,
    "nobody waits while a slot is free": keep_slots,
    "who asks first is served first": overtake,
    "no source is asked faster than its rate": hasten,
    "sources do not share their luck": share_luck,
    "every move asks for its reward": drop_reward,
    "the reward is that of the point played, at that moment": add("reward", "x0", 0.1),
    "experts are asked at points played before": add("slow", "x0", 0.1),
}
"""A change of the replies for each law that it breaks."""


@pytest.mark.parametrize("law", REPLIES)
def test_each_law_of_replies_can_be_broken(law: str) -> None:
    assert law in find_laws(spoil(REPLIES[law]))


def put_round(column: str, value: object, place: int = 3) -> Callable[[Columns], None]:
    def change(columns: Columns) -> None:
        columns[column][place] = value

    return change


ROUNDS = {
    "rounds follow each other": put_round("started_at", 3.5),
    "a round is played in its time": put_round("played_at", 9.0),
    "a point stays until the next move": put_round("moved", False),
    "regret is best minus reward": put_round("regret", 0.123),
    "what was spent only grows": put_round("spent", 1e6),
    "what was spent has been asked for": put_round("spent", 1e6, -1),
}


@pytest.mark.parametrize("law", ROUNDS)
def test_each_law_of_rounds_can_be_broken(law: str) -> None:
    assert law in find_laws(spoil_rounds(ROUNDS[law]))


def test_regret_below_zero_breaks_a_law() -> None:
    def better_than_best(columns: Columns) -> None:
        columns["best"][2] = columns["reward"][2] - 0.5
        columns["regret"][2] = columns["best"][2] - columns["reward"][2]

    assert "regret is not negative" in find_laws(spoil_rounds(better_than_best))


def test_a_play_that_ends_without_a_reason_breaks_a_law() -> None:
    trace = made()
    short = {name: column[:-1] for name, column in trace.rounds.items()}
    assert "a play has the rounds of its rules" in find_laws(replace(trace, rounds=short))


def test_more_spent_than_the_budget_breaks_a_law() -> None:
    assert "no play exceeds its budget" in find_laws(replace(made(), spent=101.0))


def test_energy_that_is_not_booked_breaks_a_law() -> None:
    trace = made()
    nodes = dict(trace.accounts["net/nodes"])
    nodes["energy_send"] = nodes["energy_send"] * 0.0
    spoilt = replace(trace, accounts={**trace.accounts, "net/nodes": nodes})
    assert find_laws(spoilt) == {"energy used and left is what there was"}


def test_energy_that_was_harvested_or_wasted_is_part_of_the_sum() -> None:
    trace = made()

    def find(**more: float) -> set[str]:
        nodes = dict(trace.accounts["net/nodes"])
        for name, joules in more.items():
            nodes[name] = nodes.get(name, np.zeros(len(nodes["left"]))) + joules
        return find_laws(replace(trace, accounts={**trace.accounts, "net/nodes": nodes}))

    assert find(harvested=3.0, wasted=1.0, left=2.0) == set()
    for wrong in ({"harvested": 3.0}, {"wasted": 1.0}, {"harvested": 3.0, "left": 2.0}):
        assert find(**wrong) == {"energy used and left is what there was"}


def test_an_error_names_law_source_round_and_values() -> None:
    spoilt = spoil(put("slow", "value", np.nan))
    assert spoilt.played is not None
    with pytest.raises(BrokenLawError) as caught:
        check_laws(spoilt, spoilt.played)
    told = str(caught.value)
    assert "an answer has finite values, and a failure none (source slow, round " in told
    assert "value nan" in told
    assert str(pickle.loads(pickle.dumps(caught.value))) == told


def test_a_play_with_its_laws_checked_is_the_same_play() -> None:
    played = made().played
    assert played is not None
    assert played.again(laws=True).digest() == made().digest()


def test_access_denied_in_a_play_that_grants_it_breaks_a_law() -> None:
    spoilt = spoil(put("slow", "fate", "access"))
    assert spoilt.played is not None
    everywhere = spoilt.played.rules.model_copy(update={"access": "domain"})
    granted = replace(spoilt, played=replace(spoilt.played, rules=everywhere))
    assert "access is not denied" in find_laws(granted)


def test_hearing_of_a_loss_that_nobody_can_notice_breaks_a_law() -> None:
    def lose(columns: Columns) -> None:
        columns["fate"][row(columns, "slow")] = "lost"

    assert "nobody notices a loss without patience" in find_laws(spoil(lose))
