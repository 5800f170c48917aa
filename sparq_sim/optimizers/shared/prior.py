"""The prior of an optimizer: as given, or fitted to observations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from numpy.random import Generator
from pydantic import Field, PositiveInt, model_validator

from sparq_sim.arrays import Points, Values
from sparq_sim.fields import Size
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
    "find_prior_on_grid",
    "join_answers",
]

_EXACT = 1e-6
"""An answer that claims to be exact is taken to be known to this share of the prior variance."""
_NEWEST = 64
"""How many values are fitted on a grid: the newest."""


class PriorWarning(UserWarning):
    """A warning that a prior does not go with what is observed, or with what is asked."""


class Fitting(Model):
    """How a kernel and a prior mean are found, where they are not given.

    Where there is a design, by maximum marginal likelihood, once. Otherwise from what is observed
    in the play: a squared exponential, averaged over a grid of length scales, variances and time
    scales with a prior, and again whenever there are twice as many observations.
    """

    search: Literal["grid", "climb"] | None = None
    """How the kernel is searched for: averaged over a `grid`, for a reward that changes meanwhile;
    or by a `climb` to the maximum of the marginal likelihood, which takes all observations as made
    at one time. By default on a grid where there is neither a kernel nor a design, nor a prior of
    length scales or free noise."""
    plays: Annotated[Size, Field(ge=2)] = 8
    """How many observations are needed to fit, made by plays spread over the domain where there is
    no design; at least 2."""
    every: PositiveInt | Literal["doubled", "never"] | None = None
    """After how many rounds to fit again; or whenever observations have `doubled` since; or
    `never`. By default `doubled` where the search is on a grid, and otherwise never."""
    starts: Size = 5
    """From how many kernels to climb: the one there is, and others that are drawn."""
    length_scale: AnyPrior | None = None
    """A prior density of the length scales of a climb: a table with a `kind`; by default none."""
    free_noise: bool = False
    """Whether a climb fits the noise too; over time it then takes drift for noise."""

    @model_validator(mode="after")
    def _goes_with_the_search(self) -> Self:
        if self.search == "grid" and (self.length_scale is not None or self.free_noise):
            given = "free_noise" if self.length_scale is None else "length_scale"
            raise ValueError(
                f"a grid has a prior of its own and takes the noise as claimed: leave out {given}, "
                'or set search = "climb"'
            )
        return self

    def fill_in(self, *, blind: bool) -> Self:
        """Return the same with `search` and `every` as they are by default.

        Args:
            blind: Whether there is neither a kernel nor a design.
        """
        on_grid = blind and self.length_scale is None and not self.free_noise
        search = self.search or ("grid" if on_grid else "climb")
        every = self.every or ("doubled" if search == "grid" else "never")
        return self.model_copy(update={"search": search, "every": every})

    def is_due(self, number: int, *, count: int, last: int | None) -> bool:
        """Return whether to fit now; `search` and `every` must be filled in.

        Args:
            number: The number of the round, from 1 on.
            count: How many observations there are.
            last: How many there were at the fit before; None where there is no prior yet.
        """
        if count < self.plays:
            return False
        if last is None:
            return True
        if self.every == "doubled":
            return count >= 2 * last
        return isinstance(self.every, int) and number % self.every == 0


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
    from sparq_sim.gp.grid_fit import find_scale

    if model.kernel is not None and not refit:
        average = 0.0 if design is None else float(design.values.mean())
        mean = average if model.mean is None else model.mean
        return PriorParameters(model.kernel, mean, model.noise_variance)
    if design is None:
        raise ValueError("there is nothing to fit a kernel to: give a kernel or a design")
    reach = _measure_reach(design.points)
    variance = find_scale(design.values)
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


def find_prior_on_grid(
    model: GPOptimizer, answers: Sequence[Answer], *, candidates: Points, period: float
) -> PriorParameters:
    """Return the kernel and prior mean that the newest values of all sources give on a grid.

    Answers of experts, which may be spread and of one moment, tell more than plays, which are near
    the best point.

    Args:
        model: The optimizer.
        answers: Observations and answers, at least one.
        candidates: The points that span the domain, (g, d).
        period: The length of a round, in clock units.
    """
    from sparq_sim.gp.grid_fit import find_scale, fit_on_grid

    newest = sorted(answers, key=attrgetter("measured_at"))[-_NEWEST:]
    points, values, times, variances = (
        np.concatenate(column)[-_NEWEST:]
        for column in zip(*(_read(answer, model, period) for answer in newest), strict=True)
    )
    found = fit_on_grid(
        points,
        values,
        times=times,
        variances=np.maximum(variances, _EXACT * find_scale(values)),
        reach=_measure_reach(candidates),
        mean=model.mean,
    )
    return PriorParameters(found.kernel, found.mean, model.noise_variance)


def _read(
    answer: Answer, model: GPOptimizer, period: float
) -> tuple[Points, Values, Values, Values]:
    """Return points, values, times in rounds and noise variances of an answer."""
    variances = np.square(answer.stds)
    if model.noise_variance is not None and answer.query.source == REWARD:
        variances = np.full(len(answer.values), model.noise_variance)
    times = np.full(len(answer.values), answer.measured_at / period)
    return answer.points, answer.values, times, variances


def _measure_reach(points: Points) -> Values:
    """Return how far points reach in each dimension, (d,); 1 where they do not."""
    reach: Values = np.ptp(points, axis=0)
    return np.where(reach > 0, reach, 1.0)


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
