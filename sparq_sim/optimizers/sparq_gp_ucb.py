"""SparQ-GP-UCB: forget what is old, and ask an expert about a few points instead."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import compress
from math import inf, log
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt

from sparq_sim.draws import Amount, Positive
from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.gp.features import FeaturePosterior
from sparq_sim.gp.sparse import greedy_points
from sparq_sim.messages import REWARD, Answer, Notes, Point, Points, Values
from sparq_sim.models import Part, Setting
from sparq_sim.optimizers.acquisition import Predictor
from sparq_sim.optimizers.schedules import Logarithmic, QuerySchedule
from sparq_sim.optimizers.selection import Played, Selector, Way, diagnosis
from sparq_sim.optimizers.ucb import GPOptimizer, Memory, Prior, PriorWarning

GAP = 1e-6
"""A Schur complement this small beside the prior variance leaves no gap for a width to show."""
MOST_RANK = 500


class Discard(Part):
    """Which observations to give up: those whose variance exceeds g(t) = *factor* s^2 h(t).

    h(t) is log t, or t^*power*; the theorem asks for g(t) = o(t^(1/4)). The newest observation is
    always kept: log t < 1 would give up even that one in the first two rounds.
    """

    kind: Literal["logarithmic", "power", "never"] = "logarithmic"
    factor: Positive = 1.0
    power: Annotated[float, Field(gt=0, lt=0.25)] = 0.2

    def limits(self, variances: Values, number: int) -> Values:
        """Give g(t) in round *number* for observations of fresh noise *variances* s^2."""
        if self.kind == "never":
            return np.full(len(variances), inf)
        growth = log(number) if self.kind == "logarithmic" else float(number**self.power)
        return self.factor * growth * variances


class SparQGPUCB(GPOptimizer):
    """GP-UCB on the newest observations and an expert's answers about a few past points.

    Algorithm 1 of Mauduit, Berthier and Simonetto 2025. In round t: observe y_t; discard
    observations whose variance s^2 + rate a^2 (a: age in rounds) exceeds g(t); choose Q_t of the
    points played so far, so that they tell what all of them would (sparse inference); ask the
    expert about f_t there; update; play the argmax of mu + beta_{t+1} sigma in round t + 1.

    Answers that come late have aged by then, at the same rate; those that are lost are absent.
    """

    expert: str | None = None
    """Whom to ask; by default the only expert of the play."""
    schedule: QuerySchedule = Logarithmic()
    """Q_t, how many points to ask about: 6 log t in the paper."""
    selection: Way = "greedy"
    """How they are chosen: greedily, by the exchange chain of the paper's appendix, or as an exact
    draw of the determinantal process that the chain approximates."""
    steps: NonNegativeInt = 1000
    """Of the chain, in each round, at most."""
    epsilon: Annotated[float, Field(gt=0, lt=1)] | None = None
    """How near to the determinantal process, in total variation, the chain need come."""
    rate: Amount | None = None
    """Of ageing, in squared reward units a squared round; by default s^2, as in the paper. The
    square of the change of the reward in a round is better, where it is known."""
    discard: Discard = Discard()
    """Which observations of its own to give up."""
    retain: Annotated[float, Field(ge=0)] = 0.0
    """For how many rounds before the newest answer older ones still count."""
    waits: bool = False
    """Whether to ask when a round begins and to play when the answers are there."""
    diagnose: bool = False
    """Whether to note, for each move, the divergences that the paper bounds; takes O(n^3)."""

    def memory(self, prior: Prior, setting: Setting, rng: Generator) -> Memory:
        """Remember the newest observations and answers, and all points played."""
        return _SparQMemory(self, prior, setting, rng)


class _SparQMemory(Memory):
    def __init__(self, model: SparQGPUCB, prior: Prior, setting: Setting, rng: Generator) -> None:
        super().__init__(prior, setting.period)
        self.waits = model.waits
        self._model = model
        self._expert = _expert_of(model, setting)
        self._own = _Pool()
        self._answers = _Pool()
        self._played = Played(prior.kernel)
        self._selector = Selector(
            model.selection, steps=model.steps, epsilon=model.epsilon, rng=rng
        )
        self._notes: dict[str, float] = {}
        if self._expert is not None:
            _warn_of_gaps(model, prior, setting)

    def learn(self, answer: Answer) -> None:
        pool = self._own if answer.query.source == REWARD else self._answers
        pool.add(answer, self.prior.variances(answer))

    def predictor(self, now: float) -> Predictor:
        own, answers = self._own, self._answers
        variances = self._aged(own, now)
        # Choosing x_{t+1}, the newest round to have been observed is t; waiting, it is this one.
        number = max(1, self._number(now) - (0 if self.waits else 1))
        kept = variances <= self._model.discard.limits(np.array(own.variances), number)
        kept |= np.array(own.times) == max(own.times, default=0.0)
        own.keep(kept)
        newest = max(answers.times, default=0.0)
        reach = (self._model.retain + 1) * self.period * (1 - 1e-9)
        answers.keep(np.array(answers.times) > newest - reach)
        self._notes["kept"] = float(len(own.values))
        self._rebuild(own, variances[kept], now)
        return self.posterior

    def _rebuild(self, own: _Pool, variances: Values, now: float) -> None:
        if len(self.posterior):
            self.posterior.remove(slice(None))
        for pool, aged in ((own, variances), (self._answers, self._aged(self._answers, now))):
            if len(aged):
                self.add(np.array(pool.points), np.array(pool.values), aged)

    def _aged(self, pool: _Pool, now: float) -> Values:
        fresh = np.array(pool.variances)
        ages = (now - np.array(pool.times)) / self.period - (0 if self.waits else 1)
        rate = fresh if self._model.rate is None else self._model.rate
        aged: Values = fresh + rate * np.square(np.maximum(ages, 0.0))
        return aged

    def play(self, point: Point) -> None:
        self._played.add(point)

    def questions(self, now: float) -> Mapping[str, Points]:
        if self._expert is None:
            return {}
        wanted = self._model.schedule(self._number(now))
        features = self.posterior.features if isinstance(self.posterior, FeaturePosterior) else None
        rows = self._selector.choose(self._played, wanted, features)
        self._notes["queries"] = float(len(rows))
        if not len(rows):
            return {}
        if self._model.diagnose:
            variance = min(self._answers.variances, default=max(self._own.variances, default=1.0))
            self._notes |= diagnosis(self._played, rows, variance)
        return {self._expert: self._played.points[rows]}

    def notes(self) -> Notes:
        return dict(self._notes)

    def _number(self, now: float) -> int:
        return max(1, int(now / self.period + 1e-6))


class _Pool:
    """Values with where, how noisily and when they were measured."""

    def __init__(self) -> None:
        self.points: list[Points] = []
        self.values: list[float] = []
        self.variances: list[float] = []
        self.times: list[float] = []

    def add(self, answer: Answer, variances: Values) -> None:
        self.points.extend(answer.points)
        self.values.extend(answer.values.tolist())
        self.variances.extend(variances.tolist())
        self.times.extend([answer.measured_at] * len(variances))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        if not kept.all():
            self.points = list(compress(self.points, kept))
            self.values = list(compress(self.values, kept))
            self.variances = list(compress(self.variances, kept))
            self.times = list(compress(self.times, kept))


def _expert_of(model: SparQGPUCB, setting: Setting) -> str | None:
    experts = setting.experts
    if model.expert is None:
        if len(experts) > 1:
            raise PluginError(
                f"there are several experts: say which one to ask, `expert = ...`; "
                f"there are: {', '.join(sorted(experts))}"
            )
        return next(iter(experts), None)
    if model.expert not in experts:
        raise PluginError(
            f"no expert of this play is called {model.expert!r}: "
            f"{did_you_mean(model.expert, experts)}"
        )
    return model.expert


def _warn_of_gaps(model: SparQGPUCB, prior: Prior, setting: Setting) -> None:
    """Warn where a theorem's width will chase gaps that the queries cannot close."""
    if not prior.width.theoretical or setting.rounds is None:
        return
    size = min(MOST_RANK, len(prior.candidates))
    rank = len(greedy_points(prior.kernel, prior.candidates, size=size, tolerance=GAP))
    asked = model.schedule(setting.rounds)
    if asked < rank:
        warnings.warn(
            f"{asked} queries a round do not reach the {rank} directions in which this kernel "
            "varies on the domain: a width from theory then sends the agent into gaps that no "
            "query closes, at the level of random play. Ask more, take a longer length scale, or a "
            "practical width",
            PriorWarning,
            stacklevel=2,
        )
