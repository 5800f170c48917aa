"""Snapshots: a reward computed at regular times on a grid, and the landscape between them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import product
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values, freeze_array
from sparq_sim.domain import Box, Domain, Sites

__all__ = [
    "CellGrid",
    "Grid",
    "InterpolatedLandscape",
    "Mesh",
    "NodeGrid",
    "SiteMesh",
    "SnapshotAt",
    "Snapshots",
    "State",
    "check_resolution",
    "scale_side",
]

State: TypeAlias = NDArray[np.float64]
"""Numbers on a grid: one axis for each coordinate."""
SnapshotAt: TypeAlias = Callable[[int], State]
"""Returns the values of the snapshot with this number; that of time 0 has the number 0."""

_SMALLEST_SIDE = 4
"""How many places the coarsest grid has along each side."""


def check_resolution(resolution: float) -> None:
    """Check that a resolution is a share of the full one.

    Args:
        resolution: Above 0 and at most 1.

    Raises:
        ValueError: It is not.
    """
    if not 0.0 < resolution <= 1.0:
        raise ValueError(
            f"resolution is a share of the full one, above 0 and at most 1, not {resolution!r}"
        )


def scale_side(full: int, resolution: float) -> int:
    """Return how many places a grid of lower resolution has along each side.

    Args:
        full: How many the full grid has.
        resolution: The share of these, above 0 and at most 1; at least 4 are left.
    """
    return max(min(_SMALLEST_SIDE, full), round(resolution * full))


# Where values are computed


class Mesh(Protocol):
    """The places of a domain where values are computed, and how to interpolate between them."""

    @property
    def domain(self) -> Domain:
        """Where points may lie."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""

    @property
    def points(self) -> Points:
        """The places, in the order of the flat values: (n, d)."""

    def point(self, number: int) -> Point:
        """Return the place with this number: (d,).

        Args:
            number: Its place in the flat values, from 0.
        """

    def sample(self, values: State, points: Points) -> Values:
        """Return the value at each row of *points*: (n,).

        Args:
            values: At all places, of this mesh's shape.
            points: Where: (n, d).
        """


class Grid:
    """Places at regular distances in a box; see `CellGrid` and `NodeGrid`.

    Args:
        domain: The box.
        axes: The places along each coordinate, equally many.
        spacings: How far apart they are, along each coordinate: (d,).
    """

    def __init__(self, domain: Box, axes: tuple[Values, ...], spacings: Values) -> None:
        self.domain = domain
        self.axes = axes
        """The places along each coordinate."""
        self.spacings = spacings
        """How far apart they are, along each coordinate: (d,)."""
        self.per_side = len(axes[0])
        self.shape = (self.per_side,) * len(axes)

    _margin = 0.0
    """From the bounds to the outermost places, in spacings."""

    @cached_property
    def points(self) -> Points:
        """All places, in the order of the flat values: (n, d)."""
        points = np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1)
        return freeze_array(points.reshape(-1, len(self.axes)))

    def point(self, number: int) -> Point:
        """Return the place with this *number* in the flat values."""
        index = np.unravel_index(number, self.shape)
        return np.array([axis[place] for axis, place in zip(self.axes, index, strict=True)])

    def sample(self, values: State, points: Points) -> Values:
        """Return values interpolated between places, linearly in each coordinate: (n,).

        Beyond the outermost places the value is that of the nearest point between them. So the
        highest value is that of a place.

        Args:
            values: At all places, of this grid's shape.
            points: Where: (n, d).
        """
        place = (points - self.domain.lower) / self.spacings - self._margin
        place = np.clip(place, 0.0, self.per_side - 1.0)
        low = np.minimum(place.astype(np.intp), self.per_side - 2)
        shares = place - low
        weights = [(1.0 - share, share) for share in shares.T]
        sampled = np.zeros(len(points))
        for corner in product((0, 1), repeat=len(self.axes)):
            weight = np.ones(len(points))
            for pair, side in zip(weights, corner, strict=True):
                weight *= pair[side]
            sampled += weight * values[tuple((low + corner).T)]
        return sampled


