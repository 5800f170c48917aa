"""TV-GP-UCB: GP-UCB for a reward of which a share is new in each round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from pydantic import Field

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.gp.candidates import OffCandidatesError
from sparq_sim.gp.kernels import Forgetting, SpaceTime, stamp
from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import Answer
from sparq_sim.optimizers.shared.forecast import Forecast
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer
from sparq_sim.plugin.briefing import Briefing

if TYPE_CHECKING:
    from sparq_sim.gp.posterior.cholesky import CholeskyPosterior
    from sparq_sim.gp.posterior.features import Features

__all__ = ["TVGPUCB"]


class TVGPUCB(AskingGPOptimizer):
    """GP-UCB under f_{t+1} = sqrt(1 - epsilon) f_t + sqrt(epsilon) g_{t+1}, g a fresh draw.

    Bogunovic, Scarlett and Cevher 2016: the kernel k(x, x') (1 - epsilon)^(|t - t'| / 2). On
    a grid or on sites it is a Kalman filter in the features of the candidates, which costs the
    same in every round; elsewhere the dense posterior in space and time.
    """

    epsilon: Annotated[float, Field(ge=0, lt=1)] = 0.03
    """The share of the reward's variance that is new in each round, from 0 to below 1; theirs were
    0.001 to 0.04."""

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        if self.epsilon == 0:
            return Memory(prior, briefing.period)
        return _TimeMemory(prior, briefing.period, self.epsilon)


class _TimeMemory(Memory):
    """A memory of all, in space and time: a filter, until a point lies off the candidates."""

    def __init__(self, prior: GPPrior, period: float, epsilon: float) -> None:
        from sparq_sim.gp.posterior.feature_posterior import FeaturePosterior

        super().__init__(prior, period)
        self._answers: list[Answer] = []
        self._dense = _Dense(prior, period, epsilon)
        self._filter: _Filter | None = None
        if isinstance(self.posterior, FeaturePosterior):
            self._filter = _Filter(prior, period, epsilon, self.posterior.features)

    @property
    def size(self) -> int:
        return self.told

    def learn(self, answer: Answer) -> None:
        if self._filter is None:
            self._dense.learn(answer)
            return
        self._answers.append(answer)
        try:
            self._filter.learn(answer)
        except OffCandidatesError:
            self._filter = None
            for earlier in self._answers:
                self._dense.learn(earlier)

    def predictor(self, now: float) -> Predictor:
        return (self._filter or self._dense).predictor(now)


class _Filter:
    """A Kalman filter that stands at the newest measurement, and predicts from there.

    Answers in the order of their measurement are filtered exactly, however late they come. One
    that was measured before the filter's time s, by a gap in which rho of the reward was kept,
    says (y - m) / rho of f_s, with the variance ((1 - rho^2) k(x, x) + noise) / rho^2: an
    approximation, because what happened in the gap is taken to be unknown.
    """

    def __init__(self, prior: GPPrior, period: float, epsilon: float, features: Features) -> None:
        from sparq_sim.gp.posterior.drifting import KalmanPosterior

        self._prior = prior
        self._period = period
        self._kept_a_round = 1 - epsilon
        self._priors = features.priors
        self._filter = KalmanPosterior(features, mean=prior.mean)
        self._time = 0.0

    def learn(self, answer: Answer) -> None:
        values, variances = answer.values, self._prior.variances(answer)
        kept = self._kept(abs(answer.measured_at - self._time))
        if answer.measured_at >= self._time:
            self._filter.drift(kept**0.5, 1 - kept)
            self._time = answer.measured_at
        else:
            scale = kept**0.5
            values = self._prior.mean + (values - self._prior.mean) / scale
            new = self._prior.kernel.diagonal(answer.points) * (1 - kept)
            variances = (new + variances) / kept
        self._filter.add(answer.points, values, variances=variances)

    def predictor(self, now: float) -> Predictor:
        kept = self._kept(now - self._time)
        return Forecast(self._filter, self._priors, keep=kept**0.5, inject=1 - kept)

    def _kept(self, duration: float) -> float:
        """Return the share of the variance that is left after a *duration*, never quite nothing."""
        return max(float(self._kept_a_round ** (duration / self._period)), 1e-12)


class _Dense:
    """The posterior in space and time, for points anywhere."""

    def __init__(self, prior: GPPrior, period: float, epsilon: float) -> None:
        from sparq_sim.gp.posterior.cholesky import CholeskyPosterior

        self._prior = prior
        self._period = period
        kernel = SpaceTime(space=prior.kernel, time=Forgetting(epsilon=epsilon))
        self._dense = CholeskyPosterior(kernel, mean=prior.mean)

    def learn(self, answer: Answer) -> None:
        times = np.full(len(answer.values), answer.measured_at / self._period)
        self._dense.add(
            stamp(answer.points, times), answer.values, variances=self._prior.variances(answer)
        )

    def predictor(self, now: float) -> Predictor:
        return _Now(self._dense, self._prior.candidates, now / self._period)


class _Now:
    """A posterior in space and time, at one time."""

    def __init__(self, posterior: CholeskyPosterior, candidates: Points, time: float) -> None:
        self._posterior = posterior
        self._candidates = candidates
        self._time = time

    def mean(self, points: ArrayLike | None = None) -> Values:
        return self._posterior.mean(self._stamp(points))

    def std(self, points: ArrayLike | None = None) -> Values:
        return self._posterior.std(self._stamp(points))

    def mean_gradient(self, point: Point) -> Point:
        return self._posterior.mean_gradient(np.append(point, self._time))[:-1]

    def std_gradient(self, point: Point) -> Point:
        return self._posterior.std_gradient(np.append(point, self._time))[:-1]

    @property
    def log_determinant(self) -> float:
        return self._posterior.log_determinant

    def _stamp(self, points: ArrayLike | None) -> Points:
        rows = self._candidates if points is None else np.asarray(points, dtype=np.float64)
        return stamp(rows, np.full(len(rows), self._time))
