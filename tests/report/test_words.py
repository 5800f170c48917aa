from __future__ import annotations

from math import nan

import pytest

from sparq_sim.analysis import Difference, Spread, Summary
from sparq_sim.report.page import Gathered
from sparq_sim.report.words import Verdict, number, scenario, winner
from tests.report.conftest import scenario as made


def told_of(**fields: object) -> dict[str, str]:
    one = made(sweep={}, **fields)
    plays = {name: one.fingerprint(name) for name in one.optimizers}
    return {each.about: each.text for each in scenario(plays, {})}


def summary(optimizer: str, mean: float) -> Summary:
    regret = Spread(mean, nan, nan, nan, 4)
    none = Spread(nan, nan, nan, nan, 0)
    return Summary(optimizer, {}, 4, regret, none, 0.0, none, nan, nan, nan, nan, 0.0)


def verdict(low: float, high: float, count: int = 4) -> Verdict:
    gap = Spread((low + high) / 2, nan, low, high, count)
    best, after = summary("hare", 0.25), summary("tortoise", 0.5)
    return Verdict({}, best, after, Difference("hare", "tortoise", {}, gap, better=0.75))


# The scenario


def test_a_scenario_says_what_drifts_who_answers_how_fast_and_how_dear() -> None:
    told = told_of()
    assert "synthetic" in told["What drifts"]
    assert told["Rules"].startswith("30 rounds, one a unit of time.")
    assert told["Observations"] == "The reward is seen at once, with gaussian noise of std 0.1."
    assert "Knows the reward as it is" in told["Expert: sage"]
    assert (
        "after 1.5 on the way, with gaussian noise of std 0.1; costing 0.1 a query."
        in (told["Expert: sage"])
    )
    assert "Play points drawn uniformly" in told["Optimizer: careless"]


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        ({}, "at once, without noise; free of cost."),
        ({"transit": {"kind": "exponential", "mean": 2}}, "2 on average (exponential) on the way"),
        ({"service": {"kind": "uniform", "low": 1, "high": 3}}, "after 1 to 3 of service"),
        ({"service_per_point": 0.5, "transit": 1}, "0.5 of service a point and 1 on the way"),
        ({"transit": {"kind": "pareto", "minimum": 1, "shape": 3}}, "(minimum 1, shape 3)"),
        ({"transit": {"kind": "empirical", "values": [1, 2]}}, "one of 2 recorded values"),
        ({"cost_per_point": 0.25}, "costing 0.25 a point"),
        ({"loss": 0.125}, "12.5 % of them are lost."),
        ({"loss": {"kind": "bursts", "good_spell": 9, "bad_spell": 1}}, "lost in bursts"),
        ({"noise": {"kind": "gaussian", "std": 1, "claimed": 0.5}}, "std 1 (claimed: 0.5)"),
        ({"noise": {"kind": "value-dependent", "share": 0.1}}, "value-dependent noise"),
        ({"capacity": 2, "patience": 5}, "It serves 2 at a time. After 5 they are too late."),
        ({"outages": [[1, 2], [3, 4]]}, "in 2 outages"),
    ],
)
def test_a_channel_is_told(channel: dict[str, object], said: str) -> None:
    assert (
        said in (told_of(experts={"sage": {"kind": "truth", "channel": channel}})["Expert: sage"])
    )


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"period": 2.5}, "one every 2.5 units of time"),
        ({"rounds": None, "horizon": 9.0}, "until 9."),
        ({"budget": 7.0}, "The budget for all queries is 7."),
        ({"access": "domain"}, "about any point"),
        ({"design": 3}, "3 points are observed beforehand"),
        ({"thinking": 0.5}, "thinks for 0.5"),
    ],
)
def test_rules_are_told(rules: dict[str, object], said: str) -> None:
    assert said in told_of(**rules)["Rules"]


def test_where_there_is_nobody_to_ask_the_page_says_so() -> None:
    assert told_of(experts={}, optimizers=["uniform"])["Experts"] == "Nobody can be asked."


def test_a_plug_in_that_is_gone_is_told_by_its_name() -> None:
    play = made().fingerprint("careless") | {"environment": {"kind": "bygone", "speed": 3}}
    (first, *_) = scenario({"careless": play}, {})
    assert first.text == "bygone. It is not installed here. With speed 3."


def test_swept_values_are_listed(told: Gathered) -> None:
    text = told.paragraphs[-1].text
    assert "experts.sage.channel.loss = 0, 0.4; feedback.noise = 0.1, 0.3." in text


# The winner


def test_the_winner_is_told_with_the_paired_difference() -> None:
    assert winner([verdict(-0.3, -0.2)]) == (
        "hare had the least average regret, 0.25: 0.25 less than tortoise, the next (95 % interval "
        "of the paired difference: 0.2 to 0.3; less in 3 of 4 replications)."
    )


def test_a_difference_within_chance_is_called_so() -> None:
    assert winner([verdict(-0.6, 0.1)]).endswith(
        "The interval includes 0: chance may have decided."
    )


def test_one_replication_proves_nothing() -> None:
    assert winner([verdict(-0.25, -0.25, count=1)]).endswith("chance may have decided.")


def test_over_settings_wins_are_counted() -> None:
    said = winner([verdict(-0.3, -0.2), verdict(-0.6, 0.1), verdict(-0.3, -0.1)])
    assert (
        "hare had the least average regret in all 3 settings: in 2 of these beyond chance" in said
    )


def test_without_rivals_or_plays_there_is_no_winner() -> None:
    alone = Verdict({}, summary("hare", 0.5), None, None)
    assert winner([alone]) == "There is only one optimizer, hare: its average regret is 0.5."
    assert "nothing to tell" in winner([])


def test_numbers_are_written_as_in_print() -> None:
    assert [number(n) for n in (-0.12345, 12.0, nan)] == ["\u22120.123", "12", "\u2013"]
