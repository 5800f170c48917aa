from __future__ import annotations

import pytest

from sparq_sim.report.data import ReportData
from sparq_sim.report.gather import gather
from sparq_sim.report.words import describe_scenario
from sparq_sim.study.results import Results
from tests.report.conftest import scenario as made


def told_of(**fields: object) -> dict[str, str]:
    one = made(sweep={}, **fields)
    plays = {name: one.fingerprint(name) for name in one.optimizers}
    return {each.about: each.text for each in describe_scenario(plays, {})}


# The scenario


def test_a_scenario_says_what_drifts_who_answers_how_fast_and_how_dear() -> None:
    told = told_of()
    assert "synthetic" in told["What drifts"]
    assert told["Rules"].startswith("30 rounds, one per unit of time.")
    assert told["Observations"] == "The reward is observed at once, with gaussian noise of std 0.1."
    assert "Knows the current reward" in told["Expert: sage"]
    assert (
        "after 1.5 in transit, with gaussian noise of std 0.1; costing 0.1 per query."
        in (told["Expert: sage"])
    )
    assert "drawn uniformly" in told["Optimizer: careless"]


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        ({}, "at once, without noise; free of cost."),
        ({"transit": {"kind": "exponential", "mean": 2}}, "2 on average (exponential) in transit"),
        ({"service": {"kind": "uniform", "low": 1, "high": 3}}, "after 1 to 3 in service"),
        ({"service_per_point": 0.5, "transit": 1}, "0.5 in service per point and 1 in transit"),
        ({"transit": {"kind": "pareto", "minimum": 1, "shape": 3}}, "(minimum 1, shape 3)"),
        ({"transit": {"kind": "empirical", "values": [1, 2]}}, "one of 2 recorded values"),
        ({"cost_per_point": 0.25}, "costing 0.25 per point"),
        ({"cost": 0.1, "charged": "served"}, "costing 0.1 per query, charged when served."),
        ({"loss": 0.125}, "12.5 % of them are lost."),
        ({"loss": {"kind": "bursts", "good_spell": 9, "bad_spell": 1}}, "lost in bursts"),
        ({"noise": {"kind": "gaussian", "std": 1, "claimed": 0.5}}, "std 1 (claimed: 0.5)"),
        ({"noise": {"kind": "value-dependent", "share": 0.1}}, "value-dependent noise"),
        (
            {"capacity": 2, "patience": 5},
            "It serves 2 at a time. Answers that take longer than 5 are too late.",
        ),
        ({"outages": [[1, 2]]}, "during 1 outage."),
        ({"outages": [[1, 2], [3, 4]]}, "during 2 outages."),
        ({"transit": {"kind": "empirical", "values": [1]}}, "one of 1 recorded value in transit"),
        ({"patience": 1, "policy": {"retries": 1}}, "it is asked again, once."),
        ({"patience": 1, "policy": {"retries": 2}}, "it is asked again, up to 2 times."),
    ],
)
def test_a_channel_is_told(channel: dict[str, object], said: str) -> None:
    assert (
        said in (told_of(experts={"sage": {"kind": "truth", "channel": channel}})["Expert: sage"])
    )


def test_of_a_real_source_the_declared_latency_is_not_told() -> None:
    lab = {"kind": "http", "url": "http://127.0.0.1:1/", "channel": {"transit": 0.4}}
    told = told_of(experts={"lab": lab})["Expert: lab"]
    assert "It is real: latency, loss and noise are its own." in told
    assert "in transit" not in told


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"period": 2.5}, "one every 2.5 units of time"),
        ({"rounds": None, "horizon": 9.0}, "until 9."),
        ({"budget": 7.0}, "The budget for all queries is 7."),
        ({"access": "domain"}, "about any point"),
        ({"rounds": 1, "experts": {}, "optimizers": ["uniform"]}, "1 round, one per unit of time"),
        ({"design": 1}, "1 point is observed beforehand"),
        ({"design": 3}, "3 points are observed beforehand"),
        ({"thinking": 0.5}, "thinks for 0.5"),
        ({"thinking_by_effort": {"scale": 1e-6, "power": 3}}, "effort n adds 1e-06 n^3 units"),
    ],
)
def test_rules_are_told(rules: dict[str, object], said: str) -> None:
    assert said in told_of(**rules)["Rules"]


def test_where_there_is_nobody_to_ask_the_page_says_so() -> None:
    assert told_of(experts={}, optimizers=["uniform"])["Experts"] == "There are no experts to ask."


def test_a_plug_in_that_is_gone_is_told_by_its_name() -> None:
    play = made().fingerprint("careless") | {"environment": {"kind": "bygone", "speed": 3}}
    (first, *_) = describe_scenario({"careless": play}, {})
    assert first.text == "bygone. It is not installed here. With speed 3."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "With the defaults."),
        ({"retain": 3.0}, "With retain 3."),
        ({"width": {"kind": "logarithmic", "c1": 0.5}}, "With width.c1 0.5."),
        ({"discard": {"kind": "never"}}, "With discard.kind never."),
        (
            {"schedule": {"kind": "every", "rounds": 2, "schedule": {"kind": "logarithmic"}}},
            "With schedule.kind every, schedule.rounds 2, schedule.schedule.kind logarithmic.",
        ),
        (
            {"kernel": {"kind": "sum", "parts": [{"kind": "constant"}, {"kind": "matern-5/2"}]}},
            "With kernel.kind sum, kernel.parts.0.kind constant, kernel.parts.1.kind matern-5/2.",
        ),
        (
            {"routing": {"kind": "shares", "shares": {"sage": 2}}},
            "With routing.kind shares, routing.shares [[sage, 2]].",
        ),
    ],
)
def test_an_optimizer_is_told_by_what_is_not_as_by_default(
    given: dict[str, object], said: str
) -> None:
    told = told_of(optimizers={"one": {"kind": "sparq-gp-ucb", **given}})["Optimizer: one"]
    assert told.endswith(f" past points. {said}")


def test_optimizers_without_fields_have_nothing_to_tell() -> None:
    assert told_of()["Optimizer: careless"].endswith("whatever comes back.")


def test_what_a_plug_in_no_longer_reads_is_told_as_it_stands() -> None:
    bygone = {"kind": "uniform", "speed": None, "steps": [1, 2], "way": [{"kind": "old", "by": 2}]}
    play = made().fingerprint("careless") | {"optimizer": bygone}
    told = describe_scenario({"careless": play}, {})[-1].text
    assert told.endswith("With steps [1, 2], way.0.kind old, way.0.by 2.")


def test_long_lists_are_counted() -> None:
    bygone = {"kind": "bygone", "values": list(range(100))}
    play = made().fingerprint("careless") | {"environment": bygone}
    assert describe_scenario({"careless": play}, {})[0].text.endswith("With values 100 values.")


def test_swept_values_are_listed(told: ReportData) -> None:
    text = told.paragraphs[-1].text
    assert "experts.sage.channel.loss = 0, 0.4; feedback.noise = 0.1, 0.3." in text


def test_what_is_steered_may_be_noisy(steered: Results) -> None:
    observed = [each.text for each in gather(steered, replays=False).paragraphs]
    assert any("may add noise of its own" in text for text in observed)
