"""Transport by finite volumes on a grid, and smooth random functions of time.

The solvers of `plume` and `rod` share them. Each scheme conserves what it moves and keeps it from
becoming negative, for any wind, diffusion and step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from sparq_sim.arrays import Values
from sparq_sim.landscapes.snapshots import CellGrid, State

__all__ = ["Diffusion", "Waves", "advect", "average_normal", "count_steps"]


def average_normal(grid: CellGrid, axis: int, middle: float, width: float) -> Values:
    """Return the average of a normal density over each cell along an axis.

    Args:
        grid: The cells.
        axis: The number of the axis.
        middle: The mean of the density, in length units.
        width: Its std, in length units.

    Returns:
        The averages, per length unit, (cells,).
    """
    from scipy.special import erf

    below = erf((grid.faces[axis] - middle) / (math.sqrt(2.0) * width))
    shares: Values = np.diff(below) / (2.0 * grid.spacings[axis])
    return shares


def advect(state: State, travel: float, links: State) -> State:
    """Carry a state along its lines.

    Each cell holds a linear profile with van Leer's slope (1974, J. Comput. Phys. 14), and what
    crosses a face in the step is moved: second order where the state is smooth, less at its peaks.
    A travel of many cells needs no smaller step: profiles are not negative, and stay so.

    Args:
        state: What is carried, in each cell, (cells, lines).
        travel: How far it is carried, in cells; negative for the other direction.
        links: 1 between cells that are joined, and 0 where a wall stands, which stops what is
            carried against it, (cells - 1, lines).

    Returns:
        The state after the step, (cells, lines).
    """
    if travel < 0.0:
        return advect(state[::-1], -travel, links[::-1])[::-1]
    after = state.copy()
    # A strip at a time: its arrays stay in the cache, which halves the time of large grids.
    width = max(1, 8192 // len(state))
    for begin in range(0, state.shape[1], width):
        strip = slice(begin, begin + width)
        moved = _move(state[:, strip], travel, links[:, strip])
        after[:-1, strip] -= moved
        after[1:, strip] += moved
    return np.maximum(after, 0.0, out=after)  # Rounding may leave -1e-17.


def _move(state: State, travel: float, links: State) -> State:
    """Return what crosses each face between cells, (cells - 1, lines)."""
    whole = int(travel)
    part = travel - whole
    differences = np.diff(state, axis=0)
    differences *= links
    # Half of van Leer's slope: a b / (a + b) where a and b have one sign, else 0.
    slopes = differences[1:] * differences[:-1]
    np.maximum(slopes, 0.0, out=slopes)
    sums = differences[1:] + differences[:-1]
    slopes *= sums
    sums *= sums
    sums += 1e-300  # For 0 / 0.
    slopes /= sums
    slopes *= part * (1.0 - part)
    last = part * state
    last[1:-1] += slopes
    moved = np.zeros(links.shape)
    reached = links
    for back in range(min(whole, len(links) - 1) + 1):
        if back:
            reached = reached[1:] * links[:-back]
        cells = last if back == whole else state
        moved[back:] += reached * cells[: len(reached)]
    return moved


class Diffusion:
    """One implicit step of diffusion along a line of cells; call it with the line.

        c_i' = g_i (c_{i+1} - c_i) + g_{i-1} (c_{i-1} - c_i) - l_i c_i

    With L the matrix of the right side and gamma = 1 - 1 / sqrt(2), the step is that of Alexander
    (1977, SIAM J. Numer. Anal. 14), of second order and stable for any length:

        c <- (I + (1 - 2 gamma) step L) (I - gamma step L)^-2 c

    The inverse is never negative. Where the explicit factor would take more from a cell than it
    holds, which happens if the state is rough on the grid, it takes all that the cell holds.

    Args:
        links: The g: diffusion / spacing^2, and 0 where a wall stands, (cells - 1,). Several
            lines are one line with walls between them.
        step: The length of the step, in clock units.
        leaks: The l: the rate at which each cell loses to the outside, (cells,); by default 0.
    """

    def __init__(self, links: Values, step: float, *, leaks: Values | None = None) -> None:
        from scipy.linalg.lapack import dpttrf, dpttrs

        leaks = np.zeros(len(links) + 1) if leaks is None else leaks
        rates = leaks.copy()
        rates[:-1] += links
        rates[1:] += links
        implicit = (1.0 - math.sqrt(0.5)) * step
        explicit = step - 2.0 * implicit
        self._links = explicit * links
        self._leaks = explicit * leaks if leaks.any() else None
        self._diagonal, self._beside, _ = dpttrf(1.0 + implicit * rates, -implicit * links)
        self._solve: Callable[..., tuple[Any, int]] = dpttrs

    def __call__(self, line: Values) -> Values:
        """Return *line* (cells,) one step later."""
        smooth: Values = line.copy()
        for _ in range(2):
            smooth, _ = self._solve(self._diagonal, self._beside, smooth, overwrite_b=True)
        flows = np.diff(smooth)
        flows *= self._links  # To the left.
        leaked = None if self._leaks is None else self._leaks * smooth
        after = _apply(smooth, flows, leaked)
        if after.min() < 0.0:
            left, right = np.maximum(flows, 0.0), np.maximum(-flows, 0.0)
            taken = np.full(len(line), 1e-300) if leaked is None else leaked + 1e-300
            taken[1:] += left
            taken[:-1] += right
            shares = np.minimum(1.0, smooth / taken)
            flows = left * shares[1:] - right * shares[:-1]
            after = _apply(smooth, flows, None if leaked is None else leaked * shares)
            np.maximum(after, 0.0, out=after)  # Rounding may leave -1e-17.
        return after


def _apply(line: Values, flows: Values, leaked: Values | None) -> Values:
    """Return *line* after *flows* to the left and after what leaked."""
    after = line.copy() if leaked is None else line - leaked
    after[:-1] += flows
    after[1:] -= flows
    return after


class Waves:
    """A smooth random function of time with mean 0 and variance 1, between -4 and 4.

        w(t) = sqrt(2 / 8) sum_{j=1}^{8} sin(omega_j t + phi_j)

    The angular frequencies are uniform from 0.5 to 1.5 times 2 pi / cycle, the phases uniform: the
    spectral representation of Shinozuka and Deodatis (1991).

    Args:
        cycle: The typical period, in clock units.
        rng: The generator to draw frequencies and phases from.
    """

    BOUND = 4.0
    """No value exceeds this, nor lies below its negative."""

    def __init__(self, cycle: float, rng: Generator) -> None:
        self._frequencies = 2.0 * math.pi / cycle * rng.uniform(0.5, 1.5, 8)
        self._phases = rng.uniform(0.0, 2.0 * math.pi, 8)

    def at(self, time: float) -> float:
        """Return the function at *time* (clock units)."""
        return 0.5 * float(np.sin(self._frequencies * time + self._phases).sum())

    def integral(self, begin: float, end: float) -> float:
        """Return the integral from *begin* to *end* (clock units)."""
        cosines = [np.cos(self._frequencies * time + self._phases) for time in (begin, end)]
        return 0.5 * float(((cosines[0] - cosines[1]) / self._frequencies).sum())


def count_steps(step: float, snapshot: float) -> int:
    """Return how many steps of a solver make one snapshot.

    Args:
        step: The length of a step, in clock units.
        snapshot: The time between two snapshots, in clock units.

    Returns:
        The number of steps.

    Raises:
        ValueError: A snapshot is not a whole number of steps.
    """
    steps = round(snapshot / step)
    if steps < 1 or abs(steps * step - snapshot) > 1e-9 * snapshot:
        raise ValueError(
            f"snapshot {snapshot} must be a whole number of times step {step}; "
            f"take step = {snapshot / max(1, math.ceil(snapshot / step))}"
        )
    return steps
