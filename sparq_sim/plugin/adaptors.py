"""Adaptors: experts made of plain functions and of SimPy processes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

import numpy as np

from sparq_sim.arrays import Points, Values
from sparq_sim.errors import PluginError
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.expert import Expert, World

__all__ = [
    "FunctionExpert",
    "ProcessExpert",
    "ProcessFunction",
    "RewardFunction",
    "from_function",
    "from_process",
]

ProcessFunction: TypeAlias = Callable[[Any, Query, World], Generator[Any, Any, Estimate]]
"""`def process(env, query, world)`, which yields SimPy events and returns an Estimate."""

RewardFunction: TypeAlias = Callable[[Points, float], Values]
"""`def f(points, time)`, which returns a value for each row of points (n, d): (n,)."""


class ProcessExpert(Expert):
    """An expert that runs a SimPy process for each query; in virtual time only."""

    function: ProcessFunction
    """What makes the process: `f(env, query, world)`."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Run the process to its end, and return its result."""
        return await world.clock.follow(lambda env: self.function(env, query, world))


def from_process(function: ProcessFunction) -> Expert:
    """Return an expert that runs a SimPy process for each query.

    It can be played in virtual time only: a play in real time ends with a `LiveOnlyError`.

    Args:
        function: A generator function `f(env, query, world)`, which yields events of the SimPy
            environment *env* and returns an `Estimate`.
    """
    return ProcessExpert(function=function)


class FunctionExpert(Expert):
    """An expert that calls a plain function for each query."""

    function: RewardFunction
    """What computes the values: `f(points, time)`."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Return what the function computes for the points, now."""
        values = self.function(query.points, world.clock.now)
        return Estimate(np.asarray(values, dtype=float))


def from_function(function: RewardFunction) -> Expert:
    """Return an expert that answers by a plain function.

    Args:
        function: `f(points, time)`, which returns a value for each row of points (n, d): (n,).

    Raises:
        PluginError: It is an `async def`.
    """
    if iscoroutinefunction(function):
        raise PluginError(
            f"{function.__qualname__} is async, and from_function takes a plain function; what "
            "waits is an Expert with `async def answer(self, query, world)`"
        )
    return FunctionExpert(function=function)
