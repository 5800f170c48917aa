"""The budget of a play: what may be spent, what is reserved, and what has been spent."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import inf

from sparq_sim.simulation.channel.channel import Due
from sparq_sim.simulation.delivery.request import Request

__all__ = ["Budget", "Charges"]


class Budget:
    """Pays for requests out of a *budget* for the play and one *per_round*; sums are exact.

    What falls due later is reserved when it is asked for, so that no budget is ever exceeded; it is
    settled when it falls due, or released if it never does.
    """

    # Ten times 0.1 is more than 1 in binary; nobody means that by a budget of 1.
    _TOLERANCE = 1e-9

    def __init__(self, budget: float = inf, per_round: float = inf) -> None:
        """Begin with nothing spent.

        Args:
            budget: What the play may cost in all.
            per_round: What the requests of one round may cost together.
        """
        self._budget = budget * (1 + self._TOLERANCE)
        self._per_round = per_round * (1 + self._TOLERANCE)
        self._round = 0
        self._spent = Fraction(0)
        self._reserved = Fraction(0)
        self._taken_in_round = Fraction(0)
        self.spent = 0.0
        """What has been spent in all."""
        self.exhausted = False
        """Whether the budget for the play could not pay for something."""

    def restore(
        self,
        costs: Iterable[float],
        *,
        number: int = 0,
        taken: Iterable[float] = (),
        exhausted: bool = False,
    ) -> None:
        """Begin with what a play had spent when it was interrupted.

        Args:
            costs: Each cost that was charged, in units of the budget.
            number: The round in which that was.
            taken: Each cost that was charged or set apart in this round.
            exhausted: Whether the budget for the play could not pay for something.
        """
        self._round, self.exhausted = number, exhausted
        self._taken_in_round = sum((Fraction(cost) for cost in taken), Fraction(0))
        self._spent = sum((Fraction(cost) for cost in costs), Fraction(0))
        self.spent = float(self._spent)

    def pay(self, cost: float | Fraction, number: int) -> bool:
        """Spend *cost* now, in round *number*.

        Args:
            cost: In units of the budget.
            number: The number of the round.

        Returns:
            Whether it could be afforded; if not, nothing is spent.
        """
        if not self.reserve(cost, number):
            return False
        self.settle(cost)
        return True

    def reserve(self, cost: float | Fraction, number: int) -> bool:
        """Set *cost* apart for something asked for in round *number*.

        Args:
            cost: In units of the budget.
            number: The number of the round.

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

    def settle(self, reserved: float | Fraction, cost: Fraction | None = None) -> None:
        """Spend what was reserved, which has fallen due.

        Args:
            reserved: What was reserved, in units of the budget.
            cost: What is spent, which differs from it by rounding only; by default the same.
        """
        if reserved:
            self._reserved -= Fraction(reserved)
            self._spent += Fraction(reserved) if cost is None else cost
            self.spent = float(self._spent)

    def release(self, cost: float, number: int) -> None:
        """Free what was reserved in round *number*, which never fell due.

        Args:
            cost: In units of the budget.
            number: The number of the round.
        """
        if cost:
            amount = Fraction(cost)
            self._reserved -= amount
            if number == self._round:
                self._taken_in_round -= amount


class Charges:
    """Charges the requests to one source, when its channel has them fall *due*.

    Args:
        budget: What the play may spend.
        due: When costs fall due, as the channel states it.
    """

    def __init__(self, budget: Budget, due: Due) -> None:
        self._budget = budget
        self._due = due

    def admit(self, request: Request) -> bool:
        """Charge a request that is sent now, or reserve what falls due later.

        Args:
            request: The request.

        Returns:
            Whether the budget allows it; if not, nothing is charged.
        """
        if self._due == "asked":
            return self._budget.pay(request.cost, request.round)
        if not self._budget.reserve(request.cost, request.round):
            return False
        request.owed, request.cost = request.cost, 0.0
        return True

    def fall_due(self, request: Request, moment: Due) -> None:
        """Charge what a request owes, if *moment* is when that falls due.

        Args:
            request: The request.
            moment: What happens to it now.
        """
        if request.owed and self._due == moment:
            total = request.cost + request.owed
            self._budget.settle(request.owed, Fraction(total) - Fraction(request.cost))
            request.owed, request.cost = 0.0, total

    def add(self, cost: float, request: Request, number: int) -> bool:
        """Charge more for a request that is under way, now, whenever the rest falls due.

        Args:
            cost: In units of the budget.
            request: The request.
            number: The number of the round of now.

        Returns:
            Whether the budget allows it; if not, nothing is charged.
        """
        total = request.cost + cost
        # What the record will state, so that costs add up exactly to what was spent.
        more = inf if total == inf else Fraction(total) - Fraction(request.cost)
        if not self._budget.pay(more, number):
            return False
        request.cost = total
        return True

    def release(self, request: Request) -> None:
        """Free what is still reserved for a request that has ended.

        Args:
            request: The request.
        """
        if request.owed:
            self._budget.release(request.owed, request.round)
            request.owed = 0.0
