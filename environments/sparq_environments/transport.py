"""Transport: finite volumes on a grid, marched on a time grid of their own, kept as snapshots.

What the simulators of a plume and of a rod share. Each scheme conserves what it moves and keeps
it from becoming negative, whatever the wind, the diffusion and the step.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_sim.domain import Box
from sparq_sim.messages import Point, Points, Values

State: TypeAlias = NDArray[np.float64]
"""The average over each cell: one axis for each coordinate."""

SMALLEST_SIDE = 4
"""Cells a side of the coarsest grid there is."""


class Grid:
    """Equal *cells* along each of the *sides* of a box that begins at 0."""

    def __init__(self, sides: tuple[float, ...], cells: int) -> None:
        self.sides = sides
        self.cells = cells
        self.spacings = np.array(sides) / cells
        self.faces = tuple(np.linspace(0.0, side, cells + 1) for side in sides)
        """Where cells begin and end, along each side: (cells + 1,)."""
        self.centres = tuple(0.5 * (faces[1:] + faces[:-1]) for faces in self.faces)
        """The middles of the cells, along each side: (cells,)."""

    def centre(self, number: int) -> Point:
        """Give the middle of the cell with this *number* in the flat state."""
        index = np.unravel_index(number, (self.cells,) * len(self.sides))
        return np.array([self.centres[axis][place] for axis, place in enumerate(index)])

    def sample(self, state: State, points: Points) -> Values:
        """Interpolate between the middles of cells, linearly in each coordinate.

        Beyond the outermost middles the value is that of the nearest place between them. So the
        highest value is that of a cell, in its middle.
        """
        place = np.clip(points / self.spacings - 0.5, 0.0, self.cells - 1.0)
        low = np.minimum(place.astype(np.intp), self.cells - 2)
        shares = place - low
        weights = [(1.0 - share, share) for share in shares.T]
        values = np.zeros(len(points))
        for corner in product((0, 1), repeat=len(self.sides)):
            weight = np.ones(len(points))
            for pair, side in zip(weights, corner, strict=True):
                weight *= pair[side]
            values += weight * state[tuple((low + corner).T)]
        return values

    def bump(self, axis: int, middle: float, width: float) -> Values:
        """Average over each cell along *axis* a normal density with this *middle* and std."""
        from scipy.special import erf

        below = erf((self.faces[axis] - middle) / (math.sqrt(2.0) * width))
        shares: Values = np.diff(below) / (2.0 * self.spacings[axis])
        return shares


def advect(state: State, travel: float, links: State) -> State:
    """Carry *state* (cells, lines) along its lines by *travel* cells, forth or, if negative, back.

    *links* (cells - 1, lines) is 1 between cells that are joined and 0 where a wall stands, which
    stops what is carried against it. Each cell holds a linear profile with van Leer's slope (1974,
    J. Comput. Phys. 14), and what crosses a face in the step is moved: second order where the
    state is smooth, less at its peaks. A travel of many cells needs no smaller step: profiles are
    not negative, and moving what is not negative leaves it so.
    """
    if travel < 0.0:
        return advect(state[::-1], -travel, links[::-1])[::-1]
    after = state.copy()
    # A strip at a time: its arrays stay in the cache, which halves the time of large grids.
    width = max(1, 8192 // len(state))
    for begin in range(0, state.shape[1], width):
        strip = slice(begin, begin + width)
        moved = _moved(state[:, strip], travel, links[:, strip])
        after[:-1, strip] -= moved
        after[1:, strip] += moved
    return np.maximum(after, 0.0, out=after)  # Rounding may leave -1e-17.


def _moved(state: State, travel: float, links: State) -> State:
    """Give what crosses each face between cells: (cells - 1, lines)."""
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
    """One *step* of c_i' = g_i (c_{i+1} - c_i) + g_{i-1} (c_{i-1} - c_i) - l_i c_i along a line.

    *links* g (cells - 1,) are diffusion / spacing^2, 0 where a wall stands; *leaks* l (cells,)
    are what the ends lose. Many lines are one line with walls between them. With L the matrix of
    the right side and gamma = 1 - 1 / sqrt(2), the step is that of Alexander (1977, SIAM J. Numer.
    Anal. 14), of second order and stable for any step:

    c <- (I + (1 - 2 gamma) step L) (I - gamma step L)^-2 c

    The inverse is never negative. Where what follows would take more from a cell than it holds,
    which happens to states that are rough on the grid, it takes what there is.
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
        """Give *line* (cells,) one step later."""
        smooth: Values = line.copy()
        for _ in range(2):
            smooth, _ = self._solve(self._diagonal, self._beside, smooth, overwrite_b=True)
        flows = np.diff(smooth)
        flows *= self._links  # To the left.
        leaked = None if self._leaks is None else self._leaks * smooth
        after = _after(smooth, flows, leaked)
        if after.min() < 0.0:
            left, right = np.maximum(flows, 0.0), np.maximum(-flows, 0.0)
            taken = np.full(len(line), 1e-300) if leaked is None else leaked + 1e-300
            taken[1:] += left
            taken[:-1] += right
            shares = np.minimum(1.0, smooth / taken)
            flows = left * shares[1:] - right * shares[:-1]
            after = _after(smooth, flows, None if leaked is None else leaked * shares)
            np.maximum(after, 0.0, out=after)  # Rounding may leave -1e-17.
        return after


