from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox

from sparq_sim import Channel, Estimate, Expert, Query, Rules, World, play
from sparq_sim.simulation.channel.policy import Policy
from sparq_sim.simulation.measures import (
    Tally,
    average_regret,
    average_reward,
    best_seen,
    count_by_expert,
    cumulative_regret,
    exponent,
    impossible_rounds,
    last_meters,
    octaves,
    regret,
    regret_to_best_seen,
    spent,
    staleness,
    tally,
    unobserved_rounds,
)
from sparq_sim.simulation.records import UNASKED, Fate
from sparq_sim.simulation.trace import Trace
from sparq_sim.testing import Asker, Slope, Teller
from tests.analysis.test_cautions import Beacon


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def trace(
    regrets: Sequence[float] = (), replies: Sequence[tuple[str, str, float, float]] = ()
) -> Trace:
    """Make a trace from regrets and from replies as (source, fate, measured_at, arrived_at)."""
    sources, fates, measured, arrived = zip(*replies, strict=True) if replies else ((),) * 4
    return Trace(
        rounds={
            "round": np.arange(1, len(regrets) + 1),
            "regret": np.array(regrets, dtype=float),
            "spent": 0.5 * np.arange(1, len(regrets) + 1),
        },
        replies={
            "asker": np.full(len(sources), "agent"),
            "source": np.array(sources, dtype=np.str_),
            "fate": np.array(fates, dtype=np.str_),
            "superseded": np.zeros(len(fates), dtype=bool),
            "attempt": np.ones(len(fates), dtype=int),
            "measured_at": np.array(measured, dtype=float),
            "arrived_at": np.array(arrived, dtype=float),
        },
        coordinates=("x",),
        ended="horizon",
        spent=0.5 * len(regrets),
    )


REPLIES = [
    ("scout", Fate.ANSWERED, 1.0, 1.5),
    ("wind", Fate.ANSWERED, 0.0, 3.0),
    ("reward", Fate.ANSWERED, 2.0, 2.25),
    ("scout", Fate.LOST, math.nan, 4.0),
    ("scout", Fate.LATE, math.nan, 5.0),
    ("wind", Fate.INVALID, math.nan, 6.0),
    ("scout", Fate.DUPLICATE, 1.0, 7.0),
    ("scout", Fate.ANSWERED, 6.0, 8.0),
]


# Regret and spending


def test_regret_adds_up_and_averages_out() -> None:
    play = trace([4.0, 0.0, 2.0])
    assert regret(play).tolist() == [4.0, 0.0, 2.0]
    assert cumulative_regret(play).tolist() == [4.0, 4.0, 6.0]
    assert average_regret(play).tolist() == [4.0, 2.0, 2.0]


def test_spending_is_given_by_round() -> None:
    assert spent(trace([1.0, 1.0])).tolist() == [0.5, 1.0]


def test_an_empty_play_measures_nothing() -> None:
    empty = trace()
    for measure in (regret, cumulative_regret, average_regret, spent, staleness):
        assert measure(empty).shape == (0,)
    assert tally(empty) == Tally(asked=0)


# Replies


def test_staleness_is_the_age_on_arrival_of_what_experts_answered() -> None:
    play = trace(replies=REPLIES)
    assert staleness(play).tolist() == [0.5, 3.0, 2.0]
    assert staleness(play, "scout").tolist() == [0.5, 2.0]
    assert staleness(play, "reward").tolist() == [0.25]
    assert staleness(play, "nobody").tolist() == []


def test_points_asked_of_experts_are_counted_by_what_became_of_them() -> None:
    play = trace(replies=REPLIES)
    assert tally(play) == Tally(asked=6, answered=3, lost=1, late=1, invalid=1)
    assert tally(play, "scout") == Tally(asked=4, answered=2, lost=1, late=1)
    assert tally(play, "reward") == Tally(asked=1, answered=1)


@settings(max_examples=50, deadline=None)
@given(
    kinds=st.lists(
        st.tuples(st.sampled_from(["scout", "wind", "reward"]), st.sampled_from(tuple(Fate)))
    )
)
def test_what_was_asked_was_answered_or_failed(kinds: list[tuple[str, str]]) -> None:
    play = trace(replies=[(source, fate, 0.0, 1.0) for source, fate in kinds])
    whole = tally(play)
    assert whole.asked == whole.answered + whole.failed
    assert whole.failed == sum(
        (whole.late, whole.lost, whole.refused, whole.invalid, whole.unavailable, whole.open)
    )
    assert whole.asked == tally(play, "scout").asked + tally(play, "wind").asked
    assert whole.asked == sum(fate not in UNASKED for source, fate in kinds if source != "reward")


def relayed_play() -> Trace:
    """Play with a sensor that fails often and is asked again, a gossip, and a beacon."""
    flaky = Channel(loss=0.5, patience=1.0, cost=0.1, policy=Policy(retries=2))
    return play(
        Asker(batch=2),
        Slope(),
        Rules(rounds=40),
        experts={"sensor": (Teller(), flaky), "gossip": Gossip(), "beacon": Beacon()},
        seed=1,
    )


class Gossip(Expert):
    """Asks the sensor."""

    async def answer(self, query: Query, world: World) -> Estimate:
        replies = await world.ask("sensor", query.points)
        return Estimate(np.full(len(query.points), float(len(replies))))


