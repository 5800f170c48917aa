"""Laws of plays: what must hold in every trace, whatever was played, and what breaks it."""

from sparq_sim.simulation.laws.broken import Broken, BrokenLawError
from sparq_sim.simulation.laws.check import LAWS, check_laws, find_broken
from sparq_sim.simulation.laws.hearing import Hearing, find_misheard

__all__ = [
    "LAWS",
    "Broken",
    "BrokenLawError",
    "Hearing",
    "check_laws",
    "find_broken",
    "find_misheard",
]
