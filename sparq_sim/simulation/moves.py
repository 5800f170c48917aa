"""Moves: what an agent may play and ask is checked once, when it says so."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError, did_you_mean, escape_surrogates
from sparq_sim.messages import Move

__all__ = ["MoveChecker", "bring_within"]


class MoveChecker:
    """Checks the moves of one agent; they are trusted afterwards."""

    def __init__(
        self, agent: str, domain: Domain, experts: Collection[str], *, notes_effort: bool
    ) -> None:
        """Prepare to check.

        Args:
            agent: The class of the agent, as messages name it.
            domain: Where its points may lie.
            experts: Whom it may ask.
            notes_effort: Whether time passes for its effort, which is then noted with the move.
        """
        self._agent = agent
        self._domain = domain
        self._experts = experts
        self._notes_effort = notes_effort
        self._ids_used: set[int] = set()

    def check(self, move: Move, now: float) -> Move:
        """Return a *move* that is made *now*, ready to be carried out.

        Args:
            move: What the agent returned.
            now: The time, in clock units.

        Raises:
            PluginError: It is none that an agent may make.
        """
        who, domain = self._agent, self._domain
        if not isinstance(move, Move):
            raise PluginError(f"{who}.ask gave {move!r:.80}; expected a Move")
        for query in move.queries:
            if query.source not in self._experts:
                raise PluginError(
                    f"{who} asks {query.source!r}, no expert of this play: "
                    f"{did_you_mean(query.source, self._experts)}"
                )
            if query.id < 1 or query.id in self._ids_used:
                raise PluginError(
                    f"{who} numbers a query {query.id}; ids are positive and never used twice"
                )
            if query.asked_at != now:
                raise PluginError(f"{who} dates a query {query.asked_at}; now is {now}")
            self._ids_used.add(query.id)
        if self._notes_effort:
            move = _note_effort(move, who)
        try:
            if move.notes:
                notes = {
                    escape_surrogates(name): float(number) for name, number in move.notes.items()
                }
                move = Move(move.point, move.queries, notes, move.effort)
        except (TypeError, ValueError, AttributeError) as error:
            raise PluginError(f"{who} notes what is no number: {error}") from error
        try:
            for query in move.queries:
                domain.check(query.points, f"{who}: points of query {query.id}")
            if move.point is not None:
                point = np.asarray(move.point)
                if point.shape != (len(domain.names),):
                    raise PluginError(_describe_shape(who, point, domain))
                domain.check(point[None], f"{who}: point of a move")
        except ValueError as error:
            raise PluginError(str(error)) from error
        return move


def bring_within(move: Move, domain: Domain, bounds: Box) -> Move:
    """Return a *move* whose point, if it has one, lies within some *bounds*.

    Args:
        move: A move whose point lies in the domain.
        domain: A box around the bounds, or sites of which one at least lies within them.
        bounds: Where the point must lie.

    Returns:
        The move itself, or one to the nearest point within, with a note `moved_within` of how far
        it was moved.
    """
    if move.point is None or bounds.contains(np.asarray(move.point)[None])[0]:
        return move
    if isinstance(domain, Sites):
        inside = domain.points[bounds.contains(domain.points)]
        near = inside[((inside - move.point) ** 2).sum(axis=1).argmin()]
    else:
        near = np.clip(move.point, bounds.lower, bounds.upper)
    distance = float(np.linalg.norm(near - move.point))
    return replace(move, point=near, notes={**move.notes, "moved_within": distance})


def _note_effort(move: Move, who: str) -> Move:
    """Return *move* with its effort among its notes, if that is a number to make time of."""
    effort: Any = move.effort
    if not (isinstance(effort, int | float | np.number) and 0 <= effort < inf):
        raise PluginError(
            f"{who} states the effort {effort!r:.80}; expected a finite number, 0 or more"
        )
    return replace(move, notes={**move.notes, "effort": float(effort)}, effort=float(effort))


def _describe_shape(who: str, point: NDArray[Any], domain: Domain) -> str:
    names = ", ".join(domain.names)
    return (
        f"{who}.ask moves to {point.tolist()!r:.80}, of shape {point.shape}; expected "
        f"({domain.dimensions},), one number for each coordinate ({names}), as in "
        f"Move(np.array({[0.5] * domain.dimensions!r:.40}))"
    )
