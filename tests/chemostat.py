"""A simulator of one's own, as short as it can be: what the guide to environments shows."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Box
from sparq_sim.landscapes.computed import TabulatedEnvironment


class Chemostat(TabulatedEnvironment):
    """Cells harvested an hour, at the end of a run of 12 hours; the best growth goes to and fro."""

    tolerance = 0.02
    cycle: float = 50.0

    def domain(self) -> Box:
        return Box([0.05, 1.0], [0.5, 9.0], ["dilution", "feed"])

    def simulate(self, points: Points, time: float, resolution: float) -> Values:
        dilution, feed = points.T
        fastest = 0.6 + 0.2 * np.sin(2 * np.pi * time / self.cycle)

        def rates(_: float, state: Values) -> Values:
            cells, sugar = state.reshape(2, -1)
            growth = fastest * cells * sugar / (1 + sugar + sugar**2 / 20)
            return np.append(growth - dilution * cells, dilution * (feed - sugar) - 2 * growth)

        begin = np.repeat([2.0, 0.0], len(points))
        end = solve_ivp(rates, (0.0, 12.0), begin, rtol=1e-6).y[:, -1]
        return np.asarray(dilution * end[: len(points)])
