"""Noise and loss: what happens to an answer on its way."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from typing import Annotated, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.random import Generator, Philox
from pydantic import Field, FiniteFloat, model_validator

from sparq_sim.arrays import Points, Values
from sparq_sim.fields import ModestAmount, ModestPositive, Probability
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import PartChoice, check_number, check_numbers, result_error
from sparq_sim.plugin.result_checks import ResultChecks
from sparq_sim.simulation.channel.draws import PROBES

__all__ = [
    "AnyLoss",
    "AnyNoise",
    "Bounded",
    "Bursts",
    "Chances",
    "DistanceDependent",
    "Gaussian",
    "Loss",
    "Noise",
    "Random",
    "StudentT",
    "ValueDependent",
]


def _units(noise: Noise, given: object, rng: Generator, count: int) -> Values:
    return check_numbers(noise, "units", given, count=count)


def _stds(noise: Noise, given: object, points: Points, values: Values) -> Values | float:
    if isinstance(given, np.ndarray) and given.ndim:
        return check_numbers(noise, "stds", given, count=len(points), least=0.0)
    return check_number(noise, "stds", given, least=0.0)


def _expected_std(noise: Noise, given: object) -> float:
    return check_number(noise, "expected_std", given, least=0.0)


class Noise(Model):
    """An error with mean zero: a unit variate, drawn when asked, times a std known when measured.

    *claimed* is the std that the answer tells; by default the true one.
    """

    _result_checks: ClassVar[ResultChecks] = {
        "units": _units,
        "stds": _stds,
        "expected_std": _expected_std,
    }

    claimed: ModestAmount | None = None
    """The std that an answer claims, in reward units; by default the true one."""

    @property
    def silent(self) -> bool:
        """Whether there is no noise at all, nor a claim of any."""
        return False

    @property
    @abstractmethod
    def expected_std(self) -> float:
        """What is told beforehand of the std of an answer."""

    def units(self, rng: Generator, count: int) -> Values:
        """Draw errors of unit variance.

        Args:
            rng: The generator to draw from.
            count: How many.

        Returns:
            The errors, (count,).
        """
        return rng.standard_normal(count)

    @abstractmethod
    def stds(self, points: Points, values: Values) -> Values | float:
        """Return the true std of the error at each point, in reward units.

        Args:
            points: Where was measured, (n, d).
            values: What was measured there without noise, (n,).

        Returns:
            The stds, (n,), or one number for all.
        """


class _EvenNoise(Noise):
    """Noise with the same *std* everywhere, in reward units."""

    std: ModestAmount
    """The true std of an error, in reward units; the same everywhere."""

    @property
    def silent(self) -> bool:
        """Whether there is no noise at all, nor a claim of any."""
        return self.std == 0 and not self.claimed

    @property
    def expected_std(self) -> float:
        """What is told beforehand: the claimed std, or the true one."""
        return self.std if self.claimed is None else self.claimed

    def stds(self, points: Points, values: Values) -> float:
        """Return *std*, the same at each point."""
        return self.std


class Gaussian(_EvenNoise):
    """Normal errors with standard deviation *std*."""

    kind: Literal["gaussian"] = "gaussian"


class StudentT(_EvenNoise):
    """Heavy-tailed errors with standard deviation *std*; *freedom* above 2 makes one exist."""

    kind: Literal["student-t"] = "student-t"
    freedom: Annotated[float, Field(gt=2, allow_inf_nan=False)] = 3.0
    """Degrees of freedom, above 2; the fewer, the heavier the tails."""

    def units(self, rng: Generator, count: int) -> Values:
        """Draw Student's t, scaled to unit variance: t sqrt((freedom - 2) / freedom)."""
        return rng.standard_t(self.freedom, count) * math.sqrt(1 - 2 / self.freedom)


class Bounded(_EvenNoise):
    """Errors uniform within +- sqrt(3) *std*: sub-Gaussian, and never larger than that bound."""

    kind: Literal["bounded"] = "bounded"

    def units(self, rng: Generator, count: int) -> Values:
        """Draw uniformly within +- sqrt(3), which has unit variance."""
        return rng.uniform(-math.sqrt(3), math.sqrt(3), count)


class ValueDependent(Noise):
    """Normal errors that grow with what is measured: std^2 = floor^2 + (share value)^2."""

    kind: Literal["value-dependent"] = "value-dependent"
    floor: ModestAmount = 0.0
    """The std where the measured value is 0, in reward units."""
    share: ModestPositive
    """How much the std grows with the measured value, as a share of that value."""

    @property
    def expected_std(self) -> float:
        """What is told beforehand: the claimed std, or that at value zero."""
        return self.floor if self.claimed is None else self.claimed

    def stds(self, points: Points, values: Values) -> Values:
        """Return the std at each value."""
        return np.hypot(self.floor, self.share * values)


