"""Policies: what is done between an asker and a source about failures, haste and repetition."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.fields import Amount, Positive
from sparq_sim.messages import REWARD
from sparq_sim.plugin.model import Model

__all__ = ["Policy", "Rate", "check_fallbacks"]


class Rate(Model):
    """How fast a source may be asked, in points per stretch of time."""

    points: PositiveInt
    """How many points may be asked in any stretch of time as long as `every`."""
    every: Positive = 1.0
    """How long the stretch of time is, in clock units."""
    beyond: Literal["wait", "refuse"] = "wait"
    """What becomes of more points: they wait for their turn, or are refused at once at no cost."""


class Policy(Model):
    """How failures, haste and repetition are dealt with before the asker hears of them.

    A point is looked up among remembered answers, merged with an equal one asked at the same
    time, held back by the rate, put to the source, put again after failures, and at last put to
    the fallback. Each attempt is paid for and recorded; the asker hears of the last one only.
    """

    retries: NonNegativeInt = 0
    """How often a query that was late, refused or answered badly is put again."""
    backoff: Amount = 0.0
    """How long to wait before the first retry, in clock units."""
    growth: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 2.0
    """By what factor the wait grows from one retry to the next; at least 1."""
    timeout: PositiveFloat = inf
    """How long after asking the source is given up, all attempts together, in clock units; by
    default never."""
    fallback: str | None = None
    """The name of another expert, who is asked when this source has failed for good."""
    rate: Rate | None = None
    """How fast the source may be asked; by default without limit."""
    remember: Amount = 0.0
    """For how long after it was measured an answer serves those who ask for the same point again,
    at no cost; in clock units."""
    merge: bool = False
    """Whether a point asked twice at the same time is asked, and paid for, once."""

    @property
    def idle(self) -> bool:
        """Whether it does nothing at all."""
        return self == _IDLE

    def wait(self, attempt: int) -> float:
        """Return how long to wait before the next attempt, in clock units.

        Args:
            attempt: The number of the attempt that failed, from 1.
        """
        # Growth alone would overflow after a thousand attempts.
        return self.backoff * self.growth ** (attempt - 1) if self.backoff else 0.0


_IDLE = Policy()


def check_fallbacks(policies: Mapping[str, Policy]) -> None:
    """Check that each fallback leads to an expert, and that no fallbacks form a circle.

    Args:
        policies: The policy of every source of a play, by its name; that of the reward is among
            them, as `REWARD`.

    Raises:
        PluginError: If the reward has a fallback, or a fallback is no expert or leads to itself.
    """
    if policies[REWARD].fallback is not None:
        raise PluginError("the reward has no fallback: an expert's answer is no observation")
    for name in policies:
        path = [name]
        while (fallback := policies[path[-1]].fallback) is not None:
            if fallback == REWARD or fallback not in policies:
                known = policies.keys() - {REWARD, path[-1]}
                raise PluginError(
                    f"the fallback of {path[-1]!r} is {fallback!r}, no expert of this play: "
                    f"{did_you_mean(fallback, known)}"
                )
            if fallback in path:
                raise PluginError(f"fallbacks lead in a circle: {' > '.join([*path, fallback])}")
            path.append(fallback)
