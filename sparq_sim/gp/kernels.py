"""Kernels: how alike the rewards of two points are, as small models that add and multiply."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from math import log1p, prod
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
from pydantic import Field

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.errors import PluginError
from sparq_sim.fields import Positive, Share
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import PartChoice, result_error
from sparq_sim.plugin.registry import name_of
from sparq_sim.plugin.result_checks import ResultChecks

STEP = 1e-5
"""Of central differences: near the cube root of the rounding error, where they are best."""
SINGLE = 1e-6
"""What rounding may come to in a kernel that computes in single precision."""
LengthScale = Positive | Annotated[tuple[Positive, ...], Field(min_length=1)]


def _matrix(kernel: Kernel, given: object, a: Points, b: Points) -> Matrix:
    return _check_shape(kernel, "k of points", given, (len(a), len(b)))


def _diagonal(kernel: Kernel, given: object, points: Points) -> Values:
    return _check_shape(kernel, "diagonal", given, (len(points),))


def _gradient(kernel: Kernel, given: object, point: Point, points: Points) -> Matrix:
    return _check_shape(kernel, "gradient", given, points.shape)


def _check_shape(kernel: Kernel, what: str, given: object, shape: tuple[int, ...]) -> Matrix:
    # Where a fit goes too far a kernel may be infinite: numbers are looked at where it is used.
    array = np.asarray(given) if hasattr(given, "__array__") else None
    if array is not None and array.shape == shape and array.dtype.kind in "fiu":
        return array
    raise result_error(kernel, what, given, f"an array of shape {shape}, of real numbers")


class Kernel(Model):
    """A covariance k(a, b) between rewards; every number in it is positive and may be fitted.

    One of your own need define no more than `__call__`. The rest follows from it, by central
    differences where derivatives are asked for; define them as well where speed matters.
    """

    _result_checks: ClassVar[ResultChecks] = {
        "__call__": _matrix,
        "diagonal": _diagonal,
        "gradient": _gradient,
    }

    @abstractmethod
    def __call__(self, a: Points, b: Points) -> Matrix:
        """Give k between the rows of *a* (n, d) and of *b* (m, d), as (n, m)."""

    def diagonal(self, points: Points) -> Values:
        """Give k(p, p) for each row p of *points*, as (n,)."""
        return np.array([self(row, row)[0, 0] for row in points[:, None]])

    def gradient(self, point: Point, points: Points) -> Matrix:
        """Give the derivative of k(point, p) by *point* for each row p of *points*, as (n, d).

        Where k has a kink, give the mean of the derivatives on both sides.
        """
        steps = np.diag(STEP * np.maximum(1.0, np.abs(point)))
        ahead, behind = point + steps, point - steps
        widths = np.diagonal(ahead - behind)
        return ((self(ahead, points) - self(behind, points)) / widths[:, None]).T

    def derivatives(self, points: Points) -> list[Matrix]:
        """Give the derivative of k(points, points) by each log-parameter, each (n, n)."""
        found = []
        parameters = self.log_parameters()
        for step in np.diag(np.full(len(parameters), STEP)):
            ahead = self.with_log_parameters(parameters + step)
            behind = self.with_log_parameters(parameters - step)
            found.append((ahead(points, points) - behind(points, points)) / (2 * STEP))
        return found

    def parameters(self) -> dict[str, float]:
        """Name the parameters by their dotted path, in the order of `log_parameters`."""
        found: dict[str, float] = {}
        for name in type(self).model_fields:
            _collect(getattr(self, name), name, found)
        return found

    def log_parameters(self) -> Values:
        """Give the logarithms of the parameters."""
        return np.log(list(self.parameters().values()))

    def with_log_parameters(self, values: Values) -> Self:
        """Copy the kernel with other parameters, exp(*values*)."""
        if len(values) != len(self.parameters()):
            raise ValueError(
                f"{len(values)} log-parameters for a kernel with {len(self.parameters())}: "
                f"give one for each of {', '.join(self.parameters())}"
            )
        return cast(Self, _rebuild(self, iter(np.exp(values).tolist())))

    def __add__(self, other: Kernel) -> Sum:
        return Sum(parts=(*_parts(self, Sum), *_parts(other, Sum)))

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(parts=(*_parts(self, Product), *_parts(other, Product)))
        return self._scale(other)

    def __rmul__(self, factor: float) -> Kernel:
        return self._scale(factor)

    def _scale(self, factor: float) -> Kernel:
        return Constant(variance=factor) * self


def _collect(value: object, name: str, found: dict[str, float]) -> None:
    match value:
        case Kernel():
            for inner, number in value.parameters().items():
                found[f"{name}.{inner}"] = number
        case tuple():
            for position, item in enumerate(value):
                _collect(item, f"{name}.{position}", found)
        case float():
            found[name] = value


def _rebuild(value: object, numbers: Iterator[float]) -> Any:
    match value:
        case Kernel():
            fields = type(value).model_fields
            return type(value)(**{name: _rebuild(getattr(value, name), numbers) for name in fields})
        case tuple():
            return tuple(_rebuild(item, numbers) for item in value)
        case float():
            return next(numbers)
        case _:
            return value


def _parts(kernel: Kernel, kind: type[Sum] | type[Product]) -> tuple[Kernel, ...]:
    return kernel.parts if isinstance(kernel, kind) else (kernel,)


class Constant(Kernel):
    """The same reward everywhere, of unknown height: k = variance."""

    kind: Literal["constant"] = "constant"
    variance: Positive = 1.0
    """The variance of the reward's height, in squared reward units."""

    def __call__(self, a: Points, b: Points) -> Matrix:
        return np.full((len(a), len(b)), self.variance)

    def diagonal(self, points: Points) -> Values:
        return np.full(len(points), self.variance)

    def gradient(self, point: Point, points: Points) -> Matrix:
        return np.zeros(points.shape)

    def derivatives(self, points: Points) -> list[Matrix]:
        return [self(points, points)]

    def _scale(self, factor: float) -> Kernel:
        return Constant(variance=factor * self.variance)


