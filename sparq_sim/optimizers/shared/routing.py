"""Routing: which of several experts to ask about which points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field, PositiveFloat, field_validator

from sparq_sim.arrays import Matrix
from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.fields import Amount, Positive, is_whole
from sparq_sim.plugin.briefing import SourceTerms
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import PartChoice, result_error
from sparq_sim.plugin.result_checks import ResultChecks

__all__ = [
    "AnyRouting",
    "Cheapest",
    "Fastest",
    "Information",
    "Offer",
    "Routes",
    "Routing",
    "Shares",
    "estimate_rounds_late",
]

Routes: TypeAlias = dict[str, list[int]]
"""Which rows of the points each expert is asked about, by the name of the expert."""


@dataclass(frozen=True)
class Offer:
    """What an expert offers, as far as is known beforehand."""

    name: str
    """The name of the expert."""
    cost: float
    """The cost of one point; the cost of a query is shared by its points."""
    variance: float
    """The noise variance of an answer when it can be used, aged by its expected latency."""
    latency: float
    """The expected time from question to answer, in clock units."""

    @classmethod
    def of(
        cls, name: str, terms: SourceTerms, *, points: int, rate: float, rounds_late: float
    ) -> Offer:
        """Return the offer of an expert, from its terms.

        Args:
            name: The name of the expert.
            terms: What is known of the expert beforehand.
            points: About how many points it would be asked.
            rate: How fast answers age, in squared reward units per squared round.
            rounds_late: How old an answer is when it is used, in rounds.
        """
        whole = terms.cost if terms.split else terms.cost / max(points, 1)
        variance = terms.std**2 + (rate * rounds_late**2 if rate else 0.0)
        return cls(name, whole + terms.cost_per_point, variance, terms.latency)


def estimate_rounds_late(terms: SourceTerms, *, period: float, waits: bool) -> float:
    """Return how old an answer of an expert is when it is used, in rounds.

    An answer that serves the next round counts as new, unless the agent waits for answers.

    Args:
        terms: What is known of the expert beforehand.
        period: The length of a round, in clock units.
        waits: Whether the agent waits for the answers before it plays.
    """
    if terms.latency == inf:  # As of a draw whose mean does not exist.
        return inf
    return float(max(0, ceil(terms.latency / period - 1e-9) - (0 if waits else 1)))


def _check_routes(
    routing: Routing, given: object, offers: Sequence[Offer], covariance: Matrix
) -> Routes:
    names = [offer.name for offer in offers]
    expected = f"rows by expert, of {', '.join(names)}"
    if not isinstance(given, Mapping) or not given.keys() <= set(names):
        raise result_error(routing, "routes", given, expected)
    return {name: _check_rows(routing, name, rows, len(covariance)) for name, rows in given.items()}


def _check_rows(routing: Routing, name: str, given: object, count: int) -> list[int]:
    rows = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(rows, Sequence) and all(is_whole(row) and 0 <= row < count for row in rows):
        return [int(row) for row in rows]
    raise result_error(routing, f"the routes to {name!r}", given, f"rows from 0 to {count - 1}")


class Routing(Model):
    """A way to share the points of a round among the experts of a play.

    A routing of your own defines `route`.
    """

    _result_checks: ClassVar[ResultChecks] = {"route": _check_routes}

    @abstractmethod
    def route(self, offers: Sequence[Offer], covariance: Matrix) -> Routes:
        """Return whom to ask about each point; a point may be asked of nobody.

        Args:
            offers: What each expert offers.
            covariance: The covariance of the rewards at the points before the answers, (n, n).

        Returns:
            The rows of the points for each expert, by name.
        """

    def check(self, experts: Collection[str]) -> None:
        """Check that the play has the experts that are needed.

        Args:
            experts: The names of the experts of the play.

        Raises:
            PluginError: If one is missing.
        """


_Pairs: TypeAlias = tuple[tuple[str, Positive], ...]


def _read_pairs(given: Any) -> Any:
    return tuple(given.items()) if isinstance(given, Mapping) else given


class Shares(Routing):
    """A routing by fixed shares: each expert is asked about its part of the points."""

    kind: Literal["shares"] = "shares"
    shares: Annotated[
        _Pairs,
        BeforeValidator(_read_pairs, json_schema_input_type=dict[str, Positive] | _Pairs),
        Field(min_length=1),
    ]
    """The share of the points that each expert is asked about, by name; only proportions count."""

    @field_validator("shares")
    @classmethod
    def _once_each(cls, shares: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
        if len({name for name, _ in shares}) < len(shares):
            raise ValueError(f"an expert has two shares: {', '.join(name for name, _ in shares)}")
        return shares

    def check(self, experts: Collection[str]) -> None:
        for name, _ in self.shares:
            if name not in experts:
                known = did_you_mean(name, experts)
                raise PluginError(f"no expert of this play is called {name!r}: {known}")

    def route(self, offers: Sequence[Offer], covariance: Matrix) -> Routes:
        total = sum(share for _, share in self.shares)
        found: Routes = {name: [] for name, _ in self.shares}
        for row in range(len(covariance)):
            behind = [share / total * (row + 1) - len(found[name]) for name, share in self.shares]
            found[self.shares[int(np.argmax(behind))][0]].append(row)
        return found


class _OneExpert(Routing):
    """A routing of all points to one expert, of those whose noise is adequate.

    Where no expert is adequate, the most exact one is asked.
    """

    adequate: PositiveFloat = inf
    """The largest std of an answer that will do, in reward units, aged by the expected latency; by
    default any."""

    def route(self, offers: Sequence[Offer], covariance: Matrix) -> Routes:
        good = [offer for offer in offers if offer.variance <= self.adequate**2]
        if good:
            chosen = min(good, key=self.order)
        else:
            chosen = min(offers, key=lambda offer: (offer.variance, offer.cost, offer.name))
        return {chosen.name: list(range(len(covariance)))}

    @abstractmethod
    def order(self, offer: Offer) -> tuple[float, float, str]:
        """Return what experts are ordered by; the lowest is asked."""


class Cheapest(_OneExpert):
    """A routing to the cheapest expert whose noise is adequate; of equals, to the most exact."""

    kind: Literal["cheapest"] = "cheapest"

    def order(self, offer: Offer) -> tuple[float, float, str]:
        return offer.cost, offer.variance, offer.name


class Fastest(_OneExpert):
    """A routing to the fastest expert whose noise is adequate; of equals, to the cheapest."""

    kind: Literal["fastest"] = "fastest"

    def order(self, offer: Offer) -> tuple[float, float, str]:
        return offer.latency, offer.cost, offer.name


class Information(Routing):
    """A routing of each point to the expert that tells most for its cost.

    An answer of variance s^2 about a point of posterior variance v tells 1/2 log(1 + v / s^2)
    nats. Each point goes to the expert with the most nats for a unit of cost, given the answers
    expected from the points before it.
    """

    kind: Literal["information"] = "information"
    least: Amount = 0.0
    """How many nats a unit of cost must bring, or a point is not asked about."""

    def route(self, offers: Sequence[Offer], covariance: Matrix) -> Routes:
        found: Routes = {offer.name: [] for offer in offers}
        unknown = covariance.copy()
        floor = 1e-9 * float(np.diagonal(unknown).max(initial=0.0))
        costs = np.array([offer.cost for offer in offers])
        variances = np.array([max(offer.variance, floor) for offer in offers])
        for row in range(len(unknown)):
            nats = 0.5 * np.log1p(max(unknown.item(row, row), 0.0) / variances)
            worth = np.full(len(offers), inf)
            np.divide(nats, costs, out=worth, where=costs > 0)
            best = int(np.lexsort((nats, worth))[-1])
            if worth[best] > self.least:
                found[offers[best].name].append(row)
                column = unknown[:, row]
                unknown -= np.outer(column, column) / (column[row] + variances[best])
        return found


AnyRouting: TypeAlias = Annotated[
    Routing, PartChoice("routing", Shares, Cheapest, Fastest, Information)
]
"""A routing as a field: a table with a `kind`, or a model."""
