"""UI-TVBO: GP-UCB for a reward that wanders off, and never returns to its prior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.fields import Amount
from sparq_sim.gp.candidates import OffCandidatesError
from sparq_sim.gp.kernels import SpaceTime, Wiener, stamp
from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import Answer
from sparq_sim.optimizers.shared.forecast import Forecast
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer
from sparq_sim.plugin.briefing import Briefing

if TYPE_CHECKING:
    from sparq_sim.gp.posterior.cholesky import CholeskyPosterior
    from sparq_sim.gp.posterior.drifting import KalmanPosterior

__all__ = ["UITVBO"]

_ENDLESS = 10**6
"""The number of rounds to plan for where it is not known."""


class UITVBO(AskingGPOptimizer):
    """GP-UCB under f_{t+1} = f_t + sqrt(rate) g_{t+1}, g a fresh draw of the prior.

    Brunzema, von Rohr and Trimpe 2022: the kernel k(x, x') (1 + rate min(t, t')), a Wiener
    process in time. Between observations the mean stays and the variance grows by rate k(x, x) a
    round; neighbours wander together, so that one new observation corrects old ones around it.
    UI-GP-UCB ages each observation on its own instead. Theirs was rate = 0.03 and width = sqrt(2).

    Not here: the constraints on shape that they add where the reward is known to be convex, and
    the binning of observations by which they limit the cost. On a grid or on sites this is a
    Kalman filter, which costs the same in every round. Points elsewhere, and observations that
    come out of order, make it go on with the dense posterior in space and time, as exactly.
    """

    rate: Amount = 0.03
    """By how much the variance grows in a round, as a share of the prior variance."""

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        if self.rate == 0:
            return Memory(prior, briefing.period)
        return _WanderingMemory(prior, briefing, self.rate)


class _WanderingMemory(Memory):
    """A memory of all, in space and time: a filter, as long as that is exact."""

    def __init__(self, prior: GPPrior, briefing: Briefing, rate: float) -> None:
        from sparq_sim.gp.posterior.drifting import KalmanPosterior
        from sparq_sim.gp.posterior.feature_posterior import FeaturePosterior

        super().__init__(prior, briefing.period)
        self._rate = rate
        self._priors = prior.kernel.diagonal(prior.candidates)
        self._dense = _Dense(prior, briefing, rate)
        self._answers: list[Answer] = []
        self._filter: KalmanPosterior | None = None
        self._filtered_to = 0.0
        if isinstance(self.posterior, FeaturePosterior):
            self._filter = KalmanPosterior(self.posterior.features, mean=prior.mean)

    @property
    def size(self) -> int:
        return self.told

    def learn(self, answer: Answer) -> None:
        if self._filter is None:
            self._dense.learn(answer)
            return
        self._answers.append(answer)
        if not self._filter_answer(self._filter, answer):
            self._filter = None
            for earlier in self._answers:
                self._dense.learn(earlier)

    def _filter_answer(self, belief: KalmanPosterior, answer: Answer) -> bool:
        """Filter an answer and return True, if it is newest and on the candidates."""
        duration = (answer.measured_at - self._filtered_to) / self.period
        if duration < 0:
            return False
        belief.drift(1.0, self._rate * duration)
        self._filtered_to = answer.measured_at
        try:
            belief.add(answer.points, answer.values, variances=self.prior.variances(answer))
        except OffCandidatesError:
            return False
        return True

    def predictor(self, now: float) -> Predictor:
        if self._filter is None:
            return self._dense.predictor(now)
        grown = self._rate * (now - self._filtered_to) / self.period
        return Forecast(self._filter, self._priors, inject=grown)


class _Dense:
    """The posterior in space and time, for points anywhere and observations in any order.

    An observation covaries alike with all times after it. So the candidates are predicted for the
    end of the play, once for each observation, and their variance is counted back from there.
    """

    def __init__(self, prior: GPPrior, briefing: Briefing, rate: float) -> None:
        from sparq_sim.gp.posterior.cholesky import CholeskyPosterior

        self._prior = prior
        self._period = briefing.period
        self._end = (briefing.rounds or _ENDLESS) + 1
        self._posterior = CholeskyPosterior(
            SpaceTime(space=prior.kernel, time=Wiener(rate=rate)),
            candidates=stamp(prior.candidates, float(self._end)),
            mean=prior.mean,
        )
        self._growth = rate * prior.kernel.diagonal(prior.candidates)

    def learn(self, answer: Answer) -> None:
        places = stamp(answer.points, answer.measured_at / self._period)
        self._posterior.add(places, answer.values, variances=self._prior.variances(answer))

    def predictor(self, now: float) -> Predictor:
        return _Now(self._posterior, now / self._period, end=self._end, growth=self._growth)


class _Now(Forecast):
    """A posterior in space and time, at one *time*; *growth* is that of variances in a round."""

    def __init__(
        self, posterior: CholeskyPosterior, time: float, *, end: float, growth: Values
    ) -> None:
        super().__init__(posterior, growth, inject=time - end)
        self._posterior = posterior
        self._time = time

    def mean(self, points: ArrayLike | None = None) -> Values:
        return super().mean() if points is None else self._posterior.mean(self._stamp(points))

    def std(self, points: ArrayLike | None = None) -> Values:
        return super().std() if points is None else self._posterior.std(self._stamp(points))

    def mean_gradient(self, point: Point) -> Point:
        return self._posterior.mean_gradient(np.append(point, self._time))[:-1]

    def std_gradient(self, point: Point) -> Point:
        return self._posterior.std_gradient(np.append(point, self._time))[:-1]

    def _stamp(self, points: ArrayLike) -> Points:
        return stamp(np.asarray(points, dtype=np.float64), self._time)
