"""Lengths: how many rounds a block or a window has, as given or by the formulas of its authors."""

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

__all__ = [
    "AnyLength",
    "ForgettingLength",
    "GivenLength",
    "Length",
    "VariationLength",
    "gain_order",
    "require_rounds",
]

_SMOOTHNESS: dict[type[Kernel], float] = {Matern12: 0.5, Matern32: 1.5, Matern52: 2.5}


def _check_rounds(length: Length, given: Any, kernel: Kernel, briefing: Briefing) -> int:
    if is_whole(given) and given >= 1:
        return int(given)
    raise result_error(length, "its rounds", given, "a whole number from 1 on")


class Length(Model):
    """A number of rounds, given or computed.

    A length of your own defines `__call__`.
    """

    _result_checks: ClassVar[ResultChecks] = {"__call__": _check_rounds}

    @abstractmethod
    def __call__(self, kernel: Kernel, briefing: Briefing) -> int:
        """Return the number of rounds for one play, 1 or more.

        Args:
            kernel: The kernel of the reward.
            briefing: The domain and the rules of the play.
        """


class GivenLength(Length):
    """A length that is given as a number of *rounds*."""

    kind: Literal["given"] = "given"
    rounds: PositiveInt
    """How many rounds there are in the block or window."""

    def __call__(self, kernel: Kernel, briefing: Briefing) -> int:
        return self.rounds


class ForgettingLength(Length):
    """A length for rewards of which a share is new in each round.

    N = ceil(min(T, 12 epsilon^(-1/4))); 24 epsilon^(-1/(4 - c)) for Matern kernels, with
    c = d (d + 1) / (2 nu + d (d + 1)). Bogunovic, Scarlett and Cevher 2016, Corollary 4.1 with the
    constants of their experiments.
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
    """A length for rewards whose total change is bounded.

    H = W = gamma_T^(1/4) (T / B_T)^(1/2), or gamma_T^(1/4) T^(1/2) without a *budget* B_T, which
    bounds the sum of |f_{t+1} - f_t|. Zhou and Shroff 2021, as Iwazaki and Takeno (2025) state it;
    the form without a budget follows from the matching weight of Deng et al. (2022), Corollary 5.
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
    """Compute the order of the maximum information gain gamma_T.

    log^(d+1) T for smooth kernels, T^(d/(2 nu + d)) log^(2 nu/(2 nu + d)) T for Matern ones.

    Args:
        kernel: The kernel of the reward.
        briefing: The domain and the rules of the play.

    Returns:
        The order, without its constant.

    Raises:
        PluginError: If the number of rounds is not known.
    """
    rounds, dimensions = require_rounds(briefing), briefing.domain.dimensions
    smoothness = _SMOOTHNESS.get(type(kernel))
    if smoothness is None:
        return float(log(rounds) ** (dimensions + 1))
    share = dimensions / (2 * smoothness + dimensions)
    return float(rounds**share * log(rounds) ** (1 - share))


def require_rounds(briefing: Briefing) -> int:
    """Return the number of rounds T, at least 2, for a formula that needs it beforehand.

    Args:
        briefing: The rules of the play.

    Raises:
        PluginError: If the number of rounds is not known.
    """
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