class Stationary(Kernel):
    """A kernel of the scaled distance, k = variance * c(s), s = sum_j ((a_j - b_j) / l_j)^2.

    *length_scale* l is one number, or one for each dimension, in units of the points.
    """

    variance: Positive = 1.0
    """The variance of the reward at a point, in squared reward units."""
    length_scale: LengthScale = 1.0
    """The distance over which rewards stay alike, in units of the points: one number, or one for
    each coordinate."""

    @abstractmethod
    def _correlation(self, squares: Matrix) -> Matrix:
        """Give c(s)."""

    @abstractmethod
    def _slope(self, squares: Matrix) -> Matrix:
        """Give -2 c'(s)."""

    def __call__(self, a: Points, b: Points) -> Matrix:
        return self.variance * self._correlation(self._squares(a, b))

    def diagonal(self, points: Points) -> Values:
        variances = np.empty(len(points))
        variances.fill(self.variance)  # In a third of the time of np.full.
        return variances

    def gradient(self, point: Point, points: Points) -> Matrix:
        slope = self._slope(self._squares(point[None], points))[0]
        steps = (points - point) / np.square(self.length_scale)
        return cast(Matrix, self.variance * slope[:, None] * steps)

    def derivatives(self, points: Points) -> list[Matrix]:
        squares = self._squares(points, points)
        slope = self.variance * self._slope(squares)
        if isinstance(self.length_scale, float):
            by_scale = [slope * squares]
        else:
            columns = (points / self.length_scale).T
            by_scale = [slope * np.subtract.outer(column, column) ** 2 for column in columns]
        return [self.variance * self._correlation(squares), *by_scale]

    def _squares(self, a: Points, b: Points) -> Matrix:
        scale = self.length_scale
        if isinstance(scale, tuple) and len(scale) != a.shape[1]:
            raise ValueError(
                f"length_scale has {len(scale)} entries and the points have {a.shape[1]} "
                "coordinates: give one number, or one for each coordinate"
            )
        # Column by column: the expansion a^2 - 2ab + b^2 would lose half the digits of small s.
        total = np.zeros((len(a), len(b)))
        for ours, theirs in zip((a / scale).T, (b / scale).T, strict=True):
            total += np.subtract.outer(ours, theirs) ** 2
        return total

    def _scale(self, factor: float) -> Kernel:
        return type(self)(**{**dict(self), "variance": factor * self.variance})


