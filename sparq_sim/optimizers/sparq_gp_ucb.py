"""SparQ-GP-UCB: forget what is old, and ask an expert about a few points instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf, log
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Domain, Sites
from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.fields import Amount, Positive, Share
from sparq_sim.gp.posterior.predictor import Predictor
from sparq_sim.gp.sparse.greedy import select_points_greedily
from sparq_sim.messages import REWARD, Answer, Notes, Query
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior, PriorWarning
from sparq_sim.optimizers.shared.routing import (
    AnyRouting,
    Offer,
    Routes,
    Routing,
    estimate_rounds_late,
)
from sparq_sim.optimizers.shared.schedules import LogarithmicSchedule, QuerySchedule
from sparq_sim.optimizers.shared.selection import Played, Selector, Way, measure_divergences
from sparq_sim.optimizers.shared.ucb import GPOptimizer
from sparq_sim.plugin.briefing import Briefing, round_at
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Agent, Asks

GAP = 1e-6
"""A Schur complement this small beside the prior variance leaves no gap for a width to show."""
MOST_RANK = 500
"""So many points are told apart at most."""
MANY = 100
"""So many answers that stand in for others may well be old."""
WORTHLESS = 100.0
"""Times the prior variance: an answer aged beyond tells nothing."""


class Discard(Model):
    """Which observations to give up: those whose variance exceeds g(t) = *factor* s^2 h(t).

    h(t) is log t, or t^*power*; the theorem asks for g(t) = o(t^(1/4)). The newest observation is
    always kept: log t < 1 would give up even that one in the first two rounds.
    """

    kind: Literal["logarithmic", "power", "never"] = "logarithmic"
    """Which h(t) the limit grows by: log t, a power of t, or `never` to keep all."""
    factor: Positive = 1.0
    """By what s^2 h(t) is multiplied to give the limit g(t)."""
    power: Annotated[float, Field(gt=0, lt=0.25)] = 0.2
    """The power of t where the kind is `power`; above 0 and below 1/4, as the theorem asks."""

    def limit(self, number: int) -> float:
        """Give g(t) / s^2 in round *number*."""
        if self.kind == "never":
            return inf
        return self.factor * (log(number) if self.kind == "logarithmic" else number**self.power)


class SparQGPUCB(GPOptimizer):
    """GP-UCB on the newest observations and an expert's answers about a few past points.

    Algorithm 1 of Mauduit, Berthier and Simonetto 2025. In round t: observe y_t; discard
    observations whose variance s^2 + rate a^2 (a: age in rounds) exceeds g(t); choose Q_t of the
    points played so far, so that they tell what all of them would (sparse inference); ask the
    expert about f_t there; update; play the argmax of mu + beta_{t+1} sigma in round t + 1.

    Answers that come late have aged by then, at the same rate; those that are lost are absent.
    Where the rules give access to the whole domain, points beyond those played are chosen as well.
    """

    asks: ClassVar[Asks | None] = "anywhere"
    expert: str | None = None
    """The name of the expert to ask; by default the only one of the play."""
    routing: AnyRouting | None = None
    """How to share the points of a round among several experts, in place of asking one."""
    schedule: QuerySchedule = LogarithmicSchedule()
    """Q_t, how many points to ask about in round t: a table with a `kind`; 6 log t in the paper."""
    selection: Way = "greedy"
    """How these points are chosen: greedily, by the exchange chain of the paper's appendix, or as
    an exact draw of the determinantal process that the chain approximates."""
    steps: NonNegativeInt = 1000
    """How many steps the exchange chain makes in each round at most."""
    epsilon: Share | None = None
    """How near to the determinantal process, in total variation, the chain need come; by default it
    makes all its steps."""
    rate: Amount | None = None
    """How fast observations age, in squared reward units per squared round; by default their noise
    variance s^2, as in the paper. The square of the change of the reward in a round is better,
    where it is known."""
    discard: Discard = Discard()
    """Which of its own observations are given up as too old."""
    retain: Annotated[float, Field(ge=0)] = 0.0
    """For how many rounds answers to earlier queries still count beside a later complete one."""
    waits: bool = False
    """Whether to ask when a round begins and to play when the answers are there."""
    diagnose: bool = False
    """Whether to note, for each move, the divergences that the paper bounds; takes O(n^3)."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Give the agent, if it is clear whom it is to ask."""
        self.check_experts(briefing.experts)
        return super().start(briefing, rng)

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        """Remember the newest observations and answers, and all points played."""
        return _SparQMemory(self, prior, briefing, rng)

    def check_experts(self, names: Collection[str]) -> None:
        """Refuse a play in which it is not clear whom to ask."""
        self.choose_experts(names)

    def choose_experts(self, experts: Collection[str]) -> tuple[str, ...]:
        """Give the names of the experts to ask; none where there is nobody."""
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


