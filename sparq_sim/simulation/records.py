"""Records: what became of each query, as a trace keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sparq_sim.messages import Reply

__all__ = ["REFUSALS", "UNASKED", "Fate", "Record"]


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
    """It was still on its way when the play ended."""
    DUPLICATE = "duplicate"
    """A second answer to what was answered already."""
    STRAY = "stray"
    """An answer that nobody waited for any more."""


REFUSALS = (Fate.OUTAGE, Fate.BUDGET, Fate.ACCESS, Fate.RATE)
"""What fails at once, and costs nothing."""
UNASKED = (Fate.DUPLICATE, Fate.STRAY)
"""What arrives in addition: a second answer, and one that nobody waits for any more."""


@dataclass(slots=True, eq=False)
class Record:
    """What a trace keeps of a reply: more than the asker hears."""

    reply: Reply
    fate: Fate
    heard: bool
    """Whether the asker is told; a lost answer goes unheard."""
    round: int
    asker: str
    served_at: float
    sent_at: float
    attempt: int = 1
    """Which it was; 0 where an earlier or a shared answer served."""
    fault: str = ""
    """What was injected, if anything."""
    superseded: bool = False
    """Whether another attempt follows."""
