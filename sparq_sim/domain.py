"""Domains: where points may lie."""

from __future__ import annotations

from collections.abc import Sequence
from operator import le
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from sparq_sim.arrays import Points, all_finite, freeze_array
from sparq_sim.errors import escape_surrogates

__all__ = ["Box", "Domain", "Sites"]


class Box:
    """All points between two bounds, bounds included.

    Args:
        lower: The least value of each coordinate: (d,), or a number in one dimension.
        upper: The largest value of each coordinate, in the same way.
        names: Of the coordinates; by default x0, x1, ...

    Raises:
        ValueError: A bound is not finite, *lower* is not below *upper*, or names repeat.

    Example:
        `Box([0, 0], [1, 2], ["width", "height"])`
    """

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, names: Sequence[str] | None = None
    ) -> None:
        self.lower = freeze_array(np.atleast_1d(np.asarray(lower, dtype=float)))
        self.upper = freeze_array(np.atleast_1d(np.asarray(upper, dtype=float)))
        if self.lower.ndim != 1 or not self.lower.size or self.lower.shape != self.upper.shape:
            raise ValueError(
                f"lower {self.lower} and upper {self.upper} need one number for each coordinate"
            )
        if not all(abs(bound) < 1e300 for bound in (*self.lower, *self.upper)):
            raise ValueError(f"bounds must be finite, not {self.lower} to {self.upper}")
        if not (self.lower < self.upper).all():
            raise ValueError(f"lower {self.lower} must lie below upper {self.upper}")
        self.names = _coordinate_names(names, len(self.lower))
        self._lower, self._upper = self.lower.tolist(), self.upper.tolist()

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()}, {list(self.names)})"

    @property
    def dimensions(self) -> int:
        """How many coordinates a point has."""
        return len(self.lower)

    def contains(self, points: Points) -> NDArray[np.bool_]:
        """Return for each row of *points* whether it lies in the box: (n,).

        Args:
            points: Where: (n, d).
        """
        within = (points >= self.lower) & (points <= self.upper)
        return np.asarray(within.all(axis=-1), dtype=bool)

    def check(self, points: ArrayLike, what: str = "points") -> Points:
        """Return *points* as an array (n, d), after checking that they lie in the box.

        Args:
            points: Whatever numpy can make an array (n, d) of.
            what: How an error names them.

        Raises:
            ValueError: Their shape is another, or one lies outside.
        """
        array = _rows(points, len(self.lower), what)
        if len(array) == 1:  # A move, in every round: in a third of the time.
            row = array[0].tolist()
            inside = all(map(le, self._lower, row)) and all(map(le, row, self._upper))
        else:
            within = (array >= self.lower) & (array <= self.upper)
            inside = np.count_nonzero(within) == within.size  # all() is slow on small arrays.
        if not inside:
            outside = array[~self.contains(array)][0]
            raise ValueError(
                f"{what}: {outside.tolist()} lies outside the domain, which reaches "
                f"from {self.lower.tolist()} to {self.upper.tolist()}"
            )
        return array

    def sample(self, rng: Generator, count: int) -> Points:
        """Draw *count* points uniformly at random: (count, d).

        Args:
            rng: The source of chance.
            count: How many.
        """
        return rng.uniform(self.lower, self.upper, size=(count, self.dimensions))

    def grid(self, per_dimension: int) -> Points:
        """Return a regular grid, bounds included: (per_dimension ** d, d).

        Args:
            per_dimension: How many points lie along each coordinate; at least 2.

        Raises:
            ValueError: There are fewer.
        """
        if per_dimension < 2:
            raise ValueError(f"a grid needs at least 2 points a dimension, not {per_dimension}")
        axes = [
            np.linspace(low, high, per_dimension)
            for low, high in zip(self.lower, self.upper, strict=True)
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dimensions)

    def cover(self, count: int) -> Points:
        """Return *count* points spread evenly over the box, without chance: (count, d).

        Midpoints in one dimension, beyond that the additive recurrence x_n = (1/2 + n a) mod 1
        with a_i = g^-i and g the root of g^(d+1) = g + 1 (Roberts 2018): far more even than
        chance in two and three dimensions, no worse beyond, and it needs no table.

        Args:
            count: How many; at least 1.

        Raises:
            ValueError: There are fewer.
        """
        if count < 1:
            raise ValueError(f"a cover needs at least 1 point, not {count}")
        if self.dimensions == 1:
            unit = ((np.arange(count) + 0.5) / count)[:, None]
        else:
            root = 2.0
            for _ in range(60):
                root = (1 + root) ** (1 / (self.dimensions + 1))
            steps = root ** -np.arange(1.0, self.dimensions + 1)
            unit = np.modf(0.5 + np.arange(count)[:, None] * steps)[0]
        return self.lower + unit * (self.upper - self.lower)