class DistanceDependent(Noise):
    """Normal errors that grow with the way from *origin*: std = floor + slope |x - origin|."""

    kind: Literal["distance-dependent"] = "distance-dependent"
    floor: ModestAmount = 0.0
    """The std at the origin, in reward units."""
    slope: ModestPositive
    """How much the std grows for each unit of distance from the origin, in reward units."""
    origin: Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]
    """The point from which distances are measured: a number for each coordinate."""

    @property
    def expected_std(self) -> float:
        """What is told beforehand: the claimed std, or that at the origin."""
        return self.floor if self.claimed is None else self.claimed

    def stds(self, points: Points, values: Values) -> Values:
        """Return the std at each point."""
        if points.shape[1] != len(self.origin):
            raise ValueError(
                f"noise has an origin of {len(self.origin)} coordinates; "
                f"points have {points.shape[1]}"
            )
        distances: Values = np.linalg.norm(points - np.asarray(self.origin), axis=1)
        return self.floor + self.slope * distances


class Chances(Protocol):
    """A started loss: the chance that an answer asked for at a moment is lost."""

    def __call__(self, moment: float) -> float:
        """Return the probability that an answer asked for at *moment*, in clock units, is lost."""


def _chances(loss: Loss, given: object, rng: Generator) -> Chances:
    if not callable(given):
        raise result_error(loss, "start", given, "a function of the moment that gives a chance")

    def chance(moment: float) -> float:
        return check_number(loss, f"the chance at {moment:g}", given(moment), least=0.0, most=1.0)

    return chance


class Loss(Model):
    """How answers get lost on their way."""

    _result_checks: ClassVar[ResultChecks] = {"start": _chances}

    @property
    def lossless(self) -> bool:
        """Whether nothing is ever lost; not so unless it is known."""
        return False

    @abstractmethod
    def start(self, rng: Generator) -> Chances:
        """Return the chances of one play.

        Args:
            rng: A generator for this loss alone.
        """


class Random(Loss):
    """Each answer is lost with the same *probability*, whatever happened to others."""

    kind: Literal["random"] = "random"
    probability: Probability
    """The probability that an answer is lost, from 0 to 1."""

    @property
    def lossless(self) -> bool:
        """Whether nothing is ever lost."""
        return self.probability == 0

    def start(self, rng: Generator) -> Chances:
        """Return the same chance for every moment."""
        return lambda moment: self.probability


class Bursts(Loss):
    """Loss in bursts: the model of Gilbert (1960) and Elliott (1963), in continuous time.

    Good and bad spells alternate, exponentially long with means *good_spell* and *bad_spell* in
    clock units; an answer is lost with the probability of the spell it is asked in. The spells
    pass with time, not with queries: how much one asks does not change the weather.
    """

    kind: Literal["bursts"] = "bursts"
    good_spell: ModestPositive
    """The mean length of a good spell, in clock units."""
    bad_spell: ModestPositive
    """The mean length of a bad spell, in clock units."""
    lost_in_good: Probability = 0.0
    """The probability that an answer asked for in a good spell is lost, from 0 to 1."""
    lost_in_bad: Probability = 1.0
    """The probability that an answer asked for in a bad spell is lost, from 0 to 1."""

    @model_validator(mode="after")
    def _in_order(self) -> Bursts:
        if self.lost_in_good > self.lost_in_bad:
            raise ValueError(
                f"lost_in_good {self.lost_in_good} exceeds lost_in_bad {self.lost_in_bad}; swap"
            )
        return self

    @property
    def lossless(self) -> bool:
        """Whether nothing is ever lost."""
        return self.lost_in_bad == 0

    def start(self, rng: Generator) -> Chances:
        """Begin in a spell drawn as the long run has them."""
        return _Spells(self, rng)


class _Spells:
    """The spells of one play, drawn in the order of time as far as they have been asked for."""

    def __init__(self, bursts: Bursts, rng: Generator) -> None:
        self._means = (bursts.good_spell, bursts.bad_spell)
        self._losses = (bursts.lost_in_good, bursts.lost_in_bad)
        self._rng = rng
        self._first = int(rng.random() < bursts.bad_spell / (bursts.good_spell + bursts.bad_spell))
        self._ends: list[float] = []

    def __call__(self, moment: float) -> float:
        """Return the probability that an answer asked for at *moment*, in clock units, is lost."""
        while not self._ends or self._ends[-1] <= moment:
            state = (self._first + len(self._ends)) % 2
            begun = self._ends[-1] if self._ends else 0.0
            self._ends.append(begun + self._rng.exponential(self._means[state]))
        spell = bisect_right(self._ends, moment)
        return self._losses[(self._first + spell) % 2]


def _probe(noise: Noise) -> object:
    return noise.expected_std, noise.units(Generator(Philox(key=0)), PROBES)


def _probe_loss(loss: Loss) -> object:
    return loss.start(Generator(Philox(key=0)))(0.0)


AnyNoise: TypeAlias = Annotated[
    Noise,
    PartChoice(
        "noise",
        *(Gaussian, StudentT, Bounded, ValueDependent, DistanceDependent),
        number=("gaussian", "std"),
        probe=_probe,
    ),
]
"""Noise as a field: a std, a table with a `kind`, or a model."""

AnyLoss: TypeAlias = Annotated[
    Loss, PartChoice("loss", Random, Bursts, number=("random", "probability"), probe=_probe_loss)
]
"""Loss as a field: a probability, a table with a `kind`, or a model."""
