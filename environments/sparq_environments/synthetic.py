"""The environment `synthetic`: the function of the paper, a hill that moves over a wave."""

from __future__ import annotations

from math import cos, exp, sin

import numpy as np
from numpy.random import Generator

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.plugin.contract import Environment, Landscape

__all__ = ["Synthetic"]


class Synthetic(Environment):
    """The function of Mauduit, Berthier and Simonetto (2025), on [-50, 50].

        f(x, t) = exp(-0.05 (x - 5 sin(0.1 t))^2) + 0.5 cos(0.2 x) + 1.5

    A hill moves back and forth over a wave that stands still. The optimum stays within +-4.23, with
    a period of 62.8; the reward changes by at most 0.096 per clock unit. Nothing is random.
    """

    level_evaluations = 5_000_000

    def start(self, rng: Generator) -> Landscape:
        return _SyntheticLandscape()


class _SyntheticLandscape:
    """The landscape of the function; the best point is computed once for each time."""

    domain = Box(-50.0, 50.0, ["x"])

    def __init__(self) -> None:
        self._best: dict[float, tuple[Point, float]] = {}

    def rewards(self, points: Points, time: float) -> Values:
        x = points[:, 0]
        values: Values = x - _find_centre(time)
        values *= values
        values *= -0.05
        np.exp(values, out=values)
        values += 0.5 * np.cos(0.2 * x)
        values += 1.5
        return values

    def best(self, time: float) -> tuple[Point, float]:
        """Return the highest point, to 1e-12 in the reward.

        It lies between the top of the wave, 0, and that of the hill, c. At 0.8 c the function is
        concave for every |c| <= 5, and from there Newton's method converges to it.
        """
        if time not in self._best:
            centre = _find_centre(time)
            x = 0.8 * centre
            for _ in range(6):
                beside = x - centre
                hill = exp(-0.05 * beside * beside)
                slope = -0.1 * beside * hill - 0.1 * sin(0.2 * x)
                bend = (0.01 * beside * beside - 0.1) * hill - 0.02 * cos(0.2 * x)
                x -= slope / bend
            # The same operations as in `rewards`, so that the last digit agrees.
            reward = np.exp((x - centre) * (x - centre) * -0.05) + 0.5 * np.cos(0.2 * x) + 1.5
            self._best[time] = np.array([x]), float(reward)
        return self._best[time]


def _find_centre(time: float) -> float:
    return 5.0 * sin(0.1 * time)