class Sites:
    """A finite set of points, each with a name.

    Args:
        points: Where the sites are: (n, d).
        names: Of the sites; by default site-0, site-1, ...
        coordinates: Names of the coordinates; by default x0, x1, ...

    Raises:
        ValueError: A number is not finite, two sites lie at the same place, or names repeat.

    Example:
        `Sites([[0.0, 1.0], [2.0, 1.5]], ["harbour", "hill"], ["east", "north"])`
    """

    def __init__(
        self,
        points: ArrayLike,
        names: Sequence[str] | None = None,
        coordinates: Sequence[str] | None = None,
    ) -> None:
        self.points = freeze_array(points)
        if self.points.ndim != 2 or not self.points.size:
            raise ValueError(f"sites have shape {self.points.shape}; expected (n, d), n at least 1")
        if not all_finite(self.points):
            raise ValueError(f"sites must be finite, not {self.points.tolist()}")
        self.site_names = tuple(
            map(escape_surrogates, names or (f"site-{i}" for i in range(len(self.points))))
        )
        self.names = _coordinate_names(coordinates, self.points.shape[1])
        if len(self.site_names) != len(self.points):
            raise ValueError(f"{len(self.points)} sites have {len(self.site_names)} names")
        if len(set(self.site_names)) != len(self.site_names):
            raise ValueError(f"site names repeat: {sorted(self.site_names)}")
        self._rows = {row.tobytes(): i for i, row in enumerate(self.points + 0.0)}
        if len(self._rows) != len(self.points):
            raise ValueError("two sites lie at the same place; merge them or move one")

    def __repr__(self) -> str:
        return f"Sites({len(self.points)} in {list(self.names)})"

    @property
    def dimensions(self) -> int:
        """How many coordinates a point has."""
        return int(self.points.shape[1])

    def contains(self, points: Points) -> NDArray[np.bool_]:
        """Return for each row of *points* whether it is a site: (n,).

        Args:
            points: Where: (n, d).
        """
        return np.array([row.tobytes() in self._rows for row in points + 0.0], dtype=bool)

    def index(self, points: ArrayLike) -> NDArray[np.intp]:
        """Return the number of the site at each row of *points*: (n,).

        Args:
            points: Sites: (n, d).

        Raises:
            ValueError: One is no site.
        """
        array = self.check(points)
        return np.array([self._rows[row.tobytes()] for row in array + 0.0], dtype=np.intp)

    def check(self, points: ArrayLike, what: str = "points") -> Points:
        """Return *points* as an array (n, d), after checking that each is a site.

        Args:
            points: Whatever numpy can make an array (n, d) of.
            what: How an error names them.

        Raises:
            ValueError: Their shape is another, or one is no site.
        """
        array = _rows(points, self.dimensions, what)
        for row in array + 0.0:
            if row.tobytes() not in self._rows:
                raise ValueError(
                    f"{what}: {row.tolist()} is none of the {len(self.points)} sites; "
                    "use the rows of domain.points"
                )
        return array

    def sample(self, rng: Generator, count: int) -> Points:
        """Draw *count* sites uniformly at random, with replacement: (count, d).

        Args:
            rng: The source of chance.
            count: How many.
        """
        return self.points[rng.integers(len(self.points), size=count)]

    def grid(self, per_dimension: int = 0) -> Points:
        """Return all sites: (n, d).

        Args:
            per_dimension: Ignored; it is there as for a `Box`.
        """
        return self.points

    def cover(self, count: int = 0) -> Points:
        """Return all sites: (n, d).

        Args:
            count: Ignored; it is there as for a `Box`.
        """
        return self.points


Domain: TypeAlias = Box | Sites
"""Where points may lie."""


def _coordinate_names(names: Sequence[str] | None, dimensions: int) -> tuple[str, ...]:
    given = (
        tuple(map(escape_surrogates, names)) if names else tuple(f"x{i}" for i in range(dimensions))
    )
    if len(given) != dimensions or len(set(given)) != dimensions:
        raise ValueError(f"{dimensions} coordinates need as many different names, not {given}")
    return given


def _rows(points: ArrayLike, dimensions: int, what: str) -> Points:
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != dimensions:
        raise ValueError(f"{what} have shape {array.shape}; expected (n, {dimensions})")
    return array
