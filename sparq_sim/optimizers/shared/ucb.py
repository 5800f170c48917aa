"""Upper confidence bounds: what all Gaussian-process optimizers share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from math import sqrt
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, PositiveInt, model_validator

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.errors import PluginError
from sparq_sim.fields import Positive
from sparq_sim.gp.kernels import AnyKernel, Kernel, SquaredExponential, check_kernel
from sparq_sim.gp.observations import GrowingArray, OffCandidatesError
from sparq_sim.gp.posterior.predictor import Posterior, Predictor
from sparq_sim.gp.priors import AnyPrior
from sparq_sim.messages import REWARD, Answer, Move, Notes, Query, Reply
from sparq_sim.optimizers.shared.acquisition import Acquisition
from sparq_sim.optimizers.shared.widths import AnyWidth, LogarithmicWidth, Occasion, Width
from sparq_sim.plugin.briefing import Briefing, round_at
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Agent, Asks, Belief, Optimizer

__all__ = [
    "Belief",
    "Fitting",
    "GPOptimizer",
    "GPPrior",
    "Memory",
    "PriorWarning",
    "round_at",
]

EXACT = 1e-6
"""An answer that claims to be exact is taken to be known to this share of the prior variance."""
PROBED = 5
"""At so many candidates a kernel is looked at before it is used."""


class PriorWarning(UserWarning):
    """A prior does not go with what is observed, or with what is asked."""


class Fitting(Model):
    """How a kernel and a prior mean are found: by marginal likelihood.

    They are fitted to the design of the play, or, where it has none, to the first observations.
    All observations are fitted as if made at one time: where the reward drifts fast, fitting anew
    takes change for roughness, and does harm.
    """

    plays: Annotated[int, Field(ge=2)] = 10
    """How many observations are needed to fit, made by uniform play where there is no design; at
    least 2."""
    every: PositiveInt | None = None
    """After how many rounds to fit anew, to the newest observations: 200, or `plays` if more; by
    default never."""
    starts: PositiveInt = 5
    """From how many kernels to climb: the one there is, and others that are drawn."""
    length_scale: AnyPrior | None = None
    """A prior density of the length scales: a table with a `kind`; by default none."""
    free_noise: bool = False
    """Whether the noise is fitted too; over time it then takes drift for noise."""


class GPOptimizer(Optimizer):
    """What all Gaussian-process optimizers are told."""

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
        if self.kernel is None or self.fitting.every is None:
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
        """Give the agent: the same for all, but for what it remembers and how."""
        # Not before: a scenario is checked without scipy. Not later: BLAS is pinned at the start.
        for engine in ("posterior.exact", "fit"):
            import_module(f"sparq_sim.gp.{engine}")
        return UCBAgent(self, briefing, rng)

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        """Make what this optimizer remembers: the part that makes it what it is."""
        return Memory(prior, briefing.period)


@dataclass(frozen=True)
class GPPrior:
    """What is believed beforehand, and where it will be asked."""

    kernel: Kernel
    mean: float
    noise_variance: float | None
    width: Width
    candidates: Points
    on_candidates_only: bool
    """Whether no other points will be played."""

    def start_posterior(self) -> Posterior:
        """Start a posterior in the way that costs least."""
        from sparq_sim.gp.posterior.exact import CholeskyPosterior, posterior

        if self.on_candidates_only:
            return posterior(self.kernel, candidates=self.candidates, mean=self.mean)
        return CholeskyPosterior(self.kernel, candidates=self.candidates, mean=self.mean)

    def variances(self, answer: Answer) -> Values:
        """Give the noise variance of each value: as claimed, unless one was given."""
        if self.noise_variance is not None and answer.query.source == REWARD:
            return np.full(len(answer.values), self.noise_variance)
        floor = EXACT * self.kernel.diagonal(answer.points[:1]).item()
        return np.maximum(answer.stds * answer.stds, floor)

    def check(self, answer: Answer) -> None:
        """Warn where the first observation is one that the prior all but rules out."""
        spread = sqrt(float(self.kernel.diagonal(answer.points[:1])[0]))
        reach = self.width(Occasion(1, len(self.candidates))) * spread
        surprise = abs(float(answer.values[0]) - self.mean)
        if surprise > 2 * (reach + spread) + 3 * float(answer.stds[0]):
            warnings.warn(
                f"the first reward, {answer.values[0]:.3g}, lies far from the prior mean "
                f"{self.mean:.3g} beside the prior std {spread:.3g}: the agent may stick where it "
                "began. A kernel fitted to centred data needs the mean it was fitted with; "
                "give `mean`, or leave `kernel` out to have both fitted",
                PriorWarning,
                stacklevel=2,
            )


class Memory:
    """What an optimizer remembers; this one remembers everything alike, as GP-UCB does.

    *times* say when each observation in the posterior was measured.
    """

    waits = False
    """Whether the move is held back until the queries of the round are answered."""
    told = 0
    """How many values it has been told."""

    def __init__(self, prior: GPPrior, period: float) -> None:
        self.prior = prior
        self.period = period
        self.times = GrowingArray()
        self.posterior = prior.start_posterior()

    @property
    def size(self) -> int:
        """How many observations the belief rests on."""
        return len(self.posterior)

    def learn(self, answer: Answer) -> None:
        """Take in an answer, which may come late or out of order."""
        self.add(answer.points, answer.values, self.prior.variances(answer))
        self.times.extend(answer.measured_at, len(answer.values))

    def predictor(self, now: float) -> Predictor:
        """Say what is believed of the reward in the round that begins *now*."""
        return self.posterior

    def record_play(self, point: Point) -> None:
        """Take note that *point* is played."""

    def choose_points_to_ask(self, now: float) -> Mapping[str, Points]:
        """Say which expert to ask about which points in the round that begins *now*."""
        return {}

    def record_queries(self, queries: tuple[Query, ...]) -> None:
        """Take note of the *queries* that go out together."""

    def notes(self) -> Notes:
        """Give numbers for the trace."""
        return {}

    def ages(self, now: float) -> Values:
        """Give how many rounds old each observation is; those of the round before are new."""
        return np.maximum((now - self.times.array) / self.period - 1.0, 0.0)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget all observations but those *kept*."""
        if np.count_nonzero(kept) < len(kept):
            self.times.keep(kept)
            self.posterior.remove(np.flatnonzero(~kept))

    def add(self, points: Points, values: Values, variances: Values) -> None:
        """Add to the posterior, also what lies off the candidates."""
        try:
            self.posterior.add(points, values, variances=variances)
        except OffCandidatesError:
            seen = self.posterior.observations
            self.prior = replace(self.prior, on_candidates_only=False)
            self.posterior = self.prior.start_posterior()
            if len(seen):
                self.posterior.add(seen.points, seen.values, variances=seen.variances)
            self.posterior.add(points, values, variances=variances)


