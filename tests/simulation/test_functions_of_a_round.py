"""How many functions one must read to follow a round: run as a script, it lists them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import sparq_sim
from sparq_sim import Box, Environment, Estimate, Expert, Move, Optimizer, Query, Rules, World, play
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.messages import Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Landscape
from sparq_sim.plugin.optimizer import Agent
from sparq_sim.simulation.records import Turn

HOME = str(Path(sparq_sim.__file__).parent)
MOST_FUNCTIONS = 40


class Still(Environment):
    def start(self, rng: np.random.Generator) -> Landscape:
        return StillLandscape()


class StillLandscape:
    domain = Box(0.0, 1.0)

    def rewards(self, points: Points, time: float) -> Values:
        return points[:, 0]

    def best(self, time: float) -> tuple[Point, float]:
        return self.domain.upper, 1.0


class Knowing(Expert):
    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.rewards(query.points, world.clock.now))


class Constant(Optimizer):
    def start(self, briefing: Briefing, rng: np.random.Generator) -> Agent:
        return ConstantAgent()


class ConstantAgent:
    """Plays one point for ever, and asks about it in each round."""

    def __init__(self) -> None:
        self._point = np.array([0.5])
        self._numbers = count(1)

    def ask(self, now: float) -> Move:
        return Move(self._point, (Query(next(self._numbers), "expert", self._point[None], now),))

    def tell(self, reply: Reply) -> None:
        pass


@contextmanager
def calls_noted(calls: dict[str, int]) -> Iterator[None]:
    """Count calls of the package's own functions, by name."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME):
            name = f"{Path(code.co_filename).relative_to(HOME)}: {code.co_qualname}"
            calls[name] = calls.get(name, 0) + 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def functions_of_a_round() -> dict[str, int]:
    """Return how often each function is called from the end of round 2 to the end of round 3."""
    calls: dict[str, int] = {}
    third: dict[str, int] = {}

    def watch(turn: Turn) -> None:
        if turn.round == 2:
            calls.clear()
        if turn.round == 3:
            third.update(calls)

    with calls_noted(calls):
        play(Constant(), Still(), Rules(rounds=4), experts={"expert": Knowing()}, watch=watch)
    return third


def test_a_round_with_one_expert_can_be_followed_through_a_few_functions() -> None:
    functions = functions_of_a_round()
    assert any("Engine" in name for name in functions)
    assert any("Service" in name for name in functions)
    assert len(functions) <= MOST_FUNCTIONS, "\n".join(functions)


if __name__ == "__main__":
    FOUND = functions_of_a_round()
    print(*(f"{calls:3} {name}" for name, calls in FOUND.items()), sep="\n")
    print(f"{len(FOUND)} functions, at most {MOST_FUNCTIONS}; {sum(FOUND.values())} calls")
