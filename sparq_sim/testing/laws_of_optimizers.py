"""Laws of optimizers: an agent moves within the domain, and bears what sources do to it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator

from sparq_sim.domain import Box
from sparq_sim.plugin.briefing import Briefing, SourceTerms
from sparq_sim.plugin.hooks import AGENT_HOOKS
from sparq_sim.plugin.optimizer import Agent, Belief, Believing, Optimizer
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.play import Watch, play
from sparq_sim.simulation.records import Turn
from sparq_sim.simulation.rules import Rules
from sparq_sim.testing.law import Law, make_law, make_rng
from sparq_sim.testing.laws_of_plugins import (
    enter,
    hook_laws,
    model_laws,
    resource_laws,
    usability_law,
)
from sparq_sim.testing.samples import Place, Slope, Teller

__all__ = ["optimizer_laws"]

_PLACES: tuple[Place, ...] = ("line", "square", "sites")
_CHANNELS = {
    "prompt": Channel(noise=0.1),
    "late and lossy": Channel(transit=1.7, loss=0.4, noise=0.1, split=True),
    "down": Channel(outages=((0.0, 1e9),)),
}
_BELIEF_POINTS = 7
"""At so many points an agent is asked what it believes."""


def optimizer_laws(optimizer: Optimizer, *, rounds: int = 15) -> Iterator[Law]:
    """Yield the laws of optimizers.

    Args:
        optimizer: Whose laws they are.
        rounds: How many rounds each play has.

    Yields:
        Laws in an order in which each comes after those that it rests on.
    """
    yield from model_laws(optimizer)
    trial = _OptimizerTrial(optimizer, rounds)
    yield (starts := make_law(optimizer, "starts", trial.find_start_error))
    hooks = hook_laws(optimizer, lambda: trial.started, AGENT_HOOKS, starts)
    yield from hooks.values()
    yield from resource_laws(optimizer, trial, trial.start, starts)
    usable = usability_law(optimizer, lambda: trial.started, AGENT_HOOKS, starts, hooks["spelling"])
    for place, delivery in product(_PLACES, _CHANNELS):
        where = f"({place}, experts {delivery})"
        plays = make_law(
            optimizer, f"plays {where}", partial(trial.find_play_error, place, delivery), usable
        )
        yield plays
        same = f"the same seed gives the same play {where}"
        yield make_law(optimizer, same, partial(trial.find_unequal_plays, place, delivery), plays)
    chance = "takes chance from its own rng, never from numpy.random"
    yield make_law(optimizer, chance, trial.find_global_chance, usable)
    if "belief" in hooks:
        belief = "belief gives a Belief or None"
        yield (sound := make_law(optimizer, belief, trial.find_no_belief, hooks["belief"], usable))
        count = _BELIEF_POINTS
        shape = f"a belief about {count} points has means and stds of shape ({count},)"
        yield (shaped := make_law(optimizer, shape, trial.find_wrong_shape, sound))
        finite = "beliefs are finite, and no std is below 0"
        yield make_law(optimizer, finite, trial.find_invalid_number, shaped)
        same = "to be asked what it believes changes no play"
        yield make_law(optimizer, same, trial.find_disturbance, sound)


@dataclass
class _OptimizerTrial:
    """An optimizer, played twice in each place with each way of delivery."""

    optimizer: Optimizer
    rounds: int
    holds: bool = False
    """Whether the agent is a context manager."""
    _outcomes: dict[tuple[Place, str], tuple[set[str], bool]] = field(default_factory=dict)

    def start(self) -> Agent:
        """Start the agent anew."""
        briefing = Briefing(Box(0.0, 1.0), experts={"expert": SourceTerms()}, rounds=self.rounds)
        return self.optimizer.start(briefing, make_rng(1))

    @cached_property
    def started(self) -> Agent:
        """The agent, outside of a play."""
        agent: Agent = enter(self, "optimizer", self.start())
        return agent

    def _outcome(self, place: Place, delivery: str) -> tuple[set[str], bool]:
        """Return the digests of two plays, and whether they have used numpy.random."""
        if (place, delivery) not in self._outcomes:
            before = _global_state()
            digests = {self._play(self.optimizer, place, delivery) for _ in range(2)}
            self._outcomes[place, delivery] = digests, _global_state() != before
        return self._outcomes[place, delivery]

    def _play(
        self, optimizer: Optimizer, place: Place, delivery: str, watch: Watch | None = None
    ) -> str:
        channel = _CHANNELS[delivery]
        return play(
            optimizer if watch else pickle.loads(pickle.dumps(optimizer)),
            Slope(place=place),
            Rules(rounds=self.rounds),
            experts={"expert": (Teller(), channel)},
            feedback=_CHANNELS["prompt"] if delivery == "down" else channel,
            seed=7,
            watch=watch,
        ).digest()

    def find_start_error(self) -> object:
        """Start the optimizer, and let errors through."""
        return None if self.started is not None else "None"

    def find_play_error(self, place: Place, delivery: str) -> object:
        """Play, and let errors through."""
        self._outcome(place, delivery)
        return None

    def find_unequal_plays(self, place: Place, delivery: str) -> object:
        """Return the digests of two plays that should be the same, if they differ."""
        digests, _ = self._outcome(place, delivery)
        return digests if len(digests) > 1 else None

    def find_global_chance(self) -> object:
        """Return that numpy.random was used, if it was."""
        for place, delivery in product(_PLACES, _CHANNELS):
            with suppress(Exception):  # Another law shows why a play fails.
                if self._outcome(place, delivery)[1]:
                    return "a play that changed numpy.random's state"
        return None

    @cached_property
    def _believed(self) -> tuple[list[object], str]:
        """What was believed after each move, and the digest of that play."""
        points = Box(0.0, 1.0).cover(_BELIEF_POINTS)
        agents: list[Agent] = []
        beliefs: list[object] = []

        def ask(turn: Turn) -> None:
            agent = agents[-1]
            assert isinstance(agent, Believing)  # As its law says.
            beliefs.append(agent.belief(points, turn.played_at))

        exposed = _Exposed(optimizer=self.optimizer, started=agents.append)
        return beliefs, self._play(exposed, "line", "prompt", ask)

    @property
    def _beliefs(self) -> list[Belief]:
        return [belief for belief in self._believed[0] if isinstance(belief, Belief)]

    def find_no_belief(self) -> object:
        """Return what it returned in place of a belief, if it did."""
        sound = Belief | None
        return next((each for each in self._believed[0] if not isinstance(each, sound)), None)

    def find_wrong_shape(self) -> object:
        """Return the shapes of a belief, if they are others than those of the points."""
        shapes = [(np.shape(each.mean), np.shape(each.std)) for each in self._beliefs]
        return next((each for each in shapes if set(each) != {(_BELIEF_POINTS,)}), None)

    def find_invalid_number(self) -> object:
        """Return a belief that is not finite, or whose std is below 0."""
        for each in self._beliefs:
            if not np.isfinite([*each.mean, *each.std, each.width]).all() or min(each.std) < 0:
                return each
        return None

    def find_disturbance(self) -> object:
        """Return the digests of a play while it was asked, and while it was not, if they differ."""
        digests = {self._believed[1], *self._outcome("line", "prompt")[0]}
        return digests if len(digests) > 1 else None


class _Exposed(Optimizer):
    """An *optimizer* whose agent is shown when it is *started*."""

    optimizer: Optimizer
    started: Callable[[Agent], None]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        agent = self.optimizer.start(briefing, rng)
        self.started(agent)
        return agent


def _global_state() -> tuple[bytes, int]:
    state: Any = np.random.get_state()  # noqa: NPY002 - the law is that nobody uses it
    return state[1].tobytes(), state[2]
