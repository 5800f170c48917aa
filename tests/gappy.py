"""What tests of gaps share: a world that has no reading for a while."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_sim import Box, Environment
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.plugin.contract import Landscape

GAP = (5.0, 7.0)
"""From when to when the right half of the line has no reading."""
FILLED = 1000.0


class Gappy(Environment):
    """A line whose right half has a gap for a while, filled with what nobody can know."""

    def start(self, rng: Generator) -> Landscape:
        return GappyLandscape()


class GappyLandscape:
    cell_count = 4
    domain = Box(0.0, 1.0)

    def rewards(self, points: Points, time: float) -> Values:
        values = np.sin(points[:, 0] + time)
        return np.where(self.available(points, time), values, FILLED)

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        there: NDArray[np.bool_] = (points[:, 0] < 0.5) | (not GAP[0] <= time < GAP[1])
        return there

    def best(self, time: float) -> tuple[Point, float]:
        points = np.array([[0.0], [0.49], [0.5], [1.0]])
        rewards = self.rewards(points, time)
        return points[rewards.argmax()], float(rewards.max())

    def coarse(self, resolution: float) -> Landscape:
        return GappyLandscape()
