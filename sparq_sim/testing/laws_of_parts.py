"""Laws of parts: what every draw, noise, loss and kernel obeys, each by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite, sqrt
from typing import TypeAlias

import numpy as np
from numpy.random import Generator

from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.gp.kernels import Kernel, lowest_eigenvalue
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.result_checks import without_result_checks
from sparq_sim.simulation.channel.draws import Draw
from sparq_sim.simulation.channel.noise import Loss, Noise
from sparq_sim.testing.law import FindViolation, Law, make_law, make_rng
from sparq_sim.testing.laws_of_plugins import model_laws

__all__ = ["part_laws"]

_NamedCheck: TypeAlias = tuple[str, FindViolation]
"""What holds, and what finds where it does not."""
_DRAWS = 20_000
"""How many draws averages are computed of."""
_STANDARD_ERRORS = 8
"""How far such an average may lie from what is expected."""


def part_laws(part: Model, points: Points | None = None) -> Iterator[Law]:
    """Yield the laws of a part.

    Args:
        part: A draw, a noise, a loss or a kernel; other parts have only the laws of all models.
        points: Where a kernel is looked at, (n, d); by default along a line from 0 to 1.

    Yields:
        Laws in an order in which each comes after those that it rests on.
    """
    yield from model_laws(part)
    for name, find_violation in _laws(part, points):
        yield make_law(part, name, without_result_checks()(find_violation))


def _laws(part: Model, points: Points | None) -> Iterator[_NamedCheck]:
    match part:
        case Draw():
            yield from _draw_laws(part)
        case Noise():
            yield from _noise_laws(part)
        case Loss():
            yield from _loss_laws(part)
        case Kernel():
            yield from _kernel_laws(part, _line() if points is None else points)


def _draw_laws(draw: Draw) -> Iterator[_NamedCheck]:
    yield from _sample_laws("sample", draw.sample)

    def find_negative() -> object:
        lowest = draw.sample(_rng(), _DRAWS).min()
        return None if lowest >= 0 else lowest

    def find_too_low() -> object:
        lowest = draw.sample(_rng(), _DRAWS).min()
        return None if lowest >= draw.least else (lowest, draw.least)

    yield "no draw is negative", find_negative
    yield "no draw falls below least", find_too_low
    yield (
        "samples average to expected",
        lambda: _find_wrong_average(draw.sample(_rng(), _DRAWS), draw.expected),
    )


def _noise_laws(noise: Noise) -> Iterator[_NamedCheck]:
    yield from _sample_laws("units", noise.units)
    points, values = _rng().random((5, len(getattr(noise, "origin", (0,))))), np.linspace(-1, 1, 5)

    def find_wrong_stds() -> object:
        stds = np.asarray(noise.stds(points, values))
        return None if stds.shape in ((), (5,)) and np.all(stds >= 0) else stds

    yield "units average to 0", lambda: _find_wrong_average(noise.units(_rng(), _DRAWS), 0.0)
    yield (
        "units have variance 1",
        lambda: _find_wrong_average(noise.units(_rng(), _DRAWS) ** 2, 1.0),
    )
    yield "stds are one, or one a point, and not negative", find_wrong_stds


def _loss_laws(loss: Loss) -> Iterator[_NamedCheck]:
    moments = [0.0, 0.5, 3.0, 40.0]

    def find_no_chances() -> object:
        start = loss.start(_rng())
        chances = [start(moment) for moment in moments]
        return None if all(0 <= chance <= 1 for chance in chances) else chances

    def find_dependence_on_order() -> object:
        forth, back = loss.start(_rng()), loss.start(_rng())
        seen = [back(moment) for moment in reversed(moments)][::-1]
        expected = [forth(moment) for moment in moments]
        return None if seen == expected else (expected, seen)

    yield "chances lie from 0 to 1", find_no_chances
    yield "chances do not depend on the order in which they are asked for", find_dependence_on_order


def _kernel_laws(kernel: Kernel, points: Points) -> Iterator[_NamedCheck]:
    def find_wrong_shape() -> object:
        shape = np.shape(kernel(points[:3], points))
        return None if shape == (3, len(points)) else shape

    def find_negative_eigenvalue() -> object:
        lowest = lowest_eigenvalue(kernel(points, points))
        return None if lowest >= 0 else lowest

    def find_no_variance() -> object:
        nowhere = kernel.diagonal(points) <= 0
        return points[nowhere].tolist() or None

    def find_not_positive() -> object:
        return [name for name, number in kernel.parameters().items() if number <= 0] or None

    def find_other_gradient() -> object:
        # Between the points: a kernel may have a kink where they are.
        place = points.mean(axis=0)
        expected = Kernel.gradient(kernel, place, points)
        return _find_difference(kernel.gradient(place, points), expected, 1e-4)

    def find_other_derivatives() -> object:
        expected = np.array(Kernel.derivatives(kernel, points))
        return _find_difference(np.array(kernel.derivatives(points)), expected, 1e-4)

    def find_other_diagonal() -> object:
        return _find_difference(kernel.diagonal(points), np.diagonal(kernel(points, points)), 1e-9)

    yield "k of 3 and n points has shape (3, n)", find_wrong_shape
    yield (
        "is symmetric",
        lambda: _find_difference(kernel(points, points), kernel(points, points).T, 1e-9),
    )
    yield "has no negative eigenvalue", find_negative_eigenvalue
    yield "diagonal is that of the matrix", find_other_diagonal
    yield "k of a point with itself is above 0; add a constant kernel if need be", find_no_variance
    yield "its numbers are positive, to be fitted by their logarithms", find_not_positive
    yield "gradient is the derivative by the point", find_other_gradient
    yield "derivatives are those by the log-parameters", find_other_derivatives


def _sample_laws(name: str, sample: Callable[[Generator, int], Values]) -> Iterator[_NamedCheck]:
    def find_wrong_shape() -> object:
        drawn = sample(_rng(), 3)
        good = isinstance(drawn, np.ndarray) and drawn.shape == (3,) and np.isfinite(drawn).all()
        return None if good else drawn

    def find_shifted() -> object:
        alone, among = sample(_rng(), 1)[0], sample(_rng(), 5)[0]
        return None if alone == among else (alone, among)

    yield f"{name} gives as many finite numbers as asked for", find_wrong_shape
    yield f"{name} gives the same first number alone and among many", find_shifted


def _find_wrong_average(drawn: Values, expected: float) -> object:
    """Return the average of what was *drawn* if it is not what is *expected*."""
    average = float(drawn.mean())
    slack = _STANDARD_ERRORS * float(drawn.std()) / sqrt(len(drawn)) + 1e-9 * abs(expected)
    return None if not isfinite(expected) or abs(average - expected) <= slack else average


def _find_difference(seen: Matrix, expected: Matrix, tolerance: float) -> object:
    """Return what was *seen* if it is not what is *expected*."""
    if np.shape(seen) != np.shape(expected):
        return f"shape {np.shape(seen)}, not {np.shape(expected)}"
    slack = tolerance * max(1.0, float(np.abs(expected).max(initial=0.0)))
    return None if np.allclose(seen, expected, rtol=0, atol=slack) else seen


def _line() -> Points:
    # With 0, where a kernel may be 0 as well.
    return np.append(0.0, _rng().random(8))[:, None]


def _rng() -> Generator:
    return make_rng(5)