class SquaredExponential(Stationary):
    """Infinitely smooth rewards: k = variance * exp(-s / 2)."""

    kind: Literal["squared-exponential"] = "squared-exponential"

    def _correlation(self, squares: Matrix) -> Matrix:
        return np.exp(-0.5 * squares)

    def _slope(self, squares: Matrix) -> Matrix:
        return np.exp(-0.5 * squares)


class Matern12(Stationary):
    """Rough rewards: k = variance * exp(-r), r = sqrt(s).

    In time this is the Ornstein-Uhlenbeck process, and may be called so.
    """

    kind: Literal["matern-1/2", "ornstein-uhlenbeck"] = "matern-1/2"

    def _correlation(self, squares: Matrix) -> Matrix:
        return np.exp(-np.sqrt(squares))

    def _slope(self, squares: Matrix) -> Matrix:
        distances = np.sqrt(squares)
        apart = distances > 0
        # The slope is infinite at distance 0; the mean over all directions there is 0.
        return np.where(apart, np.exp(-distances) / np.where(apart, distances, 1.0), 0.0)


class Matern32(Stationary):
    """Rewards with one derivative: k = variance * (1 + r) exp(-r), r = sqrt(3 s)."""

    kind: Literal["matern-3/2"] = "matern-3/2"

    def _correlation(self, squares: Matrix) -> Matrix:
        distances = np.sqrt(3 * squares)
        return cast(Matrix, (1 + distances) * np.exp(-distances))

    def _slope(self, squares: Matrix) -> Matrix:
        return cast(Matrix, 3 * np.exp(-np.sqrt(3 * squares)))


class Matern52(Stationary):
    """Rewards with two derivatives: k = variance * (1 + r + r^2 / 3) exp(-r), r = sqrt(5 s)."""

    kind: Literal["matern-5/2"] = "matern-5/2"

    def _correlation(self, squares: Matrix) -> Matrix:
        distances = np.sqrt(5 * squares)
        return (1 + distances + distances**2 / 3) * np.exp(-distances)

    def _slope(self, squares: Matrix) -> Matrix:
        distances = np.sqrt(5 * squares)
        return 5 / 3 * (1 + distances) * np.exp(-distances)


class RationalQuadratic(Stationary):
    """A mixture of length scales: k = variance * (1 + s / (2 alpha))^-alpha."""

    kind: Literal["rational-quadratic"] = "rational-quadratic"
    alpha: Positive = 1.0
    """How alike the mixed length scales are; the larger, the nearer to a squared exponential."""

    def _correlation(self, squares: Matrix) -> Matrix:
        return np.exp(-self.alpha * np.log1p(squares / (2 * self.alpha)))

    def _slope(self, squares: Matrix) -> Matrix:
        return np.exp(-(self.alpha + 1) * np.log1p(squares / (2 * self.alpha)))

    def derivatives(self, points: Points) -> list[Matrix]:
        squares = self._squares(points, points)
        ratio = squares / (2 * self.alpha)
        growth = self.alpha * (ratio / (1 + ratio) - np.log1p(ratio))
        by_alpha = self.variance * self._correlation(squares) * growth
        return [*super().derivatives(points), by_alpha]


