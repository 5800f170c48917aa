"""Asking: which points to ask whom about, as long as it pays."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.gp.sparse.greedy import select_points_greedily
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.sparq_memory.awaiting import Awaiting
from sparq_sim.optimizers.sparq_memory.bank import Bank
from sparq_sim.optimizers.sparq_memory.hypothesis import Foresight
from sparq_sim.optimizers.sparq_memory.knowledge import Prospect
from sparq_sim.optimizers.sparq_memory.offers import Offers
from sparq_sim.optimizers.sparq_memory.outlook import Coverage, Places, spread
from sparq_sim.plugin.briefing import Briefing, round_at

if TYPE_CHECKING:
    from sparq_sim.optimizers.sparq_memory.optimizer import SparQMemory

__all__ = ["Asking"]

_FLOOR = 1e-6
"""The smallest noise variance that is believed, as a share of the prior variance."""
_MOST_POINTS = 128
"""The largest number of points between which a query is chosen."""
_NEWEST_POINTS = 16
"""How many of the points played last are always among them."""
_SPREAD_POINTS = 96
"""How many points over the whole domain there are to choose from, where it may be asked."""
_HOPED_POINTS = 16
"""How many points with high upper confidence bounds there are beside them."""
_MOST_TARGETS = 160
"""The largest number of points between which the next decision is foreseen."""
_LOOKED_AHEAD = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""The rounds at which it is looked how much of an answer is still true."""
_STILL = 100.0
"""For how many rounds a reward must remain the same to stand still."""
_WIDEST = 1.2
"""By how much at most the width is multiplied where nothing can be asked."""
_USUAL_WIDTH = 1.75
"""The width, in stds, that stands for an endless play."""
_WIDELY = 5
"""Every how many rounds one query is what matters to the sentinel."""
_NOTHING, _NOTHING_STILL = 1e-4, 2e-2
"""The shares of the std of an answer below which what it adds to the next reward counts as nothing:
where the reward changes, and where it stands still, so that plays themselves tell the rest."""