class _SparQMemory(Memory):
    def __init__(
        self, model: SparQGPUCB, prior: GPPrior, briefing: Briefing, rng: Generator
    ) -> None:
        super().__init__(prior, briefing.period)
        self.waits = model.waits
        self._model = model
        self._experts = {
            name: briefing.experts[name] for name in model.choose_experts(briefing.experts)
        }
        self._own = _Told.nothing(briefing.domain.dimensions)
        self._answers = _Answers(model.retain * briefing.period)
        self._played = Played(prior.kernel)
        if self._experts and briefing.access == "domain":
            for point in _askable(prior, briefing.domain):
                self._played.add(point)
        self._selector = Selector(
            model.selection, steps=model.steps, epsilon=model.epsilon, rng=rng
        )
        self._notes: dict[str, float] = {}
        if self._experts:
            _warn_of_gaps(model, prior, briefing)

    def learn(self, answer: Answer) -> None:
        told = _Told.by(answer, self.prior.variances(answer))
        if answer.query.source == REWARD:
            self._own = self._own.join(told)
        else:
            self._answers.add(answer, told)

    def predictor(self, now: float) -> Predictor:
        # Choosing x_{t+1}, the newest round to have been observed is t; waiting, it is this one.
        number = max(1, round_at(now, self.period) - (0 if self.waits else 1))
        own, aged = self._own, self._age(self._own, now)
        kept = aged <= self._model.discard.limit(number) * own.variances
        kept |= own.times == own.times.max(initial=0.0)
        own = self._own = own.part(kept)
        self._notes["kept"] = float(len(own))
        worthless = WORTHLESS * float(self.prior.kernel.diagonal(self.prior.candidates[:1])[0])
        self._answers.keep(lambda told: self._age(told, now) <= worthless)
        if len(self.posterior):
            self.posterior.remove(slice(None))
        # The same points are asked about round after round: they come first, and together.
        if (told := self._answers.current()) is not None:
            self.add(told.points, told.values, self._age(told, now))
        if len(own):
            self.add(own.points, own.values, aged[kept])
        return self.posterior

    def _age(self, told: _Told, now: float) -> Values:
        """Give s^2 + rate a^2; what was measured in the round before is new, unless one waits."""
        ages = np.maximum((now - told.times) / self.period - (0 if self.waits else 1), 0.0)
        rate = told.variances if self._model.rate is None else self._model.rate
        aged: Values = told.variances + rate * np.square(ages)
        return aged

    def record_play(self, point: Point) -> None:
        self._played.add(point)

    def choose_points_to_ask(self, now: float) -> Mapping[str, Points]:
        from sparq_sim.gp.posterior.feature_posterior import FeaturePosterior

        if not self._experts:
            return {}
        wanted = self._model.schedule(round_at(now, self.period))
        features = self.posterior.features if isinstance(self.posterior, FeaturePosterior) else None
        rows = self._selector.choose(self._played, wanted, features)
        self._notes["queries"] = float(len(rows))
        if not len(rows):
            return {}
        if self._model.diagnose:
            told = self._answers.current() or self._own
            variance = told.variances.min() if len(told) else 1.0
            self._notes |= measure_divergences(self._played, rows, variance)
        points = self._played.points[rows]
        if self._model.routing is None:
            return {next(iter(self._experts)): points}
        routes = self._route(self._model.routing, points, now)
        return {name: points[chosen] for name, chosen in routes.items() if chosen}

    def _route(self, routing: Routing, points: Points, now: float) -> Routes:
        """Let *routing* decide, given what is known without the answers of earlier rounds."""
        kernel = self.prior.kernel
        covariance = kernel(points, points)
        if len(self._own):
            own, noise = self._own.points, np.diag(self._age(self._own, now))
            cross = kernel(own, points)
            covariance -= cross.T @ np.linalg.solve(kernel(own, own) + noise, cross)
        offers = [
            Offer.of(
                name,
                terms,
                points=len(points),
                rate=terms.std**2 if self._model.rate is None else self._model.rate,
                rounds_late=estimate_rounds_late(terms, period=self.period, waits=self.waits),
            )
            for name, terms in self._experts.items()
        ]
        return routing.route(offers, covariance)

    def record_queries(self, queries: tuple[Query, ...]) -> None:
        self._answers.expect(queries)

    def notes(self) -> Notes:
        return dict(self._notes)


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """Values: where, how noisily and when each was measured, and when it was asked for."""

    points: Points
    values: Values
    variances: Values
    times: Values
    asked: Values
    """Infinity where nobody asked."""

    @classmethod
    def nothing(cls, dimensions: int) -> Self:
        """Begin."""
        none = np.empty(0)
        return cls(np.empty((0, dimensions)), none, none, none, none)

    @classmethod
    def by(cls, answer: Answer, variances: Values) -> Self:
        """Take what an *answer* tells."""
        alike = np.ones(len(variances))
        asked_at = answer.asked_at if answer.query.id > 0 else inf
        times, asked = answer.measured_at * alike, asked_at * alike
        return cls(answer.points, answer.values, variances, times, asked)

    def __len__(self) -> int:
        return len(self.values)

    def columns(self) -> tuple[Points | Values, ...]:
        """Give all of it."""
        return self.points, self.values, self.variances, self.times, self.asked

    def part(self, rows: NDArray[np.bool_] | Sequence[int]) -> Self:
        """Give some of it."""
        return type(self)(*(column[rows] for column in self.columns()))

    def join(self, more: Self) -> Self:
        """Give this and *more*."""
        pairs = zip(self.columns(), more.columns(), strict=True)
        return type(self)(*(np.concatenate(pair) for pair in pairs))

    def newest(self) -> Self:
        """Give what was measured last at each point; of equals, what came last."""
        keys = [point.tobytes() for point in self.points + 0.0]
        rows = np.argsort(self.times, kind="stable").tolist()
        return self.part(sorted({keys[row]: row for row in rows}.values()))


@dataclass(slots=True)
class _Batch:
    """Queries that went out together: the *last* one's number, and how many rows are unheard."""

    last: int
    unheard: int


class _Answers:
    """What experts have said, as far as nothing newer takes its place.

    A newer answer of a source about a point replaces the one before. Once all queries of a round
    are answered in full, those that were asked more than *retained* before are forgotten: with
    answers that come at once, only the newest round counts, as in Algorithm 1; where rows come
    late or are lost, what was said before stands in for them, ageing. Readings that nobody asked
    for are replaced only by newer ones at their point.
    """

    def __init__(self, retained: float) -> None:
        self._retained = retained
        self._said: dict[str, _Told] = {}
        self._batches: dict[int, _Batch] = {}

    def expect(self, queries: tuple[Query, ...]) -> None:
        """Take note of queries that go out together."""
        if queries:
            last = max(query.id for query in queries)
            batch = _Batch(last, sum(len(query.points) for query in queries))
            self._batches |= {query.id: batch for query in queries}

    def add(self, answer: Answer, told: _Told) -> None:
        """Take in an answer."""
        if self._completes(answer):
            oldest = answer.asked_at - self._retained * (1 + 1e-9)
            self._filter(lambda said: said.asked >= oldest)
        source = answer.query.source
        known = self._said.get(source)
        if known is not None:
            told = known.join(told)
        # What was asked is asked about once; what nobody asked for may come twice.
        if known is not None or answer.query.id < 0:
            told = told.newest()
        self._said[source] = told

    def _completes(self, answer: Answer) -> bool:
        """Count rows as answered; tell whether a round of queries is complete thereby."""
        batch = self._batches.get(answer.query.id)
        if batch is None:  # Nobody asked, or a later round is complete already.
            return False
        batch.unheard -= len(answer.rows)
        if batch.unheard > 0:
            return False
        # Earlier queries need not be waited for any more.
        self._batches = {
            number: other for number, other in self._batches.items() if other.last > batch.last
        }
        return True

    def keep(self, good: Callable[[_Told], NDArray[np.bool_]]) -> None:
        """Forget all but what is *good*; where rows are lost, no round may ever be complete."""
        if sum(map(len, self._said.values())) > MANY:
            self._filter(good)

    def _filter(self, good: Callable[[_Told], NDArray[np.bool_]]) -> None:
        for source, said in list(self._said.items()):
            kept = good(said)
            stay = np.count_nonzero(kept)
            if not stay:
                del self._said[source]
            elif stay < len(said):
                self._said[source] = said.part(kept)

    def current(self) -> _Told | None:
        """Give all that still counts."""
        return reduce(_Told.join, self._said.values()) if self._said else None


def _askable(prior: GPPrior, domain: Domain) -> Points:
    """Choose the points to ask about beside those played, each of which weighs as one play.

    All sites, if they are not too many; else candidates that tell what all of them would.
    """
    if isinstance(domain, Sites) and len(domain.points) <= MOST_RANK:
        return domain.points
    size = min(MOST_RANK, len(prior.candidates))
    chosen = select_points_greedily(prior.kernel, prior.candidates, size=size, tolerance=GAP)
    return prior.candidates[chosen]


def _warn_of_gaps(model: SparQGPUCB, prior: GPPrior, briefing: Briefing) -> None:
    """Warn where a theorem's width will chase gaps that the queries cannot close."""
    if not prior.width.theoretical or briefing.rounds is None:
        return
    size = min(MOST_RANK, len(prior.candidates))
    rank = len(select_points_greedily(prior.kernel, prior.candidates, size=size, tolerance=GAP))
    asked = max(
        model.schedule(t) for t in range(max(1, briefing.rounds - 100), briefing.rounds + 1)
    )
    if asked < rank:
        warnings.warn(
            f"{asked} queries a round do not reach the {rank} directions in which this kernel "
            "varies on the domain: a width from theory then sends the agent into gaps that no "
            "query closes, at the level of random play. Ask more, take a longer length scale, or a "
            "practical width",
            PriorWarning,
            stacklevel=2,
        )
