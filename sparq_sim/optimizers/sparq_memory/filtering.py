"""Filtering: values enter the bank at the moment of their measurement, in whatever order."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf

import numpy as np

from sparq_sim.arrays import Values
from sparq_sim.optimizers.sparq_memory.bank import Bank

__all__ = ["Filter", "Measured", "Residual"]

_SAME = 1e-9
"""Moments this close, in rounds, are one."""
_LEAST_KEPT = 0.05
"""The smallest correlation that is told apart from none."""


@dataclass(frozen=True, slots=True, order=True)
class Measured:
    """One value, with the features of its point."""

    time: float
    """When it was measured, in rounds."""
    source: str = field(compare=False)
    """Who measured it."""
    feature: Values = field(compare=False)
    """The features of its point, (r,)."""
    value: float = field(compare=False)
    """What was measured, counted from the prior mean, in reward units."""
    variance: float = field(compare=False)
    """Its noise variance, in squared reward units."""


@dataclass(frozen=True, slots=True)
class Residual:
    """How far a value was from what was foretold."""

    measured: Measured
    """The value."""
    miss: float
    """The value less what was foretold, in reward units."""
    variance: float
    """The variance of what was foretold, without the noise of the value."""


class Filter:
    """A bank, and another that stands where the oldest awaited answer may have been measured.

    When an answer is late, what was learnt since its measurement is learnt again after it, so that
    lateness costs work and no knowledge. Nothing is kept twice while nothing is awaited.

    Args:
        bank: The bank, before any observation.
    """

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self._settled: Bank | None = None
        self._since: list[Measured] = []
        self._forgotten = -inf

    def learn(self, values: Sequence[Measured]) -> list[Residual]:
        """Learn values, which may have been measured before others that are known.

        Args:
            values: The values, in any order.

        Returns:
            How far each value was from what was foretold; nothing of those that were measured
            before the last restart, and are dropped.
        """
        fresh = sorted(each for each in values if each.time >= self._forgotten)
        if not fresh:
            return []
        if fresh[0].time >= self.bank.time - _SAME:
            if self._settled is not None:
                self._since.extend(fresh)
            return list(_learn(self.bank, fresh))
        settled = self._settled
        if settled is None:
            return list(_learn(self.bank, [_date(each, self.bank) for each in fresh]))
        new = set()
        for each in fresh:
            placed = _date(each, settled)
            new.add(id(placed))
            insort(self._since, placed)
        now, self.bank = self.bank.time, settled.copy()
        found = list(_learn(self.bank, self._since))
        self.bank.advance(now)
        return [each for each in found if id(each.measured) in new]

    def settle(self, awaited: float | None) -> None:
        """State from when on answers may still have been measured.

        Args:
            awaited: The moment, in rounds; None where no answer is awaited.
        """
        if awaited is None:
            self._settled = None
            self._since.clear()
            return
        if self._settled is None:
            self._settled = self.bank.copy()
        count = 0
        while count < len(self._since) and self._since[count].time < awaited - _SAME:
            count += 1
        for _ in _learn(self._settled, self._since[:count]):
            pass
        del self._since[:count]

    def restart(self) -> None:
        """Forget what was learnt of the reward, but not how it changes."""
        self.bank.restart()
        self._forgotten = self.bank.time
        self._settled = None
        self._since.clear()


def _date(measured: Measured, bank: Bank) -> Measured:
    """Return a value as it is, or, if it is older than a bank, as if measured where that stands.

    With a correlation rho and a prior variance v, y = rho f + noise of (1 - rho^2) v more.
    """
    if (gap := bank.time - measured.time) <= _SAME:
        return measured
    kept = max(bank.remember(gap), _LEAST_KEPT)
    changed = (1 - kept**2) * float(measured.feature @ measured.feature)
    variance = (measured.variance + changed) / kept**2
    return replace(measured, time=bank.time, value=measured.value / kept, variance=variance)


def _learn(bank: Bank, values: Sequence[Measured]) -> Iterator[Residual]:
    """Learn values in the order of time, those of one moment together."""
    for time, group in groupby(values, key=lambda each: round(each.time, 9)):
        together = list(group)
        bank.advance(time)
        misses, variances = bank.learn(
            np.array([each.feature for each in together]),
            np.array([each.value for each in together]),
            np.array([each.variance for each in together]),
        )
        told = zip(together, misses.tolist(), variances.tolist(), strict=True)
        yield from (Residual(*each) for each in told)
