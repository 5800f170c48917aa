"""Environments compared with plain formulas: rewards, best points, and the steps of a plume.

Run it from the root of the repository: `python -m benchmarks.environments [--check] [--json]`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from benchmarks.compare import Pair, Row, at_most, growth, main
from sparq_environments.function import from_function
from sparq_environments.markov_gp import MarkovGP, _FeatureLandscape, _GridLandscape
from sparq_environments.moving_peaks import MovingPeaks, _MovingPeaksLandscape
from sparq_environments.plume import Plume
from sparq_environments.rkhs_walk import RKHSLandscape, RKHSWalk
from sparq_environments.shifting import Shifting, branin
from sparq_environments.switching import Switching, _SwitchingLandscape
from sparq_environments.synthetic import Synthetic
from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Box
from sparq_sim.plugin.contract import Environment
from sparq_sim.simulation.lifetime import open_landscape

POINTS, TIMES = 1_000, 100
DENSE = 10_000
"""Points of the grid on which the peer searches for the best."""
CELLS, ROUNDS = 128, 500
STEPS = 4
"""Steps of the plume's solver per round."""

Formula = Callable[[Points], object]


def paper(points: Points, time: float) -> Values:
    """Compute the paper's function."""
    x = points[:, 0]
    values: Values = np.exp(-0.05 * (x - 5 * np.sin(0.1 * time)) ** 2) + 0.5 * np.cos(0.2 * x) + 1.5
    return values


def compute_gaussians(points: Points, centres: Points, width: float) -> NDArray[np.float64]:
    """Compute exp(-|x - c|^2 / (2 width^2)) for each pair of a point and a centre."""
    squares = ((points[:, None] - centres) ** 2).sum(axis=2)
    bumps: NDArray[np.float64] = np.exp(-squares / (2 * width**2))
    return bumps


def start(environment: Environment) -> Any:
    """Return a landscape, untyped, so that plain formulas may read its private parts."""
    with open_landscape(environment, rng=Generator(Philox(key=0))) as landscape:
        return landscape  # It holds nothing open.


# The formulas at one time; all that depends on time alone is computed beforehand.


def walk_formula(landscape: RKHSLandscape) -> Formula:
    """Sum the kernels of the centres."""
    coefficients = landscape.coefficients(7.0)
    return lambda points: compute_gaussians(points, landscape.centres, 0.2) @ coefficients


def grid_formula(landscape: _GridLandscape) -> Formula:
    """Interpolate between the nodes."""
    nodes = landscape._grid[:, 0]
    values = landscape._at_nodes(7)
    return lambda points: np.interp(points[:, 0], nodes, values)


def feature_formula(landscape: _FeatureLandscape) -> Formula:
    """Sum the waves."""
    frequencies = landscape._frequencies
    cosines, sines = landscape._amplitudes(7)

    def waves(points: Points) -> object:
        angles = points @ frequencies.T
        return np.cos(angles) @ cosines + np.sin(angles) @ sines

    return waves


def peaks_formula(landscape: _MovingPeaksLandscape) -> Formula:
    """Take the highest cone."""
    places, heights, widths = landscape.peaks(7.0)

    def cones(points: Points) -> object:
        distances = np.linalg.norm(points[:, None] - places, axis=2)
        return (heights - widths * distances).max(axis=1)

    return cones


def switching_formula(landscape: _SwitchingLandscape) -> Formula:
    """Sum the bumps of the current function."""
    centres, heights = landscape._centres[0], landscape._heights[0]
    return lambda points: compute_gaussians(points, centres, 0.15) @ heights


def functions() -> dict[str, tuple[Environment, Callable[[Any], Formula]]]:
    """Return each environment, with what makes a plain formula of its landscape."""
    return {
        "synthetic": (Synthetic(), lambda _: lambda points: paper(points, 7.0)),
        "from_function": (
            from_function(paper, Box(-50.0, 50.0)),
            lambda _: lambda points: paper(points, 7.0),
        ),
        "rkhs-walk": (RKHSWalk(), walk_formula),
        "markov-gp, grid": (MarkovGP(), grid_formula),
        "markov-gp, 200 features": (MarkovGP(features=200), feature_formula),
        "moving-peaks": (MovingPeaks(), peaks_formula),
        "shifting, branin": (Shifting(), lambda _: branin),
        "switching": (Switching(), switching_formula),
    }


