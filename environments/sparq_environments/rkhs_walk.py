"""An RKHS walk: kernel expansions whose norm and change are bounded by construction."""

from __future__ import annotations

from collections.abc import Callable
from math import asin, atan2, cos, floor, pi, sin, sqrt
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field, PositiveInt

from sparq_environments._kernel_environment import KernelEnvironment
from sparq_environments._markov_chain import Chain
from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.fields import Positive
from sparq_sim.gp.kernels import (
    Kernel,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
)
from sparq_sim.landscapes.optima import OptimumSearch
from sparq_sim.plugin.contract import Landscape

Smooth = Annotated[
    SquaredExponential | Matern32 | Matern52 | RationalQuadratic, Field(discriminator="kind")
]
"""Kernels whose functions have a derivative everywhere, as a climb to the best point needs."""


class RKHSWalk(KernelEnvironment):
    """A drifting function of the kernel's own space, f_t = sum_i a_i(t) k(., c_i), for theory.

    By construction, for every real time t >= 0 and with M^2 = k(x, x), the kernel's variance:

    - ||f_t||_k <= norm: Assumption 1 of Mauduit, Berthier and Simonetto (2025);
    - ||f_{t+1} - f_t||_k <= Delta / M, hence sup_x |f_{t+1}(x) - f_t(x)| <= Delta: Assumption 2.
      Delta is *change*, but *jump* where the drift is abrupt: see `largest_change`.

    Both hold to rounding, 1e-12 of the norm. Centres c_i are uniform in the box, and a
    function is drawn by normal coefficients (Deng et al. 2022 draw uniform ones), then scaled to
    the norm it must have. The drifts are

    - walk: f_t is on the sphere ||f|| = norm at whole times and turns each time towards a fresh
      draw by the angle whose chord is Delta / M; in between it goes straight;
    - abrupt: the same, but it stands still and jumps each *interval*; with a *jump* of inf each
      time to a fresh function, which is at most 2 norm M away;
    - periodic: f_t = b + r (p cos wt + q sin wt), w = 2 pi / cycle, of functions b, p and q, with
      r as large as *change* and *norm* allow, and b of what is left of *norm*;
    - seasonal: the same for all *cycles*, each with an equal share of *change* and of *norm*.

    With the defaults sup_x |f_{t+1}(x) - f_t(x)| was on average (at most) 0.080 (0.0998) for the
    walk, 0.070 (0.095) periodic, 0.033 (0.065) seasonal and 0.0076 (0.995) abrupt, measured over
    5 starts of 3,000 rounds; the average times the rounds is the variation budget.
    """

    kernel: Smooth = SquaredExponential(length_scale=0.2)
    """The k of the space; its length scale in units of the points."""
    norm: Positive = 2.0
    """The bound B on ||f_t||_k; rewards lie within +-norm * M."""
    change: Annotated[float, Field(ge=0)] = 0.1
    """The bound on how any reward changes in a unit of time, unless abruptly; may be 0 or inf."""
    drift: Literal["walk", "periodic", "abrupt", "seasonal"] = "walk"
    """How the function changes: by a random `walk`, `periodic`, `abrupt` or `seasonal`."""
    cycle: Positive = 60.0
    """How long a periodic drift takes to return, in clock units."""
    cycles: Annotated[tuple[Positive, ...], Field(min_length=1)] = (20.0, 75.0, 300.0)
    """How long each part of a seasonal drift takes to return, in clock units."""
    interval: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 100.0
    """How long an abrupt drift stands still, in clock units; at least 1."""
    jump: Annotated[float, Field(ge=0)] = 1.0
    """The bound on how any reward changes at a jump of an abrupt drift; may be inf."""
    centres: PositiveInt = 30
    """How many kernel functions make the expansion."""

    @property
    def largest_change(self) -> float:
        """The Delta of Assumption 2: no reward changes by more in a unit of time."""
        allowed = self.jump if self.drift == "abrupt" else self.change
        return min(allowed, 2 * self.norm * sqrt(self.kernel.variance))

    def start(self, rng: Generator) -> Landscape:
        """Draw the centres, the first function and the stream of those to come."""
        return RKHSLandscape(self, rng)


