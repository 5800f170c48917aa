from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparq_sim.analysis.criteria import choose_criterion
from sparq_sim.analysis.levels import Level, Levels
from sparq_sim.analysis.standings import find_standings, rank_plays
from sparq_sim.report.finding import Finding, tell_finding
from sparq_sim.report.gather import gather
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoredSummary
from tests.analysis.results import make_plays
from tests.plants import Plant, steer

FAST = [0.10, 0.11, 0.09, 0.12, 0.10, 0.08]
SLOW = [0.40, 0.38, 0.45, 0.41, 0.39, 0.36]
NEAR = [0.12, 0.09, 0.10, 0.13, 0.08, 0.10]
LEVELS: list[Level] = [({}, Levels(uniform=1.0, fixed=0.3, late=0.01))]


def told(*rows: list[StoredSummary], levels: Sequence[Level] = ()) -> Finding:
    found = [play for plays in rows for play in plays]
    return tell_finding(rank_plays(found, choose_criterion(found)), levels)


def swept(optimizer: str, path: str, by_value: Mapping[Any, list[float]]) -> list[StoredSummary]:
    return [
        play
        for value, numbers in by_value.items()
        for play in make_plays(optimizer, numbers, setting={path: value})
    ]


def shift(numbers: list[float], by: float) -> list[float]:
    return [number + by for number in numbers]


# One setting


def test_a_winner_beyond_chance_is_told_by_how_much_and_over_whom() -> None:
    found = told(
        make_plays("hare-1", FAST), make_plays("tortoise-1", SLOW), make_plays("snail", SLOW[::-1])
    )
    assert found.sentence == (
        "hare-1 is best: its average regret, 0.1, is 75 % below that of tortoise-1 (0.398), the "
        "next best, and its lead over both others is beyond chance."
    )
    assert found.more[0].startswith(
        "In 6 of 6 pairs of plays under the same chance it has less regret than tortoise-1: the "
        "mean difference is 0.298 (95 % interval 0.2"
    )


def test_a_lead_that_may_be_chance_is_called_so() -> None:
    found = told(make_plays("a-1", FAST), make_plays("b-1", NEAR), make_plays("c-1", SLOW))
    assert found.sentence == (
        "a-1 has the lowest average regret, 0.1, but its lead over b-1 (0.103) may be chance; over "
        "the other one, it is beyond chance."
    )


def test_a_lead_is_sure_only_if_it_is_over_all_and_not_over_the_next_best_alone() -> None:
    wild = [0.2, 3.0, 0.1, 2.0, 0.05, 1.0]
    found = told(make_plays("a-1", FAST), make_plays("b-1", SLOW), make_plays("c-1", wild))
    assert "its lead over c-1 (1.06) may be chance" in found.sentence


def test_one_play_each_proves_nothing() -> None:
    found = told(make_plays("a-1", [0.1]), make_plays("b-1", [0.4]))
    assert found.sentence == (
        "In one play each, a-1 has the lowest average regret, 0.1, before b-1 (0.4): chance may "
        "have decided."
    )


def test_a_tie_has_no_winner() -> None:
    found = told(make_plays("a-1", FAST), make_plays("b-1", FAST))
    assert found.sentence == "a-1 and b-1 come to exactly the same average regret in each " + (
        "replication, 0.1."
    )


def test_of_one_optimizer_in_one_setting_the_mean_is_told_beside_the_best_fixed_point() -> None:
    found = told(make_plays("a-1", FAST), levels=LEVELS)
    assert found.sentence.startswith("The average regret of a-1 is 0.1 (95 % interval 0.08")
    assert found.more == ["a-1 does better than the best fixed point (0.3)."]


def test_names_that_could_be_words_are_quoted() -> None:
    found = told(make_plays("the best", FAST), make_plays("nobody", SLOW))
    assert found.sentence.startswith("“the best” is best: its average regret, 0.1, is 75 % below")
    assert "that of “nobody” (0.398), beyond chance." in found.sentence