def _after(line: Values, flows: Values, leaked: Values | None) -> Values:
    """Give *line* after *flows* to the left, and what leaked."""
    after = line.copy() if leaked is None else line - leaked
    after[:-1] += flows
    after[1:] -= flows
    return after


class Snapshots:
    """States numbered from 0, each made by *advance* from the one before it and its number.

    At most *kept* of the latest asked and *kept* of all times are held. The latter are spread
    evenly and thinned as the march goes on, so that to look back never means to begin anew: a way
    back through n states makes each of them about 1 + n / kept^2 times.
    """

    def __init__(
        self, first: State, advance: Callable[[State, int], State], *, kept: int = 64
    ) -> None:
        first.setflags(write=False)
        self._advance = advance
        self._kept = kept
        self._apart = 1
        self._spread = {0: first}
        self._latest: OrderedDict[int, State] = OrderedDict()

    def __len__(self) -> int:
        return len(self._spread) + len(self._latest)

    def __getitem__(self, number: int) -> State:
        """Give the state with this *number*, which nobody may change."""
        state = self._latest.get(number)
        if state is None:
            state = self._march(number)
        self._latest.move_to_end(number)
        return state

    def _march(self, number: int) -> State:
        begin = max(held for held in (*self._spread, *self._latest) if held <= number)
        state = self._latest[begin] if begin in self._latest else self._spread[begin]
        self._hold(begin, state)
        for before in range(begin, number):
            state = self._advance(state, before)
            state.setflags(write=False)
            self._hold(before + 1, state)
        return state

    def _hold(self, number: int, state: State) -> None:
        self._latest[number] = state
        if len(self._latest) > self._kept:
            self._latest.popitem(last=False)
        if number % self._apart == 0:
            self._spread[number] = state
            if len(self._spread) > self._kept:
                self._apart *= 2
                self._spread = {
                    held: kept for held, kept in self._spread.items() if held % self._apart == 0
                }


class Solver(Protocol):
    """A simulation on one grid."""

    @property
    def grid(self) -> Grid:
        """Where its cells are."""

    def advance(self, state: State, begin: float) -> State:
        """Give the state one snapshot after *begin*."""


