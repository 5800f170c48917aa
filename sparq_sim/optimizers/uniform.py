"""Uniform play: the level that every optimizer should beat."""

from __future__ import annotations

from typing import ClassVar

from numpy.random import Generator

from sparq_sim.messages import Move, Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.optimizer import Agent, Asks, Optimizer

__all__ = ["Uniform"]


class Uniform(Optimizer):
    """An optimizer that plays points drawn uniformly from the domain, whatever comes back."""

    asks: ClassVar[Asks | None] = "never"

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return _UniformAgent(briefing, rng)


class _UniformAgent:
    """An agent that learns nothing."""

    def __init__(self, briefing: Briefing, rng: Generator) -> None:
        self._domain = briefing.domain
        self._rng = rng

    def ask(self, now: float) -> Move:
        return Move(self._domain.sample(self._rng, 1)[0])

    def tell(self, reply: Reply) -> None: ...