def test_of_rewards_more_is_better_and_differences_are_no_shares() -> None:
    rewards = [make_plays("a-1", shift(FAST, -9.0), reward=True)]
    rewards.append(make_plays("b-1", shift(FAST, -9.5), reward=True))
    assert told(*rewards).sentence == (
        "a-1 is best: its mean reward, \N{MINUS SIGN}8.9, is 0.5 above that of b-1 "
        "(\N{MINUS SIGN}9.4), beyond chance."
    )


# Levels


def test_who_does_worse_than_simple_policies_is_named() -> None:
    found = told(
        make_plays("a-1", FAST),
        make_plays("b-1", SLOW),
        make_plays("c-1", shift(SLOW, 1)),
        levels=LEVELS,
    )
    assert found.more[1:] == [
        "All but a-1 do worse than the best fixed point (0.3).",
        "c-1 does worse than points drawn at random (1).",
    ]


def test_a_winner_that_is_worse_than_the_best_fixed_point_is_said_to_be() -> None:
    found = told(make_plays("a-1", SLOW), make_plays("b-1", shift(SLOW, 0.2)), levels=LEVELS)
    assert "Even the best does worse than the best fixed point (0.3)." in found.more


# Several settings


def test_along_a_sweep_of_one_optimizer_its_rise_is_told() -> None:
    found = told(swept("a-1", "x.transit", {0: FAST, 1: shift(FAST, 0.1), 5: SLOW}), levels=LEVELS)
    assert found.sentence == (
        "The average regret of a-1 rises from 0.1 at transit 0 to 0.398 at transit 5, 4 times as "
        "much, beyond chance."
    )
    assert found.more == ["a-1 does worse than the best fixed point (0.3) in 1 of 3 settings."]


def test_a_sweep_of_names_has_a_lowest_and_a_highest() -> None:
    found = told(swept("a-1", "x.policy", {"calm": SLOW, "bold": FAST, "wild": shift(SLOW, 1)}))
    assert found.sentence == (
        "The average regret of a-1 is lowest at policy bold (0.1) and highest at policy wild "
        "(1.4), beyond chance."
    )


def test_of_many_settings_the_extremes_may_be_chance() -> None:
    found = told(swept("a-1", "x.noise", {0: FAST, 1: NEAR, 2: FAST[::-1]}))
    assert found.sentence.endswith(", which may be chance.")


def test_a_field_that_changes_nothing_is_said_to() -> None:
    found = told(swept("a-1", "x.noise", {0: FAST, 1: FAST}))
    assert found.sentence == (
        "The average regret of a-1 is 0.1 in both settings: noise changes nothing."
    )


def test_where_the_winner_changes_along_a_sweep_is_told() -> None:
    found = told(
        swept("a-1", "x.transit", {0: FAST, 1: FAST, 2: SLOW, 3: SLOW}),
        swept("b-1", "x.transit", dict.fromkeys(range(4), shift(FAST, 0.1))),
    )
    assert found.sentence == (
        "a-1 has the lowest average regret up to transit 1, b-1 from transit 2 on; in each of them "
        "beyond chance."
    )


def test_over_settings_wins_are_counted_and_the_odd_one_is_named() -> None:
    by_value = {0: FAST, 1: SLOW, 2: FAST, 3: FAST}
    found = told(
        swept("a-1", "x.transit", by_value),
        swept("b-1", "x.transit", dict.fromkeys(range(4), shift(FAST, 0.1))),
    )
    assert found.sentence == (
        "a-1 has the lowest average regret in 3 of 4 settings, b-1 at transit 1; in each of them "
        "beyond chance."
    )


def test_paths_that_are_swept_side_by_side_are_one_axis() -> None:
    plays = [
        play
        for loss, numbers in ((0.0, FAST), (0.5, SLOW))
        for play in make_plays("a-1", numbers, setting={"x.loss": loss, "y.loss": loss})
    ]
    assert "rises from 0.1 at loss 0 to 0.398 at loss 0.5" in told(plays).sentence


