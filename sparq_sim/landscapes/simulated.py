"""Simulated: what all bases of simulated environments share, and checks of what they compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Domain
from sparq_sim.errors import PluginError
from sparq_sim.landscapes.snapshots import (
    State,
)
from sparq_sim.plugin.environment import Environment

__all__ = ["SimulatedEnvironment", "check_array", "compute_values"]


class SimulatedEnvironment(Environment):
    """The base of the bases: a domain, and parameters that may be left to chance."""

    def domain(self) -> Domain:
        """Return where points may lie; it may depend on the fields, but not on chance."""
        raise NotImplementedError(f"{type(self).__name__} must define domain(self)")

    def settle(self, rng: Generator) -> Self:
        """Return a copy of the model in which all that is left to chance is drawn.

        By default nothing is left to chance. For instance
        `return self.model_copy(update={"phase": rng.random()})`. The other methods are called on
        what this returns.

        Args:
            rng: The only source of chance.
        """
        return self

    def _settle_checked(self, rng: Generator) -> Self:
        settled: Any = self.settle(rng)
        if not isinstance(settled, type(self)):
            raise PluginError(
                f"{type(self).__name__}.settle(rng) gives {settled!r:.200}; expected the model, or "
                "a copy as `self.model_copy(update={...})` makes it"
            )
        return settled

    def _place(self, *kinds: type[Domain]) -> Any:
        """Return the domain, if it is of one of these *kinds*."""
        name, names = type(self).__name__, " or ".join(kind.__name__ for kind in kinds)
        given: Any = self.domain
        if not callable(given):
            raise PluginError(
                f"{name}.domain is {given!r:.200}; expected a method that returns a {names}, as in "
                "`def domain(self): return Box(0.0, 1.0)`"
            )
        domain = given()
        if not isinstance(domain, kinds):
            raise PluginError(f"{name}.domain() gives {domain!r:.200}; expected a {names}")
        return domain


def compute_values(compute: Callable[[Points], ArrayLike], points: Points, *, asked: str) -> Values:
    """Return what a function computes for each row of *points*: (n,).

    Args:
        compute: Takes the points, as an array that it cannot change.
        points: Where: (n, d).
        asked: How errors name the call, such as "f(points, 2.0)".

    Raises:
        PluginError: It does not return one finite number for each row.
    """
    view = points.view()
    view.setflags(write=False)
    try:
        given: Any = compute(view)
    except Exception as error:
        error.add_note(f"in {asked}, points of shape {points.shape}")
        raise
    expected = f"expected {len(points)} finite numbers, one for each row of points"
    values = check_array(given, (len(points),), asked=asked, expected=expected)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise PluginError(
            f"{asked} gives {values[wrong[0]]} at {points[wrong[0]].tolist()}; {expected}"
        )
    return values


def check_array(given: Any, shape: tuple[int, ...], *, asked: str, expected: str) -> State:
    """Return a copy of what a method of a plug-in returned, after checking it.

    Args:
        given: What it returned.
        shape: The shape that it should have.
        asked: How errors name the call, such as "f(points, 2.0)".
        expected: What it should return, in words.

    Raises:
        PluginError: It is no array of numbers of that shape.
    """
    try:
        array = np.asarray(given)
    except ValueError as error:  # Rows of several lengths.
        raise PluginError(f"{asked} gives {given!r:.200}; {expected}") from error
    if array.dtype.kind not in "fiu":
        raise PluginError(f"{asked} gives {given!r:.200}; {expected}")
    if array.shape != shape:
        raise PluginError(f"{asked} gives an array of shape {array.shape}; {expected}")
    return array.astype(np.float64)
