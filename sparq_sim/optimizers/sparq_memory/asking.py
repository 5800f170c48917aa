"""Asking: which points to ask whom about, as long as it pays."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.gp.sparse.greedy import select_points_greedily
from sparq_sim.messages import Query
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.sparq_memory.bank import Bank
from sparq_sim.optimizers.sparq_memory.hypothesis import Foresight
from sparq_sim.optimizers.sparq_memory.knowledge import Prospect
from sparq_sim.optimizers.sparq_memory.outlook import Coverage, Places, spread
from sparq_sim.optimizers.sparq_memory.trust import Trust
from sparq_sim.plugin.briefing import Briefing, SourceTerms, round_at

if TYPE_CHECKING:
    from sparq_sim.optimizers.sparq_memory.optimizer import SparQMemory

__all__ = ["Asking"]

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
_AWAITED = 32.0
"""For how many rounds at most an answer is awaited; one that is later counts as less exact."""
_SAME_ROUND = 0.5
"""A measurement this near to a play, in rounds, is of it."""
_OVERDUE = 2.0
"""After how many rounds more than expected an answer is overdue."""
_HOPED, _HOPED_LATER = 0.2, 0.04
"""How much of the std is worth a play where it could be asked, and how much more for each round by
which an answer is late."""
_WIDEST = 1.2
"""By how much at most the width is multiplied where nothing can be asked."""
_USUAL_WIDTH = 1.75
"""The width, in stds, that stands for an endless play."""
_WIDELY = 5
"""Every how many rounds one query is what matters to the sentinel."""
_AHEAD = 2
"""For how many rounds ahead the budget may be spent."""
_RATE = 0.1
"""The weight of the newest round in the share of rounds in which a query can be paid."""
_NOTHING, _NOTHING_STILL = 1e-4, 2e-2
"""The shares of the std of an answer below which what it adds to the next reward counts as nothing:
where the reward changes, and where it stands still, so that plays themselves tell the rest."""


class Asking:
    """What may be asked and of whom, what is awaited, and how the queries of a round are chosen.

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
        self._floor = 1e-6 * places.features.variance
        self._own_noise = max(prior.noise_variance or briefing.observation.std**2, self._floor)
        self._experts = {
            name: terms
            for name, terms in briefing.experts.items()
            if model.queries and (model.experts is None or name in model.experts)
        }
        self.trust = {name: Trust() for name in briefing.experts}
        """What is known of each expert, by name."""
        self._pending: dict[int, Query] = {}
        self._unanswered: dict[int, int] = {}
        self._overdue: set[int] = set()
        self._points: dict[bytes, Point] = {}
        self.coverage: Coverage | None = None
        self._newest: Point | None = None
        self._unseen: list[float] = []
        self._spent = 0.0
        self._afforded = 1.0
        self.asked = 0
        if self._experts:
            noise = min(self._claimed(each) for each in self._experts.values())
            self.coverage = Coverage(places, noise)
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
        """How much of what is not known, but can be asked, is worth exploring by a play: 0 to 1.

        The more, the later, the less reliable and the less affordable the answers are.
        """
        least = 1.0
        for name, terms in self._experts.items():
            hoped = min(1.0, _HOPED + _HOPED_LATER * (self._delay(terms) - 1.0))
            least = min(least, 1.0 - (1.0 - hoped) * self._worth(name) * self._afforded)
        return least

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

    def find_awaited(self, moment: float) -> float | None:
        """Return since when answers are awaited, in rounds; None where none are.

        Args:
            moment: The time, in rounds.
        """
        period = self._briefing.period
        for query in list(self._pending.values()):
            waited = moment - query.asked_at / period
            late = self._delay(self._briefing.experts[query.source]) + _OVERDUE
            if waited > late and query.id not in self._overdue:
                self._overdue.add(query.id)
                self.trust[query.source].count_answer(came=False)
            if waited > max(_AWAITED, 2 * late):
                self._forget(query.id)
        asked = [query.asked_at / period for query in self._pending.values()]
        self._unseen = [each for each in self._unseen if moment - each <= _AWAITED]
        return min([*asked, *self._unseen], default=None)

    def record_play(self, point: Point, moment: float) -> None:
        """Record that a point is played, and so may be asked about.

        Args:
            point: The point, (d,).
            moment: The time, in rounds.
        """
        self._newest = point
        if self._briefing.observation.latency > 0:
            self._unseen.append(moment)
        self._add(point)
        if len(self._points) > _MOST_POINTS + 2 * _NEWEST_POINTS:
            points = np.array(list(self._points.values()))
            rows = select_points_greedily(
                self._prior.kernel, points, size=_MOST_POINTS, tolerance=1e-12
            )
            newest = np.arange(len(points) - _NEWEST_POINTS, len(points))
            kept = np.union1d(rows, newest)
            self._points = {points[row].tobytes(): points[row] for row in kept}

    def record_observation(self, moment: float) -> None:
        """Record that the reward of a play is observed.

        Args:
            moment: When it was measured, in rounds.
        """
        self._unseen = [each for each in self._unseen if abs(each - moment) > _SAME_ROUND]

    def record_queries(self, queries: tuple[Query, ...]) -> None:
        """Record the queries that are sent.

        Args:
            queries: All queries of the round.
        """
        self._pending |= {query.id: query for query in queries}
        self._unanswered |= {query.id: len(query.points) for query in queries}

    def record_answer(self, query: Query, rows: int) -> None:
        """Record that some rows of a query are answered.

        Args:
            query: The query; of those that an expert has sent unasked, nothing is recorded.
            rows: How many rows.
        """
        if query.id not in self._pending:
            return
        self._unanswered[query.id] -= rows
        if self._unanswered[query.id] <= 0:
            self.trust[query.source].count_answer(came=True)
            self._forget(query.id)

    def record_failure(self, query: Query, rows: int) -> None:
        """Record that some rows of a query will not be answered.

        Args:
            query: The query.
            rows: How many rows.
        """
        if query.id not in self._pending or query.source not in self.trust:
            return
        self._unanswered[query.id] -= rows
        if query.id not in self._overdue:
            self._overdue.add(query.id)
            self.trust[query.source].count_answer(came=False)
        if self._unanswered[query.id] <= 0:
            self._forget(query.id)

    def _forget(self, number: int) -> None:
        self._pending.pop(number, None)
        self._unanswered.pop(number, None)
        self._overdue.discard(number)

    def choose(self, bank: Bank, now: float) -> Mapping[str, Points]:
        """Return the points to ask about, by the name of the expert.

        Queries that are not answered yet count as answered.

        Args:
            bank: What is believed.
            now: The time, in clock units.
        """
        self.asked = 0
        if not (self._experts and self._points):
            return {}
        moment = now / self._briefing.period
        foresights = {
            name: bank.foresee(measured=moment, used=moment + self._delay(terms))
            for name, terms in self._experts.items()
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
        for query in self._pending.values():
            if query.id not in self._overdue:
                variance = self._variance(query.source)
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
        allowed = self._allowance(number)
        affordable = min(self._cost(name, first=True) for name in prospects) <= allowed
        self._afforded += _RATE * (float(affordable) - self._afforded)
        free = np.ones(len(features), dtype=bool)
        while self.asked < self._model.queries:
            best, most = None, 0.0
            for name, prospect in prospects.items():
                cost = self._cost(name, first=name not in chosen)
                if cost > allowed:
                    continue
                variance = self._variance(name)
                # Later decisions seem to gain more, because less is known of them yet.
                gains = prospect.gains(features, variance + left)
                gains *= self._worth(name) * soonest / self._delay_at_least_one(name)
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
            self._spent += cost
            self.asked += 1
            if self.asked < self._model.queries:
                for prospect in prospects.values():
                    prospect.count(features[row], self._variance(name) + left.item(row))
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
        used = moment + self._delay(self._experts[name])
        foresight = bank.foresee_widely(measured=moment, used=used)
        targets, _ = self._find_targets(foresight)
        gains = self._look(foresight, targets).gains(features, self._variance(name) + left)
        if (row := int(gains.argmax())) not in rows:
            rows[-1] = row

    def _audit(self, name: str, points: Points, number: int) -> Points:
        """Replace the last point by the one that is played now and then, to compare the answer."""
        trust = self.trust[name]
        if self._newest is None or self._model.waits or not trust.is_audit_due(number):
            return points
        trust.record_audit(number)
        if not (points == self._newest).all(axis=1).any():
            points = np.vstack([points[:-1], self._newest])
        return points

    def _cost(self, name: str, *, first: bool) -> float:
        terms = self._experts[name]
        return terms.cost_per_point + (terms.cost if terms.split or first else 0.0)

    def _delay(self, terms: SourceTerms) -> float:
        """Return after how many rounds an answer is used first."""
        late = ceil(terms.latency / self._briefing.period - 1e-9) if terms.latency < inf else 1000
        return float(late if self._model.waits else max(1, late))

    def _delay_at_least_one(self, name: str) -> float:
        return max(1.0, self._delay(self._experts[name]))

    def _claimed(self, terms: SourceTerms) -> float:
        return max(terms.std**2, self._floor)

    def _variance(self, name: str) -> float:
        return self.trust[name].variance(self._claimed(self._briefing.experts[name]))

    def _worth(self, name: str) -> float:
        return self.trust[name].worth(self._claimed(self._briefing.experts[name]))

    def _rounds_useful(self, bank: Bank, number: int) -> float:
        """Return for about how many rounds an answer stays true, as far as the play still lasts."""
        left = inf if self._briefing.rounds is None else self._briefing.rounds - number
        kept = [bank.remember(ahead) ** 2 for ahead in _LOOKED_AHEAD]
        return max(1.0, min(float(np.trapezoid(kept, _LOOKED_AHEAD)), left))

    def _allowance(self, number: int) -> float:
        """Return what the queries of a round may cost: an even share of the budget up to now."""
        budget, rounds = self._briefing.budget, self._briefing.rounds
        if rounds is not None and budget < inf:
            budget *= min(1.0, (number + _AHEAD) / rounds)
        return min(budget - self._spent, self._briefing.budget_per_round)
