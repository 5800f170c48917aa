"""A recorded play, played again: environment and experts `replay` of its own journal."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparq_environments.replay import Replay as ReplayEnvironment
from sparq_environments.synthetic import Synthetic
from sparq_experts.replay import Replay
from sparq_experts.truth import Truth
from sparq_sim import Channel, Policy, Rules, Trace, play, play_live
from sparq_sim.domain import Box
from sparq_sim.errors import JournalError
from sparq_sim.journal.cassette import choose_source, read_cassette
from sparq_sim.journal.entries import SourceTraits
from sparq_sim.journal.header import make_header
from sparq_sim.journal.reader import read_journal
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.messages import REWARD
from sparq_sim.optimizers.gp_ucb_sdf import GPUCBSDF
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB
from sparq_sim.plugin.contract import Optimizer
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.play import Experts, Played
from sparq_sim.simulation.records import Fate
from sparq_sim.testing import WaitlessLoop
from sparq_sim.vopr.parts import Beacon, Inquirer, Patchy
from tests.journal.samples import HEADER, quick_folder, write_sample
from tests.journal.test_rebuilding import play_with_journal
from tests.simulation.test_laws_of_plays import PERIODS, Scenario, plain_channels, rules


def replays(path: Path, experts: Experts) -> Experts:
    """Return a cassette in the place of each expert, behind the same channel."""
    return {
        name: (Replay(file=path, source=name), each[1] if isinstance(each, tuple) else Channel())
        for name, each in experts.items()
    }


@st.composite
def recordable_channels(draw: st.DrawFn, period: float) -> Channel:
    """Channels over which a query that is not split is answered as a whole."""
    channel = draw(plain_channels(period))
    policy = draw(st.sampled_from([None, Policy(retries=2), Policy(retries=1, timeout=2 * period)]))
    if policy is None:
        return channel
    return channel.model_copy(update={"policy": policy, "split": True, "patience": period})


@st.composite
def recordable(draw: st.DrawFn) -> Scenario:
    """Scenarios in which nobody is asked but by the agent, and money is no object."""
    period = draw(st.sampled_from(PERIODS))
    experts = {
        name: (
            draw(st.sampled_from([Patchy(), Beacon(pause=1.5 * period)])),
            draw(recordable_channels(period)),
        )
        for name in ("a", "b")
    }
    return Scenario(
        optimizer=Inquirer(
            sources=("a", "b"),
            sizes=draw(st.sampled_from([(1,), (3,), (2, 1)])),
            waits=draw(st.booleans()),
            stray=draw(st.booleans()),
        ),
        rules=draw(rules(period, thrifty=False)),
        experts=experts,
        feedback=draw(recordable_channels(period)),
        seed=draw(st.integers(0, 1000)),
    )


@settings(max_examples=15)
@given(recordable())
def test_a_recorded_play_is_played_again_with_the_same_moves(scenario: Scenario) -> None:
    with quick_folder() as folder:
        path = folder / "play.jsonl"
        trace, _ = play_with_journal(scenario, path)
        again = play(
            scenario.optimizer,
            ReplayEnvironment(file=path),
            scenario.rules,
            experts=replays(path, scenario.experts),
            feedback=scenario.feedback,
            seed=scenario.seed,
        )
    assert again.points.tolist() == trace.points.tolist()
    assert again.rounds["played_at"].tolist() == trace.rounds["played_at"].tolist()
    assert np.isnan(again.rounds["regret"]).all()


# Optimizers of the package, with their own beliefs about the channels.

RULES = Rules(rounds=25, design=0)
FEEDBACK = Channel(noise=0.1, transit=1.5, loss=0.1)
EXPERTS = {"lab": (Truth(), Channel(noise=0.2, transit={"kind": "exponential", "mean": 2.0}))}


def record(path: Path, optimizer: Optimizer, experts: Experts) -> Trace:
    played = Played(optimizer, Synthetic(), RULES, experts, FEEDBACK, 5, 0)
    with open_landscape(Synthetic(), 5) as landscape:
        header = make_header(played, landscape.domain)
    with JournalWriter.create(path, header) as writer:
        return play(
            optimizer,
            Synthetic(),
            RULES,
            experts=experts,
            feedback=FEEDBACK,
            seed=5,
            journal=writer,
        )


@pytest.mark.parametrize(
    ("optimizer", "experts"), [(SparQGPUCB(), EXPERTS), (TVGPUCB(), {}), (GPUCBSDF(), {})]
)
def test_the_same_optimizer_makes_the_same_moves_in_virtual_and_in_real_time(
    path: Path, optimizer: Optimizer, experts: Experts
) -> None:
    trace = record(path, optimizer, experts)
    world = ReplayEnvironment(file=path)
    again = play(optimizer, world, RULES, experts=replays(path, experts), feedback=FEEDBACK, seed=5)
    assert again.points.tolist() == trace.points.tolist()
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        live = runner.run(
            play_live(
                optimizer, world, RULES, experts=replays(path, experts), feedback=FEEDBACK, seed=5
            )
        )
    assert live.points.tolist() == trace.points.tolist()


def test_what_was_observed_is_observed_again(path: Path) -> None:
    trace = record(path, SparQGPUCB(), EXPERTS)
    again = play(
        SparQGPUCB(),
        ReplayEnvironment(file=path),
        RULES,
        experts=replays(path, EXPERTS),
        feedback=FEEDBACK,
        seed=5,
    )
    for name in ("value", "std", "measured_at", "arrived_at", "asked_at", "x"):
        before, after = (
            each.replies[name][each.replies["fate"] == Fate.ANSWERED] for each in (trace, again)
        )
        assert after.tolist() == before.tolist()


# Which source.


def test_the_only_expert_of_a_journal_need_not_be_named(path: Path) -> None:
    write_sample(path).close()
    assert choose_source(read_journal(path)) == "lab"


def test_a_journal_with_several_experts_or_none_asks_for_a_choice(path: Path) -> None:
    JournalWriter.create(path, replace(HEADER, sources={REWARD: SourceTraits()})).close()
    with pytest.raises(JournalError, match='has no expert; write source = "reward"'):
        choose_source(read_journal(path))
    path.unlink()
    several = {"lab": SourceTraits(), "dam": SourceTraits()}
    JournalWriter.create(path, replace(HEADER, sources=several)).close()
    with pytest.raises(JournalError, match=r'has several experts: lab, dam; .*: source = "lab"'):
        choose_source(read_journal(path))


def test_a_source_that_is_not_there_is_refused_with_those_that_are(path: Path) -> None:
    write_sample(path).close()
    with pytest.raises(JournalError, match="no source is called 'dam'; there are: reward, lab"):
        read_cassette(path, "dam")


def test_a_source_that_was_never_asked_is_refused(path: Path) -> None:
    write_sample(path).close()
    with pytest.raises(JournalError, match=r"'lab' was asked nothing from 2\.5 on"):
        read_cassette(path, "lab", begins_at=2.5)


def test_points_of_other_coordinates_are_refused(path: Path) -> None:
    write_sample(path).close()
    with pytest.raises(JournalError, match="have the coordinates x, y; here they are x0"):
        read_cassette(path, "lab", domain=Box(0.0, 1.0))
