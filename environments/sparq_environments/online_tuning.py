"""The environment `online-tuning`: hyper-parameters of a learner on a drifting stream of data."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, inf, log, pi, sqrt
from typing import Annotated

import numpy as np
from numpy.polynomial import chebyshev
from numpy.random import Generator, Philox
from numpy.typing import NDArray
from pydantic import Field, ValidationInfo, field_validator

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.landscapes.optima import OptimumSearch
from sparq_sim.plugin.contract import Environment, Landscape

__all__ = ["OnlineTuning"]

_Finite = Annotated[float, Field(allow_inf_nan=False)]

_BLOCK = 256  # Steps whose data are drawn together.
_ORIGIN = 2**40  # Added to the numbers of blocks and concepts, as some lie before time 0.
_DATA, _CONCEPT = 0, 1
_KEPT = 10  # How many of the longest half-lives data are kept for.


class OnlineTuning(Environment):
    """A regression that is refitted to a drifting stream of data, and tuned while it runs.

    This is a small model of continual learning. At each whole time k, *samples* pairs (x, y)
    arrive, with x ~ N(0, I) and y = w(k)'x + e, e ~ N(0, *noise*^2). The concept w(t) has length 1;
    it turns in a plane, and jumps to another plane after each *switch_every*. At time t the learner
    has the pairs of k < t and fits

        v = argmin  sum_i a_i (y_i - v'x_i)^2 / sum_i a_i + r |v|^2,   a_i = 2^(k_i / h)

    A point is (log10 r, log10 h): the ridge r, and the half-life h of data in clock units. The
    reward is minus the expected squared error on the current concept,

        f = -(*noise*^2 + |v - w(t)|^2),

    which is computed exactly (up to an interpolation in h, with an error of about 1e-13 of the
    moments). The environment makes its own noise: an observation is minus the mean squared error
    on *batch* new pairs, which is unbiased with std |f| sqrt(2 / batch). Tell an optimizer of it by
    what the feedback claims: `noise = {kind = "gaussian", std = 0, claimed = 0.2}`.

    After a jump, strong ridges and short half-lives are best; later, long half-lives are.
    Exponential forgetting is that of recursive least squares (Haykin 2002, Adaptive Filter Theory);
    testing on the next data before learning from them is the prequential rule of Gama, Sebastião
    and Rodrigues (2013). Data are dropped after ten of the longest half-lives, and the stream has
    run for longer than that at time 0. The best point is found to 1e-9 in the reward.

    The reward drifts most where the half-life is below 2, where a learner has fewer data than
    weights. The guide to environments has a table of drifts.
    """

    level_evaluations = 500_000

    features: int = Field(8, ge=2, le=64)
    """The number of dimensions of x; 2 to 64."""
    samples: int = Field(2, ge=1, le=1000)
    """How many pairs (x, y) arrive per clock unit."""
    noise: _Finite = Field(0.7, gt=0)
    """The std of the noise of y; that of w'x is 1."""
    rotation: _Finite = Field(0.01, ge=0)
    """How far w turns, in radians per clock unit."""
    switch_every: float = Field(60.0, ge=1)
    """The time from one jump of w to the next, in clock units; inf for none."""
    batch: int = Field(50, ge=1, le=100_000)
    """How many new pairs (x, y) an observation is the mean of."""
    ridges: tuple[_Finite, _Finite] = (1e-3, 10.0)
    """The smallest and the largest ridge r, in squared units of x; both from 1e-4 to 1e4."""
    half_lives: tuple[_Finite, _Finite] = (1.0, 100.0)
    """The shortest and the longest half-life h, in clock units; both from 0.1 to 1000."""

    @field_validator("ridges", "half_lives")
    @classmethod
    def _in_order(cls, given: tuple[float, float], info: ValidationInfo) -> tuple[float, float]:
        # Lower values make the fit to few data ill-conditioned; higher ones keep too many data.
        least, most = (1e-4, 1e4) if info.field_name == "ridges" else (0.1, 1000.0)
        if not least <= given[0] < given[1] <= most:
            raise ValueError(
                f"{given} must be two numbers, the lower first, from {least:g} to {most:g}"
            )
        return given

    def start(self, rng: Generator) -> Landscape:
        return _OnlineTuningLandscape(self, rng)


class _OnlineTuningLandscape:
    """The landscape of hyper-parameters; what the learner knows is kept for the latest 64 times.

    Args:
        model: The fields of the environment.
        rng: The generator to draw the key of the stream from.
    """

    def __init__(self, model: OnlineTuning, rng: Generator) -> None:
        self._model = model
        self._stream = _Stream(model, rng)
        low, high = np.log10([model.ridges, model.half_lives]).T
        self.domain = Box(low, high, ["log10 ridge", "log10 half-life"])
        self._forgetting = _build_forgetting(*model.half_lives)
        self._learnt = lru_cache(maxsize=64)(self._learn)
        # 3 climbs from a cover of 1,024 find what 10 from 4,096 find, to 1e-13.
        self._optima = OptimumSearch(self.domain, self.rewards, climbs=3)

    def rewards(self, points: Points, time: float) -> Values:
        errors = self.fit(points, time) - self._stream.concepts(np.array([time]))
        squares: Values = np.einsum("np,np->n", errors, errors)
        return -(self._model.noise**2 + squares)

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        """Return minus the mean squared error on new pairs, drawn separately for each point."""
        model = self._model
        errors = self._stream.concepts(np.array([time])) - self.fit(points, time)
        drawn = rng.standard_normal((len(points), model.batch, model.features + 1))
        residuals = model.noise * drawn[..., 0] + np.einsum("nbp,np->nb", drawn[..., 1:], errors)
        squares: Values = np.mean(residuals**2, axis=1)
        return -squares

    def best(self, time: float) -> tuple[Point, float]:
        return self._optima.best(time)

    def fit(self, points: Points, time: float) -> Matrix:
        """Return the weights v of the learner for each point.

        Args:
            points: The hyper-parameters, (n, 2).
            time: The time, in clock units.

        Returns:
            The weights, (n, features).
        """
        size = self._model.features
        low, high = self.domain.lower[1], self.domain.upper[1]
        learnt = self._learnt(ceil(time))
        place = (2 * points[:, 1] - low - high) / (high - low)
        moments = chebyshev.chebvander(place, len(learnt) - 1) @ learnt
        inputs = moments[:, size:].reshape(-1, size, size)
        ridges = 10.0 ** points[:, 0, None, None] * np.eye(size)
        weights = np.linalg.solve(inputs + ridges, moments[:, :size, None])[..., 0]
        return np.asarray(weights, dtype=np.float64)

    def _learn(self, step: int) -> Matrix:
        """Return the mean moments of all data before *step*, as a Chebyshev series in log h."""
        return self._forgetting @ self._stream.moments(step - self._forgetting.shape[1], step)


class _Stream:
    """The data and their concept at each time.

    Args:
        model: The fields of the environment.
        rng: The generator to draw the key of the stream from.
    """

    def __init__(self, model: OnlineTuning, rng: Generator) -> None:
        self._model = model
        self._key = rng.integers(2**64, size=2, dtype=np.uint64)
        memory = _KEPT * model.half_lives[1]
        self._plane = lru_cache(maxsize=64)(self._draw_plane)
        self._block = lru_cache(maxsize=4 + ceil(memory / _BLOCK))(self._draw_block)

    def concepts(self, times: Values) -> Matrix:
        """Return w at each of *times* (n,), (n, features)."""
        every = self._model.switch_every
        numbers = np.zeros(len(times)) if every == inf else np.floor(times / every)
        since = times if every == inf else times - numbers * every
        angles = self._model.rotation * since[:, None]
        planes = np.array([self._plane(int(number)) for number in numbers])
        concepts: Matrix = np.cos(angles) * planes[:, 0] + np.sin(angles) * planes[:, 1]
        return concepts

    def moments(self, begin: int, end: int) -> Matrix:
        """Return the means of x y and of x x' for each step from *begin* to before *end*.

        They are all that a linear fit depends on: (end - begin, features + features^2).
        """
        first = begin // _BLOCK
        numbers = range(first, (end - 1) // _BLOCK + 1)
        blocks = np.concatenate([self._block(number) for number in numbers])
        return blocks[begin - first * _BLOCK : end - first * _BLOCK]

    def _draw_block(self, number: int) -> Matrix:
        inputs, outputs = self.draw_pairs(number)
        sides = np.concatenate([outputs[..., None], inputs], axis=2)
        means = sides.transpose(0, 2, 1) @ inputs / self._model.samples
        return means.reshape(_BLOCK, -1)

    def draw_pairs(self, number: int) -> tuple[NDArray[np.float64], Matrix]:
        """Draw the x (256, samples, features) and y (256, samples) of one block."""
        model = self._model
        shape = _BLOCK, model.samples, model.features + 1
        drawn = self._rng(_DATA, number).standard_normal(shape)
        concepts = self.concepts(
            np.arange(number * _BLOCK, (number + 1) * _BLOCK, dtype=np.float64)
        )
        inputs, errors = drawn[..., 1:], model.noise * drawn[..., 0]
        return inputs, np.einsum("ksp,kp->ks", inputs, concepts) + errors

    def _draw_plane(self, number: int) -> Matrix:
        """Draw two orthogonal directions: (2, features)."""
        normal = self._rng(_CONCEPT, number).standard_normal((self._model.features, 2))
        directions: Matrix = np.linalg.qr(normal)[0].T
        return directions

    def _rng(self, what: int, number: int) -> Generator:
        # The low words count draws; the high words are different for each purpose and number.
        return Generator(Philox(key=self._key, counter=[0, 0, what, number + _ORIGIN]))


def _build_forgetting(shortest: float, longest: float) -> Matrix:
    """Return the matrix that turns past moments into a Chebyshev series in log h, (terms, steps).

    Row j holds, for each past step, the j-th coefficient of its share
    2^(-age / h) / sum 2^(-age / h). As a function of log h this is analytic where the imaginary
    part is below pi / 2, so that coefficients fall as rho^-j on the ellipse through i pi / 2
    (Trefethen 2013, Approximation Theory and Approximation Practice, theorem 8.1).
    """
    height = pi / log(longest / shortest)
    terms = ceil(40 / log(height + sqrt(height**2 + 1)))
    nodes = chebyshev.chebpts1(terms)
    half_lives = shortest * (longest / shortest) ** ((nodes + 1) / 2)
    ages = np.arange(ceil(_KEPT * longest))[::-1]
    shares = np.exp2(-ages / half_lives[:, None])
    shares /= shares.sum(axis=1, keepdims=True)
    # At these nodes, the integrals for the coefficients are sums over the nodes.
    integrals = chebyshev.chebvander(nodes, terms - 1).T * (2 / terms)
    integrals[0] /= 2
    return np.asarray(integrals @ shares, dtype=np.float64)
