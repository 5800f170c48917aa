"""Online tuning: hyper-parameters of a learner, as the stream that it learns from drifts."""

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

Finite = Annotated[float, Field(allow_inf_nan=False)]

_BLOCK = 256  # Steps whose data are drawn together.
_ORIGIN = 2**40  # Added to numbers of blocks and concepts: some lie before time 0.
_DATA, _CONCEPT = 0, 1
_KEPT = 10  # Longest half-lives after which data are dropped.


class OnlineTuning(Environment):
    """A regression refitted to a drifting stream, and tuned as it runs: continual learning.

    At each whole time k come *samples* pairs (x, y), with x ~ N(0, I) and y = w(k)'x + e,
    e ~ N(0, *noise*^2). The concept w(t) has length 1; it turns in a plane, and jumps to
    another plane every so often. At time t the learner has the pairs of k < t and fits

        v = argmin  sum_i a_i (y_i - v'x_i)^2 / sum_i a_i + r |v|^2,   a_i = 2^(k_i / h)

    A point is (log10 r, log10 h): the ridge, and the half-life of data in units of time. The
    reward is minus the expected squared error on the concept of now,

        f = -(*noise*^2 + |v - w(t)|^2),

    which is exact: no held-out batch comes near (interpolation in h costs some 1e-13 of the
    moments). Noise is the world's own. An observation is minus the mean squared error on *batch*
    fresh pairs: unbiased, with std |f| sqrt(2 / batch). Tell an optimizer so by what the feedback
    claims: `noise = {kind = "gaussian", std = 0, claimed = 0.2}`.

    After a jump, strong ridges and short half-lives are best, later long ones. Exponential
    forgetting is that of recursive least squares (Haykin 2002, Adaptive Filter Theory); to test
    on what comes next before learning from it is the prequential rule of Gama, Sebastião and
    Rodrigues (2013). Data are dropped after ten of the longest half-lives, and the stream has
    run for longer than that at time 0. The best point is found to 1e-9 in the reward.

    It drifts most where the half-life is below 2, so that a learner has fewer data than weights.
    How fast: the table of drifts in the guide to environments.
    """

    level_evaluations = 500_000

    features: int = Field(8, ge=2, le=64)
    """How many dimensions x has; 2 to 64."""
    samples: int = Field(2, ge=1, le=1000)
    """How many pairs (x, y) come in a unit of time."""
    noise: Finite = Field(0.7, gt=0)
    """The std of y about w'x; that of w'x is 1."""
    rotation: Finite = Field(0.01, ge=0)
    """How far w turns, in radians per unit of time."""
    switch_every: float = Field(60.0, ge=1)
    """The time from one jump of w to the next, in clock units; inf for none."""
    batch: int = Field(50, ge=1, le=100_000)
    """How many fresh pairs (x, y) an observation is made of."""
    ridges: tuple[Finite, Finite] = (1e-3, 10.0)
    """The least and the greatest r, in squared units of x; both between 1e-4 and 1e4."""
    half_lives: tuple[Finite, Finite] = (1.0, 100.0)
    """The shortest and the longest h, in units of time; both between 0.1 and 1000."""

    @field_validator("ridges", "half_lives")
    @classmethod
    def _in_order(cls, given: tuple[float, float], info: ValidationInfo) -> tuple[float, float]:
        # Below, the fit to few data is too ill-conditioned; beyond, too many data are kept.
        least, most = (1e-4, 1e4) if info.field_name == "ridges" else (0.1, 1000.0)
        if not least <= given[0] < given[1] <= most:
            raise ValueError(
                f"{given} must be two numbers, the lower first, from {least:g} to {most:g}"
            )
        return given

    def start(self, rng: Generator) -> Landscape:
        """Draw the stream, as a function of time."""
        return OnlineTuningLandscape(self, rng)


