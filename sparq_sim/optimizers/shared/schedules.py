"""Query schedules: how many points to ask an expert about in a round.

A schedule counts rounds from 1 and rounds its formula up. It knows nothing of the points played:
the caller asks about no more points than there are.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from functools import lru_cache
from math import ceil, inf, log
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, NonNegativeInt, PositiveInt

from sparq_sim.fields import Positive
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import PartChoice, check_number
from sparq_sim.plugin.result_checks import ResultChecks

__all__ = [
    "ConstantSchedule",
    "EverySchedule",
    "GuaranteedSchedule",
    "LogarithmicPowerSchedule",
    "LogarithmicSchedule",
    "QuerySchedule",
    "Schedule",
    "WindowedSchedule",
]


_MOST = 1e15
"""More points and rounds than any play has."""


def _check_asked(schedule: "Schedule", given: object, round_number: int) -> float:
    return check_number(schedule, f"the points asked in round {round_number}", given)


class Schedule(Model, ABC):
    """A number of points to ask about in each round.

    A schedule of your own defines `asked`.
    """

    _result_checks: ClassVar[ResultChecks] = {"asked": _check_asked}

    @abstractmethod
    def asked(self, round_number: int) -> float:
        """Return how many points to ask about, before rounding up; below 0 there are none.

        Args:
            round_number: The number of the round, 1 or more.
        """

    def __call__(self, round_number: int) -> int:
        """Return how many points to ask about in a round.

        Args:
            round_number: The number of the round.

        Raises:
            ValueError: If it is below 1.
        """
        if round_number < 1:
            raise ValueError(f"round_number is {round_number}: rounds are numbered from 1")
        return ceil(min(self.asked(round_number), _MOST))


def _raise(base: float, power: int) -> float:
    """Return *base*^*power*; infinity if it has no number."""
    try:
        return float(base) ** power
    except OverflowError:
        return inf


class LogarithmicSchedule(Schedule):
    """A schedule of Q_t = c log t points, c being *factor*: 6 in the paper's experiment."""

    kind: Literal["logarithmic"] = "logarithmic"
    factor: Positive = 6.0
    """c, by which log t is multiplied; 6 in the paper's experiment."""

    def asked(self, round_number: int) -> float:
        return self.factor * log(round_number)


class LogarithmicPowerSchedule(Schedule):
    """A schedule of Q_t = c (log t)^d points, as the paper's theorems have in d *dimensions*."""

    kind: Literal["logarithmic-power"] = "logarithmic-power"
    factor: Positive = 6.0
    """c, by which (log t)^d is multiplied."""
    dimensions: PositiveInt
    """d, how many coordinates a point has."""

    def asked(self, round_number: int) -> float:
        return self.factor * _raise(log(round_number), self.dimensions)


class ConstantSchedule(Schedule):
    """A schedule of the same number of points in each round."""

    kind: Literal["constant"] = "constant"
    count: NonNegativeInt
    """How many points are asked about in each round; 0 for none."""

    def asked(self, round_number: int) -> float:
        return self.count


class EverySchedule(Schedule):
    """A schedule that asks in rounds w, 2 w, 3 w, …, w being *rounds*, and not in between."""

    kind: Literal["every"] = "every"
    rounds: PositiveInt
    """After how many rounds the expert is asked again."""
    schedule: "QuerySchedule"
    """How many points are asked about in a round in which the expert is asked: a table with a
    `kind`."""

    def asked(self, round_number: int) -> float:
        return 0.0 if round_number % self.rounds else self.schedule.asked(round_number)


