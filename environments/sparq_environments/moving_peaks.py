"""The environment `moving-peaks`: hills or cones whose heights, widths and places change."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray
from pydantic import PositiveFloat, model_validator

from sparq_environments._geometry import compute_squared_distances, reflect
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.fields import Amount, Positive, Probability, Size
from sparq_sim.plugin.contract import Environment, Landscape

__all__ = ["MovingPeaks"]

_BLOCK = 256  # changes that are drawn together


class MovingPeaks(Environment):
    """The moving peaks benchmark of Branke (1999), on [0, side]^d.

        f(x, t) = max_i H_i - W_i |x - p_i|          for cones (Branke's scenario 2)
        f(x, t) = max_i H_i / (1 + W_i |x - p_i|^2)  for hills (his scenario 1)

    At each change every peak moves by *move_length* in the direction of
    (1 - correlation) r + correlation (last direction), with r uniform on the sphere; its height H
    and its width W take a normal step. All are reflected at their bounds.

    It is the common test of optimizers that must follow one of several optima, and leave it when
    another one becomes higher. The defaults are the standard settings of scenario 2 (10 cones,
    heights 30 to 70, widths 1 to 12, severities 7 and 1, moves of 1, no correlation; Blackwell and
    Branke 2006), in 2 dimensions instead of 5, and with clock time instead of 5,000 evaluations
    between changes. Two things differ: heights begin anywhere in their range and not all at 50,
    so that the first rounds are like all others; and directions are uniform on the sphere, where
    Branke normalises a point of the cube.

    Unless the movement is smooth, all drift is in the changes. Cones reach far below 0 away from
    all peaks, and drift most there. The guide to environments has a table of drifts.
    """

    level_evaluations = 5_000_000

    dimensions: Size = 2
    """How many coordinates a point has."""
    side: Positive = 100.0
    """The upper bound of each coordinate; the lower bound is 0."""
    peaks: Size = 10
    """How many peaks there are."""
    shape: Literal["cone", "hill"] = "cone"
    """The shape of a peak: a `cone` or a `hill`."""
    heights: tuple[PositiveFloat, PositiveFloat] = (30.0, 70.0)
    """The lowest and the highest height H, in reward units."""
    widths: tuple[PositiveFloat, PositiveFloat] | None = None
    """The smallest and the largest W; a large W makes a narrow peak. By default 1 to 12 for cones,
    in reward units per unit of length, and 0.0001 to 0.2 for hills, per squared unit of length."""
    every: Positive = 10.0
    """The time between two changes, in clock units."""
    movement: Literal["steps", "smooth"] = "steps"
    """How peaks change: in `steps`, they stand still and then jump; `smooth`, they move on a
    straight line to where the next change takes them."""
    move_length: Amount = 1.0
    """How far a peak moves at a change, in units of the points (Branke's vlength)."""
    correlation: Probability = 0.0
    """How much a move keeps the direction of the one before (Branke's lambda): 0 not at all, 1
    entirely."""
    height_severity: Amount = 7.0
    """The std of the change of a height, in reward units."""
    width_severity: Amount | None = None
    """The std of the change of W; by default 1 for cones and 0.01 for hills."""

    @model_validator(mode="after")
    def _in_order(self) -> MovingPeaks:
        for name, bounds in (("heights", self.heights), ("widths", self.widths)):
            if bounds is not None and not bounds[0] <= bounds[1] < np.inf:
                raise ValueError(f"{name} {bounds} must be finite, the lowest first")
        return self

    def start(self, rng: Generator) -> Landscape:
        return _MovingPeaksLandscape(self, rng)


class _Peaks(NamedTuple):
    """The peaks at one time, or their walk before it is reflected at the bounds."""

    places: NDArray[np.float64]
    """The centre of each peak, (peaks, d)."""
    heights: Values
    """The height H of each peak, (peaks,)."""
    widths: Values
    """The W of each peak, (peaks,)."""


class _Checkpoint(NamedTuple):
    peaks: _Peaks
    directions: NDArray[np.float64]


class _MovingPeaksLandscape:
    """The landscape of moving peaks.

    _Peaks walk without bounds, and are reflected at the bounds when they are read; for steps whose
    distribution is symmetric this is the same as reflecting each step. The walk is computed in
    blocks of 256 changes, each with its own generator, from the state that the block before ended
    in.

    Args:
        model: The fields of the environment.
        rng: The generator to draw the first peaks and the key of all later steps from.
    """

    def __init__(self, model: MovingPeaks, rng: Generator) -> None:
        self.domain = Box(np.zeros(model.dimensions), np.full(model.dimensions, model.side))
        self._model = model
        cones = model.shape == "cone"
        self._widths = model.widths or ((1.0, 12.0) if cones else (0.0001, 0.2))
        severity = model.width_severity
        self._width_severity = (1.0 if cones else 0.01) if severity is None else severity
        self._key = rng.integers(2**64, size=2, dtype=np.uint64)
        first = _Peaks(
            self.domain.sample(rng, model.peaks),
            rng.uniform(*model.heights, model.peaks),
            rng.uniform(*self._widths, model.peaks),
        )
        directions = _normalize(rng.standard_normal((model.peaks, model.dimensions)))
        self._checkpoints = [_Checkpoint(first, directions)]
        self._block = lru_cache(maxsize=4)(self._walk)

    def rewards(self, points: Points, time: float) -> Values:
        places, heights, widths = self.peaks(time)
        squares = compute_squared_distances(points, places)
        if self._model.shape == "cone":
            values: Values = (heights - widths * np.sqrt(squares)).max(axis=1)
        else:
            values = (heights / (1 + widths * squares)).max(axis=1)
        return values

    def best(self, time: float) -> tuple[Point, float]:
        """Return the centre of the highest peak and its height, exactly.

        No peak exceeds its height H_i, which it has at its centre. So no point exceeds the largest
        H_i, and the centre of that peak lies in the box.
        """
        places, heights, _ = self.peaks(time)
        highest = int(heights.argmax())
        return places[highest], float(heights[highest])

    def peaks(self, time: float) -> _Peaks:
        """Return all peaks as they are at *time* (clock units)."""
        model = self._model
        changes, part = divmod(time / model.every, 1.0)
        number, row = divmod(int(changes), _BLOCK)
        block = self._block(number)
        now = [values[row] for values in block]
        if model.movement == "smooth":
            now = [
                here + part * (values[row + 1] - here)
                for here, values in zip(now, block, strict=True)
            ]
        return _Peaks(
            reflect(now[0], 0.0, model.side),
            reflect(now[1], *model.heights),
            reflect(now[2], *self._widths),
        )

    def _walk(self, number: int) -> _Peaks:
        """Return the unbounded walk of a block: before its first change and after each of them."""
        while len(self._checkpoints) <= number:
            self._walk_from(len(self._checkpoints) - 1)
        return self._walk_from(number)

    def _walk_from(self, number: int) -> _Peaks:
        model = self._model
        (places, heights, widths), directions = self._checkpoints[number]
        rng = Generator(Philox(key=self._key, counter=[0, 0, number, 0]))
        fresh = _normalize(rng.standard_normal((_BLOCK, *places.shape)))
        turns = fresh
        if model.correlation:
            turns = np.empty_like(fresh)
            for row, direction in enumerate(fresh):
                mixed = (1 - model.correlation) * direction + model.correlation * directions
                # Opposite directions of equal weight cancel; then the new one is taken.
                lost = (mixed**2).sum(axis=1, keepdims=True) < 1e-24
                directions = turns[row] = _normalize(np.where(lost, direction, mixed))
        steps = rng.standard_normal((2, _BLOCK, model.peaks))
        block = _Peaks(
            _accumulate(places, model.move_length * turns),
            _accumulate(heights, model.height_severity * steps[0]),
            _accumulate(widths, self._width_severity * steps[1]),
        )
        if len(self._checkpoints) == number + 1:
            end = _Peaks(*(values[-1].copy() for values in block))
            self._checkpoints.append(_Checkpoint(end, turns[-1].copy()))
        return block


def _normalize(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    units: NDArray[np.float64] = vectors / np.sqrt((vectors**2).sum(axis=-1, keepdims=True))
    return units


def _accumulate(first: NDArray[np.float64], steps: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.cumsum(np.concatenate([first[None], steps]), axis=0)
