"""The purse: what may be spent, what is set apart, and what has been spent."""

from __future__ import annotations

from fractions import Fraction
from math import inf


class Purse:
    """Pays for queries out of a *budget* for the play and one *per_round*; sums are exact.

    What falls due later is reserved when it is asked for, so that no budget is ever exceeded; it is
    settled when it falls due, or released if it never does.
    """

    # Ten times 0.1 is more than 1 in binary; nobody means that by a budget of 1.
    _TOLERANCE = 1e-9

    def __init__(self, budget: float = inf, per_round: float = inf) -> None:
        self._budget = budget * (1 + self._TOLERANCE)
        self._per_round = per_round * (1 + self._TOLERANCE)
        self._round = 0
        self._spent = Fraction(0)
        self._reserved = Fraction(0)
        self._taken_in_round = Fraction(0)
        self.exhausted = False
        """Whether the budget for the play could not pay for something."""

    @property
    def spent(self) -> float:
        """What has been spent in all."""
        return float(self._spent)

    def pay(self, cost: float, number: int) -> bool:
        """Spend *cost* now, in round *number*.

        Returns:
            Whether it could be afforded; if not, nothing is spent.
        """
        if not self.reserve(cost, number):
            return False
        self.settle(cost)
        return True

    def reserve(self, cost: float, number: int) -> bool:
        """Set *cost* apart for something asked for in round *number*.

        Returns:
            Whether it could be afforded beside all else; if not, nothing is set apart.
        """
        if not cost:
            return True
        if number != self._round:
            self._round, self._taken_in_round = number, Fraction(0)
        if cost == inf:
            return False
        amount = Fraction(cost)
        if self._spent + self._reserved + amount > self._budget:
            # What is only set apart may come back.
            self.exhausted = self.exhausted or self._spent + amount > self._budget
            return False
        if self._taken_in_round + amount > self._per_round:
            return False
        self._reserved += amount
        self._taken_in_round += amount
        return True

    def settle(self, cost: float) -> None:
        """Spend what was reserved, which has fallen due."""
        if cost:
            amount = Fraction(cost)
            self._reserved -= amount
            self._spent += amount

    def release(self, cost: float, number: int) -> None:
        """Free what was reserved in round *number*, which never fell due."""
        if cost:
            amount = Fraction(cost)
            self._reserved -= amount
            if number == self._round:
                self._taken_in_round -= amount
