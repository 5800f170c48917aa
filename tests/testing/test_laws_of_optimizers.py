from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator

from sparq_sim import (
    Answer,
    Briefing,
    Failure,
    Move,
    Optimizer,
    PluginError,
)
from sparq_sim.arrays import Points
from sparq_sim.messages import Reply
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Belief
from sparq_sim.testing import (
    Asker,
    LawError,
    check_optimizer,
)


@pytest.mark.parametrize("optimizer", [Asker(), Asker(batch=1), Uniform()], ids=str)
def test_sound_optimizers_pass(optimizer: Optimizer) -> None:
    check_optimizer(optimizer)


# Optimizers that break one law.


class Agile:
    """Plays at random and asks all experts; each offender below spoils one thing."""

    def __init__(self, briefing: Briefing, rng: Generator) -> None:
        self.briefing = briefing
        self.rng = rng
        self._asker = Asker().start(briefing, rng)

    def ask(self, now: float) -> Move:
        return self._asker.ask(now)

    def tell(self, reply: Reply) -> None:
        """Take no notice."""


class Straying(Agile):
    """Steps over the fence."""

    def ask(self, now: float) -> Move:
        return Move(np.full(self.briefing.domain.dimensions, 1.5))


class Roaming(Agile):
    """Takes every place for a box."""

    def ask(self, now: float) -> Move:
        return Move(np.full(self.briefing.domain.dimensions, 0.3))


class Gambling(Agile):
    """Throws numpy's own dice, and does not look."""

    def ask(self, now: float) -> Move:
        np.random.random()  # noqa: NPY002 - on purpose
        return super().ask(now)


class Fickle(Agile):
    """Moves by a generator that it made itself."""

    def ask(self, now: float) -> Move:
        return Move(self.briefing.domain.sample(np.random.default_rng(), 1)[0])


class Trusting(Agile):
    """Takes every reply for an answer."""

    def tell(self, reply: Reply) -> None:
        reply.values.sum()  # type: ignore[union-attr] # on purpose


class Hasty(Agile):
    """Expects each observation before the next move."""

    def __init__(self, briefing: Briefing, rng: Generator) -> None:
        super().__init__(briefing, rng)
        self._observed = self._moves = 0

    def ask(self, now: float) -> Move:
        if self._observed < self._moves:
            raise IndexError("fewer observations than moves")
        self._moves += 1
        return super().ask(now)

    def tell(self, reply: Reply) -> None:
        self._observed += reply.query.source == "reward"


class Mute(Agile):
    """Says nothing."""

    def ask(self, now: float) -> Move:
        return None  # type: ignore[return-value] # on purpose


class Made(Optimizer):
    """Starts the agent that it is told to."""

    agent: Callable[[Briefing, Generator], Agent]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return self.agent(briefing, rng)


def test_the_agent_of_the_offenders_is_sound() -> None:
    check_optimizer(Made(agent=Agile))


@pytest.mark.parametrize(
    ("agent", "error", "message"),
    [
        (Straying, PluginError, r"Straying: point of a move: \[1.5\] lies outside the domain"),
        (Roaming, PluginError, r"Roaming: point of a move: \[0.3, 0.3\] is none of the 9 sites"),
        (Mute, PluginError, r"Mute.ask gave None; expected a Move"),
        (Gambling, LawError, "Made: takes chance from its own rng, never from numpy.random; seen"),
        (Fickle, LawError, r"Made: the same seed gives the same play \(line, experts prompt\)"),
        (Trusting, AttributeError, "'Failure' object has no attribute 'values'"),
        (Hasty, IndexError, "fewer observations than moves"),
    ],
)
def test_an_optimizer_that_breaks_a_law_is_told_which(
    agent: Callable[[Briefing, Generator], Agent], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check_optimizer(Made(agent=agent))


class Convinced(Agile):
    """Believes; each offender below spoils one thing."""

    def belief(self, points: Points, now: float) -> Belief | None:
        return Belief(points[:, 0], np.ones(len(points)), 2.0)


class Wordy(Convinced):
    def belief(self, points: Points, now: float) -> Belief | None:
        return "sunny"  # type: ignore[return-value] # on purpose


class Scattered(Convinced):
    def belief(self, points: Points, now: float) -> Belief | None:
        return Belief(points, np.ones(len(points)), 2.0)


class Surer(Convinced):
    def belief(self, points: Points, now: float) -> Belief | None:
        return Belief(points[:, 0], -np.ones(len(points)), 2.0)


class Distracted(Convinced):
    def belief(self, points: Points, now: float) -> Belief | None:
        self.rng.random()
        return None


class Curtly(Convinced):
    def belief(self, points: Points) -> Belief | None:  # type: ignore[override] # on purpose
        return None


def test_an_agent_may_believe() -> None:
    check_optimizer(Made(agent=Convinced), rounds=3)


@pytest.mark.parametrize(
    ("agent", "law"),
    [
        (Wordy, "belief gives a Belief or None; seen: sunny"),
        (Scattered, r"a belief about 7 points has means and stds of shape \(7,\); .*\(7, 1\)"),
        (Surer, "beliefs are finite, and no std is below 0; seen: Belief"),
        (Distracted, "to be asked what it believes changes no play; seen: "),
        (Curtly, r"belief can be called with \(points, now\); seen: .*too many positional"),
    ],
)
def test_an_agent_whose_belief_breaks_a_law_is_told_which(
    agent: Callable[[Briefing, Generator], Agent], law: str
) -> None:
    with pytest.raises(LawError, match=f"Made: {law}"):
        check_optimizer(Made(agent=agent), rounds=3)


class Unsaid(Uniform):
    pass


def test_an_optimizer_without_a_docstring_is_told_so() -> None:
    with pytest.raises(LawError, match="Unsaid: has a docstring"):
        check_optimizer(Unsaid())


def test_what_the_optimizer_hears_is_late_lost_refused_and_prompt() -> None:
    heard: list[Reply] = []

    class Listening(Agile):
        def tell(self, reply: Reply) -> None:
            heard.append(reply)

    LISTENERS.append(Listening)
    check_optimizer(Made(agent=latest_listener))
    answers = [reply for reply in heard if isinstance(reply, Answer)]
    assert {reply.reason for reply in heard if isinstance(reply, Failure)} == {"outage"}
    assert {reply.arrived_at == reply.asked_at for reply in answers} == {True, False}
    assert {reply.query.points.shape[1] for reply in heard} == {1, 2}


LISTENERS: list[Callable[[Briefing, Generator], Agent]] = []


def latest_listener(briefing: Briefing, rng: Generator) -> Agent:
    """Start the latest of the listeners, which could not be pickled itself."""
    return LISTENERS[-1](briefing, rng)
