"""W-GP-UCB: GP-UCB with weights that fall geometrically with age."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from pydantic import Field

from sparq_sim.arrays import Point, Values
from sparq_sim.fields import Positive
from sparq_sim.gp.predictor import Posterior, Predictor
from sparq_sim.messages import Answer
from sparq_sim.optimizers.shared.ageing import AgeingMemory
from sparq_sim.optimizers.shared.forecast import Forecast
from sparq_sim.optimizers.shared.lengths import gain_order, require_rounds
from sparq_sim.optimizers.shared.memory import Memory
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.ucb import AskingGPOptimizer
from sparq_sim.plugin.briefing import Briefing

if TYPE_CHECKING:
    from sparq_sim.gp.posterior.drifting import FadingPosterior

__all__ = ["WGPUCB", "WeightedMemory"]


class WGPUCB(AskingGPOptimizer):
    """GP-UCB by weighted regression, with w_s = eta^-s and lambda_t = lambda w_t.

    Deng, Zhou, Kim and others 2022. Dividing by w_t makes it a Gaussian process in which an
    observation of age a has the noise variance lambda eta^-a: no weight ever overflows. lambda is
    the noise variance. The width sees the determinant of doubly weighted observations,
    det(I + W^2 K W^2 / (lambda w_t^2)), as theirs does.
    """

    weight: Annotated[float, Field(gt=0, le=1)] | None = None
    """eta, by which the weight of an observation falls in each round; by default 1 - gamma_T^(-1/4)
    (B_T / T)^(1/2), their Corollary 5."""
    budget: Positive | None = None
    """B_T, a bound on the sum of |f_{t+1} - f_t| over all rounds; by default 1 stands in for it."""

    def start_memory(self, prior: GPPrior, briefing: Briefing, rng: Generator) -> Memory:
        weight = self.weight
        if weight is None:
            share = (1.0 if self.budget is None else self.budget) / require_rounds(briefing)
            weight = max(0.1, 1 - gain_order(prior.kernel, briefing) ** -0.25 * share**0.5)
        return WeightedMemory(prior, briefing.period, weight)


class WeightedMemory(AgeingMemory):
    """A memory whose observations all fade together, where they can; otherwise they age one by one.

    The newest observation has the age 0 until a round has passed without another.

    Args:
        prior: What is believed before any observation.
        period: The length of a round, in clock units.
        weight: eta, by which the weight of an observation falls in each round, above 0 and up to 1.
    """

    def __init__(self, prior: GPPrior, period: float, weight: float) -> None:
        from sparq_sim.gp.posterior.drifting import FadingPosterior
        from sparq_sim.gp.posterior.feature_posterior import FeaturePosterior

        super().__init__(prior, period)
        self.weight = weight
        self._answers: list[Answer] = []
        self._newest = 0.0
        self._together: FadingPosterior | None = None
        if isinstance(self.posterior, FeaturePosterior):
            self._together = FadingPosterior(self.posterior.features, mean=prior.mean)

    @property
    def size(self) -> int:
        return super().size if self._together is None else self.told

    def learn(self, answer: Answer) -> None:
        if self._together is None:
            super().learn(answer)
            return
        self._answers.append(answer)
        if not self._add_together(self._together, answer):
            self._together = None
            for earlier in self._answers:
                super().learn(earlier)
            self._answers.clear()

    def _add_together(self, together: FadingPosterior, answer: Answer) -> bool:
        variances = self.prior.variances(answer)
        if not together.accepts(answer.points, variances):
            return False
        self._pass_to(together, answer.measured_at)
        share = self.weight ** ((self._newest - answer.measured_at) / self.period)
        together.add(answer.points, answer.values, variances=variances, share=share)
        return True

    def _pass_to(self, together: FadingPosterior, moment: float) -> None:
        """Age all observations up to *moment*, if that is not past."""
        if moment > self._newest:
            together.fade(self.weight ** ((moment - self._newest) / self.period))
            self._newest = moment

    def ages(self, now: float) -> Values:
        newest = max(self.times.array.max(initial=0.0), now - self.period)
        ages: Values = (newest - self.times.array) / self.period
        return ages

    def age(self, variances: Values, ages: Values) -> Values:
        with np.errstate(over="ignore"):  # What overflows is worthless, and dropped as such.
            weighted: Values = variances * self.weight**-ages
        return weighted

    def predictor(self, now: float) -> Predictor:
        if self._together is None:
            super().predictor(now)
            return _Weighted(self, now)
        self._pass_to(self._together, now - self.period)
        return Forecast(self._together, self._together.features.priors, inject=0.0)


class _Weighted:
    """The posterior, with the determinant of doubly weighted observations, computed if needed."""

    def __init__(self, memory: WeightedMemory, now: float) -> None:
        self._memory = memory
        self._now = now
        self._posterior: Posterior = memory.posterior

    def mean(self, points: ArrayLike | None = None) -> Values:
        return self._posterior.mean(points)

    def std(self, points: ArrayLike | None = None) -> Values:
        return self._posterior.std(points)

    def mean_gradient(self, point: Point) -> Point:
        return self._posterior.mean_gradient(point)

    def std_gradient(self, point: Point) -> Point:
        return self._posterior.std_gradient(point)

    @property
    def log_determinant(self) -> float:
        seen = self._posterior.observations
        if not len(seen):
            return 0.0
        doubly = self._memory.prior.start_posterior()
        twice = self._memory.age(seen.variances, self._memory.ages(self._now))
        doubly.add(seen.points, seen.values, variances=np.minimum(twice, 1e300))
        return doubly.log_determinant
