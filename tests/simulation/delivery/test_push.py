from __future__ import annotations

import pytest

from sparq_sim import Channel, Estimate, Expert, Query, Rules, Trace, World, play
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.testing import Slope


class Herald(Expert):
    """Sends one reading, at 1.5, as often as told."""

    times: int = 1

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.rewards(query.points, world.clock.now))

    async def broadcast(self, world: World) -> None:
        await world.clock.sleep(1.5)
        query = world.open(world.domain.cover(1))
        for _ in range(self.times):
            world.send(query, Estimate(world.rewards(query.points, world.clock.now)))


def hear(times: int = 1, **channel: object) -> list[tuple[str, float]]:
    """Return fate and arrival of all that the herald sends."""
    experts = {"herald": (Herald(times=times), Channel.model_validate(channel))}
    trace: Trace = play(Uniform(), Slope(), Rules(rounds=8), experts=experts)
    own = trace.replies["source"] == "herald"
    fates, arrivals = trace.replies["fate"][own], trace.replies["arrived_at"][own]
    return list(zip(fates.tolist(), arrivals.tolist(), strict=True))


@pytest.mark.parametrize("transit", [0.0, 0.25])
def test_a_lost_reading_is_noticed_when_patience_ends(transit: float) -> None:
    assert hear(transit=transit, loss=1.0, patience=2.0) == [("lost", 3.5)]


@pytest.mark.parametrize("transit", [0.0, 0.25])
def test_a_lost_reading_is_lost_on_arrival_where_nobody_waits(transit: float) -> None:
    assert hear(transit=transit, loss=1.0) == [("lost", 1.5 + transit)]


@pytest.mark.parametrize("transit", [0.0, 0.25])
def test_a_reading_that_is_sent_twice_arrives_once_and_again_as_a_duplicate(
    transit: float,
) -> None:
    arrival = 1.5 + transit
    assert hear(2, transit=transit, patience=2.0) == [("answered", arrival), ("duplicate", arrival)]