class RKHSLandscape:
    """The started expansion; its coefficients and norm may be asked for theory checks."""

    def __init__(self, model: RKHSWalk, rng: Generator) -> None:
        self.domain = model.box()
        self.kernel: Kernel = model.kernel
        self.centres = self.domain.sample(rng, model.centres)
        self.gram = self.kernel(self.centres, self.centres)
        scales, self._basis = _orthonormal(self.gram)
        self._interval = model.interval if model.drift == "abrupt" else None
        self._function = _function(model, scales, rng)
        self._summits = OptimumSearch(
            self.domain,
            self._rewards,
            slopes=self._slopes,
            starts=self._starts,
            cover=model.cover_size(per_cell=20),
            climbs=10,
        )

    def rewards(self, points: Points, time: float) -> Values:
        """Give f_t at each point."""
        return self._rewards(points, self._phase(time))

    def best(self, time: float) -> tuple[Point, float]:
        """Give the highest point, to 1e-9 of *norm*, found once for each function.

        In space it is sought from the centres and from a cover of up to 16,384 points. It may be
        overlooked where (1 + width / length scale)^d exceeds some 800 and centres crowd.
        """
        return self._summits.best(self._phase(time))

    def coefficients(self, time: float) -> Values:
        """Give a(t), one for each centre."""
        return self._coefficients(self._phase(time))

    def norm(self, time: float) -> float:
        """Give ||f_t||_k = sqrt(a' K a)."""
        coefficients = self.coefficients(time)
        return sqrt(float(coefficients @ self.gram @ coefficients))

    def _phase(self, time: float) -> float:
        """Give what the function depends on: the time, or how many jumps there were."""
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


def _orthonormal(gram: Matrix) -> tuple[Values, Matrix]:
    """Give the square roots (r,) of the largest eigenvalues of *gram*, and a basis (r, m).

    Its rows are the coefficients of functions that are orthonormal in the kernel's space. Where
    normal coefficients have the std 1, coordinates in this basis have those roots as stds. The
    functions left out hardly matter, but their large coefficients would cost norms their digits.
    """
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-6 * values[-1]
    roots = np.sqrt(values[kept])
    basis: Matrix = vectors[:, kept].T / roots[:, None]
    return roots, basis


def _function(model: RKHSWalk, scales: Values, rng: Generator) -> Callable[[float], Values]:
    """Give the function's coordinates by time, or by the number of jumps."""
    change = model.largest_change / sqrt(model.kernel.variance)
    match model.drift:
        case "periodic":
            return _Cycles((model.cycle,), scales, rng, norm=model.norm, change=change)
        case "seasonal":
            return _Cycles(model.cycles, scales, rng, norm=model.norm, change=change)
        case _:
            turns = _Turns(scales, norm=model.norm, chord=change)
            return Chain(model.norm * _units(rng, 1, scales)[0], turns, rng).between


def _units(rng: Generator, count: int, scales: Values) -> Matrix:
    """Draw the coordinates of *count* functions of norm 1, as (count, r)."""
    draws = scales * rng.standard_normal((count, len(scales)))
    units: Matrix = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    return units


class _Cycles:
    """Several rotations about one function.

    ||p cos wt + q sin wt||^2 <= 1 + |<p, q>| =: s^2 for p and q of norm 1, so that a radius r
    costs r s of the norm and 2 r s sin(w / 2) of the change in a unit of time (2 r s, if that is
    half a cycle or more). The triangle inequality adds them up.
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
        base, *waves = _units(rng, 1 + 2 * len(cycles), scales)
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
    """Steps on the sphere of *norm*, towards fresh functions, of at most *chord*."""

    def __init__(self, scales: Values, *, norm: float, chord: float) -> None:
        self._scales = scales
        self._norm = norm
        self._angle = 2 * asin(min(chord / (2 * norm), 1.0))  # Rounding may exceed 1.

    def __call__(self, states: Matrix, rng: Generator) -> None:
        for step, goal in enumerate(_units(rng, len(states) - 1, self._scales)):
            states[step + 1] = self._turned(states[step], goal)

    def _turned(self, state: Values, goal: Values) -> Values:
        here = state / sqrt(state @ state)  # Anew each time, so that rounding does not add up.
        along = float(here @ goal)
        across = goal - along * here
        length = sqrt(across @ across)
        if length < 1e-3:  # The way there is lost in rounding, or all ways are as long.
            return state
        angle = min(self._angle, atan2(length, along))
        turned: Values = (self._norm * cos(angle)) * here
        return turned + (self._norm * sin(angle) / length) * across
