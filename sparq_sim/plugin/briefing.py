"""Briefing: what a play tells its agent and its experts before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sparq_sim.domain import Domain
from sparq_sim.messages import Answer

__all__ = ["Access", "Briefing", "SourceTerms", "round_at"]

Access: TypeAlias = Literal["past", "domain"]
"""Where experts may be asked: at points already played, or anywhere in the domain."""


@dataclass(frozen=True, slots=True)
class SourceTerms:
    """What is known of a source before the play: its expected cost, noise and latency."""

    cost: float = 0.0
    """The expected cost of a query."""
    cost_per_point: float = 0.0
    """The expected cost of each point of a query, on top."""
    std: float = 0.0
    """The std that an answer claims, in reward units."""
    latency: float = 0.0
    """The expected service and transit of one point, in clock units; waiting comes on top."""
    split: bool = False
    """Whether each point of a query is answered on its own."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """What a play tells its agent and its experts before it begins.

    A play makes one and passes it to `Optimizer.start` and to `Expert.start`; plug-ins only read
    it. In tests of your own, `Briefing(domain=Box(0.0, 1.0))` is enough.

    Example:
        An agent that asks the expert whose answers are expected first::

            def start(self, briefing, rng):
                latencies = {name: terms.latency for name, terms in briefing.experts.items()}
                return MyAgent(fastest=min(latencies, key=latencies.get))
    """

    domain: Domain
    """Where points may lie."""
    observation: SourceTerms = field(default_factory=SourceTerms)
    """The terms of the reward's own channel."""
    experts: Mapping[str, SourceTerms] = field(default_factory=dict)
    """The terms of each expert, by its name, which is the `source` of a query to it."""
    period: float = 1.0
    """How long a round lasts, in clock units."""
    rounds: int | None = None
    """How many rounds there are at most; None where nobody knows."""
    budget: float = float("inf")
    """What all queries of a play may cost together."""
    budget_per_round: float = float("inf")
    """What all queries of one round may cost together."""
    access: Access = "past"
    """Where experts may be asked."""
    design: Answer | None = None
    """Observations made at time 0, before the play, to fit a prior to; None where there are none.
    """


def round_at(now: float, period: float) -> int:
    """Return the number of the round in which *now* lies, counted from 1.

    Args:
        now: A time at the beginning of a round or a little later, in clock units.
        period: How long a round lasts, in clock units.
    """
    return max(1, int(now / period + 1e-6))