class Forgetting(Kernel):
    """Rewards that return to their prior: k = (1 - epsilon)^(|t - t'| / 2), times as (n, 1).

    Bogunovic et al. 2016: f_{t+1} = sqrt(1 - epsilon) f_t + sqrt(epsilon) g_{t+1}.
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
    """Rewards that wander off for ever: k = 1 + rate * min(t, t'), times >= 0 as (n, 1).

    The uncertainty injection of UI-TVBO (Brunzema et al. 2022); *rate* in variance per time unit,
    as a share of the variance in space.
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


class Sum(Kernel):
    """Independent effects that add up: k = k_1 + k_2 + ..."""

    kind: Literal["sum"] = "sum"
    parts: Annotated[tuple[AnyKernel, ...], Field(min_length=1)]
    """The kernels to add, each a table with a `kind`."""

    def __call__(self, a: Points, b: Points) -> Matrix:
        return sum([part(a, b) for part in self.parts], start=np.zeros(()))

    def diagonal(self, points: Points) -> Values:
        return sum([part.diagonal(points) for part in self.parts], start=np.zeros(()))

    def gradient(self, point: Point, points: Points) -> Matrix:
        return sum([part.gradient(point, points) for part in self.parts], start=np.zeros(()))

    def derivatives(self, points: Points) -> list[Matrix]:
        return [matrix for part in self.parts for matrix in part.derivatives(points)]


class Product(Kernel):
    """Effects that must agree: k = k_1 * k_2 * ...

    Only the product of the variances matters: hold all but one fixed when fitting.
    """

    kind: Literal["product"] = "product"
    parts: Annotated[tuple[AnyKernel, ...], Field(min_length=1)]
    """The kernels to multiply, each a table with a `kind`."""

    def __call__(self, a: Points, b: Points) -> Matrix:
        return prod([part(a, b) for part in self.parts], start=np.ones(()))

    def diagonal(self, points: Points) -> Values:
        return prod([part.diagonal(points) for part in self.parts], start=np.ones(()))

    def gradient(self, point: Point, points: Points) -> Matrix:
        factors = [part(points, point[None]) for part in self.parts]
        slopes = [part.gradient(point, points) for part in self.parts]
        return sum(
            [slopes[i] * _others(factors, i) for i in range(len(factors))], start=np.zeros(())
        )

    def derivatives(self, points: Points) -> list[Matrix]:
        factors = [part(points, points) for part in self.parts]
        return [
            matrix * _others(factors, position)
            for position, part in enumerate(self.parts)
            for matrix in part.derivatives(points)
        ]


def _others(factors: list[Matrix], position: int) -> Matrix:
    return prod(factors[:position] + factors[position + 1 :], start=np.ones(()))


class SpaceTime(Kernel):
    """Rewards that change with time, separably: k = space(x, x') * time(t, t').

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


def check_kernel(kernel: Kernel, points: Points) -> None:
    """Refuse a *kernel* that is none at some of the *points* (n, d).

    Raises:
        PluginError: If k is of the wrong shape, not finite, not symmetric, not positive where it
            is a variance, or has a negative eigenvalue.
    """
    matrix = kernel(points, points)
    wrong = ""
    if not np.isfinite(matrix).all():
        wrong = "is not finite"
    elif not np.allclose(matrix, np.transpose(matrix)):
        wrong = "is not symmetric"
    elif not (kernel.diagonal(points) > 0).all():
        place = points[int(np.argmin(kernel.diagonal(points) > 0))].tolist()
        wrong = (
            f"is not positive on its diagonal, at {place}: k of a point with itself must be above "
            "0; where it is 0 by nature, add a `constant` kernel"
        )
    elif (lowest := lowest_eigenvalue(matrix, rounding=SINGLE)) < 0:
        wrong = f"has the negative eigenvalue {lowest:.3g}: it is no covariance"
    if wrong:
        raise PluginError(f"the kernel {name_of(type(kernel))!r} of {len(points)} points {wrong}")


def lowest_eigenvalue(matrix: Matrix, *, rounding: float = 1e-9) -> float:
    """Return the lowest eigenvalue of a symmetric *matrix*.

    Args:
        matrix: A covariance, (n, n).
        rounding: Up to this share of the highest eigenvalue, the lowest is taken for 0.
    """
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    return 0.0 if abs(values[0]) <= rounding * values[-1] else float(values[0])


def stamp(points: Points, times: Values | float) -> Points:
    """Write *times*, one or one for each point, as the last coordinate of *points* (n, d)."""
    return np.column_stack([points, np.broadcast_to(times, len(points))])


AnyKernel: TypeAlias = Annotated[
    Kernel,
    PartChoice(
        "kernel",
        *(Constant, SquaredExponential, Matern12, Matern32, Matern52, RationalQuadratic),
        *(Forgetting, Wiener, Sum, Product, SpaceTime),
    ),
]
"""A kernel as a field: a table with a `kind`, or a model."""
for _model in (Sum, Product, SpaceTime):
    _model.model_rebuild()
