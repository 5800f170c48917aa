"""Laws of parts: what every draw, noise, loss and kernel obeys, each by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite, sqrt
from typing import TypeAlias

import numpy as np
from numpy.random import Generator, Philox

from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.gp.kernels import Kernel, lowest_eigenvalue
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.result_checks import without_result_checks
from sparq_sim.simulation.channel.draws import Draw
from sparq_sim.simulation.channel.noise import Loss, Noise
from sparq_sim.testing.laws_of_plugins import Law, Wrong, law, model_laws

Named: TypeAlias = tuple[str, Wrong]
"""What holds, and what finds out."""
MANY = 20_000
"""Of so many draws the averages are looked at,"""
ERRORS = 8
"""and so many standard errors may lie between them and what is expected."""


def part_laws(part: Model, points: Points | None = None) -> Iterator[Law]:
    """Yield the laws of a *part*, one by one; beside those of all models, not every part has any.

    Args:
        part: A draw, a noise, a loss or a kernel.
        points: Where a kernel is looked at, (n, d); by default along a line from 0 to 1.
    """
    yield from model_laws(part)
    for name, wrong in _laws(part, points):
        yield law(part, name, without_result_checks()(wrong))


def _laws(part: Model, points: Points | None) -> Iterator[Named]:
    match part:
        case Draw():
            yield from _draw_laws(part)
        case Noise():
            yield from _noise_laws(part)
        case Loss():
            yield from _loss_laws(part)
        case Kernel():
            yield from _kernel_laws(part, _line() if points is None else points)


def _draw_laws(draw: Draw) -> Iterator[Named]:
    yield from _sample_laws("sample", draw.sample)

    def negative() -> object:
        lowest = draw.sample(_rng(), MANY).min()
        return None if lowest >= 0 else lowest

    def too_low() -> object:
        lowest = draw.sample(_rng(), MANY).min()
        return None if lowest >= draw.least else (lowest, draw.least)

    yield "no draw is negative", negative
    yield "no draw falls below least", too_low
    yield "samples average to expected", lambda: _off(draw.sample(_rng(), MANY), draw.expected)


def _noise_laws(noise: Noise) -> Iterator[Named]:
    yield from _sample_laws("units", noise.units)
    points, values = _rng().random((5, len(getattr(noise, "origin", (0,))))), np.linspace(-1, 1, 5)

    def wrong_stds() -> object:
        stds = np.asarray(noise.stds(points, values))
        return None if stds.shape in ((), (5,)) and np.all(stds >= 0) else stds

    yield "units average to 0", lambda: _off(noise.units(_rng(), MANY), 0.0)
    yield "units have variance 1", lambda: _off(noise.units(_rng(), MANY) ** 2, 1.0)
    yield "stds are one, or one a point, and not negative", wrong_stds


def _loss_laws(loss: Loss) -> Iterator[Named]:
    moments = [0.0, 0.5, 3.0, 40.0]

    def no_chances() -> object:
        start = loss.start(_rng())
        chances = [start(moment) for moment in moments]
        return None if all(0 <= chance <= 1 for chance in chances) else chances

    def changing() -> object:
        forth, back = loss.start(_rng()), loss.start(_rng())
        seen = [back(moment) for moment in reversed(moments)][::-1]
        expected = [forth(moment) for moment in moments]
        return None if seen == expected else (expected, seen)

    yield "chances lie from 0 to 1", no_chances
    yield "chances do not depend on the order in which they are asked for", changing


def _kernel_laws(kernel: Kernel, points: Points) -> Iterator[Named]:
    def of_wrong_shape() -> object:
        shape = np.shape(kernel(points[:3], points))
        return None if shape == (3, len(points)) else shape

    def indefinite() -> object:
        lowest = lowest_eigenvalue(kernel(points, points))
        return None if lowest >= 0 else lowest

    def without_variance() -> object:
        nowhere = kernel.diagonal(points) <= 0
        return points[nowhere].tolist() or None

    def not_positive() -> object:
        return [name for name, number in kernel.parameters().items() if number <= 0] or None

    def other_gradient() -> object:
        # Between the points: a kernel may have a kink where they are.
        place = points.mean(axis=0)
        expected = Kernel.gradient(kernel, place, points)
        return _apart(kernel.gradient(place, points), expected, 1e-4)

    def other_derivatives() -> object:
        expected = np.array(Kernel.derivatives(kernel, points))
        return _apart(np.array(kernel.derivatives(points)), expected, 1e-4)

    def other_diagonal() -> object:
        return _apart(kernel.diagonal(points), np.diagonal(kernel(points, points)), 1e-9)

    yield "k of 3 and n points has shape (3, n)", of_wrong_shape
    yield "is symmetric", lambda: _apart(kernel(points, points), kernel(points, points).T, 1e-9)
    yield "has no negative eigenvalue", indefinite
    yield "diagonal is that of the matrix", other_diagonal
    yield "k of a point with itself is above 0; add a constant kernel if need be", without_variance
    yield "its numbers are positive, to be fitted by their logarithms", not_positive
    yield "gradient is the derivative by the point", other_gradient
    yield "derivatives are those by the log-parameters", other_derivatives


def _sample_laws(name: str, sample: Callable[[Generator, int], Values]) -> Iterator[Named]:
    def of_wrong_shape() -> object:
        drawn = sample(_rng(), 3)
        good = isinstance(drawn, np.ndarray) and drawn.shape == (3,) and np.isfinite(drawn).all()
        return None if good else drawn

    def shifted() -> object:
        alone, among = sample(_rng(), 1)[0], sample(_rng(), 5)[0]
        return None if alone == among else (alone, among)

    yield f"{name} gives as many finite numbers as asked for", of_wrong_shape
    yield f"{name} gives the same first number alone and among many", shifted


def _off(drawn: Values, expected: float) -> object:
    """Return the average of what was *drawn* if it is not what is *expected*."""
    average = float(drawn.mean())
    slack = ERRORS * float(drawn.std()) / sqrt(len(drawn)) + 1e-9 * abs(expected)
    return None if not isfinite(expected) or abs(average - expected) <= slack else average


def _apart(seen: Matrix, expected: Matrix, tolerance: float) -> object:
    """Return what was *seen* if it is not what is *expected*."""
    if np.shape(seen) != np.shape(expected):
        return f"shape {np.shape(seen)}, not {np.shape(expected)}"
    slack = tolerance * max(1.0, float(np.abs(expected).max(initial=0.0)))
    return None if np.allclose(seen, expected, rtol=0, atol=slack) else seen


def _line() -> Points:
    # With 0, where a kernel may be 0 as well.
    return np.append(0.0, _rng().random(8))[:, None]


def _rng() -> Generator:
    return Generator(Philox(key=5))
