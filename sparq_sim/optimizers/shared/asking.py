"""Asking: whom to ask about which points, by a schedule and a way of selecting them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from pydantic import NonNegativeInt

from sparq_sim.arrays import Point, Points
from sparq_sim.domain import Domain, Sites
from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.fields import Share
from sparq_sim.gp.sparse.greedy import Rows, select_points_greedily
from sparq_sim.messages import Notes
from sparq_sim.optimizers.shared.played import PlayedPoints
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.routing import (
    AnyRouting,
    Offer,
    Routes,
    Routing,
    estimate_rounds_late,
)
from sparq_sim.optimizers.shared.schedules import LogarithmicSchedule, QuerySchedule
from sparq_sim.optimizers.shared.selection import ANYWHERE, CandidateSelector, Selector, Way
from sparq_sim.plugin.briefing import Access, Briefing, round_at
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Asks

if TYPE_CHECKING:
    from sparq_sim.optimizers.shared.memory import Memory

__all__ = ["MOST_RANK", "NEGLIGIBLE", "Asker", "Asking"]

NEGLIGIBLE = 1e-6
"""The share of its prior variance at which a point leaves no gap for a width to show."""
MOST_RANK = 500
"""The largest number of points that are chosen beside those played."""


class Asking(Model):
    """Whom to ask, and about how many points and which ones: as SparQ-GP-UCB does by default."""

    expert: str | None = None
    """The name of the expert to ask; by default the only one of the play."""
    routing: AnyRouting | None = None
    """How to share the points of a round among several experts, in place of asking one."""
    schedule: QuerySchedule = LogarithmicSchedule()
    """Q_t, how many points to ask about in round t: a table with a `kind`; by default 6 log t."""
    selection: Way = "greedy"
    """How these points are chosen: `greedy`, `chain`, `exact`, `random` or `newest` of the points
    played, or `uniform` or `grid` of the whole domain."""
    keeps_choice: bool = True
    """Whether a greedy choice that explains all points played is kept while it does, and with it
    how ties were decided, which takes about half the time; otherwise ties are drawn anew in each
    round, as in the paper."""
    steps: NonNegativeInt = 1000
    """How many steps the exchange chain makes in each round at most."""
    epsilon: Share | None = None
    """How near to the determinantal process, in total variation, the chain need come; by default it
    makes all its steps."""

    @property
    def where(self) -> Asks:
        """Where it asks, if the rules allow: `newest` points were played, others need not be."""
        return "past" if self.selection == "newest" else "anywhere"

    def choose_experts(self, experts: Collection[str]) -> tuple[str, ...]:
        """Return the names of the experts to ask; none where there are no experts.

        Args:
            experts: The names of the experts of the play.

        Raises:
            PluginError: If it is not clear whom to ask, or an expert that is named is not there.
        """
        if self.routing is not None:
            if self.expert is not None:
                raise PluginError("`expert` names one to ask, `routing` shares among all: give one")
            self.routing.check(experts)
            return tuple(sorted(experts))
        if self.expert is None and len(experts) > 1:
            raise PluginError(
                "there are several experts: say which one to ask, `expert = ...`, or how to share "
                f"points among them, `routing = ...`; there are: {', '.join(sorted(experts))}"
            )
        if self.expert is not None and self.expert not in experts:
            raise PluginError(
                f"no expert of this play is called {self.expert!r}: "
                f"{did_you_mean(self.expert, experts)}"
            )
        return tuple(experts) if self.expert is None else (self.expert,)

    def check_access(self, access: Access) -> None:
        """Check that the points that will be chosen may be asked about.

        Args:
            access: Where experts may be asked.

        Raises:
            PluginError: If they need not have been played, and only such may be asked about.
        """
        if access == "past" and self.selection in ANYWHERE:
            raise PluginError(
                f"selection = {self.selection!r} asks about points that were never played: set "
                '`access = "domain"`, or choose greedy, chain, exact, random or newest'
            )


class Asker:
    """A running way of asking: it counts plays, and chooses whom to ask about which points.

    Args:
        asking: How to ask.
        prior: What is believed before any observation.
        briefing: The domain, the terms of the experts, of which there is at least one, and where
            they may be asked.
        rng: The agent's source of chance.
    """

    def __init__(self, asking: Asking, prior: GPPrior, briefing: Briefing, rng: Generator) -> None:
        names = asking.choose_experts(briefing.experts)
        self._experts = {name: briefing.experts[name] for name in names}
        self._asking = asking
        self._period = briefing.period
        self.played = PlayedPoints(prior.kernel)
        """The points to choose from, where the choice is among them."""
        self.rows: Rows = np.empty(0, dtype=np.intp)
        """Which of *played* were chosen last, (m,); none where the choice is not among them."""
        self._selector: Selector | None = None
        self._anywhere: CandidateSelector | None = None
        self._notes: dict[str, float] = {}
        way = asking.selection
        if way in ANYWHERE:
            self._anywhere = CandidateSelector(way, prior.candidates, briefing.domain, rng=rng)
            return
        self._selector = Selector(
            way,
            steps=asking.steps,
            epsilon=asking.epsilon,
            rng=rng,
            keep=asking.keeps_choice,
        )
        if briefing.access == "domain":
            for point in _choose_askable(prior, briefing.domain):
                self.played.offer(point)

    def record_play(self, point: Point) -> None:
        """Record that a point is played.

        Args:
            point: The point, (d,).
        """
        if self._selector is not None:
            self.played.add(point)

    def choose(self, memory: Memory, now: float) -> Mapping[str, Points]:
        """Return the points to ask each expert about, by name, (q, d).

        Args:
            memory: What is known, by which points are shared among experts.
            now: When the round begins, in clock units.
        """
        points = self._choose_points(memory, self._asking.schedule(round_at(now, self._period)))
        self._notes["queries"] = float(len(points))
        if not len(points):
            return {}
        if self._asking.routing is None:
            return {next(iter(self._experts)): points}
        routes = self._route(self._asking.routing, points, memory, now)
        return {name: points[rows] for name, rows in routes.items() if rows}

    def notes(self) -> Notes:
        """Return numbers for the trace of the round: `queries`, how many points were chosen."""
        return dict(self._notes)

    def _choose_points(self, memory: Memory, size: int) -> Points:
        from sparq_sim.gp.posterior.feature_posterior import FeaturePosterior

        if self._anywhere is not None:
            return self._anywhere.choose(size)
        assert self._selector is not None
        posterior = memory.posterior
        features = posterior.features if isinstance(posterior, FeaturePosterior) else None
        self.rows = self._selector.choose(self.played, size, features)
        return self.played.points[self.rows]

    def _route(self, routing: Routing, points: Points, memory: Memory, now: float) -> Routes:
        """Share *points* among the experts, given what is known without earlier answers."""
        offers = [
            Offer.of(
                name,
                terms,
                points=len(points),
                rate=memory.ageing_rate(terms),
                rounds_late=estimate_rounds_late(terms, period=self._period, waits=memory.waits),
            )
            for name, terms in self._experts.items()
        ]
        return routing.route(offers, memory.covariance_unasked(points, now))


def _choose_askable(prior: GPPrior, domain: Domain) -> Points:
    """Choose the points to ask about beside those played, each of which counts as one play.

    All sites, if they are not too many; otherwise candidates that tell what all of them would.
    """
    if isinstance(domain, Sites) and len(domain.points) <= MOST_RANK:
        return domain.points
    size = min(MOST_RANK, len(prior.candidates))
    chosen = select_points_greedily(prior.kernel, prior.candidates, size=size, tolerance=NEGLIGIBLE)
    return prior.candidates[chosen]
