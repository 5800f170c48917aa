"""Ways to play: overheard, in real time whose waits are skipped, and with another future."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from numpy.random import Generator

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Domain
from sparq_sim.messages import Move, Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Landscape
from sparq_sim.plugin.optimizer import Agent, Optimizer
from sparq_sim.simulation.laws import Hearing
from sparq_sim.simulation.play import Played, play_live
from sparq_sim.simulation.trace import Trace
from sparq_sim.testing.waitless_loop import WaitlessLoop

__all__ = ["Diverging", "Look", "Overheard", "overhear", "play_on_live_clock"]

Look: TypeAlias = Callable[[Agent, Domain, float], None]
"""Called before each ask but the first, with the agent, its domain and the time of the last ask."""


class Overheard(Optimizer):
    """An optimizer that plays as it does, while somebody writes down what it is told."""

    optimizer: Optimizer
    """The optimizer that plays."""
    hearing: Any
    """A `Hearing`, to which is added what each agent is told and asked."""
    looks: Look | None = None
    """Called before each ask but the first."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return _OverheardAgent(self, self.optimizer.start(briefing, rng), briefing.domain)


class _OverheardAgent:
    def __init__(self, model: Overheard, agent: Agent, domain: Domain) -> None:
        self._agent = agent
        self._domain = domain
        self._hearing: Hearing = model.hearing
        self._looks = model.looks

    def ask(self, now: float) -> Move:
        asks = self._hearing.asks
        if self._looks is not None and asks:
            self._looks(self._agent, self._domain, asks[-1])
        asks.append(now)
        return self._agent.ask(now)

    def tell(self, reply: Reply) -> None:
        self._hearing.told.append((len(self._hearing.asks), reply))
        self._agent.tell(reply)


def overhear(played: Played, *, looks: Look | None = None) -> tuple[Hearing, Trace]:
    """Play, and write down what the agent is told and asked.

    Args:
        played: What is played.
        looks: Called before each ask but the first.

    Returns:
        What the agent was told, and the trace, which is that of the optimizer alone.
    """
    hearing = Hearing()
    overheard = Overheard(optimizer=played.optimizer, hearing=hearing, looks=looks)
    return hearing, replace(played, optimizer=overheard).again()


def play_on_live_clock(played: Played) -> Trace:
    """Play in real time whose waits are skipped.

    Args:
        played: What is played.

    Returns:
        The trace, which should be that of virtual time.
    """
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        return runner.run(
            play_live(
                played.optimizer,
                played.environment,
                played.rules,
                experts=played.experts,
                feedback=played.feedback,
                seed=played.seed,
                replication=played.replication,
            )
        )


class Diverging:
    """A landscape that is another one up to some time, and has higher rewards from then on.

    Args:
        landscape: What it is before.
        after: When it becomes another, in clock units.
    """

    def __init__(self, landscape: Landscape, after: float) -> None:
        self.domain = landscape.domain
        self._landscape = landscape
        self._after = after

    def rewards(self, points: Points, time: float) -> Values:
        rewards: Values = self._landscape.rewards(points, time) + self._more(time)
        return rewards

    def best(self, time: float) -> tuple[Point, float]:
        point, reward = self._landscape.best(time)
        return point, reward + self._more(time)

    def _more(self, time: float) -> float:
        return 1.0 if time > self._after else 0.0
