"""The environment `markov-gp`: a Gaussian process of which a share is new in each clock unit."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise, product
from math import floor, sqrt
from typing import Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field, model_validator

from sparq_environments._markov_chain import MarkovChain
from sparq_environments.kernel_environment import AnyStationary, KernelEnvironment
from sparq_sim.arrays import Matrix, Point, Points, Values, freeze_array
from sparq_sim.domain import Box
from sparq_sim.fields import Probability, Size
from sparq_sim.gp.kernels import (
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
)
from sparq_sim.landscapes.optima import OptimumSearch
from sparq_sim.plugin.contract import Landscape

__all__ = ["MarkovGP"]

_NODES = 4096  # nodes that a grid may have: a rough kernel needs a matrix of their square
_KEPT = 8  # grids of values that are kept in memory


class MarkovGP(KernelEnvironment):
    """A Gaussian process that forgets: in each clock unit a share *epsilon* of it is new.

        f_{t+1} = sqrt(1 - epsilon) f_t + sqrt(epsilon) g_{t+1}

    f_0 and all g_t are independent draws of GP(0, k). This is the model of Bogunovic, Scarlett
    and Cevher (2016), which the optimizer `tv-gp-ucb` assumes, with the covariance
    k(x, x') (1 - epsilon)^(|t - t'| / 2) at whole times t. From t to t + 1 the reward stands
    still, because linear interpolation would lose variance. Changes have no bound: they are
    Gaussian, with variance 2 k(x, x) (1 - sqrt(1 - epsilon)) at a point. With the defaults
    sup_x |f_{t+1}(x) - f_t(x)| was 0.163 on average and 0.43 at most, in two dimensions 0.244 and
    0.52, measured over 5 starts of 3,000 rounds; the average times the rounds is the variation
    budget.

    In one and two dimensions f_t is drawn exactly on a grid of *nodes*, and interpolated linearly
    in each coordinate between them. With *features* it is drawn in any dimension as

        f_t(x) = sqrt(variance / features) sum_j u_j(t) cos(w_j' x) + v_j(t) sin(w_j' x)

    by random Fourier features (Rahimi and Recht 2007). Here u and v are standard normal Markov
    chains and w is drawn from the kernel's spectral density: w = z sqrt(s) / length_scale with
    z ~ N(0, I), and s = 1 for the squared exponential, s = 2 nu / chi^2(2 nu) for Matern (so that
    w is Student's t with 2 nu degrees of freedom), s = Gamma(alpha) / alpha for the rational
    quadratic. Over all starts the covariance is that above; within one start it deviates by about
    1 / sqrt(2 features) of the variance.
    """

    kernel: AnyStationary = SquaredExponential(length_scale=0.2)
    """The kernel k; its length scale is in units of the points."""
    epsilon: Probability = 0.01
    """The share of the reward's variance that is new after each clock unit, from 0 to 1; Bogunovic
    et al. (2016) use 0.001 to 0.03."""
    nodes: Annotated[int, Field(ge=2)] = 50
    """How many nodes the grid has in each dimension, bounds included; Bogunovic et al. (2016) use
    50."""
    features: Size | None = None
    """The number of random frequencies; by default a grid is used instead."""

    @model_validator(mode="after")
    def _can_be_drawn(self) -> MarkovGP:
        if self.features is None:
            if self.dimensions > 2:
                raise ValueError(
                    f"a grid in {self.dimensions} dimensions is too large; give features, say 200"
                )
            if self.nodes**self.dimensions > _NODES:
                raise ValueError(
                    f"nodes {self.nodes} make a grid of {self.nodes**self.dimensions} points; "
                    f"at most {_NODES} are allowed, or give features, say 200"
                )
        elif isinstance(self.kernel, Matern12):
            raise ValueError(
                "kernel matern-1/2 has frequencies without bound, whose best point cannot be "
                "found; use a grid (no features) or a smoother kernel"
            )
        return self

    def start(self, rng: Generator) -> Landscape:
        if self.features is None:
            return _GridLandscape(self, rng)
        return _FeatureLandscape(self, rng, features=self.features)


class _Forgetting:
    """Steps of independent standard normals: s' = sqrt(1 - epsilon) s + sqrt(epsilon) z."""

    def __init__(self, epsilon: float) -> None:
        self._keep, self._new = sqrt(1 - epsilon), sqrt(epsilon)

    def __call__(self, states: Matrix, rng: Generator) -> None:
        rng.standard_normal(out=states[1:])
        states[1:] *= self._new
        for before, after in pairwise(states):
            after += self._keep * before


def _start_weights(count: int, epsilon: float, rng: Generator) -> MarkovChain:
    return MarkovChain(rng.standard_normal(count), _Forgetting(epsilon), rng)


class _GridLandscape:
    """The landscape of a process that is drawn on a grid.

    Args:
        model: The fields of the environment.
        rng: The generator to draw the process from.
    """

    def __init__(self, model: MarkovGP, rng: Generator) -> None:
        self.domain = model.box()
        self._shape = (model.nodes,) * model.dimensions
        self._grid = freeze_array(self.domain.grid(model.nodes))
        self._root = _compute_root(
            model.kernel,
            nodes=model.nodes,
            lower=(model.lower,) * model.dimensions,
            upper=(model.upper,) * model.dimensions,
        )
        self._weights = _start_weights(self._root.shape[1], model.epsilon, rng)
        self._per_unit = (model.nodes - 1) / (model.upper - model.lower)
        self._values: dict[int, Values] = {}
        self._best: dict[int, tuple[Point, float]] = {}

    def rewards(self, points: Points, time: float) -> Values:
        values = self._at_nodes(floor(time))
        places = (points - self.domain.lower) * self._per_unit
        cells = np.minimum(places.astype(np.intp), self._shape[0] - 2)
        shares = places - cells
        total = np.zeros(len(points))
        for corner in product((0, 1), repeat=len(self._shape)):
            weights = np.where(corner, shares, 1 - shares).prod(axis=1)
            total += weights * values[np.ravel_multi_index(tuple((cells + corner).T), self._shape)]
        return total

    def best(self, time: float) -> tuple[Point, float]:
        """Return the highest node; no point is higher, up to rounding, 1e-14 of its reward."""
        number = floor(time)
        if number not in self._best:
            point = self._grid[self._at_nodes(number).argmax()]
            self._best[number] = point, float(self.rewards(point[None], time)[0])
        return self._best[number]

    def _at_nodes(self, number: int) -> Values:
        if number not in self._values:
            if len(self._values) == _KEPT:
                del self._values[next(iter(self._values))]
            self._values[number] = self._root @ self._weights.at(number)
        return self._values[number]


@lru_cache(maxsize=2)
def _compute_root(
    kernel: Kernel, *, nodes: int, lower: tuple[float, ...], upper: tuple[float, ...]
) -> Matrix:
    """Return R (nodes^d, r) with R R' = K on the grid, to 1e-14 of the variance.

    Cached, because all replications of a study have the same.
    """
    # Imported when a landscape is started, not when this module is.
    from sparq_sim.gp.posterior.features import Features

    return freeze_array(Features.of(kernel, Box(lower, upper).grid(nodes)).matrix)


class _FeatureLandscape:
    """The landscape of a process that is drawn by random Fourier features.

    Args:
        model: The fields of the environment.
        rng: The generator to draw the process from.
        features: The number of frequencies.
    """

    def __init__(self, model: MarkovGP, rng: Generator, *, features: int) -> None:
        self.domain = model.box()
        self._scale = sqrt(model.kernel.variance / features)
        self._frequencies = _draw_frequencies(model, rng, count=features)
        self._weights = _start_weights(2 * features, model.epsilon, rng)
        # The rare high frequencies of a Matern kernel make peaks much narrower than a length scale.
        cover = model.cover_size(20 if isinstance(model.kernel, SquaredExponential) else 100)
        self._optima = OptimumSearch(
            self.domain, self._rewards, slopes=self._slopes, cover=cover, climbs=10
        )

    def rewards(self, points: Points, time: float) -> Values:
        return self._rewards(points, floor(time))

    def best(self, time: float) -> tuple[Point, float]:
        """Return the highest point, to 1e-9 of the reward's range; computed once for each function.

        In two dimensions or more it is searched for from an even cover of up to 16,384 points. It
        may be missed where (1 + width / length scale)^d exceeds about 800 for the squared
        exponential, or 160 for other kernels.
        """
        return self._optima.best(float(floor(time)))

    def _rewards(self, points: Points, number: float) -> Values:
        cosines, sines = self._amplitudes(number)
        angles = points @ self._frequencies.T
        values: Values = np.cos(angles) @ cosines + np.sin(angles) @ sines
        return values

    def _slopes(self, points: Points, number: float) -> Points:
        cosines, sines = self._amplitudes(number)
        angles = points @ self._frequencies.T
        slopes: Points = (np.cos(angles) * sines - np.sin(angles) * cosines) @ self._frequencies
        return slopes

    def _amplitudes(self, number: float) -> Matrix:
        amplitudes: Matrix = self._scale * self._weights.at(int(number)).reshape(2, -1)
        return amplitudes


def _draw_frequencies(model: MarkovGP, rng: Generator, *, count: int) -> Matrix:
    """Draw *count* frequencies (count, d) from the kernel's spectral density."""
    normals = rng.standard_normal((count, model.dimensions))
    match model.kernel:
        case Matern32():
            spread = 3 / rng.chisquare(3, size=count)
        case Matern52():
            spread = 5 / rng.chisquare(5, size=count)
        case RationalQuadratic(alpha=alpha):
            spread = rng.gamma(alpha, 1 / alpha, size=count)
        case _:
            spread = np.ones(count)
    frequencies: Matrix = normals * np.sqrt(spread)[:, None] / model.kernel.length_scale
    return frequencies
