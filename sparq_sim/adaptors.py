"""Adaptors: experts made of what people already have."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from sparq_sim.messages import Estimate, Query
from sparq_sim.models import Expert, World

ProcessFunction = Callable[[Any, Query, World], Generator[Any, Any, Estimate]]
"""`def process(env, query, world)`, which yields SimPy events and returns an Estimate."""


class ProcessExpert(Expert):
    """Answers by running a classic SimPy process *function* for each query; virtual time only."""

    function: ProcessFunction

    async def answer(self, query: Query, world: World) -> Estimate:
        """Run the function to its end and give what it returns."""
        return await world.clock.follow(lambda env: self.function(env, query, world))


def from_process(function: ProcessFunction) -> Expert:
    """Make an expert of a SimPy process function `f(env, query, world)`."""
    return ProcessExpert(function=function)
