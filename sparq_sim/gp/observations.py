"""Observations: what was seen, where, and with how much noise; checked when they come in.

`Observations` is long because its five columns change together.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparq_sim.arrays import Points, Values, all_finite
from sparq_sim.gp.kernels import Kernel

__all__ = [
    "RESOLUTION",
    "GrowingArray",
    "Observations",
    "Positions",
    "check_mean",
    "check_points",
    "check_values",
    "check_variances",
]

RESOLUTION = float(np.finfo(np.float64).eps)
"""The least noise variance, as a share of the prior variance: float64 resolves no finer one."""


_Number = TypeVar("_Number", bound=np.generic)
Positions = int | slice | Sequence[int] | NDArray[np.intp]
"""Positions of observations: one, several, or a slice."""


def check_points(points: ArrayLike) -> Points:
    """Return points as a new array, after checking them.

    Args:
        points: Points, (n, d), or one point, (d,).

    Returns:
        The points as float64, (n, d); -0.0 has become 0.0.

    Raises:
        ValueError: If the shape is another, or a coordinate is not finite.
    """
    array = np.array(points, dtype=np.float64, ndmin=2)
    array += 0.0  # -0.0 and 0.0 are one place
    if array.ndim != 2:
        raise ValueError(f"points of shape {array.shape}: give (n, d), or (d,) for one point")
    if not all_finite(array):
        raise ValueError(f"a point is not finite: {array[~np.isfinite(array).all(axis=1)][0]}")
    return array


def check_values(values: ArrayLike | float, count: int) -> Values:
    """Return values as a new array, after checking them.

    Args:
        values: One value for each point, in reward units.
        count: How many points there are.

    Returns:
        The values, (count,).

    Raises:
        ValueError: If there is not one value for each point, or one is not finite.
    """
    if count == 1 and isinstance(values, float) and isfinite(values):
        return np.array((values,))  # The common case, in every round of a play.
    array = np.array(values, dtype=np.float64, ndmin=1)
    if array.shape != (count,):
        raise ValueError(
            f"values of shape {array.shape} for {count} points: give one value for each point "
            "(points are (n, d), also where d is 1)"
        )
    if not all_finite(array):
        raise ValueError(
            f"a value of {array[~np.isfinite(array)][0]}: leave the observation out, "
            "it carries no information"
        )
    return array


def check_variances(variances: ArrayLike | float, count: int) -> Values:
    """Return noise variances as an array, after checking them.

    Args:
        variances: One variance for all observations, or one for each, in squared reward units.
        count: How many observations there are.

    Returns:
        The variances, () or (count,).

    Raises:
        ValueError: If the shape is another, or a variance is zero, negative or not finite.
    """
    if isinstance(variances, float) and 0 < variances < inf:
        return np.array(variances)  # The common case, in every round of a play.
    array = np.asarray(variances, dtype=np.float64)
    if array.shape == (1,) and count == 1 and 0 < array.item() < inf:
        return array
    if array.shape not in ((), (count,)):
        raise ValueError(
            f"variances of shape {array.shape} for {count} observations: "
            "give one number, or one for each observation"
        )
    good = (array > 0) & (array < inf)
    if np.count_nonzero(good) != good.size:
        raise ValueError(
            f"a noise variance of {array[~good][0]}: give a positive, finite one. "
            "Leave an observation of infinite variance out; "
            "give one that is exact the smallest noise you believe in"
        )
    return array


def check_mean(mean: float) -> float:
    """Return a prior mean, after checking it.

    Args:
        mean: The prior mean, in reward units.

    Raises:
        ValueError: If it is not finite.
    """
    if not isfinite(mean):
        raise ValueError(f"a prior mean of {mean}: give a finite one, near the usual reward")
    return mean


class GrowingArray:
    """An array of numbers to which more can be added."""

    def __init__(self) -> None:
        self._room: Values = np.empty(16)
        self._count = 0

    @property
    def array(self) -> Values:
        """All numbers so far, (n,); a view, which may be changed."""
        return self._room[: self._count]

    def extend(self, numbers: ArrayLike, count: int) -> None:
        """Append numbers.

        Args:
            numbers: The numbers, (count,), or one number for all.
            count: How many to append.
        """
        last = self._count + count
        if last > len(self._room):
            self._room = _enlarge(self._room, max(2 * len(self._room), last))
        self._room[self._count : last] = numbers
        self._count = last

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Remove all numbers but some.

        Args:
            kept: Which numbers stay, (n,).
        """
        stay = self.array[kept]
        self._count = len(stay)
        self._room[: self._count] = stay