def rewards_pair(name: str) -> Pair:
    """Compare the rewards of 1,000 points at one time with the plain formula."""
    environment, make = functions()[name]
    landscape = start(environment)
    formula = make(landscape)
    points = landscape.domain.sample(Generator(Philox(key=1)), POINTS)

    def ours() -> None:
        for _ in range(TIMES):
            landscape.rewards(points, 7.0)

    def peer() -> None:
        for _ in range(TIMES):
            formula(points)

    what = f"{POINTS:,} rewards, {name}; numpy"
    return Pair(what, ours, peer, at_most(20), units=TIMES)


def best_pair(name: str, environment: Environment) -> Pair:
    """Compare the best point at a new time with the argmax of 10,000 rewards, on a line."""
    landscape = start(environment)
    points = landscape.domain.grid(DENSE)
    late, early = count(1), count(1)

    def ours() -> None:
        for _ in range(TIMES):
            landscape.best(float(next(late)))

    def peer() -> None:
        for _ in range(TIMES):
            landscape.rewards(points, float(next(early))).argmax()

    return Pair(f"best of a new time, {name}; a grid", ours, peer, at_most(2), TIMES)


# The plume. Its peers do only the linear algebra, once line by line as the solver does, and once
# for all cells together.


def compute_plume(cells: int, rounds: int) -> None:
    """Compute a plume for so many *rounds*, from time 0."""
    landscape = start(Plume(cells=cells, spin_up=0.0))
    for number in range(1, rounds + 1):
        landscape.best(float(number))


def solve_banded_lines(cells: int, rounds: int) -> None:
    """Solve as many tridiagonal systems as the diffusion of the plume does, and nothing else."""
    from scipy.linalg import solve_banded

    links = np.full(cells**2 - 1, 0.25 * 0.3 * 0.05 * (cells / 10.0) ** 2)
    links[cells - 1 :: cells] = 0.0
    left, right = np.append(0.0, links), np.append(links, 0.0)
    matrix = np.array([-left, 1.0 + left + right, -right])
    state = np.zeros(cells**2)
    state[cells**2 // 2] = 1.0
    # Two directions, with two stages each.
    for _ in range(rounds * STEPS * 4):
        state = solve_banded((1, 1), matrix, state, check_finite=False)


def solve_sparse(cells: int, rounds: int) -> None:
    """Take as many implicit Euler steps of diffusion alone, with one sparse factorisation."""
    from scipy.sparse import diags_array, eye_array, kron
    from scipy.sparse.linalg import splu

    links = np.ones(cells - 1) * 0.05 * (cells / 10.0) ** 2
    rates = np.append(links, 0.0) + np.append(0.0, links)
    line = diags_array([links, -rates, links], offsets=[-1, 0, 1])
    one = eye_array(cells)
    plane = kron(line, one) + kron(one, line)
    factor = splu((eye_array(cells**2) - 0.25 * plane).tocsc())
    state = np.zeros(cells**2)
    state[cells**2 // 2] = 1.0
    for _ in range(rounds * STEPS):
        state = factor.solve(state)


def measure_growth() -> Row:
    """Measure how the time of a step grows with the cells, from 64 to 256 per side."""
    return growth(
        "plume, 50 rounds of 256 x 256; 64 x 64",
        lambda cells: compute_plume(round(cells**0.5), 50),
        sizes=(64**2, 256**2),
        most=1.15,
    )


def rows() -> list[Pair | Callable[[], Row]]:
    """Return the rows of this benchmark."""
    return [
        *(rewards_pair(name) for name in functions()),
        best_pair("synthetic", Synthetic()),
        best_pair("from_function", from_function(paper, Box(-50.0, 50.0))),
        best_pair("rkhs-walk", RKHSWalk()),
        best_pair("markov-gp, grid", MarkovGP()),
        best_pair("ackley", Shifting(function="ackley", dimensions=1)),
        Pair(
            f"plume, {ROUNDS} rounds of {CELLS} x {CELLS}; solve_banded",
            lambda: compute_plume(CELLS, ROUNDS),
            lambda: solve_banded_lines(CELLS, ROUNDS),
            at_most(2),
            repetitions=3,
        ),
        Pair(
            f"plume, {ROUNDS} rounds of {CELLS} x {CELLS}; splu",
            lambda: compute_plume(CELLS, ROUNDS),
            lambda: solve_sparse(CELLS, ROUNDS),
            at_most(1),
            repetitions=1,
        ),
        measure_growth,
    ]


if __name__ == "__main__":
    main("Environments compared with plain formulas", rows())
