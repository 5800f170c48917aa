"""Systems that can only be tried, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.random import Generator

from sparq_sim import Box, Channel, Estimate, Expert, PluginError, Query, Rules, World, play
from sparq_sim.errors import LiveOnlyError, SparqError, Unavailable
from sparq_sim.plugin.steered import SafeMoment, Steered, SteeredEnvironment
from sparq_sim.simulation.channel.policy import Policy, Rate
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.study.executors import InProcess
from sparq_sim.study.executors.landscapes import share_landscape
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Teller
from tests.plants import Plant as SimulatedPlant
from tests.plants import plan

LOG: list[str] = []


class Meter:
    """A system, but for where its points may lie."""

    async def apply(self, query: Query, world: World) -> Estimate:
        if query.id == 2:
            raise Unavailable("the meter is dirty")
        if query.id == 3:
            raise RuntimeError("the meter is broken")
        return Estimate(10.0 + query.points[:, 0])

    async def make_safe(self, moment: SafeMoment) -> None:
        LOG.append(f"safe {moment}")

    def safe_action(self, moment: SafeMoment) -> str:
        return "close"


class Valve(Meter):
    """The simplest system."""

    domain = Box(0.0, 1.0, ["opening"])


class HeldValve(Valve):
    """It is open during a play."""

    def __enter__(self) -> HeldValve:
        LOG.append("enter")
        return self

    def __exit__(self, *_: object) -> None:
        LOG.append("exit")


class AwaitedValve(Meter):
    """It is entered asynchronously, and knows only then where points may lie."""

    async def __aenter__(self) -> None:
        LOG.append("enter")
        self.domain = Box(0.0, 1.0, ["opening"])

    async def __aexit__(self, *_: object) -> None:
        LOG.append("exit")


class SlowValve(Valve):
    """Its reward takes a while."""

    async def apply(self, query: Query, world: World) -> Estimate:
        await world.clock.sleep(1.5)
        return Estimate(query.points[:, 0])


class Tried(SteeredEnvironment):
    """One of these systems."""

    make: Any = Valve

    def connect(self, rng: Generator) -> Steered:
        system: Steered = self.make()
        return system


class Real(Tried):
    """One that is real."""

    is_real: ClassVar[bool] = True


class Sensor(Expert):
    """An expert that is real."""

    is_real: ClassVar[bool] = True


def test_rewards_are_as_observed_and_the_best_is_not_known() -> None:
    trace = play(Asker(), Tried(), Rules(rounds=5))
    rewards = trace.rounds["reward"]
    observed = [0, 3, 4]
    np.testing.assert_allclose(rewards[observed], 10.0 + trace.points[observed, 0])
    assert np.isnan(rewards[1:3]).all()
    assert np.isnan(trace.rounds["best"]).all()
    assert np.isnan(trace.rounds["regret"]).all()
    fates = trace.replies["fate"][trace.replies["source"] == "reward"].tolist()
    assert fates == ["answered", "unavailable", "invalid", "answered", "answered"]


def test_rewards_that_come_late_are_those_of_their_rounds() -> None:
    trace = play(Asker(), Tried(make=SlowValve), Rules(rounds=5))
    assert trace.rounds["reward"][:3].tolist() == trace.points[:3, 0].tolist()
    assert np.isnan(trace.rounds["reward"][-1])
    of_reward = trace.replies["source"] == "reward"
    assert trace.replies["arrived_at"][of_reward][0] == 2.5


def test_the_channel_of_a_simulated_system_applies() -> None:
    trace = play(Asker(), Tried(), Rules(rounds=5), feedback=Channel(transit=2.0, cost=0.5))
    of_reward = trace.replies["source"] == "reward"
    assert trace.replies["arrived_at"][of_reward][0] == 3.0
    assert trace.spent == 2.5


def test_experts_that_know_the_reward_have_nothing_to_say() -> None:
    trace = play(Asker(), Tried(), Rules(rounds=4), experts={"teller": Teller()})
    of_teller = trace.replies["source"] == "teller"
    assert set(trace.replies["fate"][of_teller]) == {"unavailable"}
    assert all(
        "only where a point was applied" in why for why in trace.replies["reason"][of_teller]
    )


@pytest.mark.parametrize(
    "policy", [Policy(remember=2.0), Policy(rate=Rate(points=1)), Policy(merge=True)]
)
def test_no_policy_may_keep_points_from_being_applied(policy: Policy) -> None:
    with pytest.raises(PluginError, match=r"feedback\.policy\..*would not be applied"):
        play(Asker(), Tried(), Rules(rounds=2), feedback=Channel(policy=policy))


def test_nothing_can_be_observed_before_the_first_round() -> None:
    with pytest.raises(PluginError, match="design = 4: environment Tried can only be tried"):
        play(Asker(), Tried(), Rules(rounds=4, design=4))


@pytest.mark.parametrize("kind", [HeldValve, AwaitedValve])
def test_systems_are_entered_and_left(kind: type[Meter]) -> None:
    LOG.clear()
    play(Asker(), Tried(make=kind), Rules(rounds=4))
    assert LOG == ["enter", "exit"]


@pytest.mark.parametrize("kind", [HeldValve, AwaitedValve])
def test_systems_are_left_where_the_play_fails(kind: type[Meter]) -> None:
    def watch(turn: object) -> None:
        raise ValueError("enough")

    LOG.clear()
    with pytest.raises(ValueError, match="enough"):
        play(Asker(), Tried(make=kind), Rules(rounds=4), watch=watch)
    assert LOG == ["enter", "exit"]


def test_each_play_of_a_study_has_a_system_of_its_own(tmp_path: Path) -> None:
    assert share_landscape(SimulatedPlant(), 0, 0) is None
    scenario = plan(rounds=12, replications=2)
    study = Study(scenario, tmp_path)
    assert not study.run(InProcess()).failed_plays
    for play_id in study.plays():
        alone = scenario.play(play_id.optimizer, play_id.replication)
        assert study.results.read(play_id).trace == alone


@pytest.mark.parametrize(
    ("environment", "experts", "told"),
    [
        (Real(), {}, "environment Real: real"),
        (Tried(), {"sensor": Sensor()}, "expert 'sensor': real"),
        (Real(), {"sensor": (Sensor(), Channel())}, "environment Real, expert 'sensor': real"),
    ],
)
def test_what_is_real_is_refused_in_virtual_time(
    environment: Tried, experts: Any, told: str
) -> None:
    with pytest.raises(LiveOnlyError, match=f"{told}.*sparq-sim live"):
        play(Asker(), environment, Rules(rounds=2), experts=experts)


def test_what_is_real_is_refused_by_studies_before_anything_is_written(tmp_path: Path) -> None:
    LOG.clear()
    scenario = plan(environment=Real(make=HeldValve))
    with pytest.raises(LiveOnlyError):
        scenario.play("careless")
    with pytest.raises(LiveOnlyError):
        Study(scenario, tmp_path / "study").run(InProcess())
    assert not (tmp_path / "study").exists()
    with pytest.raises(LiveOnlyError), open_landscape(Real(make=HeldValve)):
        pass
    assert LOG == []


class Unfinished(SteeredEnvironment):
    """One without connect."""


def test_an_environment_without_connect_is_told_so() -> None:
    with pytest.raises((SparqError, NotImplementedError), match="must define connect"):
        play(Asker(), Unfinished(), Rules(rounds=2))


def test_what_is_no_system_is_refused_with_what_is_missing() -> None:
    with pytest.raises(PluginError, match="apply"):
        play(Asker(), Tried(make=lambda: object()), Rules(rounds=2))