def test_of_a_grid_the_settings_are_named_in_full() -> None:
    plays = [
        play
        for x in (0, 1)
        for y in (0, 1)
        for play in make_plays("a-1", shift(FAST, x + y), setting={"a.x": x, "a.y": y})
    ]
    assert "is lowest with x 0, y 0 (0.1) and highest with x 1, y 1 (2.1)" in told(plays).sentence


def test_an_optimizer_that_a_sweep_does_not_touch_takes_part_in_each_setting() -> None:
    found = told(
        make_plays("b-1", shift(FAST, 0.1)),
        swept("a-1", "x.transit", {0: FAST, 1: FAST, 2: SLOW}),
    )
    assert "a-1 has the lowest average regret up to transit 1, b-1 at transit 2" in found.sentence


def test_where_a_price_is_swept_the_break_even_price_is_enclosed() -> None:
    asks = [
        play
        for price in (0.01, 0.1, 1.0)
        for play in make_plays(
            "asks-1", FAST, setting={"x.cost_per_point": price}, spent=10 * price
        )
    ]
    found = told(asks, make_plays("mute-1", SLOW))
    assert (
        "Counting a unit of cost as a unit of regret, asks-1 is best in the mean up to "
        "cost_per_point 0.1, and mute-1 from cost_per_point 1 on: the break-even price lies "
        "between." in found.more
    )


# What makes it uncertain


def test_few_plays_and_unfinished_studies_are_a_first_look() -> None:
    plays = [*make_plays("a-1", FAST[:3]), *make_plays("b-1", SLOW[:3])]
    standings = rank_plays(plays, choose_criterion(plays), planned={("a-1", "{}"): 12})
    assert tell_finding(standings).more[-2:] == [
        "Only 6 of 12 plays are finished.",
        "With at most 3 plays each, this is a first look: play more.",
    ]


def test_plays_that_stuck_are_counted() -> None:
    plays = make_plays("a-1", FAST, last_quarter_regret=0.1)
    worst = plays[-1]
    plays[-1] = replace(worst, measures={**worst.measures, "last_quarter_regret": 9.0})
    assert told(plays, make_plays("b-1", SLOW)).more[-1] == (
        "1 of 6 plays of a-1 stuck, so means and intervals there may be far off."
    )


def test_impossible_regrets_are_not_ranked() -> None:
    found = told(
        make_plays("a-1", FAST, impossible_rounds=3.0), make_plays("b-1", SLOW), levels=LEVELS
    )
    assert found.sentence.startswith("The average regret of b-1 is 0.398")
    assert "a-1 cannot be ranked: regret below 0 is impossible, see the notes." in found.more


def test_without_plays_there_is_no_finding() -> None:
    assert told([]).sentence == "No play is finished yet, so there are no results."


# Real studies


def test_of_rewards_the_highest_is_the_best(steered: Results) -> None:
    standings = find_standings(steered)
    assert "mean reward" in tell_finding(standings).sentence
    for ranking in standings.rankings:
        means = [place.row.mean_reward.mean for place in ranking.places]
        assert means == sorted(means, reverse=True)


def test_regret_against_the_best_seen_is_named(steered: Results) -> None:
    told = gather(steered, replays=False, best_seen=True)
    assert "average regret against the best seen" in told.finding.sentence


def test_without_any_reward_nobody_is_best(tmp_path: Path) -> None:
    silent = steer(tmp_path, environment=Plant(silent=2.0), replications=1)
    assert "no reward was observed" in gather(silent, replays=False).finding.sentence


@pytest.mark.parametrize("count", [1, 2, 6])
def test_the_first_sentence_is_short(count: int) -> None:
    rows = [make_plays(f"method-{k}", shift(FAST[:count], k / 50)) for k in range(9)]
    assert len(told(*rows, levels=LEVELS).sentence.split()) <= 40
