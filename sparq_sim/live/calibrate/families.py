"""Families of draws, each with its likelihood, by maximum likelihood under censoring.

Long because all families are here, each with its own formulas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.random import Generator
from scipy import optimize, special, stats

from sparq_sim.arrays import Values
from sparq_sim.simulation.channel.draws import (
    Draw,
    Exponential,
    Gamma,
    Lognormal,
    Pareto,
    Uniform,
)

__all__ = [
    "FAMILIES",
    "Amounts",
    "Cost",
    "Family",
    "Interval",
    "chi_square_ends",
    "minimise",
    "numeric_intervals",
    "search_edge",
]

Interval: TypeAlias = tuple[float, float]
"""The lower and the upper end of a 95 % interval."""

Cost: TypeAlias = Callable[[Values], float]
"""A function to be made least, such as a negative log-likelihood."""

_LARGEST = 300.0
"""The largest logarithm of a parameter."""
_LEAST_SHAPE = 1.001
"""A Pareto distribution of a smaller shape has no mean, or one beyond all measure."""
_EDGE_DROP = 3.0
"""By how much the logarithm of the likelihood falls over a 95 % interval of the end of a range,
where it falls at once: it is exponentially distributed."""
_Z = float(stats.norm.ppf(0.975))


@dataclass(frozen=True, eq=False)
class Amounts:
    """Amounts that were observed, and lower bounds of those that were not."""

    observed: Values
    """What was observed: durations in clock units, or costs."""
    bounds: Values
    """For what was given up: how much it is at least."""
    limits: Values
    """For what was observed: from which amount on it would have been given up; infinite if none."""

    @classmethod
    def of(cls, observed: Values) -> Amounts:
        """Return amounts of which none is missing.

        Args:
            observed: The amounts.
        """
        return cls(observed, np.empty(0), np.full(len(observed), inf))


class Family(ABC):
    """A kind of draws with parameters to be estimated, each above 0."""

    model: ClassVar[type[Draw]]
    """The draw that it is the likelihood of."""
    names: ClassVar[tuple[str, ...]]
    """The parameters, as the draw has them."""

    @property
    def kind(self) -> str:
        """The `kind` of the draw in a scenario."""
        return str(self.model.model_fields["kind"].default)

    def make(self, parameters: Values) -> Draw:
        """Return the draw with some *parameters*, in the order of `names`.

        Args:
            parameters: Their values.
        """
        return self.model.model_validate(dict(zip(self.names, map(float, parameters), strict=True)))

    def fits(self, observed: Values) -> bool:
        """Return whether all amounts have a density above 0 for some parameters.

        Args:
            observed: The amounts.
        """
        return bool((observed > 0).all())

    def has_mean(self, parameters: Values) -> bool:
        """Return whether the mean is finite.

        Args:
            parameters: In the order of `names`.
        """
        return True

    @abstractmethod
    def log_density(self, parameters: Values, amounts: Values) -> Values:
        """Return the logarithm of the density at each amount.

        Args:
            parameters: In the order of `names`.
            amounts: Where, (n,).
        """

    @abstractmethod
    def exceed(self, parameters: Values, amounts: Values) -> Values:
        """Return the probability to exceed each amount.

        Args:
            parameters: In the order of `names`.
            amounts: What is exceeded, (n,).
        """

    @abstractmethod
    def estimate(self, observed: Values) -> Values:
        """Return the parameters of the highest likelihood where nothing is censored.

        Args:
            observed: The amounts, (n,).
        """

    def to_free(self, parameters: Values, observed: Values) -> Values:
        """Return what a search changes, without bounds, in place of *parameters*.

        Args:
            parameters: In the order of `names`.
            observed: The amounts that were observed, (n,).
        """
        return np.log(parameters)

    def from_free(self, free: Values, observed: Values) -> Values:
        """Return the parameters that a search has found.

        Args:
            free: What `to_free` gives.
            observed: The amounts that were observed, (n,).
        """
        return np.exp(np.minimum(free, _LARGEST))

    def estimate_censored(
        self,
        amounts: Amounts,
        start: Values | None = None,
        lost: float | None = 0.0,
        *,
        precision: float = 1e-6,
    ) -> tuple[Values, float]:
        """Return the parameters of the highest likelihood, and the share that is lost.

        Args:
            amounts: What was observed and what was not.
            start: Where the search begins: parameters; by default as if all had been observed.
            lost: The share of what would never have been observed; None to estimate it, too.
            precision: How near to the highest likelihood the search ends, in each variable.
        """
        observed = amounts.observed
        if not len(amounts.bounds):
            return self.estimate(observed), lost or 0.0
        if start is None:
            start = self.estimate(np.append(observed, amounts.bounds))
        free = self.to_free(start, observed)
        if lost is not None:
            given = lost
            found = minimise(
                lambda z: -self.log_likelihood(self.from_free(z, observed), amounts, given),
                free,
                precision=precision,
            )
            return self.from_free(found, observed), lost
        share = len(amounts.bounds) / (len(observed) + len(amounts.bounds))
        found = minimise(
            lambda z: (
                -self.log_likelihood(
                    self.from_free(z[:-1], observed), amounts, float(special.expit(z[-1]))
                )
            ),
            np.append(free, special.logit(share / 2)),
            precision=precision,
        )
        return self.from_free(found[:-1], observed), float(special.expit(found[-1]))

    def log_likelihood(self, parameters: Values, amounts: Amounts, lost: float = 0.0) -> float:
        """Return the logarithm of the likelihood.

        Args:
            parameters: In the order of `names`.
            amounts: What was observed and what was not.
            lost: The share of what would never have been observed.
        """
        with np.errstate(all="ignore"):
            total = float(self.log_density(parameters, amounts.observed).sum())
            total += len(amounts.observed) * log(1 - lost)
            if len(amounts.bounds):
                late = lost + (1 - lost) * self.exceed(parameters, amounts.bounds)
                total += float(np.log(late).sum())
        return total if np.isfinite(total) else -inf

    def intervals(self, parameters: Values, amounts: Amounts, lost: float) -> list[Interval]:
        """Return a 95 % interval for each parameter, by the Fisher information of its logarithm.

        Args:
            parameters: Of the highest likelihood.
            amounts: What they were estimated from.
            lost: The share of what would never have been observed.
        """

        def cost(logs: Values) -> float:
            return -self.log_likelihood(np.exp(logs), amounts, lost)

        logs = np.log(parameters)
        ends = np.minimum(numeric_intervals(cost, logs), _LARGEST)
        return [(exp(low), exp(high)) for low, high in ends]

    def sample(self, parameters: Values, rng: Generator, count: int) -> Values:
        """Draw *count* amounts.

        Args:
            parameters: In the order of `names`.
            rng: The generator to draw from.
            count: How many.
        """
        return self.make(parameters).sample(rng, count)


class _Exponential(Family):
    model, names = Exponential, ("mean",)

    def fits(self, observed: Values) -> bool:
        return bool(observed.sum() > 0)

    def log_density(self, parameters: Values, amounts: Values) -> Values:
        density: Values = -np.log(parameters[0]) - amounts / parameters[0]
        return density

    def exceed(self, parameters: Values, amounts: Values) -> Values:
        return np.exp(-amounts / float(parameters[0]))

    def estimate(self, observed: Values) -> Values:
        return np.array([observed.mean()])

    def intervals(self, parameters: Values, amounts: Amounts, lost: float) -> list[Interval]:
        if lost:
            return super().intervals(parameters, amounts, lost)
        # 2 sum / mean has a chi-square distribution, exactly where nothing is censored.
        count = 2 * len(amounts.observed)
        low, high = chi_square_ends(count)
        mean = float(parameters[0])
        return [(mean * count / high, mean * count / low)]


class _Lognormal(Family):
    model, names = Lognormal, ("median", "sigma")

    def log_density(self, parameters: Values, amounts: Values) -> Values:
        logs = np.log(amounts)
        median, sigma = parameters.tolist()
        units: Values = (logs - np.log(median)) / sigma
        density: Values = -0.5 * units**2 - logs - np.log(sigma * sqrt(2 * np.pi))
        return density

    def exceed(self, parameters: Values, amounts: Values) -> Values:
        median, sigma = parameters.tolist()
        return np.asarray(special.ndtr(np.log(median / amounts) / sigma))

    def estimate(self, observed: Values) -> Values:
        logs = np.log(observed)
        return np.array([np.exp(logs.mean()), logs.std()])

    def intervals(self, parameters: Values, amounts: Amounts, lost: float) -> list[Interval]:
        if len(amounts.bounds):
            return super().intervals(parameters, amounts, lost)
        count = len(amounts.observed)
        half = float(stats.t.ppf(0.975, count - 1)) * parameters[1] / sqrt(count - 1)
        high, low = (sqrt(count / end) for end in chi_square_ends(count - 1))
        median, sigma = parameters.tolist()
        return [(median * exp(-half), median * exp(half)), (sigma * low, sigma * high)]


class _Gamma(Family):
    model, names = Gamma, ("shape", "scale")

    def log_density(self, parameters: Values, amounts: Values) -> Values:
        shape, scale = parameters.tolist()
        density: Values = (
            special.xlogy(shape - 1, amounts)
            - amounts / scale
            - special.gammaln(shape)
            - shape * np.log(scale)
        )
        return density

    def exceed(self, parameters: Values, amounts: Values) -> Values:
        return np.asarray(special.gammaincc(parameters[0], amounts / parameters[1]))

    def estimate(self, observed: Values) -> Values:
        mean = observed.mean()
        gap = np.log(mean) - np.log(observed).mean()
        shape = (3 - gap + sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
        for _ in range(8):  # Newton's steps, of which four are enough (Minka 2002).
            slope = 1 / shape - special.polygamma(1, shape)
            shape -= (np.log(shape) - special.digamma(shape) - gap) / slope
        return np.array([shape, mean / shape])


class _Uniform(Family):
    model, names = Uniform, ("low", "high")

    def fits(self, observed: Values) -> bool:
        return bool(observed.max() > observed.min())

    def log_density(self, parameters: Values, amounts: Values) -> Values:
        low, high = parameters.tolist()
        within = (low <= amounts) & (amounts <= high)
        return np.where(within, -np.log(high - low), -inf)

    def exceed(self, parameters: Values, amounts: Values) -> Values:
        low, high = parameters.tolist()
        share: Values = np.clip((high - amounts) / (high - low), 0.0, 1.0)
        return share

    def estimate(self, observed: Values) -> Values:
        return np.array([observed.min(), observed.max()])

    def to_free(self, parameters: Values, observed: Values) -> Values:
        reach = parameters[1] - observed.max()
        return np.log([max(reach, (observed.max() - observed.min()) / 100)])

    def from_free(self, free: Values, observed: Values) -> Values:
        return np.array([observed.min(), observed.max() + exp(min(free[0], _LARGEST))])

    def intervals(self, parameters: Values, amounts: Amounts, lost: float) -> list[Interval]:
        # (high - greatest) / range is a pivot, and so is (least - low) / range.
        low, high = parameters.tolist()
        count = len(amounts.observed)
        margin = (high - low) * (0.05 ** (-1 / (count - 1)) - 1)
        below = (max(low - margin, 0.0), low)
        if not len(amounts.bounds):
            return [below, (high, high + margin)]

        least = self.log_likelihood(parameters, amounts, lost) - _EDGE_DROP

        def is_likely(end: float) -> bool:
            return self.log_likelihood(np.array([low, end]), amounts, lost) >= least

        reach = float(max(high, amounts.bounds.max())) - low
        while is_likely(low + reach) and reach < 1e6 * (high - low):
            reach *= 2
        narrow = search_edge(is_likely, high, float(amounts.observed.max()))
        return [below, (narrow, search_edge(is_likely, high, low + reach))]


class _Pareto(Family):
    model, names = Pareto, ("minimum", "shape")

    def has_mean(self, parameters: Values) -> bool:
        # Also when it is rounded to be printed.
        return bool(parameters[1] > _LEAST_SHAPE)

    def log_density(self, parameters: Values, amounts: Values) -> Values:
        minimum, shape = parameters.tolist()
        logs = np.log(shape) + shape * np.log(minimum) - (shape + 1) * np.log(amounts)
        return np.where(amounts >= minimum, logs, -inf)

    def exceed(self, parameters: Values, amounts: Values) -> Values:
        minimum, shape = parameters.tolist()
        share: Values = (minimum / np.maximum(amounts, minimum)) ** shape
        return share

    def estimate(self, observed: Values) -> Values:
        minimum = observed.min()
        return np.array([minimum, 1 / np.log(observed / minimum).mean()])

    def to_free(self, parameters: Values, observed: Values) -> Values:
        return np.log(parameters[1:])

    def from_free(self, free: Values, observed: Values) -> Values:
        return np.array([observed.min(), exp(min(free[0], _LARGEST))])

    def intervals(self, parameters: Values, amounts: Amounts, lost: float) -> list[Interval]:
        # Both are exact where nothing is censored (Malik 1970).
        minimum, shape = parameters.tolist()
        count = len(amounts.observed)
        reach = float(stats.f.ppf(0.95, 2, 2 * (count - 1))) / (shape * (count - 1))
        low, high = (shape * end / (2 * count) for end in chi_square_ends(2 * (count - 1)))
        return [(minimum * exp(-reach), minimum), (low, high)]


FAMILIES: tuple[Family, ...] = (_Exponential(), _Lognormal(), _Gamma(), _Uniform(), _Pareto())
"""The families that are tried, those with fewer parameters first."""


def chi_square_ends(freedom: int) -> Interval:
    """Return the ends of the middle 95 % of a chi-square distribution.

    Args:
        freedom: Its degrees of freedom.
    """
    return float(stats.chi2.ppf(0.025, freedom)), float(stats.chi2.ppf(0.975, freedom))


def minimise(cost: Cost, start: Values, *, precision: float = 1e-6) -> Values:
    """Return where a function of few variables is least, by the simplex of Nelder and Mead.

    Args:
        cost: The function; it may be infinite.
        start: Where the search begins, (n,).
        precision: How near to the least the search ends, in each variable.
    """
    # The simplex compares infinite costs with each other.
    with np.errstate(invalid="ignore"):
        found = optimize.minimize(
            cost,
            start,
            method="Nelder-Mead",
            options={"xatol": precision, "fatol": precision / 10, "maxiter": 400 * len(start)},
        )
    return np.asarray(found.x, dtype=float)


def numeric_intervals(cost: Cost, best: Values) -> list[Interval]:
    """Return a 95 % interval for each variable, by the curvature of a negative log-likelihood.

    Args:
        cost: The negative logarithm of the likelihood.
        best: Where it is least, (n,).
    """
    step, size = 1e-3, len(best)
    steps = step * np.eye(size)
    curvature = np.empty((size, size))
    for i in range(size):
        for j in range(i, size):
            corners = [
                a * b * cost(best + a * steps[i] + b * steps[j]) for a in (1, -1) for b in (1, -1)
            ]
            curvature[i, j] = curvature[j, i] = sum(corners) / (4 * step**2)
    spread = np.sqrt(np.maximum(np.diag(np.linalg.pinv(curvature)), 0.0))
    # What the data say nothing about has no curvature.
    spread = np.where(np.diag(curvature) > 0, spread, inf)
    return [
        (float(at - _Z * half), float(at + _Z * half))
        for at, half in zip(best, spread, strict=True)
    ]


def search_edge(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where a condition ceases to hold between two numbers, by halving.

    Args:
        holds: The condition.
        inside: Where it holds.
        outside: Where it may not hold; where it does, this is returned.
    """
    if holds(outside):
        return outside
    for _ in range(20):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside
