"""Rules: what may be done in a play, and when it ends."""

from __future__ import annotations

from math import ceil, inf
from typing import Annotated

from pydantic import (
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from sparq_sim.fields import Positive
from sparq_sim.limits import MOST_DESIGN, MOST_ROUNDS
from sparq_sim.plugin.briefing import Access
from sparq_sim.plugin.model import Model
from sparq_sim.simulation.channel.draws import AnyDraw, Constant

__all__ = ["EffortTime", "Rules"]


def _write_count(number: float) -> str:
    return f"{number:,.0f}" if number < 1e15 else f"{number:g}"


class EffortTime(Model):
    """The time that an agent's effort takes: *scale* effort^*power* clock units."""

    scale: Positive
    """How many clock units an effort of 1 takes."""
    power: Positive = 1.0
    """How the time grows with the effort: 3 for a Gaussian process that solves anew each round."""

    def __call__(self, effort: float) -> float:
        """Return the time that *effort* takes, in clock units; infinity if it has no number."""
        try:
            return self.scale * float(effort**self.power)
        except OverflowError:
            return inf


class Rules(Model):
    """What may be done in a play, and when it ends."""

    rounds: PositiveInt | None = None
    """How many rounds there are; by default as many as begin before the horizon."""
    period: Positive = 1.0
    """How long a round lasts, in clock units; round t begins at t periods."""
    horizon: PositiveFloat = inf
    """When the play ends, in clock units: no round begins at this moment or later."""
    budget: NonNegativeFloat = inf
    """What all queries of a play may cost together; by default without limit."""
    budget_per_round: NonNegativeFloat = inf
    """What all queries of one round may cost together; by default without limit."""
    ends_when_spent: bool = False
    """Whether the play ends when the budget cannot pay for a query."""
    access: Access = "past"
    """Where experts may be asked: at points already played (`past`), or in the whole domain."""
    design: Annotated[int, Field(ge=0, le=MOST_DESIGN)] = 0
    """How many points, drawn uniformly, are observed at time 0 and shown to the agent: the same
    for every optimizer, and free of cost and regret."""
    thinking: AnyDraw = Constant(value=0.0)
    """From being asked to playing, a model of the agent's computing time; the first move is
    thought out before the play begins."""
    thinking_by_effort: EffortTime | None = None
    """What is added to the thinking for the effort that the agent states with its move."""

    @property
    def most_rounds(self) -> int:
        """How many rounds there are at most."""
        # More periods than there are rounds need not be counted, and may be too many for it.
        if self.rounds is not None and self.horizon / self.period > self.rounds + 1:
            return self.rounds
        last = ceil(self.horizon / self.period)
        while last * self.period >= self.horizon:  # As the play itself will find.
            last -= 1
        return last if self.rounds is None else min(last, self.rounds)

    @property
    def ends_at(self) -> float:
        """When a play ends at the latest: with its last round."""
        return min((self.most_rounds + 1) * self.period, self.horizon)

    @model_validator(mode="after")
    def _must_end(self) -> Rules:
        if self.rounds is None and self.horizon == inf:
            raise ValueError("a play needs rounds or a horizon, or it never ends")
        begun = min(self.horizon / self.period, inf if self.rounds is None else self.rounds)
        if begun > MOST_ROUNDS:
            raise ValueError(
                f"a play of {_write_count(begun)} rounds, and at most {MOST_ROUNDS:,} can be kept "
                "in memory; give fewer rounds, an earlier horizon or a longer period"
            )
        return self
