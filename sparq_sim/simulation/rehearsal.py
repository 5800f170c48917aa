"""Rehearsals: an agent is brought to where it was, by telling and asking it all once more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparq_sim.domain import Box, Domain
from sparq_sim.errors import SparqError
from sparq_sim.messages import Move
from sparq_sim.plugin.optimizer import Agent, Restrictable
from sparq_sim.simulation.moves import bring_within
from sparq_sim.simulation.past import Thought

if TYPE_CHECKING:
    from sparq_sim.arrays import Point

__all__ = ["Rehearsal", "RehearsalError"]


class RehearsalError(SparqError):
    """An agent does not do again what it did, so that its play cannot go on."""


class Rehearsal:
    """Brings an agent to where it was.

    Args:
        agent: As it was when the play began.
        domain: Where its points may lie.
    """

    def __init__(self, agent: Agent, domain: Domain) -> None:
        self._agent = agent
        self._domain = domain
        self._bounds: Box | None = None

    def take(self, thought: Thought) -> None:
        """Tell the agent what it was told, and ask it for the move that it made.

        Args:
            thought: What it was told, and what it did; thoughts come in their order.

        Raises:
            RehearsalError: The agent now does something else.
        """
        self.restrict(thought.bounds)
        for record in thought.heard:
            self._agent.tell(record.reply)
        move = self._agent.ask(thought.now)
        if thought.applied_within is not None:
            move = bring_within(move, self._domain, thought.applied_within)
        if difference := _find_difference(move, thought.move):
            raise RehearsalError(
                f"round {thought.round}: {difference}. The code, the settings or the libraries of "
                "the optimizer have changed, so this play cannot go on: start a new one"
            )

    def restrict(self, bounds: Box | None) -> None:
        """Have the agent play within some *bounds*, as often as it was told to.

        Args:
            bounds: One object for each time that they were changed; None where they never were.
        """
        if bounds is not None and bounds is not self._bounds:
            self._bounds = bounds
            if isinstance(self._agent, Restrictable):
                self._agent.restrict(bounds)


def _find_difference(now: Move, then: Move) -> str:
    """Describe how a move differs from that of before; empty where it does not."""
    if not _same(now.point, then.point):
        return f"the agent now plays {_show(now.point)}; it played {_show(then.point)}"
    asked = [[(q.id, q.source, q.points.tolist()) for q in move.queries] for move in (now, then)]
    if asked[0] != asked[1]:
        return "the agent now asks other questions than it did"
    return ""


def _same(one: Point | None, other: Point | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _show(point: Point | None) -> str:
    return "nothing" if point is None else str(np.asarray(point).tolist())
