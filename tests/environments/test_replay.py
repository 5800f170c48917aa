from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparq_environments.replay import Replay
from sparq_environments.synthetic import Synthetic
from sparq_sim import Channel, Rules, Trace, play
from sparq_sim.errors import JournalError
from sparq_sim.journal.header import make_header
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.optimizers.fixed import Fixed
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Optimizer
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.play import Played

RULES = Rules(rounds=6)
FEEDBACK = Channel(transit=0.5, noise=0.1)


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Trace]:
    """The journal of uniform play, and its trace."""
    file = tmp_path / "play.jsonl"
    played = Played(Uniform(), Synthetic(), RULES, {}, FEEDBACK, 0, 0)
    with open_landscape(Synthetic()) as landscape:
        header = make_header(played, landscape.domain)
    with JournalWriter.create(file, header) as writer:
        return file, play(Uniform(), Synthetic(), RULES, feedback=FEEDBACK, journal=writer)


def play_again(file: Path, optimizer: Optimizer | None = None, **fields: float) -> Trace:
    return play(optimizer or Uniform(), Replay(file=file, **fields), RULES, feedback=FEEDBACK)


def test_the_same_points_have_the_rewards_that_were_observed(
    recorded: tuple[Path, Trace],
) -> None:
    file, trace = recorded
    again = play_again(file)
    assert again.points.tolist() == trace.points.tolist()
    assert again.replies["value"].tolist() == trace.replies["value"].tolist()
    assert again.replies["arrived_at"].tolist() == trace.replies["arrived_at"].tolist()
    assert again.rounds["reward"][:-1].tolist() == trace.replies["value"][:5].tolist()


def test_nobody_knows_the_best(recorded: tuple[Path, Trace]) -> None:
    again = play_again(recorded[0])
    assert np.isnan(again.rounds["best"]).all()
    assert np.isnan(again.rounds["regret"]).all()


def test_rewards_may_come_at_once(recorded: tuple[Path, Trace]) -> None:
    replies = play_again(recorded[0], latency=False).replies
    assert replies["arrived_at"].tolist() == replies["asked_at"].tolist()


def test_a_point_that_was_never_played_has_no_reward_unless_one_is_near(
    recorded: tuple[Path, Trace],
) -> None:
    file, trace = recorded
    far = Fixed(point=tuple(trace.points[0] + 0.25))
    assert set(play_again(file, far).replies["reason"]) == {"not in the journal"}
    assert set(play_again(file, far, reach=0.3).replies["fate"][:5]) == {"answered"}


def test_the_domain_is_that_of_the_journal(recorded: tuple[Path, Trace]) -> None:
    with open_landscape(Replay(file=recorded[0])) as landscape, open_landscape(Synthetic()) as then:
        assert repr(landscape.domain) == repr(then.domain)


def test_what_is_no_journal_is_refused_before_the_play(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be read: No such file"):
        Replay(file=tmp_path / "gone.jsonl").check_play(9.0)


def test_there_is_nothing_to_make_safe(recorded: tuple[Path, Trace]) -> None:
    steered = Replay(file=recorded[0]).connect(np.random.default_rng(0))
    assert steered.safe_action("end") == "hold"