class WindowedSchedule(Schedule):
    """A schedule that asks only when a window begins; windows grow, so queries become rare.

    The first window begins in round 1, and one that begins in round t lasts
    ceil(*factor* t^*power*) rounds. Up to round T there are of the order of T^(1 - power) windows;
    with log t points in each, the average number of points a round falls to 0 like T^-power log T.

    After W-SparQ-GP-UCB of Mauduit, Berthier and Simonetto (arXiv 2512.00517), of which only the
    abstract was at hand: from there is that experts are asked once a window, and that the average
    number of queries vanishes. The formula of the windows, and its numbers, are our choice.
    """

    kind: Literal["windowed"] = "windowed"
    factor: Positive = 1.0
    """By what t^power is multiplied to give the length of a window that begins in round t."""
    power: Annotated[float, Field(gt=0, lt=1)] = 1 / 3
    """How fast windows grow; above 0, so that queries become rare, and below 1."""
    schedule: "QuerySchedule" = LogarithmicSchedule()
    """How many points are asked about in a round in which a window begins: a table with a `kind`;
    by default 6 log t."""

    def asked(self, round_number: int) -> float:
        begins = _find_windows(self.factor, self.power).include(round_number)
        return self.schedule.asked(round_number) if begins else 0.0


class _Windows:
    """The rounds in which windows begin, found as far as they are needed."""

    def __init__(self, factor: float, power: float) -> None:
        self._factor = factor
        self._power = power
        self._begins = [1]

    def include(self, round_number: int) -> bool:
        """Return whether a window begins in a round."""
        while (last := self._begins[-1]) < round_number:
            self._begins.append(last + ceil(min(self._factor * last**self._power, _MOST)))
        return self._begins[bisect_left(self._begins, round_number)] == round_number


@lru_cache(maxsize=64)
def _find_windows(factor: float, power: float) -> _Windows:
    return _Windows(factor, power)


class GuaranteedSchedule(Schedule):
    """A schedule that keeps the expected divergence to *divergence*, eta in the paper.

    Q_t = (1/alpha)^d log^d(2 C t^3 / (sigma^2 eta)), the last equation of the proof of the
    proposition E[KL] <= eta, and at least d^d / alpha + d - 1, from where on its bound
    sum_{m>Q} lambda_m <= C Q exp(-alpha Q^(1/d)) on the kernel's eigenvalues holds. alpha and C
    (*decay* and *scale*, with the constant of the domain in C) belong to the kernel and the
    domain; the paper leaves them open. sigma^2 is *noise_variance*, the smallest of all
    observations, and *variance* bounds k(x, x).
    """

    kind: Literal["guaranteed"] = "guaranteed"
    divergence: Positive
    """eta, the largest expected divergence that will do, in nats."""
    decay: Positive
    """alpha, how fast the eigenvalues of the kernel fall."""
    scale: Positive
    """C, the constant of the bound on the eigenvalues of the kernel and the domain."""
    noise_variance: Positive
    """sigma^2, the smallest noise variance of all observations, in squared reward units."""
    variance: Positive = 1.0
    """The largest variance of the kernel, k(x, x), in squared reward units."""
    dimensions: PositiveInt = 1
    """d, how many coordinates a point has."""

    def asked(self, round_number: int) -> float:
        small = log(self.noise_variance) + log(self.divergence)
        odds = log(2) + log(self.scale) - small + 3 * log(round_number)
        least = _raise(self.dimensions, self.dimensions) / self.decay + self.dimensions - 1
        return max(_raise(max(odds, 0.0) / self.decay, self.dimensions), least)

    def epsilon(self, round_number: int) -> float:
        """Return how near to the M-DPP, in total variation, a draw must be.

        sigma^2 eta / (4 t k_max), k_max being *variance*.

        Args:
            round_number: t, the number of the round.
        """
        return self.noise_variance * self.divergence / (4 * round_number * self.variance)


QuerySchedule: TypeAlias = Annotated[
    Schedule,
    PartChoice(
        "schedule",
        LogarithmicSchedule,
        LogarithmicPowerSchedule,
        ConstantSchedule,
        EverySchedule,
        WindowedSchedule,
        GuaranteedSchedule,
    ),
]
"""A schedule as a field: a table with a `kind`, or a model."""
EverySchedule.model_rebuild()
WindowedSchedule.model_rebuild()
