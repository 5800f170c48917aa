"""Criteria: what plays are compared by, regret where the best reward is known, else reward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sparq_sim.arrays import Values
from sparq_sim.errors import SparqError
from sparq_sim.simulation import measures
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.store import StoredSummary

__all__ = [
    "BEST_SEEN",
    "REGRET",
    "REWARD",
    "Criterion",
    "CriterionName",
    "choose_criterion",
]

CriterionName: TypeAlias = Literal["average_regret", "mean_reward", "regret_to_best_seen"]
"""What a criterion is called in tables of data."""


@dataclass(frozen=True)
class Criterion:
    """What the plays of a study are compared by: one number a play, and what it is called.

    It is chosen once for all plays of a study, by `choose_criterion`, so that numbers of two kinds
    are never compared with each other.
    """

    name: CriterionName
    """In tables of data: the name of a field of `Summary`."""
    label: str
    """In sentences, headings and on axes."""
    heading: str
    """In a table on a terminal, where there is little room."""
    word: str
    """In a sentence that has said already which regret or reward is meant."""
    more_is_better: bool = False
    """Whether the higher number is the better one."""
    mixed: bool = False
    """Whether some of the plays know the best reward, and others do not."""

    @property
    def is_regret(self) -> bool:
        """Whether it is regret against the best reward there is."""
        return self.name == "average_regret"

    @property
    def from_zero(self) -> bool:
        """Whether it is never below 0, as regrets are."""
        return not self.more_is_better

    @property
    def superlative(self) -> str:
        """What the best of all is: the lowest or the highest."""
        return "highest" if self.more_is_better else "lowest"

    @property
    def comparative(self) -> str:
        """What the better of two has: less or more."""
        return "more" if self.more_is_better else "less"

    @property
    def with_price(self) -> str:
        """What it is called together with the price of what was spent."""
        sign = "\N{MINUS SIGN}" if self.more_is_better else "+"
        return f"{self.word} {sign} price"

    def to_loss(self, number: float) -> float:
        """Return a number that is the smaller, the better.

        Args:
            number: What a play, or a mean of plays, comes to.
        """
        return -number if self.more_is_better else number

    def of(self, play: StoredSummary) -> float | None:
        """Return the number of a play; None where it is not known.

        Args:
            play: A finished play.
        """
        if self.name != "regret_to_best_seen":
            return play.measures.get(self.name)
        best, mean = play.measures.get("best_seen"), play.measures.get("mean_reward")
        return None if best is None or mean is None else best - mean

    def over_rounds(self, trace: Trace) -> Values:
        """Return the number of the rounds so far, times how many they are: (rounds,).

        Of regret, that is the sum up to each round. Rounds without an observed reward count as
        the mean of the others; before the first observed one, it is NaN.

        Args:
            trace: A play.
        """
        if self.is_regret:
            return measures.cumulative_regret(trace)
        means = measures.average_reward(trace)
        if not self.more_is_better:
            means = measures.best_seen(trace) - means
        rounds: Values = means * trace.rounds["round"]
        return rounds


REGRET = Criterion("average_regret", "average regret", "average regret", "regret")
"""Where the best reward is known."""
REWARD = Criterion("mean_reward", "mean reward", "mean reward", "reward", more_is_better=True)
"""Where it is not."""
BEST_SEEN = Criterion(
    "regret_to_best_seen",
    "average regret against the best seen",
    "regret against\nthe best seen",
    "regret against the best seen",
)
"""Where it is not, and it is wished for."""


def choose_criterion(plays: Iterable[StoredSummary], *, best_seen: bool = False) -> Criterion:
    """Choose what the plays of a study are compared by.

    Args:
        plays: All plays of the study.
        best_seen: Whether regret against the best reward seen in each play is wished for, where
            the best reward there is is not known.

    Returns:
        `REGRET` where all plays know the best reward. Otherwise, for all plays alike, `BEST_SEEN`
        where it is wished for, else `REWARD`.

    Raises:
        SparqError: Regret against the best seen is wished for, and all plays know the best.
    """
    known = [play.knows_best for play in plays]
    if all(known):
        if best_seen and known:
            raise SparqError(
                "the best reward is known in all plays, so that their regret is against it; leave "
                "out best-seen"
            )
        return REGRET
    return replace(BEST_SEEN if best_seen else REWARD, mixed=any(known))
