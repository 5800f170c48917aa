from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from sparq_environments.synthetic import Synthetic
from sparq_experts.adversary import Adversary
from sparq_experts.biased import Biased
from sparq_experts.committee import Committee
from sparq_experts.drifting_bias import DriftingBias
from sparq_experts.human import Human
from sparq_experts.lagged import Lagged
from sparq_experts.logbook import Logbook
from sparq_experts.quantised import Quantised
from sparq_experts.simulator import Simulator
from sparq_experts.truth import Truth
from sparq_sim.errors import PeerError, PluginError, Unavailable
from sparq_sim.messages import Estimate, Query
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.plugin.contract import Expert, World
from sparq_sim.remote.serve.hosting import HostedExpert
from sparq_sim.remote.wire import ApplyMessage, AskMessage
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.channel.draws import Constant
from sparq_sim.simulation.play import play
from sparq_sim.simulation.rules import Rules
from tests.remote.serve.asks import ask

pytestmark = pytest.mark.asyncio


def question(**fields: Any) -> AskMessage:
    return AskMessage.model_validate(ask(**fields))


def replies(expert: Expert, beside: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return what an expert replies in a simulated play."""
    experts = {"lab": (expert, Channel(split=True)), **(beside or {})}
    trace = play(
        SparQGPUCB(),
        Synthetic(),
        Rules(rounds=12),
        experts=experts,
        seed=5,
        replication=1,
    )
    columns = {name: np.asarray(column).tolist() for name, column in trace.replies.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [row for row in rows if row["source"] == "lab" and row["asker"] == "agent"]


@pytest.mark.parametrize(
    "expert",
    [
        Truth(),
        Lagged(lag=3.0),
        Biased(),
        DriftingBias(),
        Quantised(),
        Adversary(),
        Logbook(),
    ],
    ids=lambda expert: type(expert).__name__,
)
async def test_a_hosted_expert_answers_as_in_a_simulated_play(expert: Expert) -> None:
    simulated = replies(expert)
    assert len(simulated) >= 10
    async with HostedExpert("lab", expert, Synthetic(), seed=5, replication=1) as hosted:
        names = hosted.domain.names
        for number, row in enumerate(simulated):
            point = [row[name] for name in names]
            estimate = await hosted.answer(
                question(key=str(number), points=[point], names=names, play_time=row["asked_at"])
            )
            assert np.asarray(estimate.values).tolist() == [row["value"]]
            assert estimate.measured_at == row["measured_at"]


class Rolling(Expert):
    """Answers with a number of its own chance, after one clock unit."""

    async def answer(self, query: Query, world: World) -> Estimate:
        await world.clock.sleep(1.0)
        return Estimate(world.rng.random(len(query.points)))


async def test_chance_depends_on_the_seed_and_the_question_only() -> None:
    async def answers(order: str, seed: int = 0) -> dict[str, float]:
        async with HostedExpert("lab", Rolling(), Synthetic(), seed=seed) as hosted:
            tasks = [hosted.answer(question(key=key, unit=1e-3)) for key in order]
            told = await asyncio.gather(*(asyncio.create_task(task) for task in tasks))
        return {key: float(each.values[0]) for key, each in zip(order, told, strict=True)}

    first = await answers("abc")
    assert await answers("cba") == first
    assert len(set(first.values())) == 3
    assert (await answers("abc", seed=1)).items().isdisjoint(first.items())


async def test_an_expert_that_sleeps_does_so_by_the_clock_of_the_asker() -> None:
    loop = asyncio.get_running_loop()
    async with HostedExpert("lab", Rolling(), Synthetic()) as hosted:
        began = loop.time()
        estimate = await hosted.answer(question(play_time=7.25, unit=0.2))
        assert loop.time() - began >= 0.199
    assert estimate.measured_at == 8.25


async def test_questions_to_a_busy_person_wait_for_each_other() -> None:
    human = Human(thinking=Constant(value=1.0), opens=0.0, closes=24.0)
    async with HostedExpert("lab", human, Synthetic()) as hosted:
        asked = [hosted.answer(question(key=key, play_time=5.0, unit=0.05)) for key in "ab"]
        first, second = await asyncio.gather(*(asyncio.create_task(each) for each in asked))
    assert first.measured_at == 6.0
    assert second.measured_at is not None
    assert second.measured_at >= 7.0


async def test_a_committee_is_hosted_with_its_members_and_not_without() -> None:
    committee = Committee(members=("good", "bad"))
    members = {
        "good": (Truth(), Channel(noise=0.1)),
        "bad": (Biased(), Channel(noise=0.3)),
    }
    with pytest.raises(PluginError, match="no expert is called 'good'"):
        async with HostedExpert("lab", committee, Synthetic()):
            pass
    async with HostedExpert("lab", committee, Synthetic(), beside=members) as hosted:
        told = [await hosted.answer(question(key=key)) for key in "aba"]
    assert np.asarray(told[0].stds)[0] == pytest.approx((0.1**-2 + 0.3**-2) ** -0.5)
    assert told[0].values == told[2].values
    assert told[0].values != told[1].values


class Reporting(Truth):
    """Sends readings by the clock of the play."""

    async def broadcast(self, world: World) -> None:
        await world.clock.sleep(1.0)


async def test_an_expert_that_runs_by_the_clock_of_a_play_is_refused() -> None:
    with pytest.raises(PluginError, match=r"'lab'.*cannot be served"):
        async with HostedExpert("lab", Reporting(), Synthetic()):
            pass


async def test_an_expert_that_its_environment_refuses_is_refused() -> None:
    with pytest.raises(PluginError, match="no coarser version"):
        async with HostedExpert("lab", Simulator(), Synthetic()):
            pass


class Failing(Expert):
    """Fails in another way at each point."""

    async def answer(self, query: Query, world: World) -> Estimate:
        match query.points[0, 0]:
            case 0.1:
                raise Unavailable("closed")
            case 0.2:
                raise ZeroDivisionError("nothing to divide by")
            case 0.3:
                return Estimate(np.array([1.0, np.nan]), absent="blind spot")
            case _:
                return Estimate(np.array([np.nan]))


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        (0.1, "^closed$"),
        (0.2, "^lab raised ZeroDivisionError: nothing to divide by"),
        (0.4, "^lab gave nan with std 0.0; expected finite numbers"),
    ],
)
async def test_what_an_expert_does_not_know_has_its_reason(point: float, reason: str) -> None:
    async with HostedExpert("lab", Failing(), Synthetic()) as hosted:
        with pytest.raises(Unavailable, match=reason):
            await hosted.answer(question(points=[[point]]))


async def test_points_without_a_value_are_told_beside_those_with_one() -> None:
    async with HostedExpert("lab", Failing(), Synthetic()) as hosted:
        estimate = await hosted.answer(question(points=[[0.3], [0.5]]))
    assert np.asarray(estimate.values).tolist()[0] == 1.0
    assert np.isnan(np.asarray(estimate.values)[1])
    assert estimate.absent == "blind spot"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"points": [[99.0]]}, "lies outside the domain"),
        ({"names": ["y"]}, r'names are \["y"\]; here they are \["x"\]'),
        ({"names": ["x", "y"], "points": [[0.1, 0.2]]}, "names are"),
    ],
)
async def test_a_question_that_does_not_fit_the_domain_is_refused(
    fields: dict[str, Any], reason: str
) -> None:
    async with HostedExpert("lab", Truth(), Synthetic()) as hosted:
        with pytest.raises(PeerError, match=reason):
            await hosted.answer(question(**fields))


async def test_an_expert_applies_nothing() -> None:
    fields = {name: value for name, value in ask(type="apply").items() if name != "source"}
    async with HostedExpert("lab", Truth(), Synthetic()) as hosted:
        with pytest.raises(PeerError, match="applies nothing"):
            await hosted.answer(ApplyMessage.model_validate(fields))
