from __future__ import annotations

import asyncio
import json
from math import inf
from pathlib import Path
from typing import Any

import pytest

from sparq_sim import (
    Channel,
    Expert,
    PluginError,
    Rules,
    Trace,
    play,
    play_live,
)
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.channel.policy import Policy, Rate
from sparq_sim.testing import Asker, Slope, Teller, WaitlessLoop
from tests.conftest import Run
from tests.simulation.delivery.asking import (
    Awake,
    ask_one,
    retrying,
)

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


def test_copies_of_points_that_were_too_many_for_a_rate_are_asked_as_one_request(run: Run) -> None:
    policy = Policy(merge=True, rate=Rate(points=2, every=1.0, beyond="refuse"))
    heard = ask_one(run, Teller(), Channel(cost=1, policy=policy), 0.1, 0.2, 0.3, 0.1, 0.2)
    assert heard.of("rows", "fate", "cost") == [
        ([0, 1, 2], "rate", 0),
        ([3, 4], "answered", 1),
    ]


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
            "shares of faults sum to 1.2; their sum must be at most 1",
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
