"""Abrupt switches: a reward that stands still, and then is another."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, field_validator

from sparq_environments.moving_peaks import squared_distances
from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.fields import Positive
from sparq_sim.landscapes.optima import OptimumSearch
from sparq_sim.plugin.contract import Environment, Landscape
from sparq_sim.simulation.channel.draws import AnyDraw, Constant, Draw

_BLOCK = 256
_SHORTEST = 0.001


class Switching(Environment):
    """One of several smooth functions on [0, 1]^d at a time, each for a while.

    f(x, t) = g_k(t)(x),  g_k(x) = sum_j a_kj exp(-|x - c_kj|^2 / (2 width^2))

    with a_kj uniform from 0.5 to 1 and c_kj uniform in the box. The switches make up all of the
    drift, as for the windows and restarts of Zhou and Shroff (2021) and for tests that a change
    is noticed. Functions come back: an optimiser that remembers them is better off.

    How much a switch changes: the table of drifts in the guide to environments.
    """

    level_evaluations = 5_000_000

    dimensions: PositiveInt = 2
    """How many coordinates a point has."""
    functions: Annotated[int, Field(ge=2)] = 3
    """How many functions there are to switch between."""
    bumps: PositiveInt = 8
    """How many bumps each function is a sum of."""
    width: Positive = 0.15
    """The std of a bump, in sides of the box."""
    dwell: AnyDraw = Constant(value=50.0)
    """How long a function stays, in clock units: a number, or a draw such as
    `{ kind = "exponential", mean = 50 }`."""
    order: Literal["cycle", "random"] = "cycle"
    """Whether functions follow each other in turn, or any of the others is drawn."""

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
        """Draw the functions, and the key to all later switches."""
        return SwitchingLandscape(self, rng)


class SwitchingLandscape:
    """The started functions, and which of them is in force when."""

    def __init__(self, model: Switching, rng: Generator) -> None:
        self.domain = Box(np.zeros(model.dimensions), np.ones(model.dimensions))
        self._width = model.width
        self._spells = Spells(model, rng.integers(2**64, size=2, dtype=np.uint64))
        self._centres = rng.random((model.functions, model.bumps, model.dimensions))
        self._heights = rng.uniform(0.5, 1.0, (model.functions, model.bumps))
        # Summits are kept for each function, whose number stands for the time.
        self._summits = OptimumSearch(
            self.domain,
            self._values,
            slopes=self._slopes,
            starts=lambda number: self._centres[int(number)],
            climbs=model.bumps + 5,
        )

    def rewards(self, points: Points, time: float) -> Values:
        """Give the function in force at each point."""
        return self._values(points, self._spells.function(time))

    def best(self, time: float) -> tuple[Point, float]:
        """Give the highest point of the function in force, to 1e-9 in the reward.

        A sum of bumps is high where bumps are: it is climbed from the highest of their centres
        and of an even cover. This is a search and no proof; it was never seen to fail.
        """
        return self._summits.best(float(self._spells.function(time)))

    def function(self, time: float) -> int:
        """Give the number of the function in force, from 0."""
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
        squares = squared_distances(points, self._centres[number])
        bumps: Matrix = np.exp(squares / (-2 * self._width**2))
        return bumps


class _Block(NamedTuple):
    ends: Values
    """When each spell ends."""
    functions: NDArray[np.int64]
    """Which function it is of."""


class Spells:
    """Which function is in force when; a pure function of time.

    Spells are drawn in blocks of 256, each with a generator of its own; what is kept for ever is
    when a block begins and which function came before it.
    """

    def __init__(self, model: Switching, key: NDArray[np.uint64]) -> None:
        self._model = model
        self._key = key
        self._begins = [0.0]
        self._before = [-1]
        self._block = lru_cache(maxsize=4)(self._draw)

    def function(self, time: float) -> int:
        """Give the number of the function in force; a switch belongs to what it begins."""
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
