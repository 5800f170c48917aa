"""Upper confidence bounds: the base of all Gaussian-process optimizers, and their agent.

`UCBAgent` is long because one turn of all these optimizers is told in it from end to end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from itertools import count
from typing import ClassVar, Self

from numpy.random import Generator
from pydantic import FiniteFloat, model_validator

from sparq_sim.arrays import Points
from sparq_sim.domain import Box
from sparq_sim.errors import PluginError
from sparq_sim.fields import Positive
from sparq_sim.gp.kernels import AnyKernel, check_kernel
from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import REWARD, Answer, Move, Query, Reply
from sparq_sim.optimizers.shared.acquisition import Acquisition
from sparq_sim.optimizers.shared.asking import Asker, Asking
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.opening import Opening
from sparq_sim.optimizers.shared.prior import (
    Fitting,
    GPPrior,
    PriorParameters,
    find_prior,
    find_prior_on_grid,
    join_answers,
)
from sparq_sim.optimizers.shared.widths import AnyWidth, LogarithmicWidth, Occasion
from sparq_sim.plugin.briefing import Access, Briefing, round_at
from sparq_sim.plugin.optimizer import Agent, Asks, Belief, Optimizer

__all__ = ["AskingGPOptimizer", "GPOptimizer", "UCBAgent"]

_PROBED = 5
"""The number of candidates at which a kernel is checked before it is used."""


class GPOptimizer(Optimizer):
    """The base of Gaussian-process optimizers, which differ in what they remember.

    A subclass defines `start_memory`, and fields of its own. One that may ask experts as
    SparQ-GP-UCB does, while its memory learns the answers as it learns observations, derives from
    `AskingGPOptimizer`, which has a field for that.
    """

    asks: ClassVar[Asks | None] = "never"
    kernel: AnyKernel | None = None
    """How alike the rewards of two points are: a table with a `kind`; by default a squared
    exponential, fitted."""
    mean: FiniteFloat | None = None
    """The prior mean, in reward units; by default fitted with the kernel, or, where that is given,
    the design's average or 0."""
    noise_variance: Positive | None = None
    """The noise variance of an observation, in squared reward units; by default as its channel
    claims."""
    width: AnyWidth = LogarithmicWidth()
    """How many stds above the mean the upper confidence bound lies: a number, or a table with a
    `kind`."""
    acquisition: Acquisition = Acquisition()
    """How the point with the highest upper confidence bound is searched for."""
    fitting: Fitting = Fitting()
    """How the kernel is found, where it is not given."""

    @model_validator(mode="after")
    def _can_be_fitted(self) -> Self:
        if self.kernel is None:
            return self
        if self.fitting.search == "grid":
            raise ValueError(
                "a search on a grid finds a squared exponential in place of the kernel that is "
                'given: leave out kernel, or fitting.search = "grid"'
            )
        if self.fitting.every in (None, "never"):
            return self
        for name, number in self.kernel.parameters().items():
            if number <= 0:
                raise ValueError(
                    f"a kernel is fitted by the logarithms of its numbers, and its {name} is "
                    f"{number:g}: leave out fitting.every, or make it a whole number, which is "
                    "never fitted"
                )
        return self

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        self.check_experts(briefing.experts)
        self.check_access(briefing.access)
        # Not before: a scenario is checked without scipy. Not later: BLAS is pinned at the start.
        for engine in ("posterior", "fit", "grid_fit"):
            import_module(f"sparq_sim.gp.{engine}")
        return UCBAgent(self, briefing, rng)

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        """Return the memory of one play: the part in which optimizers differ.

        Args:
            prior: What is believed before any observation.
            briefing: The domain, the terms of all sources, and the rules of the play.
            rng: The agent's source of chance.
        """
        return Memory(prior, briefing.period)

    def find_asking(self) -> Asking | None:
        """Return how it asks experts; None if it does not, or its memory asks in its own way."""
        return None

    def where_asks(self) -> Asks | None:
        asking = self.find_asking()
        return self.asks if asking is None else asking.where

    def check_experts(self, names: Collection[str]) -> None:
        if (asking := self.find_asking()) is not None:
            asking.choose_experts(names)

    def check_access(self, access: Access) -> None:
        if (asking := self.find_asking()) is not None:
            asking.check_access(access)


