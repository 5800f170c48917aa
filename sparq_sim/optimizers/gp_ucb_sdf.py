"""GP-UCB-SDF: GP-UCB for rewards that arrive late, or never."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite

import numpy as np
from numpy.random import Generator
from pydantic import FiniteFloat, NonNegativeInt

from sparq_sim.arrays import Point
from sparq_sim.errors import PluginError
from sparq_sim.fields import Amount
from sparq_sim.gp.candidates import Candidates
from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import REWARD, Answer, Notes, Query
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer
from sparq_sim.optimizers.shared.widths import Occasion, Width
from sparq_sim.plugin.briefing import Briefing

__all__ = ["GPUCBSDF"]


class GPUCBSDF(AskingGPOptimizer):
    """GP-UCB with a constant in the place of observations that have not arrived.

    Verma, Dai and Low 2022 (stochastic delayed feedback). In round t the play of round s counts as
    an observation of y_s, if that arrived within min(m, t - s) rounds, and of a constant if not:
    a point is not played again and again only because no observation of it has arrived. The bound
    is mu + nu_t sigma, with

        nu_t = beta_t + B_y sum_{s=t-m}^{t-1} sigma_{t-1}(x_s).

    They count rewards from the least one, which is both their constant and their prior mean, and
    in units in which the prior std is 1. Any constant keeps the argmax of the mean where it is; a
    low one drives away from what was just played. Their theorem's beta_t is the width
    `chowdhury-gopalan` with noise_std = R + B_y and half their delta; their experiments had
    beta_t = 1. Without latency m is 0, and this is GP-UCB.
    """

    window: NonNegativeInt | None = None
    """m, in rounds: what takes longer to arrive is ignored; by default twice the expected latency
    of the observations, as they advise."""
    censored: FiniteFloat | None = None
    """What a play without an observation counts as, in reward units; by default the prior mean."""
    bound: Amount = 1.0
    """B_y, a bound on rewards counted from the censored value, in prior stds."""

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        return _DelayedMemory(self, prior, briefing)

    def choose_window(self, briefing: Briefing) -> int:
        """Return m, in rounds: as given, or twice the expected latency.

        Args:
            briefing: The terms of observations, and the length of a round.

        Raises:
            PluginError: If no window is given and the expected latency is not finite.
        """
        if self.window is not None:
            return self.window
        latency = briefing.observation.latency
        if not isfinite(latency):
            raise PluginError(
                f"the expected latency of observations is {latency}: say for how many rounds to "
                "wait for one, `window = ...`"
            )
        return ceil(2 * latency / briefing.period - 1e-6)


@dataclass(slots=True)
class _Play:
    number: int
    """The number of its round, from 1 on."""
    point: Point
    position: int | None = None
    """The position of the censored observation, once there is one."""


class _DelayedMemory(Memory):
    """A memory of all plays, observed or not."""

    def __init__(self, model: GPUCBSDF, prior: GPPrior, briefing: Briefing) -> None:
        super().__init__(prior, briefing.period)
        self._width = prior.width
        self._bound = model.bound
        self._window = model.choose_window(briefing)
        self._censored = prior.mean if model.censored is None else model.censored
        self._std = briefing.observation.std
        self._candidates = Candidates(prior.candidates)
        self._latest: deque[Point] = deque(maxlen=self._window)
        self._plays = 0
        self._unobserved: list[_Play] = []
        """Plays whose observation may still arrive within the window."""
        self._waiting_for = 0.0
        self._now = -inf

    def record_play(self, point: Point, now: float) -> None:
        super().record_play(point, now)
        self._latest.append(point)
        self._plays += 1
        self._unobserved.append(_Play(self._plays, point))

    def learn(self, answer: Answer) -> None:
        latency = (answer.arrived_at - answer.asked_at) / self.period
        if answer.query.source == REWARD and latency > self._window + 1e-6:
            return
        play = self._pop_answered(answer)
        if play is None or play.position is None:
            super().learn(answer)
        else:
            (variance,) = self.prior.variances(answer)
            self.posterior.replace(play.position, float(answer.values[0]), variance=variance)
            self.times.array[play.position] = answer.measured_at

    def _pop_answered(self, answer: Answer) -> _Play | None:
        """Return the play that an answer observes, and remove it from those that are not observed.

        Of several at one point the first: they count alike.
        """
        if answer.query.source == REWARD:
            for number, play in enumerate(self._unobserved):
                if np.array_equal(play.point, answer.points[0]):
                    return self._unobserved.pop(number)
        return None

    def predictor(self, now: float) -> Predictor:
        # Once for each round: what is played in it may be observed in it.
        if now > self._now:
            self._now = now
            for play in self._unobserved:
                self._censor(play, now)
            # An answer to what was played in round s - m arrives by round s, or is ignored.
            oldest = self._plays + 1 - self._window
            self._unobserved = [play for play in self._unobserved if play.number >= oldest]
            self._waiting_for = float(len(self._unobserved))
            by = self._bound * self._sum_stds()
            self.prior = replace(self.prior, width=_Widened(width=self._width, by=by))
        return self.posterior

    def _censor(self, play: _Play, now: float) -> None:
        """Count a play as an observation of the censored value, if it does not yet."""
        if play.position is None:
            play.position = len(self.posterior)
            query = Query(1, REWARD, play.point[None], now)
            super().learn(query.answer([self._censored], stds=self._std))

    def _sum_stds(self) -> float:
        """Return the sum of sigma(x_s) over the last m plays, in prior stds."""
        if not self._latest:
            return 0.0
        points = np.array(self._latest)
        places = self._candidates.find_places(points)
        # What is known at the candidates costs nothing.
        stds = self.posterior.std(points) if -1 in places else self.posterior.std()[places]
        return float((stds / np.sqrt(self.prior.kernel.diagonal(points))).sum())

    def notes(self) -> Notes:
        return {**super().notes(), "unheard": self._waiting_for}


class _Widened(Width):
    """The width beta_t + *by*."""

    width: Width
    by: Amount

    @property
    def theoretical(self) -> bool:
        return self.width.theoretical

    def __call__(self, occasion: Occasion) -> float:
        return self.width(occasion) + self.by
