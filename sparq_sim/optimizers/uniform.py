"""Uniform play: the level that every optimizer should beat."""

from __future__ import annotations

from typing import ClassVar

from numpy.random import Generator

from sparq_sim.messages import Move, Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.optimizer import Agent, Asks, Optimizer


class Uniform(Optimizer):
    """Play points drawn uniformly from the domain, whatever comes back."""

    asks: ClassVar[Asks | None] = "never"

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Give an agent that learns nothing."""
        return _UniformAgent(briefing, rng)


class _UniformAgent:
    def __init__(self, briefing: Briefing, rng: Generator) -> None:
        self._domain = briefing.domain
        self._rng = rng

    def ask(self, now: float) -> Move:
        """Draw a point."""
        return Move(self._domain.sample(self._rng, 1)[0])

    def tell(self, reply: Reply) -> None:
        """Take no notice."""