class UCBAgent:
    """Plays where mean + width std is highest, given what its memory believes."""

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
            # Far apart: near each other many an indefinite one looks sound.
            apart = -(-len(self._candidates) // PROBED)
            check_kernel(model.kernel, self._candidates[::apart])
        self._round = 0
        self._waiting = False
        self._heard: list[Answer] = []
        self._past: list[Point] = []
        self._ids = count(1)
        self._unheard: dict[int, int] = {}
        self._checked = False
        self._memory: Memory | None = None
        if model.kernel is not None or briefing.design is not None:
            self._memory = self._start_memory(find_prior(model, briefing.design, rng))

    def ask(self, now: float) -> Move:
        """Choose; before there is a prior, uniformly."""
        number = round_at(now, self._briefing.period)
        if number > self._round:
            self._round = number
            self._revise()
            # Who has waited for a whole round in vain plays on what there is.
            if self._memory is not None and self._memory.waits and not self._waiting:
                queries = self._queries(self._memory, now)
                self._unheard = {query.id: len(query.points) for query in queries}
                if queries:
                    self._waiting = True
                    return Move(None, queries, effort=self._memory.size)
        elif self._waiting and self._unheard:
            return Move(None)
        self._waiting = False
        if self._memory is not None:
            move = self._choose(self._memory, now)
        else:
            move = Move(self._candidates[self._rng.integers(len(self._candidates))])
        if move.point is not None and self._keeps_all:
            self._past.append(move.point)
        return move

    @property
    def _keeps_all(self) -> bool:
        """Whether a memory is yet to be made, and then must learn what went before."""
        return self._memory is None or self._model.fitting.every is not None

    def _queries(self, memory: Memory, now: float) -> tuple[Query, ...]:
        asked = memory.choose_points_to_ask(now).items()
        queries = tuple(Query(next(self._ids), name, points, now) for name, points in asked)
        memory.record_queries(queries)
        return queries

    def _bound(self, memory: Memory, now: float) -> tuple[Predictor, float]:
        """Give what the upper confidence bound is made of: a predictor and its width."""
        predictor = memory.predictor(now)
        occasion = Occasion(self._round, len(self._candidates), predictor)
        return predictor, memory.prior.width(occasion)

    def _choose(self, memory: Memory, now: float) -> Move:
        predictor, width = self._bound(memory, now)
        point = self._model.acquisition.choose(
            predictor,
            width,
            domain=self._briefing.domain,
            points=self._candidates,
            rng=self._rng,
        )
        memory.record_play(point)
        queries = () if memory.waits else self._queries(memory, now)
        notes = {"width": width, **memory.notes()}
        return Move(point, queries, notes=notes, effort=memory.size)

    def tell(self, reply: Reply) -> None:
        """Learn from answers; what failed is simply absent."""
        if reply.query.source != REWARD and reply.query.id in self._unheard:
            self._unheard[reply.query.id] -= len(reply.rows)
            if self._unheard[reply.query.id] <= 0:
                del self._unheard[reply.query.id]
        if isinstance(reply, Answer):
            if self._keeps_all:
                self._heard.append(reply)
            if self._memory is not None:
                self._learn(self._memory, reply)

    def belief(self, points: Points, now: float) -> Belief | None:
        """Say what is believed at the candidates nearest to *points*; None before there is a prior.

        *now* is that of the last move: nothing is forgotten then that its choice did not forget.
        """
        if self._memory is None:
            return None
        from scipy.spatial import cKDTree

        predictor, width = self._bound(self._memory, now)
        nearest = cKDTree(self._candidates).query(points)[1]
        return Belief(predictor.mean()[nearest], predictor.std()[nearest], width)

    def _learn(self, memory: Memory, answer: Answer) -> None:
        if not self._checked and answer.query.source == REWARD:
            self._checked = True
            memory.prior.check(answer)
        memory.told += len(answer.values)
        memory.learn(answer)

    def _revise(self) -> None:
        """Find the prior when there is enough to find it from, and anew when it is time."""
        fitting = self._model.fitting
        own = [answer for answer in self._heard if answer.query.source == REWARD]
        if self._memory is None:
            due = True
        else:
            due = fitting.every is not None and self._round % fitting.every == 0
        if due and len(own) >= fitting.plays:
            newest = join_answers(own[-max(200, fitting.plays) :])
            self._memory = self._start_memory(find_prior(self._model, newest, self._rng, anew=True))
            for point in self._past:
                self._memory.record_play(point)
            for answer in self._heard:
                self._learn(self._memory, answer)
            if not self._keeps_all:
                self._heard.clear()
                self._past.clear()

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
        return model.start_memory(prior, briefing, self._rng)


@dataclass(frozen=True)
class PriorParameters:
    """What a prior is made of; without a noise variance, sources are believed."""

    kernel: Kernel
    mean: float
    noise_variance: float | None


def find_prior(
    model: GPOptimizer, design: Answer | None, rng: Generator, *, anew: bool = False
) -> PriorParameters:
    """Give kernel, prior mean and noise: as given, or fitted to the *design*."""
    from sparq_sim.gp.fit import fit

    if model.kernel is not None and not anew:
        average = 0.0 if design is None else float(design.values.mean())
        mean = average if model.mean is None else model.mean
        return PriorParameters(model.kernel, mean, model.noise_variance)
    if design is None:
        raise ValueError("there is nothing to fit a kernel to: give a kernel or a design")
    reach = np.ptp(design.points, axis=0)
    reach = np.where(reach > 0, reach, 1.0)
    # Where all values are equal, a reward may be anything like them.
    variance = float(design.values.var()) or max(float(np.abs(design.values).max()), 1e-3) ** 2
    scales = tuple(reach / 5) if len(reach) > 1 else float(reach[0]) / 5
    kernel = model.kernel or SquaredExponential(variance=variance, length_scale=scales)
    variances: Values | None = np.maximum(design.stds**2, EXACT * variance)
    if model.noise_variance is not None:
        variances = np.full(len(design.values), model.noise_variance)
    fitting = model.fitting
    fitted = fit(
        kernel,
        design.points,
        design.values,
        rng=rng,
        variances=None if fitting.free_noise else variances,
        mean=model.mean,
        priors={} if fitting.length_scale is None else {"length_scale": fitting.length_scale},
        starts=fitting.starts,
    )
    noise = fitted.noise_variance if fitting.free_noise else model.noise_variance
    return PriorParameters(fitted.kernel, fitted.mean, noise)


def join_answers(answers: Sequence[Answer]) -> Answer:
    """Put several answers together, as if to one query."""
    points = np.concatenate([answer.points for answer in answers])
    query = Query(answers[-1].query.id, REWARD, points, answers[-1].asked_at)
    return query.answer(
        np.concatenate([answer.values for answer in answers]),
        stds=np.concatenate([answer.stds for answer in answers]),
        arrived_at=max(answer.arrived_at for answer in answers),
    )
