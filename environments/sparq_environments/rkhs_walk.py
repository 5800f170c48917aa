"""The environment `rkhs-walk`: kernel expansions whose norm and change are bounded."""

from __future__ import annotations

from collections.abc import Callable
from math import asin, atan2, cos, floor, pi, sin, sqrt
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from sparq_environments._markov_chain import MarkovChain
from sparq_environments.kernel_environment import KernelEnvironment
from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.fields import Positive, Size
from sparq_sim.gp.kernels import (
    Kernel,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
)
from sparq_sim.landscapes.optima import OptimumSearch
from sparq_sim.plugin.contract import Landscape

__all__ = ["RKHSLandscape", "RKHSWalk"]

_Smooth = Annotated[
    SquaredExponential | Matern32 | Matern52 | RationalQuadratic, Field(discriminator="kind")
]
"""Kernels whose functions are differentiable, as the search for the best point requires."""


class RKHSWalk(KernelEnvironment):
    """A drifting function in the space of a kernel (its RKHS), for checks of theory.

        f_t = sum_i a_i(t) k(., c_i)

    By construction, for every real time t >= 0 and with M^2 = k(x, x), the kernel's variance:

    - ||f_t||_k <= norm: Assumption 1 of Mauduit, Berthier and Simonetto (2025);
    - ||f_{t+1} - f_t||_k <= Delta / M, so that sup_x |f_{t+1}(x) - f_t(x)| <= Delta: Assumption 2.
      Delta is *change*, or *jump* if the drift is abrupt; see `largest_change`.

    Both hold up to rounding, 1e-12 of the norm. The centres c_i are uniform in the box. A function
    is drawn by normal coefficients (Deng et al. 2022 draw uniform ones) and scaled to the norm it
    must have. The drifts are

    - walk: at whole times f_t lies on the sphere ||f|| = norm; at each it turns towards a newly
      drawn function by the angle whose chord is Delta / M, and in between it is interpolated;
    - abrupt: the same, but it stands still and jumps after each *interval*; with a *jump* of inf
      it jumps to a newly drawn function, which is at most 2 norm M away;
    - periodic: f_t = b + r (p cos wt + q sin wt), w = 2 pi / cycle, with functions b, p and q; r is
      as large as *change* and *norm* allow, and b takes what is left of *norm*;
    - seasonal: the same with several *cycles*, each with an equal share of *change* and *norm*.

    With the defaults sup_x |f_{t+1}(x) - f_t(x)| was on average (at most) 0.080 (0.0998) for the
    walk, 0.070 (0.095) periodic, 0.033 (0.065) seasonal and 0.0076 (0.995) abrupt, measured over
    5 starts of 3,000 rounds; the average times the rounds is the variation budget.
    """

    kernel: _Smooth = SquaredExponential(length_scale=0.2)
    """The kernel k of the space; its length scale is in units of the points."""
    norm: Positive = 2.0
    """The bound on ||f_t||_k; rewards lie within +-norm M."""
    change: Annotated[float, Field(ge=0)] = 0.1
    """The bound on the change of any reward per clock unit, unless the drift is abrupt; may be 0
    or inf."""
    drift: Literal["walk", "periodic", "abrupt", "seasonal"] = "walk"
    """How the function changes: a random `walk`, `periodic`, `abrupt` or `seasonal`."""
    cycle: Positive = 60.0
    """The period of a periodic drift, in clock units."""
    cycles: Annotated[tuple[Positive, ...], Field(min_length=1)] = (20.0, 75.0, 300.0)
    """The periods of the parts of a seasonal drift, in clock units."""
    interval: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 100.0
    """How long an abrupt drift stands still, in clock units; at least 1."""
    jump: Annotated[float, Field(ge=0)] = 1.0
    """The bound on the change of any reward at a jump of an abrupt drift; may be inf."""
    centres: Size = 30
    """How many kernel functions the expansion has."""

    @property
    def largest_change(self) -> float:
        """The Delta of Assumption 2: no reward changes by more per clock unit."""
        allowed = self.jump if self.drift == "abrupt" else self.change
        return min(allowed, 2 * self.norm * sqrt(self.kernel.variance))

    def start(self, rng: Generator) -> Landscape:
        return RKHSLandscape(self, rng)


