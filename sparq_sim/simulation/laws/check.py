"""Check the laws of a play: each law is a function that yields what breaks it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sparq_sim.simulation.laws.broken import Broken, BrokenLawError
from sparq_sim.simulation.laws.chance import LAWS_OF_CHANCE
from sparq_sim.simulation.laws.counting import LAWS_OF_COUNTING
from sparq_sim.simulation.laws.energy import LAWS_OF_ENERGY
from sparq_sim.simulation.laws.ledger import LawOfPlays, Ledger
from sparq_sim.simulation.laws.money import LAWS_OF_MONEY
from sparq_sim.simulation.laws.rounds import LAWS_OF_ROUNDS
from sparq_sim.simulation.laws.serving import LAWS_OF_SERVING
from sparq_sim.simulation.laws.timing import LAWS_OF_TIME
from sparq_sim.simulation.trace import Trace

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played

__all__ = ["LAWS", "check_laws", "find_broken"]

LAWS: tuple[LawOfPlays, ...] = (
    *LAWS_OF_ROUNDS,
    *LAWS_OF_TIME,
    *LAWS_OF_COUNTING,
    *LAWS_OF_MONEY,
    *LAWS_OF_SERVING,
    *LAWS_OF_CHANCE,
    *LAWS_OF_ENERGY,
)
"""All laws that a trace alone can break."""


def find_broken(trace: Trace, played: Played, *, plain: Collection[str] = ()) -> list[Broken]:
    """Return all places of a trace that break a law.

    Args:
        trace: The trace of a play, with its replies.
        played: What was played.
        plain: The names of experts of whom it is known that they answer a question once, when its
            service ends, and charge nothing on top of the channel: more can be said of these.
    """
    ledger = Ledger(trace, played, plain)
    return [broken for law in LAWS for broken in law(ledger)]


def check_laws(trace: Trace, played: Played) -> None:
    """Raise BrokenLawError where a trace breaks a law.

    Args:
        trace: The trace of a play, with its replies.
        played: What was played.
    """
    if broken := find_broken(trace, played):
        raise BrokenLawError(broken)
