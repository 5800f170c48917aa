"""Confidence widths: how many stds above the mean the upper confidence bound lies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np

from sparq_sim.fields import Amount, Positive, Share
from sparq_sim.gp.kernels import Kernel
from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import Answer
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import PartChoice, check_number, result_error
from sparq_sim.plugin.result_checks import ResultChecks

__all__ = [
    "AnyWidth",
    "ChowdhuryGopalanWidth",
    "ConstantWidth",
    "FiniteWidth",
    "LogarithmicWidth",
    "Occasion",
    "PaperWidth",
    "SrinivasWidth",
    "Width",
]


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a width may depend on."""

    round: int
    """The number of the round, from 1 on."""
    candidates: int
    """How many points there are to choose from."""
    predictor: Predictor | None = None
    """What is believed of the reward; None for the prior alone."""

    @property
    def log_determinant(self) -> float:
        """Log det(I + S^-1/2 K S^-1/2) of what was observed: twice the information gain in nats."""
        return 0.0 if self.predictor is None else self.predictor.log_determinant


def _check_width(width: Width, given: object, occasion: Occasion) -> float:
    return check_number(width, f"beta in round {occasion.round}", given, least=0.0)


def _check_prepared(
    width: Width, given: object, kernel: Kernel, mean: float, design: Answer | None
) -> Width:
    if isinstance(given, Width):
        return given
    raise result_error(width, "prepare", given, "a width")


class Width(Model):
    """A width beta_t; the bound is mean + beta_t std.

    A width of your own defines `__call__`.
    """

    _result_checks: ClassVar[ResultChecks] = {"__call__": _check_width, "prepare": _check_prepared}

    @property
    def theoretical(self) -> bool:
        """Whether a theorem asks for the width: such widths draw plays into every unknown gap."""
        return False

    @property
    def needs_design(self) -> bool:
        """Whether the width takes something from the design of the play."""
        return False

    def prepare(self, kernel: Kernel, mean: float, design: Answer | None) -> Width:
        """Return the width with all that it takes from the design filled in.

        Args:
            kernel: The kernel of the reward.
            mean: The prior mean, in reward units.
            design: The observations made before the play, if there are any.
        """
        return self

    @abstractmethod
    def __call__(self, occasion: Occasion) -> float:
        """Return beta_t, 0 or more.

        Args:
            occasion: The round, and what is believed in it.
        """


class ConstantWidth(Width):
    """A width that is the same in every round: beta_t = *value*."""

    kind: Literal["constant"] = "constant"
    value: Amount
    """How many stds above the mean the bound lies, in every round."""

    def __call__(self, occasion: Occasion) -> float:
        return self.value


class LogarithmicWidth(Width):
    """The width beta_t = sqrt(c1 log(c2 t)), 0 where the logarithm is negative.

    Bogunovic, Scarlett and Cevher 2016: c1 = 0.8, c2 = 4 on synthetic data; 0.8 and 0.4 on
    temperatures, 0.2 and 0.4 on traffic.
    """

    kind: Literal["logarithmic"] = "logarithmic"
    c1: Positive = 0.8
    """The factor before the logarithm; the larger, the wider in all rounds."""
    c2: Positive = 4.0
    """The factor of t within the logarithm; the larger, the wider, above all in early rounds."""

    def __call__(self, occasion: Occasion) -> float:
        return sqrt(max(0.0, self.c1 * log(self.c2 * occasion.round)))


class _Normed(Width):
    """A width that needs a bound on the norm of the reward in the space of the kernel.

    *norm* is given, or taken from the design: with a = (K + ridge I)^-1 (y - mean) it is
    sqrt(a' K a), a surrogate that exists even where the reward is not in that space.
    """

    norm: Amount | None = None
    """A bound on the norm of the reward in the space of the kernel; by default computed from the
    design."""
    ridge: Positive = 1e-2
    """What is added to the diagonal of the kernel matrix where the norm is computed from the
    design."""

    @property
    def theoretical(self) -> bool:
        return True

    @property
    def needs_design(self) -> bool:
        return self.norm is None

    def prepare(self, kernel: Kernel, mean: float, design: Answer | None) -> Width:
        if self.norm is not None or design is None:
            return self
        matrix = kernel(design.points, design.points)
        ridge = self.ridge * np.eye(len(matrix))
        weights = np.linalg.solve(matrix + ridge, design.values - mean)
        return self.model_copy(update={"norm": sqrt(float(weights @ matrix @ weights))})

    @property
    def _bound(self) -> float:
        if self.norm is None:
            raise ValueError("the norm is not known before the width is prepared")
        return self.norm


class PaperWidth(_Normed):
    """The width beta_t = sqrt(2 log(2 det(S + K)^1/2 / (delta det(S)^1/2))) + norm.

    Kirschner and Krause 2018, Lemma 7, as Mauduit, Berthier and Simonetto 2025 use it.
    """

    kind: Literal["paper"] = "paper"
    delta: Share = 0.05
    """The probability, above 0 and below 1, with which the bound may fail."""

    def __call__(self, occasion: Occasion) -> float:
        return sqrt(2 * log(2 / self.delta) + occasion.log_determinant) + self._bound


class ChowdhuryGopalanWidth(_Normed):
    """The width beta_t = norm + R sqrt(2 (gamma + 1 + log(1/delta))), R being *noise_std*.

    Chowdhury and Gopalan 2017 (IGP-UCB); gamma is the realised information gain.
    """

    kind: Literal["chowdhury-gopalan"] = "chowdhury-gopalan"
    delta: Share = 0.1
    """The probability, above 0 and below 1, with which the bound may fail."""
    noise_std: Positive = 1.0
    """R, for which the noise is R-sub-Gaussian: for Gaussian noise its std."""

    def __call__(self, occasion: Occasion) -> float:
        gain = occasion.log_determinant / 2
        return self._bound + self.noise_std * sqrt(2 * (gain + 1 + log(1 / self.delta)))


class SrinivasWidth(_Normed):
    """The width beta_t = sqrt(2 norm^2 + 300 gamma log^3(t/delta)).

    Srinivas et al. 2012, Theorem 3; gamma is the realised information gain. Far too wide for
    practice.
    """

    kind: Literal["srinivas"] = "srinivas"
    delta: Share = 0.1
    """The probability, above 0 and below 1, with which the bound may fail."""

    def __call__(self, occasion: Occasion) -> float:
        gain = occasion.log_determinant / 2
        return sqrt(2 * self._bound**2 + 300 * gain * log(occasion.round / self.delta) ** 3)


class FiniteWidth(Width):
    """The width beta_t = sqrt(2 log(|D| t^2 pi^2 / (6 delta))) on a finite domain D, or a grid.

    Srinivas et al. 2012, Theorem 1.
    """

    kind: Literal["finite"] = "finite"
    delta: Share = 0.1
    """The probability, above 0 and below 1, with which the bound may fail."""

    @property
    def theoretical(self) -> bool:
        return True

    def __call__(self, occasion: Occasion) -> float:
        return sqrt(2 * log(occasion.candidates * (occasion.round * pi) ** 2 / 6 / self.delta))


AnyWidth: TypeAlias = Annotated[
    Width,
    PartChoice(
        "width",
        *(ConstantWidth, LogarithmicWidth, PaperWidth),
        *(ChowdhuryGopalanWidth, SrinivasWidth, FiniteWidth),
        number=("constant", "value"),
    ),
]
"""A width as a field: a number, a table with a `kind`, or a model."""
