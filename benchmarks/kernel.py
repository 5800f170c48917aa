"""The simulation compared with plain SimPy: a wait, a round with one query, one with split queries.

Run it from the root of the repository: `python -m benchmarks.kernel [--check] [--json]`.
"""

from __future__ import annotations

from collections.abc import Generator
from heapq import heapreplace
from itertools import count
from typing import Any

import numpy as np
import simpy

from benchmarks.compare import Pair, at_most, main
from sparq_sim import Briefing, Channel, Environment, Move, Optimizer, Query, Rules, play
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.messages import Reply
from sparq_sim.plugin.contract import Agent, Landscape
from sparq_sim.simulation.clock.virtual import SimClock
from sparq_sim.testing import Teller

WAITS = 50_000
JOINT_ROUNDS = 1_000
SPLIT_ROUNDS = 200
POINTS = 37
CAPACITY = 4
MEAN_SERVICE = 0.05
"""With 37 points and 4 servers, most points are served within the round."""

Process = Generator[simpy.Event, Any, None]
Services = list[list[float]]
"""The durations of the services of each round."""


class Level(Environment):
    """A constant slope, so that computing rewards takes hardly any time."""

    def start(self, rng: np.random.Generator) -> Landscape:
        return LevelLandscape()


class LevelLandscape:
    """The landscape of the slope."""

    domain = Box(0.0, 1.0)

    def rewards(self, points: Points, time: float) -> Values:
        return points[:, 0]

    def best(self, time: float) -> tuple[Point, float]:
        return self.domain.upper, 1.0


class Steady(Optimizer):
    """Always plays the same point, and asks about it 37 times in each round."""

    def start(self, briefing: Briefing, rng: np.random.Generator) -> Agent:
        return SteadyAgent()


class SteadyAgent:
    """The agent, which learns nothing."""

    def __init__(self) -> None:
        self._points: Points = np.full((POINTS, 1), 0.5)
        self._ids = count(1)

    def ask(self, now: float) -> Move:
        return Move(self._points[0], (Query(next(self._ids), "expert", self._points, now),))

    def tell(self, reply: Reply) -> None:
        """Ignore the reply."""


# A wait.


def wait_on_our_clock() -> None:
    """Sleep, on our clock."""

    async def sleeper(clock: SimClock) -> None:
        for _ in range(WAITS):
            await clock.sleep(1.0)

    clock = SimClock()
    clock.run(sleeper(clock))


def wait_in_simpy() -> None:
    """Yield timeouts, in plain SimPy."""

    def sleeper(env: simpy.Environment) -> Process:
        for _ in range(WAITS):
            yield env.timeout(1.0)

    env = simpy.Environment()
    env.process(sleeper(env))
    env.run()


# A round: one observation, and a query of 37 points to an expert with 4 servers.


def play_rounds(rounds: int, *, split: bool) -> None:
    """Play whole rounds, with draws, noise, budget and trace."""
    service = {"kind": "exponential", "mean": MEAN_SERVICE}
    channel = Channel.model_validate(
        {"service": service, "noise": 0.1, "capacity": CAPACITY, "split": split}
    )
    play(Steady(), Level(), Rules(rounds=rounds), experts={"expert": (Teller(), channel)})


def draw_services(rounds: int) -> Services:
    """Draw the durations of services that the peers need."""
    drawn: Services = np.random.default_rng(0).exponential(MEAN_SERVICE, (rounds, POINTS)).tolist()
    return drawn


def serve_jointly(services: Services) -> None:
    """Wait for each round and for its query: two events, with the ends of services in a heap."""

    def rounds(env: simpy.Environment) -> Process:
        for durations in services:
            yield env.timeout(1.0)
            servers = [env.now] * CAPACITY
            ends = []
            for duration in durations:
                end = servers[0] + duration
                heapreplace(servers, end)
                ends.append(end)
            yield env.timeout(max(ends) - env.now)

    env = simpy.Environment()
    env.process(rounds(env))
    env.run()


def serve_separately(services: Services) -> None:
    """Run a process for each point; all share one resource."""

    def serve(env: simpy.Environment, servers: simpy.Resource, duration: float) -> Process:
        with servers.request() as slot:
            yield slot
            yield env.timeout(duration)

    def rounds(env: simpy.Environment) -> Process:
        servers = simpy.Resource(env, CAPACITY)
        for durations in services:
            yield env.timeout(1.0)
            yield env.all_of([env.process(serve(env, servers, time)) for time in durations])

    env = simpy.Environment()
    env.process(rounds(env))
    env.run()


def pairs() -> list[Pair]:
    """Return the rows of this benchmark."""
    joint, split = draw_services(JOINT_ROUNDS), draw_services(SPLIT_ROUNDS)
    return [
        Pair("a wait", wait_on_our_clock, wait_in_simpy, at_most(2), units=WAITS),
        Pair(
            f"a round, {POINTS} points joint",
            lambda: play_rounds(JOINT_ROUNDS, split=False),
            lambda: serve_jointly(joint),
            at_most(25),
            units=JOINT_ROUNDS,
        ),
        Pair(
            f"a round, {POINTS} points split",
            lambda: play_rounds(SPLIT_ROUNDS, split=True),
            lambda: serve_separately(split),
            at_most(4),
            units=SPLIT_ROUNDS,
        ),
    ]


if __name__ == "__main__":
    main("The simulation compared with plain SimPy", pairs())
