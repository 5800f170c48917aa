"""What fills a gap in a record may be made of later readings: nobody is told it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator

from sparq_sim import Channel, Environment, Estimate, Expert, Query, Rules, World, play
from sparq_sim.arrays import Points, Values
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Landscape
from sparq_sim.simulation.records import Fate
from tests.experts import Heard, consult
from tests.gappy import FILLED, GAP, Gappy, GappyLandscape

LEFT, RIGHT = 0.25, 0.75
IN_THE_GAP = 6.0

Look = Callable[[Query, World], Values]


class Looker(Expert):
    """Answers with what it sees, and writes nothing about what is absent."""

    look: Look

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(self.look(query, world))


def fates(heard: Heard) -> list[tuple[str, list[int]]]:
    return [(record.fate, record.reply.rows.tolist()) for record in heard.records]


LOOKS: dict[str, Look] = {
    "rewards": lambda query, world: world.rewards(query.points, world.clock.now),
    "rewards of then": lambda query, world: world.rewards(query.points, world.clock.now - 0.5),
    "observe": lambda query, world: world.observe(query.points),
    "coarse": lambda query, world: world.coarse(0.5).rewards(query.points, world.clock.now),
    "a trend": lambda query, world: (
        2 * world.rewards(query.points, world.clock.now)
        - world.rewards(query.points, world.clock.now - 1)
    ),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_gap_is_unavailable_without_a_word_of_the_author(look: Look) -> None:
    heard = consult(Looker(look=look), [IN_THE_GAP], [LEFT, RIGHT], environment=Gappy())
    assert fates(heard) == [(Fate.ANSWERED, [0]), (Fate.UNAVAILABLE, [1])]
    assert heard.failures[0].reason == "no reading"
    assert heard.answers[0].values[0] < FILLED


def test_a_trend_that_reaches_back_into_a_gap_has_no_reading() -> None:
    heard = consult(Looker(look=LOOKS["a trend"]), [GAP[1]], [RIGHT], environment=Gappy())
    assert fates(heard) == [(Fate.UNAVAILABLE, [0])]


def test_a_nan_that_no_gap_explains_is_invalid() -> None:
    def wrong(query: Query, world: World) -> Values:
        return 0.0 * world.rewards(query.points, world.clock.now) + np.nan

    heard = consult(Looker(look=wrong), [3.0, IN_THE_GAP, 8.0], [RIGHT], environment=Gappy())
    assert [record.fate for record in heard.records] == [
        Fate.INVALID,
        Fate.UNAVAILABLE,
        Fate.INVALID,
    ]


def test_the_reason_of_the_author_stands() -> None:
    class Reasoning(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(world.rewards(query.points, world.clock.now), absent="mast down")

    (failure,) = consult(Reasoning(), [IN_THE_GAP], [RIGHT], environment=Gappy()).failures
    assert failure.reason == "mast down"


def test_a_nan_that_was_injected_is_a_fault_also_in_a_gap() -> None:
    channel = Channel.model_validate({"faults": [{"kind": "nan", "share": 1.0}]})
    expert = Looker(look=LOOKS["rewards"])
    heard = consult(expert, [IN_THE_GAP], [LEFT, RIGHT], environment=Gappy(), channel=channel)
    assert fates(heard) == [(Fate.INVALID, [0, 1])]


def test_what_is_sent_unasked_in_a_gap_is_unavailable_too() -> None:
    class Beacon(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(np.zeros(len(query.points)))

        async def broadcast(self, world: World) -> None:
            points = np.array([[RIGHT]])
            for moment in (4.0, 6.0, 8.0):
                await world.clock.until(moment)
                world.send(world.open(points), Estimate(world.rewards(points, moment)))

    heard = consult(Beacon(), [], [RIGHT], environment=Gappy())
    assert [record.fate for record in heard.records] == [
        Fate.ANSWERED,
        Fate.UNAVAILABLE,
        Fate.ANSWERED,
    ]


Peek = Callable[[World, Points], object]
PEEKS: dict[str, Peek] = {
    "rewards": lambda world, points: world.rewards(points, world.clock.now + 1),
    "available": lambda world, points: world.available(points, world.clock.now + 1),
    "coarse": lambda world, points: world.coarse(0.5).rewards(points, world.clock.now + 1),
    "coarse best": lambda world, points: world.coarse(0.5).best(world.clock.now + 1),
}


@pytest.mark.parametrize("peek", PEEKS.values(), ids=PEEKS)
def test_nobody_looks_beyond_now(peek: Peek) -> None:
    class Peeker(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            peek(world, query.points)
            return Estimate(np.zeros(len(query.points)))

    (failure,) = consult(Peeker(), [4.0], environment=Gappy()).failures
    assert "rewards are known from 0 to now (4.0), not at 5.0" in failure.reason


def test_the_best_of_a_coarse_world_is_not_told_where_it_fills_a_gap() -> None:
    class Climber(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            _, best = world.coarse(0.5).best(world.clock.now)
            return Estimate(np.full(len(query.points), best))

    heard = consult(Climber(), [3.0, IN_THE_GAP], environment=Gappy())
    assert [record.fate for record in heard.records] == [Fate.ANSWERED, Fate.UNAVAILABLE]


@pytest.mark.parametrize("hook", ["observe", "available", "coarse"])
def test_a_coarse_world_has_no_hooks_that_would_lead_around_the_limits(hook: str) -> None:
    class Peeker(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            assert not hasattr(world.coarse(0.5), hook)
            return Estimate(np.zeros(len(query.points)))

    assert consult(Peeker(), [4.0], environment=Gappy()).answers


def test_the_coarse_world_is_made_once_for_a_resolution() -> None:
    made: list[float] = []

    class Counting(GappyLandscape):
        def coarse(self, resolution: float) -> Landscape:
            made.append(resolution)
            return GappyLandscape()

    class Counted(Environment):
        def start(self, rng: Generator) -> Landscape:
            return Counting()

    consult(Looker(look=LOOKS["coarse"]), [1.0, 2.0, 3.0], environment=Counted())
    assert made == [0.5]


def test_observations_lack_what_was_not_read_and_regret_is_judged_all_the_same() -> None:
    trace = play(Uniform(), Gappy(), Rules(rounds=40, period=0.25))
    moments, right = trace.rounds["played_at"], trace.rounds["x0"] >= 0.5
    hidden = right & (moments >= GAP[0]) & (moments < GAP[1])
    assert hidden.any()
    assert ((trace.replies["fate"] == Fate.UNAVAILABLE) == hidden).all()
    assert (trace.rounds["reward"][hidden] == FILLED).all()
    assert np.isfinite(trace.rounds["regret"]).all()
