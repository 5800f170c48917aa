"""A channel: how a source is reached, and what happens to its answers on their way."""

from __future__ import annotations

from math import inf
from typing import Literal, Self, TypeAlias

from pydantic import PositiveFloat, PositiveInt, field_validator, model_validator

from sparq_sim.plugin.briefing import SourceTerms
from sparq_sim.plugin.model import Model
from sparq_sim.simulation.channel.draws import AnyDraw, Constant
from sparq_sim.simulation.channel.faults import AnyFault, FaultModel
from sparq_sim.simulation.channel.noise import AnyLoss, AnyNoise, Gaussian, Random
from sparq_sim.simulation.channel.policy import Policy

__all__ = ["Channel", "Due"]

Due: TypeAlias = Literal["asked", "served", "answered"]
"""When a cost falls due."""


class Channel(Model):
    """How a source is reached.

    The order of effects is fixed: wait for a slot, service, measure, free the slot, transit,
    lost or not, noise. Everything is drawn when asked, so that no query shifts the draws of
    another.
    """

    service: AnyDraw = Constant(value=0.0)
    """How long a query is worked on, in clock units; it holds a slot, and the value is measured
    when it ends."""
    service_per_point: AnyDraw = Constant(value=0.0)
    """Service on top for each point of a query, in clock units."""
    transit: AnyDraw = Constant(value=0.0)
    """How long an answer is on its way, in clock units; it holds no slot, and the value ages."""
    cost: AnyDraw = Constant(value=0.0)
    """What a query costs."""
    cost_per_point: AnyDraw = Constant(value=0.0)
    """What each point of a query costs on top."""
    charged: Due = "asked"
    """When the cost falls due: when asked, whatever comes of it; when service begins, as the energy
    of a sensor that measures; or when the answer arrives. A budget sets it apart when asked, and
    has it back if it never falls due."""
    noise: AnyNoise = Gaussian(std=0.0)
    """Error that is added to a value on its way: a std in reward units, or a table with a
    `kind`."""
    loss: AnyLoss = Random(probability=0.0)
    """Whether an answer is lost on its way: a probability, or a table with a `kind`."""
    capacity: PositiveInt | None = None
    """How many queries are served at a time, the others wait; by default as many as come."""
    patience: PositiveFloat = inf
    """How long after asking the agent gives up, in clock units; by default never."""
    outages: tuple[tuple[float, float], ...] = ()
    """Times at which nobody can be asked, each from its start to before its end, in clock units."""
    split: bool = False
    """Whether each point of a query travels on its own, and is answered on its own."""
    policy: Policy = Policy()
    """What is done about failures, haste and repetition before the asker hears of them."""
    faults: tuple[AnyFault, ...] = ()
    """What is made to go wrong, each for a share of the queries."""

    @field_validator("outages")
    @classmethod
    def _in_order(cls, outages: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        for start, end in outages:
            if not 0 <= start < end:
                raise ValueError(
                    f"an outage starts at 0 or later and ends after that, not {start} to {end}"
                )
        return outages

    @field_validator("faults")
    @classmethod
    def _at_most_all(cls, faults: tuple[FaultModel, ...]) -> tuple[FaultModel, ...]:
        if (total := sum(fault.share for fault in faults)) > 1 + 1e-9:
            raise ValueError(f"shares of faults sum to {total:g}; their sum must be at most 1")
        return faults

    @model_validator(mode="after")
    def _noticed(self) -> Self:
        """Refuse what could never happen, because nobody would notice."""
        for fault in self.faults:
            fault.check(self.patience)
        silent = any(fault.silent for fault in self.faults)
        unnoticed = self.patience == inf and (silent or not self.loss.lossless)
        if unnoticed and self.policy.retries:
            raise ValueError("a loss is noticed when patience ends: give a patience, to retry then")
        if unnoticed and self.policy.fallback and self.policy.timeout == inf:
            raise ValueError(
                "a loss is noticed when patience or the policy's timeout ends: give one of them, "
                "to fall back then"
            )
        return self

    @property
    def least_latency(self) -> float:
        """The shortest service and transit that one point can have, in clock units."""
        return self.service.least + self.service_per_point.least + self.transit.least

    @property
    def terms(self) -> SourceTerms:
        """What an optimizer is told of this channel before the play."""
        return SourceTerms(
            cost=self.cost.expected,
            cost_per_point=self.cost_per_point.expected,
            std=self.noise.expected_std,
            latency=self.service.expected + self.service_per_point.expected + self.transit.expected,
            split=self.split,
        )

    def to_real_source(self) -> Self:
        """Return a channel with what applies to a real source only.

        Costs, capacity, patience, splitting and policy stay; latency, loss, noise, outages and
        faults are those of the source itself.
        """
        kept = ("cost", "cost_per_point", "charged", "capacity", "patience", "split", "policy")
        return type(self)(**{name: getattr(self, name) for name in kept})

    def to_recorded_source(self) -> Self:
        """Return a channel with what applies to a source whose answers were recorded only.

        Costs and splitting stay; all that made answers late or kept them back was recorded too.
        """
        kept = ("cost", "cost_per_point", "charged", "split")
        return type(self)(**{name: getattr(self, name) for name in kept})

    def out_at(self, moment: float) -> bool:
        """Return whether a moment lies in an outage.

        Args:
            moment: In clock units.
        """
        return any(start <= moment < end for start, end in self.outages)