class Simulated:
    """A landscape that is simulated: its reward is what a solver computes, interpolated.

    *solver* makes a solver for a number of cells a side. States are kept every *interval* in
    time, the first of them empty, at -*interval* *lead*; between them the reward is interpolated
    linearly in time, and between the middles of cells linearly in each coordinate. So the best
    point is the middle of a cell, exactly.
    """

    def __init__(
        self,
        solver: Callable[[int], Solver],
        per_side: int,
        *,
        names: tuple[str, ...],
        interval: float,
        lead: int,
    ) -> None:
        self._make = solver
        self._solver = solver(per_side)
        self._grid = self._solver.grid
        self._interval = interval
        self._lead = lead
        self.per_side = per_side
        sides = self._grid.sides
        self.domain = Box(np.zeros(len(sides)), sides, names)
        self.cells = per_side ** len(sides)
        """How many cells are computed in each step."""
        self._best: dict[float, tuple[Point, float]] = {}
        self._latest: tuple[float, State] = math.nan, np.empty(0)
        self._coarse: dict[int, Simulated] = {per_side: self}

    @cached_property
    def _snapshots(self) -> Snapshots:
        empty = np.zeros((self.per_side,) * self.domain.dimensions)
        return Snapshots(empty, self._advance)

    def rewards(self, points: Points, time: float) -> Values:
        """Give the simulated quantity at each point."""
        return self._grid.sample(self._at(time), points)

    def best(self, time: float) -> tuple[Point, float]:
        """Give the middle of the highest cell: exactly the best of the interpolated reward."""
        found = self._best.get(time)
        if found is None:
            state = self._at(time)
            highest = int(state.argmax())
            found = self._grid.centre(highest), float(state.flat[highest])
            self._best[time] = found
        return found

    def coarse(self, resolution: float) -> Simulated:
        """Give the same world, its chance included, on fewer cells.

        *resolution* is the share of the cells a side, above 0 and at most 1; at least
        `SMALLEST_SIDE` are left. The time grid stays, so that only the error in space grows.
        """
        if not 0.0 < resolution <= 1.0:
            raise ValueError(
                f"resolution is the share of the cells a side, above 0 and at most 1, "
                f"not {resolution!r}"
            )
        per_side = max(SMALLEST_SIDE, round(resolution * self.per_side))
        if per_side not in self._coarse:
            self._coarse[per_side] = Simulated(
                self._make,
                per_side,
                names=self.domain.names,
                interval=self._interval,
                lead=self._lead,
            )
        return self._coarse[per_side]

    def _advance(self, state: State, number: int) -> State:
        return self._solver.advance(state, (number - self._lead) * self._interval)

    def _at(self, time: float) -> State:
        """Interpolate between the snapshots before and after *time*; the latest is kept."""
        if self._latest[0] != time:
            share, whole = math.modf(time / self._interval)
            number = int(whole) + self._lead
            state = self._snapshots[number]
            if share > 0.0:
                state = (1.0 - share) * state + share * self._snapshots[number + 1]
            self._latest = time, state
        return self._latest[1]


class Waves:
    """A smooth random function of time with mean 0 and variance 1, within -4 and 4.

    w(t) = sqrt(2 / 8) sum_{j=1}^{8} sin(omega_j t + phi_j), with angular frequencies drawn about
    2 pi / *cycle* (half to one and a half times as high): the spectral representation of Shinozuka
    and Deodatis (1991).
    """

    BOUND = 4.0

    def __init__(self, cycle: float, rng: Generator) -> None:
        self._frequencies = 2.0 * math.pi / cycle * rng.uniform(0.5, 1.5, 8)
        self._phases = rng.uniform(0.0, 2.0 * math.pi, 8)

    def at(self, time: float) -> float:
        """Give the function at *time*."""
        return 0.5 * float(np.sin(self._frequencies * time + self._phases).sum())

    def integral(self, begin: float, end: float) -> float:
        """Give the integral from *begin* to *end*."""
        cosines = [np.cos(self._frequencies * time + self._phases) for time in (begin, end)]
        return 0.5 * float(((cosines[0] - cosines[1]) / self._frequencies).sum())


def whole_steps(step: float, snapshot: float) -> int:
    """Give how many times *step* fits into *snapshot*, or refuse it."""
    steps = round(snapshot / step)
    if steps < 1 or abs(steps * step - snapshot) > 1e-9 * snapshot:
        raise ValueError(
            f"snapshot {snapshot} must be a whole number of times step {step}; "
            f"take step = {snapshot / max(1, math.ceil(snapshot / step))}"
        )
    return steps
