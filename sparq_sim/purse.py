"""The purse: what may be spent, and what has been."""

from __future__ import annotations

from fractions import Fraction
from math import inf


class Purse:
    """Pays for queries out of a *budget* for the play and one *per_round*; sums are exact."""

    # Ten times 0.1 is more than 1 in binary; nobody means that by a budget of 1.
    _TOLERANCE = 1e-9

    def __init__(self, budget: float = inf, per_round: float = inf) -> None:
        self._budget = budget * (1 + self._TOLERANCE)
        self._per_round = per_round * (1 + self._TOLERANCE)
        self._round = 0
        self._spent = Fraction(0)
        self._spent_in_round = Fraction(0)
        self.exhausted = False
        """Whether the budget for the play could not pay for something."""

    @property
    def spent(self) -> float:
        """What has been spent in all."""
        return float(self._spent)

    def pay(self, cost: float, number: int) -> bool:
        """Pay *cost* in round *number*, if it can be afforded."""
        if not cost:
            return True
        if number != self._round:
            self._round, self._spent_in_round = number, Fraction(0)
        if cost == inf:
            return False
        amount = Fraction(cost)
        if self._spent + amount > self._budget:
            self.exhausted = True
            return False
        if self._spent_in_round + amount > self._per_round:
            return False
        self._spent += amount
        self._spent_in_round += amount
        return True
