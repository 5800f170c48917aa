"""Offers: what experts charge, claim and deliver, and what can be paid."""

from __future__ import annotations

from math import ceil, inf

from sparq_sim.optimizers.sparq_memory.trust import Trust
from sparq_sim.plugin.briefing import Briefing

__all__ = ["Offers"]

_HOPED, _HOPED_LATER = 0.2, 0.04
"""How much of the std is worth a play where it could be asked, and how much more for each round by
which an answer is late."""
_AHEAD = 2
"""For how many rounds ahead the budget may be spent."""
_RATE = 0.1
"""The weight of the newest round in the share of rounds in which a query can be paid."""


class Offers:
    """What the experts of a play offer, what is known of each, and what is left of the budget.

    Args:
        briefing: The terms of all sources, and the rules of the play.
        waits: Whether the agent plays when the answers are there.
        floor: The smallest noise variance that is believed.
    """

    def __init__(self, briefing: Briefing, *, waits: bool, floor: float) -> None:
        self._briefing = briefing
        self._waits = waits
        self._floor = floor
        self._spent = 0.0
        self._afforded = 1.0
        self.trust = {name: Trust() for name in briefing.experts}
        """What is known of each expert, by name."""

    def cost(self, name: str, *, first: bool) -> float:
        """Return what one more point costs.

        Args:
            name: Whose answer.
            first: Whether nothing else is asked of the expert in this round.
        """
        terms = self._briefing.experts[name]
        return terms.cost_per_point + (terms.cost if terms.split or first else 0.0)

    def delay(self, name: str) -> float:
        """Return after how many rounds an answer is used first.

        Args:
            name: Whose answer.
        """
        latency = self._briefing.experts[name].latency
        late = ceil(latency / self._briefing.period - 1e-9) if latency < inf else 1000
        return float(late if self._waits else max(1, late))

    def claimed(self, name: str) -> float:
        """Return the noise variance that an expert claims, in squared reward units.

        Args:
            name: Who claims it.
        """
        return max(self._briefing.experts[name].std ** 2, self._floor)

    def variance(self, name: str) -> float:
        """Return the noise variance to believe of an answer, in squared reward units.

        Args:
            name: Whose answer.
        """
        return self.trust[name].variance(self.claimed(name))

    def worth(self, name: str) -> float:
        """Return how much of what an expert promises can be had of it, from 0 to 1.

        Args:
            name: Who promises it.
        """
        return self.trust[name].worth(self.claimed(name))

    def hoped(self, names: tuple[str, ...]) -> float:
        """Return how much of what can be asked is worth exploring by a play, from 0 to 1.

        The more, the later, the less reliable and the less affordable the answers are.

        Args:
            names: Who may be asked.
        """
        least = 1.0
        for name in names:
            hoped = min(1.0, _HOPED + _HOPED_LATER * (self.delay(name) - 1.0))
            least = min(least, 1.0 - (1.0 - hoped) * self.worth(name) * self._afforded)
        return least

    def allow(self, number: int, names: tuple[str, ...]) -> float:
        """Return what the queries of a round may cost: an even share of the budget up to now.

        Args:
            number: The number of the round.
            names: Who may be asked.
        """
        budget, rounds = self._briefing.budget, self._briefing.rounds
        if rounds is not None and budget < inf:
            budget *= min(1.0, (number + _AHEAD) / rounds)
        allowed = min(budget - self._spent, self._briefing.budget_per_round)
        affordable = min(self.cost(name, first=True) for name in names) <= allowed
        self._afforded += _RATE * (float(affordable) - self._afforded)
        return allowed

    def spend(self, cost: float) -> None:
        """Record what a query costs.

        Args:
            cost: How much.
        """
        self._spent += cost
