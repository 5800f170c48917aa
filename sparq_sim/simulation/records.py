"""Records: what a trace keeps of each round and of each reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from sparq_sim.arrays import Point
from sparq_sim.messages import AGENT_NAME, Notes, Reply

__all__ = ["REFUSALS", "UNASKED", "Fate", "Record", "Turn", "arrival_order", "is_for_agent"]


class Fate(StrEnum):
    """All that can become of a point that was asked about."""

    ANSWERED = "answered"
    """An answer arrived in time."""
    LOST = "lost"
    """The answer was lost on its way."""
    LATE = "late"
    """The asker gave up before an answer came."""
    OUTAGE = "outage"
    """Nobody could be asked at that time."""
    BUDGET = "budget"
    """The budget could not pay for it."""
    ACCESS = "access"
    """The rules do not allow to ask there."""
    RATE = "rate"
    """The source was asked faster than it may be."""
    INVALID = "invalid"
    """The source gave what is no answer, or failed."""
    UNAVAILABLE = "unavailable"
    """The source said that it knows nothing there."""
    UNANSWERED = "unanswered"
    """It was still on its way when the play ended or was interrupted."""
    DUPLICATE = "duplicate"
    """A second answer to what was answered already."""
    STRAY = "stray"
    """An answer that nobody waited for any more."""


REFUSALS = (Fate.OUTAGE, Fate.BUDGET, Fate.ACCESS, Fate.RATE)
"""What fails at once, and costs nothing, but for what an expert has charged itself before."""
UNASKED = (Fate.DUPLICATE, Fate.STRAY)
"""What arrives in addition: a second answer, and one that nobody waits for any more."""


@dataclass(slots=True, eq=False)
class Record:
    """What a trace keeps of a reply, which is more than the asker hears; it is never changed."""

    reply: Reply
    """The reply itself."""
    fate: Fate
    """What became of the points that it replies to."""
    heard: bool
    """Whether the asker is told; a lost answer goes unheard."""
    round: int
    """The round in which it was sent."""
    asker: str
    """Who asked: the agent or an expert."""
    served_at: float
    """When service began, in clock units."""
    sent_at: float
    """When the answer was sent, in clock units."""
    attempt: int = 1
    """The number of the attempt, from 1; 0 where an earlier or a shared answer served."""
    fault: str = ""
    """The name of the fault that was injected, if any."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """What a trace keeps of a round. Moments are in clock units."""

    round: int
    """Its number, from 1."""
    started_at: float
    """When the agent was asked first."""
    played_at: float
    """When the point was played."""
    moved: bool
    """Whether a point was played; if not, the one still in force is charged."""
    point: Point
    """The point played, or still in force, (d,)."""
    reward: float
    """The noise-free reward of the point when it was played."""
    best: float
    """The highest reward of any point at that moment."""
    spent: float
    """What was spent in all up to the moment of playing, this move's queries included."""
    wall: float
    """Seconds that the agent computed, as measured."""
    notes: Notes
    """Numbers that the agent adds to the trace, by name."""
    meters: Notes = field(default_factory=dict)
    """Numbers of experts at the end of the round, as `<expert>_<name>`."""


def is_for_agent(record: Record) -> bool:
    """Return whether the agent is told of a record, unless another attempt follows.

    Args:
        record: What became of a request of the agent or of an expert, or what a source has sent.
    """
    return record.heard and record.asker in (AGENT_NAME, record.reply.query.source)


def arrival_order(record: Record) -> tuple[float, str, int, int]:
    """Return the sort key of a reply: its moment, and within one instant source, query and row.

    Args:
        record: The record of the reply.
    """
    reply = record.reply
    query = reply.query
    return (reply.arrived_at, query.source, query.id, reply.rows.item(0))
