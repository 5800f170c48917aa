"""Trust: whether an expert answers, and whether its answers are as exact as they claim."""

from __future__ import annotations

from collections import OrderedDict
from math import sqrt
from typing import TypeVar

__all__ = ["Audits", "Trust"]

Key = TypeVar("Key")
Value = TypeVar("Value")

_LEAST = 3
"""How many comparisons are needed before a claim is doubted."""
_KEPT = 0.95
"""How much of the earlier comparisons counts after a further one."""
_RATE = 0.1
"""The weight of the newest query in the share that is answered."""
_RAREST = 10
"""At least every how many rounds an expert is compared, as long as it is asked."""
_WAITING = 64
"""How many values wait at most for another to be compared with."""


class Trust:
    """What is known of one expert: how its answers compare with observations, and how many come.

    An observation and an answer about the same point at the same moment differ by noise alone,
    whatever the reward does. Where their squared differences are far larger than the claimed std
    allows, the claim is not believed, and what was seen takes its place.
    """

    def __init__(self) -> None:
        self.answered = 1.0
        """The share of the queries that were answered, of late."""
        self._count = 0
        self._weight = 0.0
        self._ratios = 0.0
        self._excess = 0.0
        self._audited = 0
        self._next_audit = 1

    def compare(self, difference: float, observed: float, claimed: float) -> None:
        """Record how far an answer was from an observation.

        Args:
            difference: How far, in reward units.
            observed: The noise variance of the observation, in squared reward units.
            claimed: The noise variance that the expert claims.
        """
        square = difference**2
        self._count += 1
        self._weight = _KEPT * self._weight + 1
        self._ratios = _KEPT * self._ratios + square / (observed + claimed)
        self._excess = _KEPT * self._excess + square - observed

    def count_answer(self, *, came: bool) -> None:
        """Record whether a query was answered.

        Args:
            came: Whether the answer came; one that is overdue counts as not.
        """
        self.answered += _RATE * (float(came) - self.answered)

    @property
    def doubted(self) -> bool:
        """Whether the expert's claims are not believed."""
        if self._count < _LEAST:
            return False
        # Beyond the quantile of about 1 - 1e-5 of the chi-squared distribution.
        return self._ratios > self._weight + 4 * sqrt(2 * self._weight) + 8

    def variance(self, claimed: float) -> float:
        """Return the noise variance to believe, in squared reward units.

        Args:
            claimed: The noise variance that the expert claims.
        """
        return max(claimed, self._excess / self._weight) if self.doubted else claimed

    def worth(self, claimed: float) -> float:
        """Return how much of what an expert promises can be had of it, from 0 to 1.

        Args:
            claimed: The noise variance that the expert claims.
        """
        return self.answered * claimed / self.variance(claimed)

    def is_audit_due(self, number: int) -> bool:
        """Return whether the expert should be asked about the point that is played.

        Args:
            number: The number of the round.
        """
        return number >= self._next_audit

    def record_audit(self, number: int) -> None:
        """Record that the expert is asked about the point that is played.

        Args:
            number: The number of the round.
        """
        self._audited += 1
        self._next_audit = number + min(self._audited, _RAREST)


class Audits:
    """Values that wait for another one of the same point and moment, to be compared with it."""

    def __init__(self) -> None:
        self._observed: OrderedDict[tuple[bytes, float], tuple[float, float]] = OrderedDict()
        self._answered: OrderedDict[tuple[bytes, float], tuple[Trust, float, float]] = OrderedDict()

    def observe(self, point: bytes, time: float, value: float, variance: float) -> None:
        """Record an observation of the reward.

        Args:
            point: The point, as bytes.
            time: When it was measured, in rounds.
            value: What was observed.
            variance: Its noise variance.
        """
        key = point, round(time, 6)
        if (waiting := self._answered.pop(key, None)) is not None:
            trust, answer, claimed = waiting
            trust.compare(answer - value, variance, claimed)
        _keep(self._observed, key, (value, variance))

    def answer(self, trust: Trust, point: bytes, time: float, value: float, claimed: float) -> None:
        """Record an answer of an expert.

        Args:
            trust: What is known of the expert.
            point: The point, as bytes.
            time: When it was measured, in rounds.
            value: What was answered.
            claimed: The noise variance that the expert claims.
        """
        key = point, round(time, 6)
        if (observed := self._observed.get(key)) is not None:
            trust.compare(value - observed[0], observed[1], claimed)
        else:
            _keep(self._answered, key, (trust, value, claimed))


def _keep(waiting: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    waiting[key] = value
    if len(waiting) > _WAITING:
        waiting.popitem(last=False)