class Asking:
    """What may be asked, and how the queries of a round are chosen.

    Args:
        model: The optimizer.
        briefing: The domain, the terms of all sources, and the rules of the play.
        places: The candidates and their features.
        prior: What is believed before any observation.
    """

    def __init__(
        self, model: SparQMemory, briefing: Briefing, places: Places, prior: GPPrior
    ) -> None:
        self._model = model
        self._briefing = briefing
        self._places = places
        self._prior = prior
        floor = _FLOOR * places.features.variance
        self._own_noise = max(prior.noise_variance or briefing.observation.std**2, floor)
        self._names = tuple(
            name
            for name in briefing.experts
            if model.queries and (model.experts is None or name in model.experts)
        )
        self.offers = Offers(briefing, waits=model.waits, floor=floor)
        self.awaiting = Awaiting(
            self.offers,
            period=briefing.period,
            late_observations=briefing.observation.latency > 0,
        )
        self.coverage: Coverage | None = None
        self.asked = 0
        self._points: dict[bytes, Point] = {}
        self._newest: Point | None = None
        if self._names:
            self.coverage = Coverage(places, min(map(self.offers.claimed, self._names)))
            if briefing.access == "domain":
                for point in self._spread_points():
                    self._add(point)

    def _spread_points(self) -> Points:
        candidates = self._prior.candidates
        size = min(_SPREAD_POINTS, len(candidates))
        rows = select_points_greedily(self._prior.kernel, candidates, size=size, tolerance=1e-6)
        return candidates[rows]

    def _add(self, point: Point) -> None:
        if self.coverage is not None and point.tobytes() not in self._points:
            self._points[point.tobytes()] = point
            self.coverage.add(point)

    @property
    def hoped(self) -> float:
        """How much of what is not known, but can be asked, is worth exploring by a play: 0 to 1."""
        return self.offers.hoped(self._names)

    def find_worth_of_new(self, moment: float) -> float:
        """Return how much of what is not known, and cannot be asked, is worth exploring by a play.

        A play makes a place available for all rounds that follow. If it is z stds worse than the
        best, it pays over n rounds where n E[max(Z - z, 0)] > z for a standard normal Z, which
        holds up to about z = 0.2 + 0.33 log n.

        Args:
            moment: The time, in rounds.
        """
        if self._briefing.rounds is None:
            return 1.0
        # Half of the rounds that are left, because what is found may have changed by then.
        left = max(1.0, (self._briefing.rounds - moment) / 2)
        return min(_WIDEST, (0.2 + 0.33 * log(left)) / _USUAL_WIDTH)

    def record_play(self, point: Point, moment: float) -> None:
        """Record that a point is played, and so may be asked about.

        Args:
            point: The point, (d,).
            moment: The time, in rounds.
        """
        self._newest = point
        self.awaiting.record_play(moment)
        self._add(point)
        if len(self._points) > _MOST_POINTS + 2 * _NEWEST_POINTS:
            points = np.array(list(self._points.values()))
            rows = select_points_greedily(
                self._prior.kernel, points, size=_MOST_POINTS, tolerance=1e-12
            )
            newest = np.arange(len(points) - _NEWEST_POINTS, len(points))
            kept = np.union1d(rows, newest)
            self._points = {points[row].tobytes(): points[row] for row in kept}

    def choose(self, bank: Bank, now: float) -> Mapping[str, Points]:
        """Return the points to ask about, by the name of the expert.

        Queries that are not answered yet count as answered.

        Args:
            bank: What is believed.
            now: The time, in clock units.
        """
        self.asked = 0
        if not (self._names and self._points):
            return {}
        moment = now / self._briefing.period
        foresights = {
            name: bank.foresee(measured=moment, used=moment + self.offers.delay(name))
            for name in self._names
        }
        targets, hoped = self._find_targets(next(iter(foresights.values())))
        points = np.array([*self._points.values(), *hoped])
        features, left = self._places.find(points)
        prospects = {name: self._look(each, targets) for name, each in foresights.items()}
        number = round_at(now, self._briefing.period)
        chosen = self._pick(bank, prospects, features, left, number)
        if chosen and number % _WIDELY == 0:
            self._look_widely(bank, moment, chosen, features, left)
        return {name: self._audit(name, points[rows], number) for name, rows in chosen.items()}

    def _find_targets(self, foresight: Foresight) -> tuple[Matrix, Points]:
        """Return the features of the points that may be best next, and points to ask there."""
        at_candidates, candidates = self._places.at_candidates, self._prior.candidates
        means = at_candidates @ foresight.mean
        spreads = spread(at_candidates, foresight.covariance)
        hopes = means + 3 * np.sqrt(np.maximum(spreads, 0.0))
        best = means.argmax()
        (plausible,) = (hopes >= means[best]).nonzero()
        thinned = plausible[:: ceil(len(plausible) / _MOST_TARGETS)]
        targets = at_candidates[[best, *thinned]]
        if self._briefing.access != "domain":
            return targets, candidates[:0]
        order = np.argsort(-hopes)
        return targets, candidates[order[: 2 * _HOPED_POINTS : 2]]

    def _look(self, foresight: Foresight, targets: Matrix) -> Prospect:
        prospect = Prospect(foresight, targets)
        at = self._places.features.at
        if self._newest is not None and not self._model.waits:
            prospect.count(at(self._newest[None])[0], self._own_noise)
        for query in self.awaiting.queries():
            variance = self.offers.variance(query.source)
            for feature in at(query.points):
                prospect.count(feature, variance)
        return prospect

    def _pick(
        self,
        bank: Bank,
        prospects: Mapping[str, Prospect],
        features: Matrix,
        left: Values,
        number: int,
    ) -> dict[str, list[int]]:
        """Choose rows one after the other, by what each is worth beyond its price."""
        rounds = self._rounds_useful(bank, number)
        soonest = min(map(self._delay_at_least_one, prospects))
        nothing = _NOTHING
        if not bank.restarts:  # What has once changed at a stroke may do so again.
            nothing += _NOTHING_STILL * bank.remember(_STILL) ** 8
        chosen: dict[str, list[int]] = {}
        allowed = self.offers.allow(number, self._names)
        free = np.ones(len(features), dtype=bool)
        while self.asked < self._model.queries:
            best, most = None, 0.0
            for name, prospect in prospects.items():
                cost = self.offers.cost(name, first=name not in chosen)
                if cost > allowed:
                    continue
                variance = self.offers.variance(name)
                # Later decisions seem to gain more, because less is known of them yet.
                gains = prospect.gains(features, variance + left)
                gains *= self.offers.worth(name) * soonest / self._delay_at_least_one(name)
                gains[~free] = -inf
                row = int(gains.argmax())
                gain = float(gains[row])
                price = cost if self._model.price is None else self._model.price
                worth = gain * rounds - price
                if worth > most and gain > nothing * sqrt(variance):
                    best, most = (name, row, cost), worth
            if best is None:
                break
            name, row, cost = best
            chosen.setdefault(name, []).append(row)
            free[row] = False
            allowed -= cost
            self.offers.spend(cost)
            self.asked += 1
            if self.asked < self._model.queries:
                for prospect in prospects.values():
                    prospect.count(features[row], self.offers.variance(name) + left.item(row))
        return chosen

    def _look_widely(
        self,
        bank: Bank,
        moment: float,
        chosen: dict[str, list[int]],
        features: Matrix,
        left: Values,
    ) -> None:
        """Replace the last row by the one that matters most to the sentinel."""
        name, rows = next(reversed(chosen.items()))
        used = moment + self.offers.delay(name)
        foresight = bank.foresee_widely(measured=moment, used=used)
        targets, _ = self._find_targets(foresight)
        gains = self._look(foresight, targets).gains(features, self.offers.variance(name) + left)
        if (row := int(gains.argmax())) not in rows:
            rows[-1] = row

    def _audit(self, name: str, points: Points, number: int) -> Points:
        """Replace the last point by the one that is played now and then, to compare the answer."""
        trust = self.offers.trust[name]
        if self._newest is None or self._model.waits or not trust.is_audit_due(number):
            return points
        trust.record_audit(number)
        if not (points == self._newest).all(axis=1).any():
            points = np.vstack([points[:-1], self._newest])
        return points

    def _delay_at_least_one(self, name: str) -> float:
        return max(1.0, self.offers.delay(name))

    def _rounds_useful(self, bank: Bank, number: int) -> float:
        """Return for about how many rounds an answer stays true, as far as the play still lasts."""
        left = inf if self._briefing.rounds is None else self._briefing.rounds - number
        kept = [bank.remember(ahead) ** 2 for ahead in _LOOKED_AHEAD]
        return max(1.0, min(float(np.trapezoid(kept, _LOOKED_AHEAD)), left))