class AskingGPOptimizer(GPOptimizer):
    """The base of Gaussian-process optimizers that ask nobody, unless they are told to."""

    asking: Asking | None = None
    """How to ask experts, beside playing: a table with `expert` or `routing`, `schedule` and
    `selection`; answers are remembered as observations are. By default nobody is asked."""

    def find_asking(self) -> Asking | None:
        return self.asking


class UCBAgent:
    """An agent that plays where mean + width * std is highest, given what its memory believes.

    Before there is a prior its plays are spread over the candidates. Where a memory waits, it asks
    when the round begins and plays when all answers are there, or when the next round begins.

    Args:
        model: The optimizer.
        briefing: The domain, the terms of all sources, and the rules of the play.
        rng: The agent's source of chance.

    Raises:
        PluginError: If the width needs a design that there is not, or the kernel is no covariance.
    """

    def __init__(self, model: GPOptimizer, briefing: Briefing, rng: Generator) -> None:
        self._model = model
        self._briefing = briefing
        self._rng = rng
        if model.width.needs_design and briefing.design is None:
            raise PluginError(
                f"the width {type(model.width).__name__} needs the norm of the reward: give its "
                "`norm`, or a design in the rules of the play to take it from"
            )
        self._candidates = model.acquisition.candidate_points(briefing.domain)
        if model.kernel is not None:
            # Far apart: at points near each other many indefinite kernels look right.
            apart = -(-len(self._candidates) // _PROBED)
            check_kernel(model.kernel, self._candidates[::apart])
        self._bounds: Box | None = None
        self._round = 0
        self._waiting = False
        self._answers: list[Answer] = []
        self._observed = 0
        self._history: list[Callable[[Memory], object]] = []
        self._ids = count(1)
        self._unanswered: dict[int, int] = {}
        self._checked = False
        self._memory: Memory | None = None
        blind = model.kernel is None and briefing.design is None
        self._fitting = model.fitting.fill_in(blind=blind)
        self._fitted_to: int | None = None
        self._opening = Opening(self._candidates, self._fitting.plays, rng)
        if not blind:
            self._fitted_to = 0
            if briefing.design is not None and self._fitting.search == "grid":
                found = self._find_on_grid([briefing.design])
            else:
                found = find_prior(model, briefing.design, rng)
            self._memory = self._start_memory(found)

    def ask(self, now: float) -> Move:
        """Return what to play and whom to ask; the point is None while the agent waits for answers.

        Args:
            now: The time, in clock units.
        """
        number = round_at(now, self._briefing.period)
        if number > self._round:
            self._round = number
            self._revise()
            # After a whole round without all answers, play on what there is.
            if self._memory is not None and self._memory.waits and not self._waiting:
                queries = self._queries(self._memory, now)
                self._unanswered = {query.id: len(query.points) for query in queries}
                if queries:
                    self._waiting = True
                    return Move(None, queries, effort=self._memory.size)
        elif self._waiting and self._unanswered:
            return Move(None)
        self._waiting = False
        if self._memory is not None:
            move = self._choose(self._memory, now)
        else:
            point = self._opening.choose(self._bounds)
            self._record(lambda memory: memory.record_play(point, now))
            move = Move(point)
        return move

    @property
    def _keeps_all(self) -> bool:
        """Whether a memory will be started later, which must then learn all that was before."""
        return self._memory is None or self._fitting.every != "never"

    def _record(self, event: Callable[[Memory], object]) -> None:
        """Pass an *event* to the memory, and to those that will be started later."""
        if self._keeps_all:
            self._history.append(event)
        if self._memory is not None:
            event(self._memory)

    def _queries(self, memory: Memory, now: float) -> tuple[Query, ...]:
        asked = memory.choose_points_to_ask(now).items()
        queries = tuple(Query(next(self._ids), name, points, now) for name, points in asked)
        self._record(lambda memory: memory.record_queries(queries))
        return queries

    def _bound(self, memory: Memory, now: float) -> tuple[Predictor, float]:
        """Return what the upper confidence bound is made of: a predictor and its width."""
        predictor = memory.predictor(now)
        occasion = Occasion(self._round, len(self._candidates), predictor)
        return predictor, memory.prior.width(occasion)

    def _choose(self, memory: Memory, now: float) -> Move:
        predictor, width = self._bound(memory, now)
        point = self._model.acquisition.choose(
            memory.hopes(predictor),
            width,
            domain=self._briefing.domain,
            points=self._candidates,
            rng=self._rng,
            bounds=self._bounds,
        )
        self._record(lambda memory: memory.record_play(point, now))
        queries = () if memory.waits else self._queries(memory, now)
        notes = {"width": width, **memory.notes()}
        return Move(point, queries, notes=notes, effort=memory.size)

    def tell(self, reply: Reply) -> None:
        """Learn from a reply, which may come late, out of order, or never.

        Args:
            reply: An answer, or a failure.
        """
        if reply.query.source != REWARD and reply.query.id in self._unanswered:
            self._unanswered[reply.query.id] -= len(reply.rows)
            if self._unanswered[reply.query.id] <= 0:
                del self._unanswered[reply.query.id]
        if isinstance(reply, Answer):
            if self._keeps_all:
                self._answers.append(reply)
                self._observed += reply.query.source == REWARD
            self._record(lambda memory: self._learn(memory, reply))
        else:
            self._record(lambda memory: memory.record_failure(reply))

    def restrict(self, bounds: Box) -> None:
        """Choose points within *bounds* from now on.

        Args:
            bounds: Within the domain.
        """
        self._bounds = bounds

    def belief(self, points: Points, now: float) -> Belief | None:
        """Return what is believed at the candidates nearest to some points.

        None before there is a prior.

        Args:
            points: Where, (n, d).
            now: The time of the last move, in clock units: nothing is forgotten then that the
                choice of that move did not forget.
        """
        if self._memory is None:
            return None
        from scipy.spatial import cKDTree

        predictor, width = self._bound(self._memory, now)
        nearest = cKDTree(self._candidates).query(points)[1]
        mean, std = predictor.mean()[nearest], predictor.std()[nearest]
        return Belief(mean, std, width, self._memory.evidence(predictor))

    def _learn(self, memory: Memory, answer: Answer) -> None:
        if not self._checked and answer.query.source == REWARD:
            self._checked = True
            memory.prior.check(answer)
        memory.told += len(answer.values)
        memory.learn(answer)

    def _revise(self) -> None:
        """Find the prior when there is enough to find it from, and again when it is time."""
        if self._fitting.is_due(self._round, count=self._observed, last=self._fitted_to):
            self._fitted_to = self._observed
            if self._fitting.search == "grid":
                found = self._find_on_grid(self._answers)
            else:
                own = [answer for answer in self._answers if answer.query.source == REWARD]
                newest = join_answers(own[-max(200, self._fitting.plays) :])
                found = find_prior(self._model, newest, self._rng, refit=True)
            self._memory = self._start_memory(found)
            # In its order: what was asked and is not answered yet is still to be expected.
            for event in self._history:
                event(self._memory)
            if not self._keeps_all:
                self._answers.clear()
                self._history.clear()

    def _find_on_grid(self, answers: Sequence[Answer]) -> PriorParameters:
        return find_prior_on_grid(
            self._model, answers, candidates=self._candidates, period=self._briefing.period
        )

    def _start_memory(self, found: PriorParameters) -> Memory:
        model, briefing = self._model, self._briefing
        prior = GPPrior(
            kernel=found.kernel,
            mean=found.mean,
            noise_variance=found.noise_variance,
            width=model.width.prepare(found.kernel, found.mean, briefing.design),
            candidates=self._candidates,
            on_candidates_only=not model.acquisition.climbs(briefing.domain),
        )
        memory = model.start_memory(prior, briefing, self._rng)
        asking = model.find_asking()
        if asking is not None and briefing.experts:
            memory.asker = Asker(asking, prior, briefing, self._rng)
        return memory
