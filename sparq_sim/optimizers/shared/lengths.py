"""Lengths: how many rounds a block or a window has, by the formulas of those who proposed them."""

from __future__ import annotations

from abc import abstractmethod
from math import ceil, log, sqrt
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import PositiveInt

from sparq_sim.errors import PluginError
from sparq_sim.fields import Positive, Share, is_whole
from sparq_sim.gp.kernels import Kernel, Matern12, Matern32, Matern52
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import PartChoice, result_error
from sparq_sim.plugin.result_checks import ResultChecks

_SMOOTHNESS: dict[type[Kernel], float] = {Matern12: 0.5, Matern32: 1.5, Matern52: 2.5}


def _rounds(length: Length, given: Any, kernel: Kernel, briefing: Briefing) -> int:
    if is_whole(given) and given >= 1:
        return int(given)
    raise result_error(length, "its rounds", given, "a whole number from 1 on")


class Length(Model):
    """A number of rounds."""

    _result_checks: ClassVar[ResultChecks] = {"__call__": _rounds}

    @abstractmethod
    def __call__(self, kernel: Kernel, briefing: Briefing) -> int:
        """Give it for a play with this *kernel* and *briefing*."""


class GivenLength(Length):
    """So many *rounds*."""

    kind: Literal["given"] = "given"
    rounds: PositiveInt
    """How many rounds there are in the block or window."""

    def __call__(self, kernel: Kernel, briefing: Briefing) -> int:
        return self.rounds


class ForgettingLength(Length):
    """N = ceil(min(T, 12 epsilon^(-1/4))); 24 epsilon^(-1/(4 - c)) for Matern kernels.

    Bogunovic, Scarlett and Cevher 2016, Corollary 4.1 with the constants of their experiments;
    c = d (d + 1) / (2 nu + d (d + 1)).
    """

    kind: Literal["forgetting"] = "forgetting"
    epsilon: Share
    """The share of the reward's variance that is new in each round; above 0 and below 1."""

    def __call__(self, kernel: Kernel, briefing: Briefing) -> int:
        dimensions = briefing.domain.dimensions
        smoothness = _SMOOTHNESS.get(type(kernel))
        if smoothness is None:
            length = 12 / float(self.epsilon**0.25)
        else:
            squares = dimensions * (dimensions + 1)
            power = 1 / (4 - squares / (2 * smoothness + squares))
            length = 24 / float(self.epsilon**power)
        return min(require_rounds(briefing), ceil(length))


class VariationLength(Length):
    """H = W = gamma_T^(1/4) (T / B_T)^(1/2), or gamma_T^(1/4) T^(1/2) without a *budget* B_T.

    Zhou and Shroff 2021, as Iwazaki and Takeno (2025) state it; the form without a budget follows
    from the matching weight of Deng et al. (2022), Corollary 5. B_T bounds the sum of
    |f_{t+1} - f_t|.
    """

    kind: Literal["variation"] = "variation"
    budget: Positive | None = None
    """B_T, a bound on the sum of |f_{t+1} - f_t| over all rounds; by default 1 stands in for it."""

    def __call__(self, kernel: Kernel, briefing: Briefing) -> int:
        rounds = require_rounds(briefing)
        root = sqrt(rounds / (1.0 if self.budget is None else self.budget))
        quartic = sqrt(sqrt(gain_order(kernel, briefing)))
        return max(1, min(rounds, ceil(quartic * root)))


def gain_order(kernel: Kernel, briefing: Briefing) -> float:
    """Give the order of the maximum information gain gamma_T.

    log^(d+1) T for smooth kernels, T^(d/(2 nu + d)) log^(2 nu/(2 nu + d)) T for Matern ones.
    """
    rounds, dimensions = require_rounds(briefing), briefing.domain.dimensions
    smoothness = _SMOOTHNESS.get(type(kernel))
    if smoothness is None:
        return float(log(rounds) ** (dimensions + 1))
    share = dimensions / (2 * smoothness + dimensions)
    return float(rounds**share * log(rounds) ** (1 - share))


def require_rounds(briefing: Briefing) -> int:
    """Give the number of rounds T, which a formula by authors needs beforehand."""
    if briefing.rounds is None:
        raise PluginError(
            "the number of rounds, on which the authors' formula depends, is not known: "
            "give rounds or a horizon in the rules, or the length itself"
        )
    return max(2, briefing.rounds)


AnyLength: TypeAlias = Annotated[
    Length,
    PartChoice(
        "length", GivenLength, ForgettingLength, VariationLength, number=("given", "rounds")
    ),
]
"""A length as a field: a number of rounds, a table with a `kind`, or a model."""