def test_a_point_asked_again_counts_once_and_its_retries_apart() -> None:
    counts = tally(relayed_play(), "sensor")
    assert counts.asked == 2 * 40 - 1  # In the first round there is one point to ask about.
    assert 30 < counts.retries < 100
    assert counts.asked == counts.answered + counts.failed


def test_what_experts_ask_each_other_and_what_they_send_unasked_are_no_queries() -> None:
    counts = tally(relayed_play())
    assert counts.asked == 3 * (2 * 40 - 1)
    assert counts.relayed == 2 * 40 - 1
    assert counts.pushed == 41  # One each round, and one at the end.


def test_an_expert_is_judged_by_all_that_was_put_to_it_and_by_every_attempt() -> None:
    counts = count_by_expert(relayed_play())
    sensor = counts["sensor"]
    assert sensor["asked"] == 2 * (2 * 40 - 1)  # The agent asks it, and the gossip does.
    assert sensor["answered"] < sensor["asked"] < sensor["answered"] + sensor["lost"]
    assert counts["beacon"] == {"asked": 2 * 40 - 1, "answered": 2 * 40 - 1}


def test_a_regret_below_zero_is_impossible_but_for_rounding() -> None:
    rounds = {"regret": np.array([0.1, -1e-9, -0.1]), "best": np.array([1.0, 1.0, 1.0])}
    made = trace([0.1, -1e-9, -0.1])
    assert impossible_rounds(replace(made, rounds={**made.rounds, **rounds})) == 1


# How regret falls


@pytest.mark.parametrize("power", [0.25, 0.5, 0.75, 1.0, 1.5])
def test_the_exponent_of_a_pure_power_is_recovered(power: float) -> None:
    regrets = 7.0 * np.diff(np.arange(1_001.0) ** power)
    assert exponent(regrets) == pytest.approx(power, abs=1e-9)


def test_regret_that_stays_after_some_learning_does_not_fall() -> None:
    times = np.arange(1.0, 501)
    assert exponent(1.5 * np.exp(-times / 12) + 0.03) == pytest.approx(1, abs=0.01)


def test_the_first_quarter_of_the_rounds_makes_no_difference_to_the_exponent() -> None:
    regrets = 1 / np.sqrt(np.arange(1.0, 401))
    changed = regrets.copy()
    changed[:100] = 1e6
    assert exponent(changed) == exponent(regrets) == pytest.approx(0.5, abs=0.01)


def test_the_exponent_does_not_depend_on_the_unit_of_reward() -> None:
    regrets = stream(3).gamma(2.0, 0.5, 500)
    assert exponent(1e-3 * regrets) == pytest.approx(exponent(regrets))


def test_octaves_are_the_second_quarter_and_the_second_half() -> None:
    assert octaves(np.repeat([9.0, 1.0, 2.0, 4.0], 5)) == (1.0, 3.0)


@pytest.mark.parametrize("regrets", [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [math.nan, 1.0]])
def test_an_octave_without_regret_has_no_exponent(regrets: list[float]) -> None:
    assert math.isnan(exponent(np.repeat(regrets, 50)))


def test_an_exponent_needs_twenty_rounds() -> None:
    with pytest.raises(ValueError, match="at least 20 rounds, not 19"):
        exponent(np.ones(19))
    assert exponent(np.ones(20)) == 1.0


def test_the_last_meters_are_those_of_the_last_round() -> None:
    rounds = {
        "round": np.array([1, 2]),
        "meter_net_left": np.array([2.0, 1.0]),
        "meter_net_late": np.array([2.0, math.nan]),
        "note_beta": np.array([1.0, 1.0]),
    }
    trace = Trace(rounds=rounds, replies={}, coordinates=(), ended="rounds", spent=0.0)
    found = last_meters(trace)
    assert list(found) == ["net_left", "net_late"]
    assert found["net_left"] == 1.0
    assert math.isnan(found["net_late"])


# Rewards


def with_rewards(*rewards: float) -> Trace:
    unknown = np.full(len(rewards), math.nan)
    rounds = {**trace(rewards).rounds, "reward": np.array(rewards)}
    return replace(trace(rewards), rounds={**rounds, "best": unknown, "regret": unknown})


def test_means_of_rewards_are_over_those_observed() -> None:
    seen = with_rewards(math.nan, 2.0, math.nan, 4.0)
    assert np.array_equal(average_reward(seen), [math.nan, 2.0, 2.0, 3.0], equal_nan=True)
    assert unobserved_rounds(seen) == 2


def test_the_best_seen_is_the_highest_reward_of_the_whole_play() -> None:
    seen = with_rewards(1.0, math.nan, 4.0)
    assert best_seen(seen) == 4.0
    assert np.array_equal(regret_to_best_seen(seen), [3.0, math.nan, 0.0], equal_nan=True)


def test_without_an_observed_reward_there_is_no_best_seen() -> None:
    nothing = with_rewards(math.nan, math.nan)
    assert math.isnan(best_seen(nothing))
    assert np.isnan(average_reward(nothing)).all()


def test_a_trace_knows_the_best_where_it_has_one_and_where_it_has_no_rounds() -> None:
    played = play(Asker(), Slope(), rules=Rules(rounds=2))
    assert played.knows_best
    nothing = {name: column[:0] for name, column in played.rounds.items()}
    assert replace(played, rounds=nothing).knows_best
    assert not with_rewards(1.0, 2.0).knows_best