class Observations:
    """Values seen at points, each with the variance of its noise, in order of arrival.

    Positions count from 0. When an observation is removed, later ones move up, as in a list.
    Properties are views of what is kept: they hold until the next change.

    Args:
        kernel: The kernel of the reward, which gives the prior variance at each point.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._count = 0
        self._points: Points = np.empty((0, 0))  # the first points say how wide
        self._values: Values = np.empty(0)
        self._variances: Values = np.empty(0)
        self._priors: Values = np.empty(0)
        self._places: NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def __len__(self) -> int:
        return self._count

    @property
    def points(self) -> Points:
        """Where observations were made, (n, d)."""
        return self._points[: self._count]

    @property
    def values(self) -> Values:
        """What was observed, in reward units, (n,)."""
        return self._values[: self._count]

    @property
    def variances(self) -> Values:
        """The variances of the noise, in squared reward units, (n,)."""
        return self._variances[: self._count]

    @property
    def priors(self) -> Values:
        """The prior variances of the reward at the points, (n,)."""
        return self._priors[: self._count]

    @property
    def places(self) -> NDArray[np.intp]:
        """Which candidate each point is, -1 for none, (n,)."""
        return self._places[: self._count]

    def at(self, position: int) -> tuple[Points, float, float, float, int]:
        """Return one observation: its point (1, d), value, variance, prior variance and place.

        Args:
            position: Which one, counted from 0.
        """
        return (
            self._points[position : position + 1],
            self._values.item(position),
            self._variances.item(position),
            self._priors.item(position),
            self._places.item(position),
        )

    def add(
        self, points: Points, values: ArrayLike, *, variances: ArrayLike, places: Sequence[int]
    ) -> None:
        """Append observations.

        Args:
            points: Where they were made, checked by `check_points`, (n, d).
            values: What was observed, in reward units, (n,).
            variances: The noise variance of all, or one for each, in squared reward units. One
                below `RESOLUTION` times the prior variance counts as that much.
            places: Which candidate each point is, -1 for none.

        Raises:
            ValueError: If values or variances are not good, or points have another number of
                coordinates than those before.
        """
        values = check_values(values, len(points))
        variances = check_variances(variances, len(points))
        first, last = self._count, self._count + len(points)
        self._make_room(last, points.shape[1])
        priors = self._kernel.diagonal(points)
        if last == first + 1:  # The common case, in every round of a play.
            prior = priors.item()
            self._points[first] = points[0]
            self._values[first] = values[0]
            self._priors[first] = prior
            self._variances[first] = max(variances.item(), RESOLUTION * prior)
            self._places[first] = places[0]
            self._count = last
            return
        self._points[first:last] = points
        self._values[first:last] = values
        self._priors[first:last] = priors
        self._variances[first:last] = np.maximum(variances, RESOLUTION * priors)
        self._places[first:last] = places
        self._count = last

    def replace(self, position: int, value: float, *, variance: float) -> int:
        """Replace the value and the variance of one observation; its point stays.

        Args:
            position: Which observation; negative positions count from the end.
            value: The new value, in reward units.
            variance: The new noise variance, in squared reward units.

        Returns:
            The position, counted from 0.
        """
        position = range(self._count)[position]
        (noise,) = np.atleast_1d(check_variances(variance, 1))
        self._values[position] = check_values(value, 1)[0]
        self._variances[position] = max(noise, RESOLUTION * self._priors[position])
        return position

    def remove(self, positions: Positions) -> int:
        """Remove observations.

        Args:
            positions: Which ones.

        Returns:
            The first position at which there is now another observation than before.
        """
        if isinstance(positions, slice) and positions == slice(None):
            self._count = 0
            return 0
        kept = np.ones(self._count, dtype=bool)
        kept[positions] = False
        stay = int(np.count_nonzero(kept))
        first = self._count if stay == self._count else int(kept.argmin())
        # The room stays: removing often goes with adding.
        for column in self._columns():
            column[:stay] = column[: self._count][kept]
        self._count = stay
        return first

    def set_variances(self, variances: ArrayLike) -> int:
        """Replace the noise variances of all observations.

        Args:
            variances: One for all, or one for each, in squared reward units.

        Returns:
            The first position whose variance changed; the number of observations if none did.
        """
        checked = check_variances(variances, self._count)
        if not self._count:
            return 0
        after = np.maximum(checked, RESOLUTION * self.priors)
        changed = after != self.variances
        self.variances[:] = after
        return int(changed.argmax()) if changed.any() else self._count

    def _columns(self) -> tuple[NDArray[np.generic], ...]:
        return self._points, self._values, self._variances, self._priors, self._places

    def _make_room(self, count: int, dimensions: int) -> None:
        if not self._points.shape[1]:
            self._points = np.empty((0, dimensions))
        elif self._points.shape[1] != dimensions:
            known = self._points.shape[1]
            raise ValueError(f"points of {dimensions} coordinates join points of {known}")
        if count > len(self._values):
            room = max(16, 2 * len(self._values), count)
            self._points = _enlarge(self._points, room)
            self._values = _enlarge(self._values, room)
            self._variances = _enlarge(self._variances, room)
            self._priors = _enlarge(self._priors, room)
            self._places = _enlarge(self._places, room)


def _enlarge(column: NDArray[_Number], room: int) -> NDArray[_Number]:
    larger = np.empty((room, *column.shape[1:]), dtype=column.dtype)
    larger[: len(column)] = column
    return larger
