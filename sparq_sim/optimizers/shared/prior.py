"""The prior of an optimizer: as given, or fitted to observations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field, PositiveInt

from sparq_sim.arrays import Points, Values
from sparq_sim.gp.kernels import Kernel, SquaredExponential
from sparq_sim.gp.predictor import Posterior
from sparq_sim.gp.priors import AnyPrior
from sparq_sim.messages import REWARD, Answer, Query
from sparq_sim.optimizers.shared.widths import Occasion, Width
from sparq_sim.plugin.model import Model

if TYPE_CHECKING:
    from sparq_sim.optimizers.shared.ucb import GPOptimizer

__all__ = [
    "Fitting",
    "GPPrior",
    "PriorParameters",
    "PriorWarning",
    "find_prior",
    "join_answers",
]

_EXACT = 1e-6
"""An answer that claims to be exact is taken to be known to this share of the prior variance."""


class PriorWarning(UserWarning):
    """A warning that a prior does not go with what is observed, or with what is asked."""


class Fitting(Model):
    """How a kernel and a prior mean are found: by maximum marginal likelihood.

    They are fitted to the design of the play, or, where it has none, to the first observations.
    All observations are fitted as if made at one time: where the reward drifts fast, fitting again
    takes change for roughness, and does harm.
    """

    plays: Annotated[int, Field(ge=2)] = 10
    """How many observations are needed to fit, made by uniform play where there is no design; at
    least 2."""
    every: PositiveInt | None = None
    """After how many rounds to fit again, to the newest observations: 200, or `plays` if more; by
    default never."""
    starts: PositiveInt = 5
    """From how many kernels to climb: the one there is, and others that are drawn."""
    length_scale: AnyPrior | None = None
    """A prior density of the length scales: a table with a `kind`; by default none."""
    free_noise: bool = False
    """Whether the noise is fitted too; over time it then takes drift for noise."""


@dataclass(frozen=True)
class GPPrior:
    """What an optimizer believes before any observation, and where it will predict."""

    kernel: Kernel
    """The covariance of the reward."""
    mean: float
    """The mean of the reward, in reward units."""
    noise_variance: float | None
    """The noise variance of an observation; None to believe what its channel claims."""
    width: Width
    """How many stds above the mean the upper confidence bound lies."""
    candidates: Points
    """The points at which predictions are wanted, (g, d)."""
    on_candidates_only: bool
    """Whether no other points will be played."""

    def start_posterior(self) -> Posterior:
        """Return a posterior without observations, of the kind that costs least."""
        from sparq_sim.gp.posterior import CholeskyPosterior, make_posterior

        if self.on_candidates_only:
            return make_posterior(self.kernel, candidates=self.candidates, mean=self.mean)
        return CholeskyPosterior(self.kernel, candidates=self.candidates, mean=self.mean)

    def variances(self, answer: Answer) -> Values:
        """Return the noise variance of each value of an answer, in squared reward units, (n,).

        It is what the source claims, or *noise_variance* for observations of the reward where that
        is given. An answer that claims to be exact is believed to 1e-6 of the prior variance.

        Args:
            answer: The answer.
        """
        if self.noise_variance is not None and answer.query.source == REWARD:
            return np.full(len(answer.values), self.noise_variance)
        floor = _EXACT * self.kernel.diagonal(answer.points[:1]).item()
        return np.maximum(answer.stds * answer.stds, floor)

    def check(self, answer: Answer) -> None:
        """Warn where the first observation is nearly impossible under the prior.

        Args:
            answer: The first observation of the reward.
        """
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


@dataclass(frozen=True)
class PriorParameters:
    """What a prior is made of, as given or fitted."""

    kernel: Kernel
    """The covariance of the reward."""
    mean: float
    """The mean of the reward, in reward units."""
    noise_variance: float | None
    """The noise variance of an observation; None to believe what sources claim."""


def find_prior(
    model: GPOptimizer, design: Answer | None, rng: Generator, *, refit: bool = False
) -> PriorParameters:
    """Return the kernel, prior mean and noise of a play: as the optimizer gives them, or fitted.

    Args:
        model: The optimizer.
        design: Observations to fit to; None where there are none.
        rng: Draws the starts of the fit.
        refit: Whether to fit also a kernel that is given.

    Raises:
        ValueError: If a kernel must be fitted and there is no design.
    """
    from sparq_sim.gp.fit import fit

    if model.kernel is not None and not refit:
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
    variances: Values | None = np.maximum(design.stds**2, _EXACT * variance)
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
    """Return several answers as one, as if to one query.

    Args:
        answers: The answers, at least one.
    """
    points = np.concatenate([answer.points for answer in answers])
    query = Query(answers[-1].query.id, REWARD, points, answers[-1].asked_at)
    return query.answer(
        np.concatenate([answer.values for answer in answers]),
        stds=np.concatenate([answer.stds for answer in answers]),
        arrived_at=max(answer.arrived_at for answer in answers),
    )