class OnlineTuningLandscape:
    """The started stream and its learner; what it learnt is kept for the latest 64 times."""

    def __init__(self, model: OnlineTuning, rng: Generator) -> None:
        self._model = model
        self._stream = Stream(model, rng)
        low, high = np.log10([model.ridges, model.half_lives]).T
        self.domain = Box(low, high, ["log10 ridge", "log10 half-life"])
        self._forgetting = _forgetting(*model.half_lives)
        self._learnt = lru_cache(maxsize=64)(self._learn)
        # 3 climbs from a cover of 1,024 find what 10 from 4,096 find, to 1e-13.
        self._summits = OptimumSearch(self.domain, self.rewards, climbs=3)

    def rewards(self, points: Points, time: float) -> Values:
        """Give minus the expected squared error of the learner that each point makes."""
        errors = self.fits(points, time) - self._stream.concepts(np.array([time]))
        squares: Values = np.einsum("np,np->n", errors, errors)
        return -(self._model.noise**2 + squares)

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        """Give minus the mean squared error on a batch of fresh pairs, another for each point."""
        model = self._model
        errors = self._stream.concepts(np.array([time])) - self.fits(points, time)
        drawn = rng.standard_normal((len(points), model.batch, model.features + 1))
        residuals = model.noise * drawn[..., 0] + np.einsum("nbp,np->nb", drawn[..., 1:], errors)
        squares: Values = np.mean(residuals**2, axis=1)
        return -squares

    def best(self, time: float) -> tuple[Point, float]:
        """Give the best hyper-parameters, to 1e-9 in the reward."""
        return self._summits.best(time)

    def fits(self, points: Points, time: float) -> Matrix:
        """Give the weights v that the learner of each point has at *time*: (n, features)."""
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
        """Give the mean moments of all data before *step*, as a Chebyshev series in log h."""
        return self._forgetting @ self._stream.moments(step - self._forgetting.shape[1], step)


class Stream:
    """Data and their concept, each a function of time."""

    def __init__(self, model: OnlineTuning, rng: Generator) -> None:
        self._model = model
        self._key = rng.integers(2**64, size=2, dtype=np.uint64)
        memory = _KEPT * model.half_lives[1]
        self._plane = lru_cache(maxsize=64)(self._draw_plane)
        self._block = lru_cache(maxsize=4 + ceil(memory / _BLOCK))(self._draw_block)

    def concepts(self, times: Values) -> Matrix:
        """Give w at each time: (n, features)."""
        every = self._model.switch_every
        numbers = np.zeros(len(times)) if every == inf else np.floor(times / every)
        since = times if every == inf else times - numbers * every
        angles = self._model.rotation * since[:, None]
        planes = np.array([self._plane(int(number)) for number in numbers])
        concepts: Matrix = np.cos(angles) * planes[:, 0] + np.sin(angles) * planes[:, 1]
        return concepts

    def moments(self, begin: int, end: int) -> Matrix:
        """Give for each step the means of x y, then of x x': (end - begin, features + its square).

        They are all that a linear fit knows of the data.
        """
        first = begin // _BLOCK
        numbers = range(first, (end - 1) // _BLOCK + 1)
        blocks = np.concatenate([self._block(number) for number in numbers])
        return blocks[begin - first * _BLOCK : end - first * _BLOCK]

    def pairs(self, step: int) -> tuple[Matrix, Values]:
        """Give the data of one *step*: x (samples, features) and y (samples,)."""
        number, row = divmod(step, _BLOCK)
        inputs, outputs = self._draw_pairs(number)
        return inputs[row], outputs[row]

    def _draw_block(self, number: int) -> Matrix:
        inputs, outputs = self._draw_pairs(number)
        sides = np.concatenate([outputs[..., None], inputs], axis=2)
        means = sides.transpose(0, 2, 1) @ inputs / self._model.samples
        return means.reshape(_BLOCK, -1)

    def _draw_pairs(self, number: int) -> tuple[NDArray[np.float64], Matrix]:
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
        # The low words count draws; the others are never the same twice.
        return Generator(Philox(key=self._key, counter=[0, 0, what, number + _ORIGIN]))


def _forgetting(shortest: float, longest: float) -> Matrix:
    """Give what turns moments of the past into a Chebyshev series in log h: (terms, steps).

    Row j holds, for each step before now, the j-th coefficient of its share
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
    # At these nodes, sums over nodes are the integrals that give the coefficients.
    integrals = chebyshev.chebvander(nodes, terms - 1).T * (2 / terms)
    integrals[0] /= 2
    return np.asarray(integrals @ shares, dtype=np.float64)
