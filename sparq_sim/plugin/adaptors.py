"""Adaptors: experts made of what people already have."""

from __future__ import annotations

from collections.abc import Callable, Generator
from inspect import iscoroutinefunction
from typing import Any

import numpy as np

from sparq_sim.arrays import Points, Values
from sparq_sim.errors import PluginError
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.expert import Expert, World

ProcessFunction = Callable[[Any, Query, World], Generator[Any, Any, Estimate]]
"""`def process(env, query, world)`, which yields SimPy events and returns an Estimate."""

RewardFunction = Callable[[Points, float], Values]
"""`def f(points, time)`, which gives a value for each row of points (n, d): (n,)."""


class ProcessExpert(Expert):
    """Answers by running a classic SimPy process *function* for each query; virtual time only."""

    function: ProcessFunction

    async def answer(self, query: Query, world: World) -> Estimate:
        """Run the function to its end and give what it returns."""
        return await world.clock.follow(lambda env: self.function(env, query, world))


def from_process(function: ProcessFunction) -> Expert:
    """Make an expert of a SimPy process function `f(env, query, world)`."""
    return ProcessExpert(function=function)


class FunctionExpert(Expert):
    """Answers with what a plain *function* gives at the points, now."""

    function: RewardFunction

    async def answer(self, query: Query, world: World) -> Estimate:
        """Call the function."""
        values = self.function(query.points, world.clock.now)
        return Estimate(np.asarray(values, dtype=float))


def from_function(function: RewardFunction) -> Expert:
    """Make an expert of a plain function `f(points, time)` that gives a value for each point."""
    if iscoroutinefunction(function):
        raise PluginError(
            f"{function.__qualname__} is async, and from_function takes a plain function; what "
            "waits is an Expert with `async def answer(self, query, world)`"
        )
    return FunctionExpert(function=function)