class CellGrid(Grid):
    """Equal cells in a box; the places are their middles.

    Args:
        domain: The box.
        per_side: How many cells lie along each side.
    """

    _margin = 0.5

    def __init__(self, domain: Box, per_side: int) -> None:
        self.faces = tuple(
            np.linspace(low, high, per_side + 1)
            for low, high in zip(domain.lower, domain.upper, strict=True)
        )
        """Where cells begin and end, along each side: (per_side + 1,)."""
        middles = tuple(0.5 * (faces[1:] + faces[:-1]) for faces in self.faces)
        super().__init__(domain, middles, (domain.upper - domain.lower) / per_side)


class NodeGrid(Grid):
    """Places at regular distances in a box, bounds included.

    Args:
        domain: The box.
        per_side: How many places lie along each side.
    """

    def __init__(self, domain: Box, per_side: int) -> None:
        axes = tuple(
            np.linspace(low, high, per_side)
            for low, high in zip(domain.lower, domain.upper, strict=True)
        )
        super().__init__(domain, axes, (domain.upper - domain.lower) / (per_side - 1))


class SiteMesh:
    """All sites of a domain, between which nothing is interpolated.

    Args:
        domain: The sites.
    """

    def __init__(self, domain: Sites) -> None:
        self.domain = domain
        self.points = domain.points
        self.shape = (len(domain.points),)

    def point(self, number: int) -> Point:
        """Return the site with this *number*."""
        site: Point = self.points[number]
        return site

    def sample(self, values: State, points: Points) -> Values:
        """Return the value of each site in *points*."""
        sampled: Values = values[self.domain.index(points)]
        return sampled


# Snapshots in time


class Snapshots:
    """States numbered from 0, each computed from the one before it when it is needed.

    Only some states are held in memory: the latest that were asked for, and some of all times,
    spread evenly, of which every second is dropped when they become too many. So an early state
    is never computed from the beginning: going back through n states computes each of them about
    1 + n / kept^2 times.

    Args:
        first: The state with the number 0.
        advance: Returns the next state, of a state and its number.
        kept: How many are held of each of the two sorts.
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
        """Return the state with this *number*, as an array that nobody can change."""
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


class InterpolatedLandscape:
    """A landscape that is simulated on a mesh at regular times, and interpolated.

    Between snapshots the reward is interpolated linearly in time, and between the places of the
    mesh linearly in each coordinate. So the best point is a place, exactly.

    Args:
        compute: Returns, for a resolution, the mesh, and what computes snapshots on it.
        interval: Clock units from one snapshot to the next.
        resolution: The share of the full resolution, above 0 and at most 1.
    """

    def __init__(
        self,
        compute: Callable[[float], tuple[Mesh, SnapshotAt]],
        *,
        interval: float,
        resolution: float = 1.0,
    ) -> None:
        self._compute = compute
        self._mesh, self._frames = compute(resolution)
        self._interval = interval
        self.domain = self._mesh.domain
        self.cell_count = math.prod(self._mesh.shape)
        """How many places are computed in each snapshot."""
        self._best: dict[float, tuple[Point, float]] = {}
        self._latest: tuple[float, State] = math.nan, np.empty(0)
        self._coarse = lru_cache(maxsize=8)(self._coarser)

    def rewards(self, points: Points, time: float) -> Values:
        """Return the interpolated reward at each point."""
        return self._mesh.sample(self._at(time), points)

    def best(self, time: float) -> tuple[Point, float]:
        """Return the highest place of the mesh: exactly the best of the interpolated reward."""
        found = self._best.get(time)
        if found is None:
            values = self._at(time)
            highest = int(values.argmax())
            found = self._mesh.point(highest), float(values.flat[highest])
            self._best[time] = found
        return found

    def coarse(self, resolution: float) -> InterpolatedLandscape:
        """Return the same landscape, with the same chance, computed more cheaply.

        Args:
            resolution: The share of the places along each side, above 0 and at most 1; at least
                4 are left. Snapshots are as far apart as before.

        Raises:
            ValueError: *resolution* is no such share.
        """
        check_resolution(resolution)
        return self if resolution == 1.0 else self._coarse(resolution)

    def _coarser(self, resolution: float) -> InterpolatedLandscape:
        return InterpolatedLandscape(self._compute, interval=self._interval, resolution=resolution)

    def _at(self, time: float) -> State:
        """Interpolate between the snapshots before and after *time*; the latest is kept."""
        if self._latest[0] != time:
            share, whole = math.modf(time / self._interval)
            values = self._frames(int(whole))
            if share > 0.0:
                values = (1.0 - share) * values + share * self._frames(int(whole) + 1)
            self._latest = time, values
        return self._latest[1]
