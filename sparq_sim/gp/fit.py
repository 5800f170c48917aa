"""The likelihood of a kernel given observations, and the kernel that maximises it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b
from math import log, pi
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack
from scipy.optimize import minimize

from sparq_sim.arrays import Points, Values
from sparq_sim.gp.kernels import AnyKernel, Kernel
from sparq_sim.gp.observations import (
    RESOLUTION,
    check_points,
    check_values,
    check_variances,
)
from sparq_sim.gp.posterior.cholesky import factor, solve_backward, solve_forward
from sparq_sim.gp.priors import AnyPrior
from sparq_sim.plugin.model import Model

NOISE = "noise_variance"  # the name of the free noise variance beside those of the kernel
SPAN = 100.0  # how far parameters may go from their start, either way, unless bounds are given
CEILINGS = {"epsilon": 0.999}  # parameters which are shares
MOST_FOUND = 64  # fits that are remembered: all optimizers of a replication share their design

Rule = TypeVar("Rule")


class Likelihood(NamedTuple):
    """A log likelihood, its derivatives, and the prior mean it was taken at."""

    value: float
    gradient: Values  # by the log-parameters of the kernel, (p,)
    by_variances: Values  # by the logarithm of each noise variance, (n,)
    mean: float


class Fit(Model):
    """A kernel fitted to observations; *noise_variance* is None where variances were given."""

    kernel: AnyKernel
    mean: float
    noise_variance: float | None
    log_likelihood: float
    converged: bool


def likelihood(
    kernel: Kernel,
    points: ArrayLike,
    values: ArrayLike,
    *,
    variances: ArrayLike,
    mean: float | None = None,
) -> Likelihood:
    """Give log p(values) = -(r' C^-1 r + log det C + n log 2 pi) / 2 and its derivatives.

    r = values - mean and C = K + diag(variances). A *mean* of None is the most likely one,
    1' C^-1 values / 1' C^-1 1; the derivatives then hold for it as well, since that by the mean
    is 0 there.
    """
    rows = check_points(points)
    seen = check_values(values, len(rows))
    noise = np.maximum(check_variances(variances, len(rows)), RESOLUTION * kernel.diagonal(rows))
    lower = factor(kernel(rows, rows), noise)
    if mean is None:
        ones, whitened = solve_forward(lower, np.column_stack([np.ones(len(rows)), seen])).T
        mean = float(ones @ whitened / (ones @ ones))
    residuals = solve_forward(lower, seen - mean)
    weights = solve_backward(lower, residuals)
    half_log_determinant = np.log(np.diagonal(lower)).sum()
    value = -0.5 * (residuals @ residuals + len(rows) * log(2 * pi)) - half_log_determinant
    inverse = lapack.dpotri(lower, lower=1)[0]
    inverse += np.tril(inverse, -1).T
    leverage = np.outer(weights, weights) - inverse
    return Likelihood(
        value=float(value),
        gradient=0.5 * np.array([np.vdot(leverage, part) for part in kernel.derivatives(rows)]),
        by_variances=0.5 * np.diagonal(leverage) * noise,
        mean=mean,
    )


_FOUND: dict[bytes, tuple[object, Fit]] = {}
"""Fits by all that they depend on, with the models; the oldest make room for new ones."""


class _Problem:
    """What is free, within which bounds, and how good a choice is."""

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        values: Values,
        *,
        variances: Values | None,
        mean: float | None,
        priors: Mapping[str, AnyPrior],
        bounds: Mapping[str, tuple[float, float]],
        fixed: Collection[str],
    ) -> None:
        self._kernel, self._points, self._values = kernel, points, values
        self._variances, self._mean = variances, mean
        parameters = kernel.parameters()
        if variances is None:
            parameters[NOISE] = 0.01 * float(kernel.diagonal(points).mean())
        for word in (*priors, *bounds, *fixed):
            if not any(word in _names(name) for name in parameters):
                raise ValueError(f"no parameter is called {word!r}: there are {[*parameters]}")
        self._start = np.log(list(parameters.values()))
        self._free = np.array([not {*_names(name)} & {*fixed} for name in parameters])
        self._priors = [_find_rule(priors, name) for name in parameters]
        limits = [_limits(name, start, bounds) for name, start in parameters.items()]
        self._bounds = np.log(limits)[self._free]

    def starts(self, rng: np.random.Generator, count: int) -> list[Values]:
        """Give the start itself and others within the bounds."""
        low, high = self._bounds.T
        first = np.clip(self._start[self._free], low, high)
        return [first, *rng.uniform(low, high, (count - 1, len(low)))]

    def best(self, starts: list[Values]) -> Fit:
        """Give the highest top; one that was found from the same starts before, at once."""
        key, models = self._key(starts), (self._kernel, self._priors)
        known, found = _FOUND.get(key, (None, None))
        # Two classes of users may be called alike, and a notebook defines one twice.
        if found is None or known != models:
            found = max((self.climb(start) for start in starts), key=itemgetter(0))[1]
            if len(_FOUND) >= MOST_FOUND:
                del _FOUND[next(iter(_FOUND))]
            _FOUND[key] = models, found
        return found

    def _key(self, starts: list[Values]) -> bytes:
        """Hash all that a fit depends on."""
        arrays = (self._points, self._values, self._variances, self._start, self._bounds, *starts)
        hashed = blake2b(digest_size=16)
        for array in arrays:
            hashed.update(b"-" if array is None else repr(array.shape).encode() + array.tobytes())
        hashed.update(repr((self._kernel, self._mean, self._priors, self._free)).encode())
        return hashed.digest()

    def climb(self, start: Values) -> tuple[float, Fit]:
        """Climb from *start* to a top; give its height and the fit there."""
        found, converged = start, True
        if len(start):
            result = minimize(
                self._descent, start, jac=True, method="L-BFGS-B", bounds=self._bounds
            )
            found, converged = result.x, bool(result.success)
        height, _ = self._descent(found)
        kernel, variance, here = self._at(self._fill_in(found))
        return -height, Fit.model_validate(
            {
                "kernel": kernel,
                "mean": here.mean,
                "noise_variance": variance,
                "log_likelihood": here.value,
                "converged": converged,
            }
        )

    def _fill_in(self, free: Values) -> Values:
        whole = self._start.copy()
        whole[self._free] = free
        return whole

    def _at(self, whole: Values) -> tuple[Kernel, float | None, Likelihood]:
        variances, variance = self._variances, None
        if variances is None:
            whole, variance = whole[:-1], float(np.exp(whole[-1]))
            variances = np.array(variance)
        kernel = self._kernel.with_log_parameters(whole)
        return (
            kernel,
            variance,
            likelihood(kernel, self._points, self._values, variances=variances, mean=self._mean),
        )

    def _descent(self, free: Values) -> tuple[float, Values]:
        """Give what is minimised, -log likelihood - log priors, and its gradient."""
        whole = self._fill_in(free)
        _, variance, here = self._at(whole)
        height = here.value
        gradient = here.gradient
        if variance is not None:
            gradient = np.append(gradient, here.by_variances.sum())
        for position, prior in enumerate(self._priors):
            if prior is not None:
                value = float(np.exp(whole[position]))
                height += prior.log_density(value)
                gradient[position] += prior.slope(value)
        return -height, -gradient[self._free]


def _names(name: str) -> tuple[str, str]:
    """Give the names a parameter goes by: its whole path, and its last word."""
    return name, [word for word in name.split(".") if not word.isdigit()][-1]


def _find_rule(rules: Mapping[str, Rule], name: str) -> Rule | None:
    """Find what was said of a parameter, by its whole name before its last word."""
    return next((rules[word] for word in _names(name) if word in rules), None)


def _limits(
    name: str, start: float, bounds: Mapping[str, tuple[float, float]]
) -> tuple[float, float]:
    given = _find_rule(bounds, name)
    if given is None:
        span = SPAN**2 if name == NOISE else SPAN
        ceiling = min(CEILINGS.get(word, np.inf) for word in _names(name))
        return start / span, min(start * span, ceiling)
    low, high = given
    if not 0 < low <= high < np.inf:
        raise ValueError(f"bounds of {name} from {low} to {high}: give 0 < low <= high")
    return low, high


def fit(
    kernel: Kernel,
    points: ArrayLike,
    values: ArrayLike,
    *,
    rng: np.random.Generator,
    variances: ArrayLike | None = None,
    mean: float | None = None,
    priors: Mapping[str, AnyPrior] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    fixed: Collection[str] = (),
    starts: int = 5,
) -> Fit:
    """Find the parameters of *kernel* that make *values* (n,) at *points* (n, d) most likely.

    - *variances* of the noise, one or one for each observation; without them one is fitted.
    - *mean*: the prior mean; without it, it is fitted. Data far from a fixed mean mislead.
    - *priors*, *bounds* and *fixed* go by names as in `kernel.parameters()`, or by the last word
      of them: "length_scale" stands for all length scales; "noise_variance" is the noise.
      Bounds reach a factor 100 from the start in either direction unless given.
    - *starts*: the kernel as it is, and others drawn from *rng*, log-uniform within the bounds.
    """
    if starts < 1:
        raise ValueError(f"{starts} starts: give at least 1, the kernel as it is")
    rows = check_points(points)
    if not len(rows):
        raise ValueError("no observations to fit a kernel to: give at least one")
    problem = _Problem(
        kernel,
        rows,
        check_values(values, len(rows)),
        variances=None if variances is None else check_variances(variances, len(rows)),
        mean=mean,
        priors=priors or {},
        bounds=bounds or {},
        fixed=fixed,
    )
    return problem.best(problem.starts(rng, starts))
