"""SparQ-GP-UCB: forget what is old, and ask an expert about a few points instead."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import inf, log
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from pydantic import Field, NonNegativeInt, model_validator

from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.fields import Amount, Positive, Share
from sparq_sim.gp.predictor import Predictor
from sparq_sim.gp.sparse.greedy import select_points_greedily
from sparq_sim.messages import REWARD, Answer, Notes, Query
from sparq_sim.optimizers.shared.answers import ExpertAnswers, Measurements
from sparq_sim.optimizers.shared.asking import MOST_RANK, NEGLIGIBLE, Asking
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.played import measure_divergences
from sparq_sim.optimizers.shared.prior import GPPrior, PriorWarning
from sparq_sim.optimizers.shared.routing import AnyRouting
from sparq_sim.optimizers.shared.schedules import LogarithmicSchedule, QuerySchedule
from sparq_sim.optimizers.shared.selection import ANYWHERE, Way
from sparq_sim.optimizers.shared.ucb import GPOptimizer
from sparq_sim.plugin.briefing import Briefing, SourceTerms, round_at
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Asks

__all__ = ["Discard", "SparQGPUCB"]

_WORTHLESS = 100.0
"""An answer whose variance has grown beyond this multiple of the prior variance is dropped."""


class Discard(Model):
    """Which observations to discard: those whose variance exceeds g(t) = *factor* s^2 h(t).

    h(t) is log t, or t^*power*; the theorem asks for g(t) = o(t^(1/4)). The newest observation is
    always kept: log t < 1 would discard even that one in the first two rounds.
    """

    kind: Literal["logarithmic", "power", "never"] = "logarithmic"
    """Which h(t) the limit grows by: log t, a power of t, or `never` to keep all."""
    factor: Positive = 1.0
    """By what s^2 h(t) is multiplied to give the limit g(t)."""
    power: Annotated[float, Field(gt=0, lt=0.25)] = 0.2
    """The power of t where the kind is `power`; above 0 and below 1/4, as the theorem asks."""

    def limit(self, number: int) -> float:
        """Return g(t) / s^2.

        Args:
            number: t, the number of the round, from 1 on.
        """
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
    """How these points are chosen: greedily, by the exchange chain of the paper's appendix, as an
    exact draw of the determinantal process that the chain approximates, at random, or the newest;
    or whether played or not, `uniform` in the domain or on a `grid` over it."""
    keeps_choice: bool = True
    """Whether a greedy choice that explains all points played is kept while it does, and with it
    how ties were decided, which takes about half the time; otherwise ties are drawn anew in each
    round, as in the paper."""
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
    """Which of its own observations are discarded as too old."""
    retain: Annotated[float, Field(ge=0)] = 0.0
    """For how many rounds answers to earlier queries still count beside a later complete one."""
    waits: bool = False
    """Whether to ask when a round begins and to play when the answers are there."""
    diagnose: bool = False
    """Whether to note, for each move, the divergences that the paper bounds; takes O(n^3)."""

    @model_validator(mode="after")
    def _can_be_diagnosed(self) -> Self:
        if self.diagnose and self.selection in ANYWHERE:
            raise ValueError(
                f"diagnose compares points asked with all points played, and selection = "
                f"{self.selection!r} asks about others: leave out one of them"
            )
        return self

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        if briefing.experts:
            _warn_of_gaps(self, prior, briefing)
        return _SparQMemory(self, prior, briefing)

    def find_asking(self) -> Asking:
        return Asking(
            expert=self.expert,
            routing=self.routing,
            schedule=self.schedule,
            selection=self.selection,
            keeps_choice=self.keeps_choice,
            steps=self.steps,
            epsilon=self.epsilon,
        )


class _SparQMemory(Memory):
    """A memory of the newest observations and answers."""

    def __init__(self, model: SparQGPUCB, prior: GPPrior, briefing: Briefing) -> None:
        super().__init__(prior, briefing.period)
        self.waits = model.waits
        self._model = model
        self._own = Measurements.empty(briefing.domain.dimensions)
        self._answers = ExpertAnswers(model.retain * briefing.period)
        self._notes: dict[str, float] = {}
        self._chosen_at = -inf

    def learn(self, answer: Answer) -> None:
        told = Measurements.from_answer(answer, self.prior.variances(answer))
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
        own = own.select(kept)
        if now > self._chosen_at:  # Not where somebody looks at the beliefs of the last move.
            self._chosen_at, self._own = now, own
        self._notes["kept"] = float(len(own))
        worthless = _WORTHLESS * float(self.prior.kernel.diagonal(self.prior.candidates[:1])[0])
        self._answers.keep(lambda told: self._age(told, now) <= worthless)
        if len(self.posterior):
            self.posterior.remove(slice(None))
        # The same points are asked about round after round: they come first, and together.
        if (told := self._answers.current()) is not None:
            self.add(told.points, told.values, self._age(told, now))
        if len(own):
            self.add(own.points, own.values, aged[kept])
        return self.posterior

    def _age(self, told: Measurements, now: float) -> Values:
        """Return s^2 + rate a^2; the round before counts as new, unless the agent waits."""
        ages = np.maximum((now - told.times) / self.period - (0 if self.waits else 1), 0.0)
        rate = told.variances if self._model.rate is None else self._model.rate
        aged: Values = told.variances + rate * np.square(ages)
        return aged

    def choose_points_to_ask(self, now: float) -> Mapping[str, Points]:
        asked = super().choose_points_to_ask(now)
        if self._model.diagnose and self.asker is not None and len(self.asker.rows):
            told = self._answers.current() or self._own
            variance = told.variances.min() if len(told) else 1.0
            self._notes |= measure_divergences(self.asker.played, self.asker.rows, variance)
        return asked

    def covariance_unasked(self, points: Points, now: float) -> Matrix:
        kernel = self.prior.kernel
        covariance = kernel(points, points)
        if len(self._own):
            own, noise = self._own.points, np.diag(self._age(self._own, now))
            cross = kernel(own, points)
            covariance -= cross.T @ np.linalg.solve(kernel(own, own) + noise, cross)
        return covariance

    def ageing_rate(self, terms: SourceTerms) -> float:
        return terms.std**2 if self._model.rate is None else self._model.rate

    def record_queries(self, queries: tuple[Query, ...]) -> None:
        self._answers.expect(queries)

    def notes(self) -> Notes:
        return {**super().notes(), **self._notes}


def _warn_of_gaps(model: SparQGPUCB, prior: GPPrior, briefing: Briefing) -> None:
    """Warn where a width from theory will lead into gaps that the answers cannot close."""
    if not prior.width.theoretical or briefing.rounds is None:
        return
    size = min(MOST_RANK, len(prior.candidates))
    rank = len(
        select_points_greedily(prior.kernel, prior.candidates, size=size, tolerance=NEGLIGIBLE)
    )
    asked = max(
        model.schedule(t) for t in range(max(1, briefing.rounds - 1000), briefing.rounds + 1)
    )
    if asked < rank:
        warnings.warn(
            f"{asked} points asked a round do not reach the {rank} directions in which this kernel "
            "varies on the domain: a width from theory then sends the agent into gaps that no "
            "answer closes, at the level of random play. Ask about more, or take a longer length "
            "scale or a practical width",
            PriorWarning,
            stacklevel=2,
        )
