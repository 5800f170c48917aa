"""Fixed play: one point in every round."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator
from pydantic import Field, FiniteFloat

from sparq_sim.errors import PluginError
from sparq_sim.messages import Move, Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.optimizer import Agent, Asks, Optimizer

__all__ = ["Fixed"]


class Fixed(Optimizer):
    """An optimizer that plays *point* in every round, whatever comes back."""

    asks: ClassVar[Asks | None] = "never"
    point: Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]
    """The point that is played: a number for each coordinate, within the domain."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        domain = briefing.domain
        if len(self.point) != domain.dimensions:
            raise PluginError(
                f"the fixed point: {list(self.point)} has not one number for each coordinate of "
                f"the domain: {', '.join(domain.names)}; give another `point`"
            )
        try:
            (point,) = domain.check(np.array([self.point]), "the fixed point")
        except ValueError as error:
            raise PluginError(f"{error}; give another `point`") from error
        return _FixedAgent(Move(point))


class _FixedAgent:
    """An agent that learns nothing."""

    def __init__(self, move: Move) -> None:
        self._move = move

    def ask(self, now: float) -> Move:
        return self._move

    def tell(self, reply: Reply) -> None: ...
