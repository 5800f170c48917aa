"""What tests of landscapes share: a sound one, of which each offender spoils one thing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from sparq_sim import Box, Environment
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.plugin.contract import Landscape
from sparq_sim.testing import Slope

SLOPE = Slope().start(np.random.default_rng(0))


class Ground:
    """A slope without hooks."""

    domain = Box(0.0, 1.0)

    def rewards(self, points: Points, time: float) -> Values:
        return SLOPE.rewards(points, time)

    def best(self, time: float) -> tuple[Point, float]:
        return SLOPE.best(time)


class Grounded(Environment):
    """Starts the landscape that it is told to."""

    ground: Callable[[], object]

    def start(self, rng: Generator) -> Landscape:
        return self.ground()  # type: ignore[return-value] # not always one, on purpose
