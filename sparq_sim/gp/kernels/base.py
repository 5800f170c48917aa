"""The base of all kernels, and the kernels that adding, multiplying and scaling make."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

import numpy as np
from pydantic import Field

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.fields import Positive
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import result_error
from sparq_sim.plugin.result_checks import ResultChecks

if TYPE_CHECKING:
    from sparq_sim.gp.kernels import AnyKernel

__all__ = ["Constant", "Kernel", "Product", "Sum"]

_STEP = 1e-5
"""The step of central differences: near the cube root of the rounding error, where it is best."""


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

    A kernel of your own need only define `__call__`. The rest follows from it, derivatives by
    central differences; define them as well where speed matters. Kernels add and multiply:
    `2.0 * SquaredExponential() + Matern12()` is a kernel.
    """

    _result_checks: ClassVar[ResultChecks] = {
        "__call__": _matrix,
        "diagonal": _diagonal,
        "gradient": _gradient,
    }

    @abstractmethod
    def __call__(self, a: Points, b: Points) -> Matrix:
        """Return the covariance of each point of *a* with each point of *b*.

        Args:
            a: Points, (n, d).
            b: Points, (m, d).

        Returns:
            The matrix k(a_i, b_j) in squared reward units, (n, m).
        """

    def diagonal(self, points: Points) -> Values:
        """Return the variance of the reward at each point.

        Args:
            points: Points p, (n, d).

        Returns:
            k(p, p) for each point in squared reward units, (n,).
        """
        return np.array([self(row, row)[0, 0] for row in points[:, None]])

    def gradient(self, point: Point, points: Points) -> Matrix:
        """Return the derivative of the covariance of one point with others, by that point.

        Args:
            point: The point by whose coordinates k is differentiated, (d,).
            points: The other points p, (n, d).

        Returns:
            The derivative of k(point, p) by *point* for each p, (n, d). Where k has a kink it is
            the mean of the derivatives on both sides.
        """
        steps = np.diag(_STEP * np.maximum(1.0, np.abs(point)))
        ahead, behind = point + steps, point - steps
        widths = np.diagonal(ahead - behind)
        return ((self(ahead, points) - self(behind, points)) / widths[:, None]).T

    def derivatives(self, points: Points) -> list[Matrix]:
        """Return the derivatives of the kernel matrix by the logarithms of the parameters.

        Args:
            points: Points, (n, d).

        Returns:
            The derivative of k(points, points) by each log-parameter, each (n, n), in the order of
            `parameters`.
        """
        found = []
        parameters = self.log_parameters()
        for step in np.diag(np.full(len(parameters), _STEP)):
            ahead = self.with_log_parameters(parameters + step)
            behind = self.with_log_parameters(parameters - step)
            found.append((ahead(points, points) - behind(points, points)) / (2 * _STEP))
        return found

    def parameters(self) -> dict[str, float]:
        """Return the parameters by their dotted path, such as `parts.0.length_scale`.

        Their order is that of the fields; parts of the kernel come with theirs.
        """
        found: dict[str, float] = {}
        for name in type(self).model_fields:
            _collect(getattr(self, name), name, found)
        return found

    def log_parameters(self) -> Values:
        """Return the natural logarithms of the parameters, (p,), in the order of `parameters`."""
        return np.log(list(self.parameters().values()))

    def with_log_parameters(self, values: Values) -> Self:
        """Return a copy of the kernel with other parameters.

        Args:
            values: The logarithms of the new parameters, (p,), in the order of `parameters`.

        Returns:
            A kernel of the same kind, whose parameters are exp(*values*).

        Raises:
            ValueError: If there is not one value for each parameter.
        """
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
    """A kernel of rewards that are the same everywhere, at an unknown height: k = variance."""

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


class Sum(Kernel):
    """A kernel of independent effects that add up: k = k_1 + k_2 + ..."""

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
    """A kernel of effects that must agree: k = k_1 * k_2 * ...

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
