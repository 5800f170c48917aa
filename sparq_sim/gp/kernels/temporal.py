"""Kernels of time, and of space and time together."""

from __future__ import annotations

from math import log1p
from typing import TYPE_CHECKING, Literal

import numpy as np

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.fields import Positive, Share
from sparq_sim.gp.kernels.base import Kernel

if TYPE_CHECKING:
    from sparq_sim.gp.kernels import AnyKernel

__all__ = ["Forgetting", "SpaceTime", "Wiener", "stamp"]


class Forgetting(Kernel):
    """A kernel of rewards that return to their prior: k = (1 - epsilon)^(|t - t'| / 2).

    Points are times, (n, 1). Bogunovic et al. 2016: f_{t+1} = sqrt(1 - epsilon) f_t +
    sqrt(epsilon) g_{t+1}.
    """

    kind: Literal["forgetting"] = "forgetting"
    epsilon: Share
    """The share of the reward's variance that is new after each unit of time; above 0 and below
    1."""

    def __call__(self, a: Points, b: Points) -> Matrix:
        gaps = np.abs(np.subtract.outer(_times(a), _times(b)))
        return np.exp(0.5 * log1p(-self.epsilon) * gaps)

    def diagonal(self, points: Points) -> Values:
        return np.ones(len(points))

    def gradient(self, point: Point, points: Points) -> Matrix:
        side = np.sign(point - points)
        return 0.5 * log1p(-self.epsilon) * side * self(points, point[None])

    def derivatives(self, points: Points) -> list[Matrix]:
        gaps = np.abs(np.subtract.outer(_times(points), _times(points)))
        return [-0.5 * self.epsilon / (1 - self.epsilon) * gaps * self(points, points)]


class Wiener(Kernel):
    """A kernel of rewards that wander off without end: k = 1 + rate * min(t, t').

    Points are times from 0 on, (n, 1). This is the uncertainty injection of UI-TVBO (Brunzema et
    al. 2022).
    """

    kind: Literal["wiener"] = "wiener"
    rate: Positive
    """By how much the variance grows in a unit of time, as a share of the variance in space."""

    def __call__(self, a: Points, b: Points) -> Matrix:
        return 1 + self.rate * np.minimum.outer(_from_zero(a), _from_zero(b))

    def diagonal(self, points: Points) -> Values:
        return 1 + self.rate * _from_zero(points)

    def gradient(self, point: Point, points: Points) -> Matrix:
        return self.rate * np.heaviside(points - point, 0.5)

    def derivatives(self, points: Points) -> list[Matrix]:
        return [self(points, points) - 1]


def _times(points: Points) -> Values:
    if points.shape[1] != 1:
        raise ValueError(
            f"a kernel of time was given points of {points.shape[1]} coordinates: "
            "use it as the time of a SpaceTime"
        )
    return points[:, 0]


def _from_zero(points: Points) -> Values:
    times = _times(points)
    if times.size and times.min() < 0:
        raise ValueError(
            f"the Wiener kernel was given the time {times.min()}: count times from the start, 0"
        )
    return times


class SpaceTime(Kernel):
    """A kernel of rewards that change with time, separably: k = space(x, x') * time(t, t').

    Points carry their time as the last coordinate, (n, d + 1): see `stamp`.
    """

    kind: Literal["space-time"] = "space-time"
    space: AnyKernel
    """The kernel of where two points lie: a table with a `kind`."""
    time: AnyKernel
    """The kernel of when two points are asked about: a table with a `kind`."""

    def __call__(self, a: Points, b: Points) -> Matrix:
        return self.space(a[:, :-1], b[:, :-1]) * self.time(a[:, -1:], b[:, -1:])

    def diagonal(self, points: Points) -> Values:
        return self.space.diagonal(points[:, :-1]) * self.time.diagonal(points[:, -1:])

    def gradient(self, point: Point, points: Points) -> Matrix:
        place, moment = point[:-1], point[-1:]
        places, moments = points[:, :-1], points[:, -1:]
        by_place = self.space.gradient(place, places) * self.time(moments, moment[None])
        by_moment = self.time.gradient(moment, moments) * self.space(places, place[None])
        return np.hstack([by_place, by_moment])

    def derivatives(self, points: Points) -> list[Matrix]:
        places, moments = points[:, :-1], points[:, -1:]
        space, time = self.space(places, places), self.time(moments, moments)
        by_space = [matrix * time for matrix in self.space.derivatives(places)]
        return by_space + [matrix * space for matrix in self.time.derivatives(moments)]


def stamp(points: Points, times: Values | float) -> Points:
    """Return points with a time as their last coordinate, as a `SpaceTime` kernel takes them.

    Args:
        points: Points, (n, d).
        times: The time of all points, or one for each, (n,).

    Returns:
        The points with their times, (n, d + 1).
    """
    return np.column_stack([points, np.broadcast_to(times, len(points))])
