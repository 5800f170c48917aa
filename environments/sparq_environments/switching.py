"""The environment `switching`: a reward that stays the same and is then replaced at once."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray
from pydantic import Field, field_validator

from sparq_environments._geometry import compute_squared_distances
from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.fields import Positive, Size
from sparq_sim.landscapes.optima import OptimumSearch
from sparq_sim.plugin.contract import Environment, Landscape
from sparq_sim.simulation.channel.draws import AnyDraw, Constant, Draw

__all__ = ["Switching"]

_BLOCK = 256  # spells that are drawn together
_SHORTEST = 0.001  # expected length of a spell, so that finding one does not take for ever


class Switching(Environment):
    """One of several smooth functions on [0, 1]^d at a time, each for a while.

        f(x, t) = g_k(t)(x),  g_k(x) = sum_j a_kj exp(-|x - c_kj|^2 / (2 width^2))

    The heights a_kj are uniform from 0.5 to 1 and the centres c_kj uniform in the box. All drift
    is in the switches, as in the analysis of windows and restarts by Zhou and Shroff (2021). Use
    it to test whether an optimizer notices a change. Functions return: an optimizer that
    remembers them has an advantage.

    The guide to environments has a table of how much a switch changes.
    """

    level_evaluations = 5_000_000

    dimensions: Size = 2
    """How many coordinates a point has."""
    functions: Annotated[Size, Field(ge=2)] = 3
    """How many functions there are to switch between; at least 2."""
    bumps: Size = 8
    """How many bumps each function is a sum of."""
    width: Positive = 0.15
    """The std of a bump, as a share of the side of the box."""
    dwell: AnyDraw = Constant(value=50.0)
    """How long a function stays, in clock units: a number, or a draw such as
    `{ kind = "exponential", mean = 50 }`."""
    order: Literal["cycle", "random"] = "cycle"
    """Which function comes next: the next one in a fixed `cycle`, or a `random` other one."""

    @field_validator("dwell")
    @classmethod
    def _lasts(cls, dwell: Draw) -> Draw:
        if dwell.expected < _SHORTEST:
            raise ValueError(
                f"a function must be expected to stay for {_SHORTEST} or longer, "
                f"not {dwell.expected}"
            )
        return dwell

    def start(self, rng: Generator) -> Landscape:
        return _SwitchingLandscape(self, rng)


class _SwitchingLandscape:
    """The landscape of functions that replace each other.

    Args:
        model: The fields of the environment.
        rng: The generator to draw the functions and the key of all switches from.
    """

    def __init__(self, model: Switching, rng: Generator) -> None:
        self.domain = Box(np.zeros(model.dimensions), np.ones(model.dimensions))
        self._width = model.width
        self._spells = _Spells(model, rng.integers(2**64, size=2, dtype=np.uint64))
        self._centres = rng.random((model.functions, model.bumps, model.dimensions))
        self._heights = rng.uniform(0.5, 1.0, (model.functions, model.bumps))
        # The best point is kept for each function, whose number stands for the time.
        self._optima = OptimumSearch(
            self.domain,
            self._values,
            slopes=self._slopes,
            starts=lambda number: self._centres[int(number)],
            climbs=model.bumps + 5,
        )

    def rewards(self, points: Points, time: float) -> Values:
        return self._values(points, self.function(time))

    def best(self, time: float) -> tuple[Point, float]:
        """Return the highest point of the current function, to 1e-9 in the reward.

        It is searched for from the highest centres of bumps and the highest points of an even
        cover. There is no proof that this finds the maximum; it has never been seen to fail.
        """
        return self._optima.best(float(self.function(time)))

    def function(self, time: float) -> int:
        """Return the number of the function at *time* (clock units), from 0."""
        return self._spells.function(time)

    def _values(self, points: Points, number: float) -> Values:
        values: Values = self._bumps(points, int(number)) @ self._heights[int(number)]
        return values

    def _slopes(self, points: Points, number: float) -> Points:
        weights = self._bumps(points, int(number)) * self._heights[int(number)]
        offsets = self._centres[int(number)] - points[:, None, :]
        slopes: Points = (weights[:, :, None] * offsets).sum(axis=1) / self._width**2
        return slopes

    def _bumps(self, points: Points, number: int) -> Matrix:
        squares = compute_squared_distances(points, self._centres[number])
        bumps: Matrix = np.exp(squares / (-2 * self._width**2))
        return bumps


class _Block(NamedTuple):
    ends: Values
    """The time at which each spell ends."""
    functions: NDArray[np.int64]
    """The number of the function of each spell."""


class _Spells:
    """Which function is current at each time.

    Spells are drawn in blocks of 256, each with its own generator, so that the result does not
    depend on the order of calls. For each block its beginning and the function before it are kept.
    """

    def __init__(self, model: Switching, key: NDArray[np.uint64]) -> None:
        self._model = model
        self._key = key
        self._begins = [0.0]
        self._before = [-1]
        self._block = lru_cache(maxsize=4)(self._draw)

    def function(self, time: float) -> int:
        """Return the number of the function at *time*; at a switch, that of the new one."""
        while self._begins[-1] <= time:
            block = self._block(len(self._begins) - 1)
            self._begins.append(float(block.ends[-1]))
            self._before.append(int(block.functions[-1]))
        block = self._block(bisect_right(self._begins, time) - 1)
        return int(block.functions[np.searchsorted(block.ends, time, side="right")])

    def _draw(self, number: int) -> _Block:
        model = self._model
        rng = Generator(Philox(key=self._key, counter=[0, 0, number, 0]))
        others = rng.integers(1, model.functions, size=_BLOCK)
        jumps = np.ones(_BLOCK, dtype=np.int64) if model.order == "cycle" else others
        ends = self._begins[number] + np.cumsum(model.dwell.sample(rng, _BLOCK))
        return _Block(ends, (self._before[number] + np.cumsum(jumps)) % model.functions)
