"""Observations: what was seen, where, and how noisily; checked at the door."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparq_sim.gp.kernels import Kernel
from sparq_sim.messages import Points, Values, all_finite

# A variance below the rounding of the prior variance acts as that rounding: float64 knows no finer.
RESOLUTION = float(np.finfo(np.float64).eps)

Positions = int | slice | Sequence[int] | NDArray[np.intp]


class OffCandidatesError(ValueError):
    """A point is none of the candidates that a posterior is limited to."""


def checked_points(points: ArrayLike) -> Points:
    """Give *points* as (n, d), one point (d,) as (1, d); refuse what is not finite."""
    array = np.array(points, dtype=np.float64, ndmin=2) + 0.0  # -0.0 and 0.0 are one place
    if array.ndim != 2:
        raise ValueError(f"points of shape {array.shape}: give (n, d), or (d,) for one point")
    if not all_finite(array):
        raise ValueError(f"a point is not finite: {array[~np.isfinite(array).all(axis=1)][0]}")
    return array


def checked_values(values: ArrayLike, count: int) -> Values:
    """Give *values* as (count,); refuse what is not finite."""
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


def checked_variances(variances: ArrayLike, count: int) -> Values:
    """Give *variances*, one or one for each observation; refuse zero, infinity and nan."""
    array = np.asarray(variances, dtype=np.float64)
    if array.shape not in ((), (count,)):
        raise ValueError(
            f"variances of shape {array.shape} for {count} observations: "
            "give one number, or one for each observation"
        )
    good = (array > 0) & (array < np.inf)
    if np.count_nonzero(good) != good.size:
        raise ValueError(
            f"a noise variance of {array[~good][0]}: give a positive, finite one. "
            "Leave an observation of infinite variance out; "
            "give one that is exact the smallest noise you believe in"
        )
    return array


def checked_mean(mean: float) -> float:
    """Give the prior *mean*; refuse what is not finite."""
    if not isfinite(mean):
        raise ValueError(f"a prior mean of {mean}: give a finite one, near the usual reward")
    return mean


class Candidates:
    """The points (g, d) at which predictions are wanted again and again."""

    def __init__(self, points: ArrayLike) -> None:
        self.points = checked_points(points)
        if not self.points.size:
            raise ValueError("there are no candidates: give at least one point, as (g, d)")
        self.points.flags.writeable = False
        self._places: dict[bytes, int] = {}
        for place, point in enumerate(self.points):
            self._places.setdefault(point.tobytes(), place)

    def __len__(self) -> int:
        return len(self.points)

    def places(self, points: Points) -> list[int]:
        """Say which candidate each row of *points* is, -1 for none."""
        if points.shape[1] != self.points.shape[1]:
            raise ValueError(
                f"points of {points.shape[1]} coordinates, "
                f"but the candidates have {self.points.shape[1]}"
            )
        return [self._places.get(point.tobytes(), -1) for point in points]

    def known_places(self, points: Points) -> list[int]:
        """Say which candidate each row of *points* is; refuse any that is none."""
        places = self.places(points)
        if -1 in places:
            raise OffCandidatesError(
                f"{points[places.index(-1)]} is not among the {len(self)} candidates: "
                "add it to them, or use a CholeskyPosterior"
            )
        return places


class Observations:
    """Values seen at points, each with the variance of its noise, in order of arrival.

    Positions count from 0 and move up when an earlier observation is removed, as in a list.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._count = 0
        self._rows: NDArray[np.void] = np.empty(0, dtype=[])  # the first points say how wide

    def __len__(self) -> int:
        return self._count

    @property
    def points(self) -> Points:
        """Where, (n, d)."""
        return self._column("point")

    @property
    def values(self) -> Values:
        """What, (n,)."""
        return self._column("value")

    @property
    def variances(self) -> Values:
        """How noisily, (n,)."""
        return self._column("variance")

    @property
    def priors(self) -> Values:
        """The prior variances of the reward there, (n,)."""
        return self._column("prior")

    @property
    def places(self) -> NDArray[np.intp]:
        """Which candidate, -1 for none, (n,)."""
        return self._column("place").astype(np.intp, copy=False)

    def add(
        self, points: Points, values: ArrayLike, *, variances: ArrayLike, places: Sequence[int]
    ) -> None:
        """Append observations; *places* are those of *points* among the candidates."""
        values = checked_values(values, len(points))
        variances = checked_variances(variances, len(points))
        first, last = self._count, self._count + len(points)
        self._make_room(last, points.shape[1])
        new = self._rows[first:last]
        new["point"] = points
        new["value"] = values
        new["prior"] = self._kernel.diagonal(points)
        new["variance"] = np.maximum(variances, RESOLUTION * new["prior"])
        new["place"] = places
        self._count = last

    def replace(self, position: int, value: float, *, variance: float) -> int:
        """Put another value and variance at *position*; give it counted from 0."""
        position = range(self._count)[position]
        row = self._rows[position]
        row["value"] = checked_values(value, 1)[0]
        row["variance"] = np.maximum(checked_variances(variance, 1), RESOLUTION * row["prior"])
        return position

    def remove(self, positions: Positions) -> int:
        """Take out the observations at *positions*; give the first position that changed."""
        kept = np.ones(self._count, dtype=bool)
        kept[positions] = False
        first = self._count if kept.all() else int(kept.argmin())
        stay = self._rows[: self._count][kept]
        self._rows[: len(stay)] = stay  # The room stays too: removing often goes with adding.
        self._count = len(stay)
        return first

    def set_variances(self, variances: ArrayLike) -> int:
        """Give all observations other variances; give the first position that changed."""
        checked = checked_variances(variances, self._count)
        if not self._count:
            return 0
        after = np.maximum(checked, RESOLUTION * self.priors)
        changed = after != self.variances
        self._column("variance")[:] = after
        return int(changed.argmax()) if changed.any() else self._count

    def _column(self, name: str) -> Values:
        if not self._rows.dtype.names:
            return np.empty((0, 0) if name == "point" else 0)
        column: Values = self._rows[name][: self._count]
        return column

    def _make_room(self, count: int, dimensions: int) -> None:
        if not self._rows.dtype.names:
            columns = [("point", "f8", dimensions), ("place", np.intp)]
            columns += [(name, "f8") for name in ("value", "variance", "prior")]
            self._rows = np.empty(max(16, count), dtype=columns)
        known = self._rows["point"].shape[1]
        if known != dimensions:
            raise ValueError(f"points of {dimensions} coordinates join points of {known}")
        if count > len(self._rows):
            larger = np.empty(max(2 * len(self._rows), count), dtype=self._rows.dtype)
            larger[: self._count] = self._rows[: self._count]
            self._rows = larger
