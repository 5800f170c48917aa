"""The past of a play that was interrupted: what is known of it, to go on from there."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparq_sim.domain import Box
from sparq_sim.messages import Move, Query
from sparq_sim.simulation.delivery.request import Rows
from sparq_sim.simulation.records import Record, Turn

__all__ = ["OpenAsk", "Past", "SentAsk", "Thought"]


@dataclass(frozen=True, slots=True, eq=False)
class Thought:
    """What an agent was told and asked, and the move that it made. Times are in clock units."""

    now: float
    """When it was asked."""
    heard: tuple[Record, ...]
    """What it was told before it was asked, in this order."""
    move: Move
    """What it did."""
    at: float
    """When that was carried out."""
    round: int
    """The number of the round in which it was carried out."""
    bounds: Box | None = None
    """Within which it had to lie when it was thought, where bounds had been changed."""
    applied_within: Box | None = None
    """Within which it had to lie when it was carried out."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenAsk:
    """A request that was sent, and whose end is not known."""

    query: Query
    """What was asked, of whom and when."""
    rows: Rows
    """Which of its points."""
    attempt: int
    """Which attempt it was, from 1."""
    asker: str
    """Who asked: the agent or an expert."""
    path: str
    """Through whom it was asked."""
    round: int
    """The round in which it was sent."""
    cost: float
    """What was charged when it was sent, in units of the budget."""
    owed: float
    """What is charged later, in units of the budget."""
    key: str
    """What names the request in all the world."""


@dataclass(frozen=True, slots=True, eq=False)
class SentAsk:
    """A request that was sent, whatever became of it."""

    source: str
    """Who was asked."""
    at: float
    """When it was sent, in clock units."""
    points: int
    """How many points it was about."""
    cost: float
    """What it cost or may cost, in units of the budget."""
    round: int
    """The round in which it was sent."""


@dataclass(slots=True, eq=False)
class Past:
    """What happened in a play until it was interrupted."""

    turns: list[Turn] = field(default_factory=list)
    """Its rounds."""
    records: list[Record] = field(default_factory=list)
    """What became of each request, in the order in which it was known."""
    superseded: set[Record] = field(default_factory=set)
    """Records of attempts that another attempt follows."""
    thoughts: list[Thought] = field(default_factory=list)
    """What the agent was told and did."""
    open: list[OpenAsk] = field(default_factory=list)
    """Requests whose end is not known."""
    sent: list[SentAsk] = field(default_factory=list)
    """All requests that were sent."""
    spent: float = 0.0
    """What was spent in all, on open requests too."""
    now: float = 0.0
    """When it was interrupted, in clock units."""
    own_queries: int = 0
    """How many queries were opened by sources, and not by the agent."""
    bounds: Box | None = None
    """Within which moves had to lie, where the bounds were changed."""
    ended: str | None = None
    """Why the play ended, if it did."""

    def list_asked(self, source: str) -> list[Record]:
        """Return the records of what was asked of a source, in the order in which they were known.

        Args:
            source: Its name.
        """
        return [
            record
            for record in self.records
            if record.reply.query.source == source != record.asker and record.attempt
        ]