class RKHSLandscape:
    """The landscape of a drifting kernel expansion.

    For checks of theory it has its `kernel`, its `centres` (m, d), the `gram` matrix of the kernel
    at the centres (m, m), and the `coefficients` at each time.

    Args:
        model: The fields of the environment.
        rng: The generator to draw centres and functions from.
    """

    def __init__(self, model: RKHSWalk, rng: Generator) -> None:
        self.domain = model.box()
        self.kernel: Kernel = model.kernel
        self.centres = self.domain.sample(rng, model.centres)
        self.gram = self.kernel(self.centres, self.centres)
        scales, self._basis = _build_basis(self.gram)
        self._interval = model.interval if model.drift == "abrupt" else None
        self._function = _start_drift(model, scales, rng)
        self._optima = OptimumSearch(
            self.domain,
            self._rewards,
            slopes=self._slopes,
            starts=self._starts,
            cover=model.cover_size(per_cell=20),
            climbs=10,
        )

    def rewards(self, points: Points, time: float) -> Values:
        """Return f_t at each point.

        Args:
            points: The points, (n, d).
            time: The time, in clock units.

        Returns:
            The rewards, (n,).
        """
        return self._rewards(points, self._phase(time))

    def best(self, time: float) -> tuple[Point, float]:
        """Return the highest point, to 1e-9 of *norm*; it is computed once for each function.

        It is searched for from the centres and, in two dimensions or more, from an even cover of up
        to 16,384 points. It may be missed where (1 + width / length scale)^d exceeds about 800 and
        centres lie close to each other.

        Args:
            time: The time, in clock units.

        Returns:
            The point, (d,), and its reward.
        """
        return self._optima.best(self._phase(time))

    def coefficients(self, time: float) -> Values:
        """Return the coefficients a(t).

        Args:
            time: The time, in clock units.

        Returns:
            One coefficient for each centre, (m,).
        """
        return self._coefficients(self._phase(time))

    def _phase(self, time: float) -> float:
        """Return what the function depends on: the time, or the number of jumps before it."""
        return time if self._interval is None else float(floor(time / self._interval))

    def _coefficients(self, phase: float) -> Values:
        coefficients: Values = self._function(phase) @ self._basis
        return coefficients

    def _rewards(self, points: Points, phase: float) -> Values:
        values: Values = self.kernel(points, self.centres) @ self._coefficients(phase)
        return values

    def _slopes(self, points: Points, phase: float) -> Points:
        coefficients = self._coefficients(phase)
        return np.array([coefficients @ self.kernel.gradient(p, self.centres) for p in points])

    def _starts(self, phase: float) -> Points:
        return self.centres


def _build_basis(gram: Matrix) -> tuple[Values, Matrix]:
    """Return the square roots (r,) of the largest eigenvalues of *gram*, and a basis (r, m).

    The rows of the basis are the coefficients of functions that are orthonormal in the kernel's
    space. If coefficients are standard normal, the coordinates in this basis have the roots as
    stds. The functions that are left out matter little, but their large coefficients would make
    norms inexact.
    """
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-6 * values[-1]
    roots = np.sqrt(values[kept])
    basis: Matrix = vectors[:, kept].T / roots[:, None]
    return roots, basis


def _start_drift(model: RKHSWalk, scales: Values, rng: Generator) -> Callable[[float], Values]:
    """Return the coordinates of the function by time, or by the number of jumps."""
    change = model.largest_change / sqrt(model.kernel.variance)
    match model.drift:
        case "periodic":
            return _Cycles((model.cycle,), scales, rng, norm=model.norm, change=change)
        case "seasonal":
            return _Cycles(model.cycles, scales, rng, norm=model.norm, change=change)
        case _:
            turns = _Turns(scales, norm=model.norm, chord=change)
            first = model.norm * _draw_units(rng, 1, scales)[0]
            return MarkovChain(first, turns, rng).interpolate


def _draw_units(rng: Generator, count: int, scales: Values) -> Matrix:
    """Draw the coordinates of *count* functions of norm 1, as (count, r)."""
    draws = scales * rng.standard_normal((count, len(scales)))
    units: Matrix = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    return units


class _Cycles:
    """A sum of rotations around one function.

    ||p cos wt + q sin wt||^2 <= 1 + |<p, q>| =: s^2 for p and q of norm 1, so that a radius r
    uses r s of the norm and 2 r s sin(w / 2) of the change per clock unit (2 r s, if a clock unit
    is half a cycle or more). By the triangle inequality these add up.
    """

    def __init__(
        self,
        cycles: tuple[float, ...],
        scales: Values,
        rng: Generator,
        *,
        norm: float,
        change: float,
    ) -> None:
        base, *waves = _draw_units(rng, 1 + 2 * len(cycles), scales)
        cosines, sines = np.array(waves[::2]), np.array(waves[1::2])
        self._speeds = 2 * pi / np.array(cycles)
        chords = 2 * np.sin(np.minimum(self._speeds, pi) / 2)
        shares = np.minimum(change / chords, norm) / len(cycles)
        radii = shares / np.sqrt(1 + np.abs((cosines * sines).sum(axis=1)))
        self._cosines = radii[:, None] * cosines
        self._sines = radii[:, None] * sines
        self._base = (norm - shares.sum()) * base

    def __call__(self, time: float) -> Values:
        angles = self._speeds * time
        function: Values = (
            self._base + np.cos(angles) @ self._cosines + np.sin(angles) @ self._sines
        )
        return function


class _Turns:
    """Steps of at most *chord* on the sphere of *norm*, towards newly drawn functions."""

    def __init__(self, scales: Values, *, norm: float, chord: float) -> None:
        self._scales = scales
        self._norm = norm
        self._angle = 2 * asin(min(chord / (2 * norm), 1.0))  # Rounding may exceed 1.

    def __call__(self, states: Matrix, rng: Generator) -> None:
        for step, goal in enumerate(_draw_units(rng, len(states) - 1, self._scales)):
            states[step + 1] = self._turn(states[step], goal)

    def _turn(self, state: Values, goal: Values) -> Values:
        here = state / sqrt(state @ state)  # At each step, so that rounding does not add up.
        along = float(here @ goal)
        across = goal - along * here
        length = sqrt(across @ across)
        if length < 1e-3:  # The direction is lost in rounding, or no direction is shorter.
            return state
        angle = min(self._angle, atan2(length, along))
        turned: Values = (self._norm * cos(angle)) * here
        return turned + (self._norm * sin(angle) / length) * across
