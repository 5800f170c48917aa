"""Supervision: what stands beside a play, without which it is played just the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from sparq_sim.domain import Box
from sparq_sim.simulation.journaling import Journaling
from sparq_sim.simulation.past import Past

__all__ = ["BeforeRound", "Supervision"]

BeforeRound: TypeAlias = Callable[[int], Awaitable[Box | None]]
"""Awaited before each round with its number, while it may hold the clock; returns the bounds
within which points must lie from now on, or None for those of before."""


@dataclass(frozen=True, slots=True, eq=False)
class Supervision:
    """Who writes a play down, what happened in it before, and who may hold it up."""

    journal: Journaling | None = None
    """Writes down what happens, before anything is sent."""
    past: Past | None = None
    """What happened until the play was interrupted; None for a play that begins."""
    before_round: BeforeRound | None = None
    """Awaited before each round."""
    play_id: str = ""
    """What names the play in all the world; empty where nobody outside hears of it."""
