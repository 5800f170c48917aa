from __future__ import annotations

import asyncio
import gc
from typing import Any
from unittest.mock import Mock

import pytest

from sparq_sim import Channel, Estimate, Expert, Query, Rules, World, play, play_live
from sparq_sim.errors import PluginError
from sparq_sim.simulation.clock.expert_clock import LentClock, NotAwaitedWarning
from sparq_sim.simulation.clock.protocol import ARRIVAL, DEADLINE, Clock
from sparq_sim.testing import Asker, Slope, WaitlessLoop
from tests.conftest import Run


def test_a_lent_clock_passes_time_as_the_clock_does(run: Run) -> None:
    async def main(clock: Clock) -> list[float]:
        lent = LentClock(clock, "somebody")
        seen = []
        await lent.sleep(2)
        seen.append(lent.now)
        await lent.until(5)
        seen.append(lent.now)
        nap = lent.sleep(3)
        await lent.sleep(1)
        await nap
        seen.append(lent.now)
        await lent.start(lent.sleep(4))  # type: ignore[arg-type] # a coroutine, though none is promised
        assert lent.forgotten == 0
        return [*seen, lent.now]

    assert run(main) == [2, 5, 8, 12]


def test_a_wait_that_nobody_awaits_is_counted(run: Run) -> None:
    async def main(clock: Clock) -> tuple[float, int]:
        lent = LentClock(clock, "somebody")
        lent.sleep(3)
        lent.until(9)
        return lent.now, lent.forgotten

    assert run(main) == (0, 2)


def test_a_lent_clock_hands_all_else_to_the_clock_as_it_is() -> None:
    clock = Mock()
    lent = LentClock(clock, "somebody")

    def think(now: float) -> float:
        return now

    work = Mock()
    given: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("call_at", (3.0, print, DEADLINE), {}),
        ("signal", (), {}),
        ("start", (work,), {}),
        ("gate", (2,), {}),
        ("compute", (think, 3.0), {"still": True}),
        ("follow", (print,), {}),
        ("watch", (work, "somebody else"), {}),
    ]
    for name, arguments, named in given:
        answered = getattr(lent, name)(*arguments, **named)
        getattr(clock, name).assert_called_once_with(*arguments, **named)
        if name != "call_at":
            assert answered is getattr(clock, name).return_value
    lent.call_at(4.0, print)
    clock.call_at.assert_called_with(4.0, print, ARRIVAL)
    lent.compute(think, 4.0)
    clock.compute.assert_called_with(think, 4.0, still=False)


class Forgetful(Expert):
    """Means to sleep before it answers."""

    async def answer(self, query: Query, world: World) -> Estimate:
        world.clock.sleep(3)
        return Estimate(world.rewards(query.points, world.clock.now))


FORGOTTEN = (
    r"expert 'hasty' \(Forgetful\) calls clock.sleep or clock.until without await, so that no "
    r"time passes; write `await world.clock.sleep"
)


def test_a_play_warns_once_of_an_expert_that_forgets_to_await() -> None:
    with pytest.warns(NotAwaitedWarning, match=FORGOTTEN) as warned:
        play(Asker(batch=1), Slope(), Rules(rounds=5), experts={"hasty": Forgetful()})
    assert len(warned) == 1


def test_in_real_time_too_a_play_warns_of_an_expert_that_forgets_to_await() -> None:
    live = play_live(Asker(batch=1), Slope(), Rules(rounds=5), experts={"hasty": Forgetful()})
    with (
        pytest.warns(NotAwaitedWarning, match=FORGOTTEN) as warned,
        asyncio.Runner(loop_factory=WaitlessLoop) as runner,
    ):
        runner.run(live)
    assert len(warned) == 1


class Restless(Forgetful):
    """Means to send a reading now and then."""

    async def broadcast(self, world: World) -> None:
        while True:
            world.clock.sleep(1)


@pytest.mark.filterwarnings("ignore::sparq_sim.simulation.clock.expert_clock.NotAwaitedWarning")
def test_a_broadcast_that_forgets_to_await_does_not_go_round_for_ever() -> None:
    with pytest.raises(PluginError, match=r"expert 'hasty' \(Restless\) calls clock.sleep or"):
        play(Asker(batch=1), Slope(), Rules(rounds=5), experts={"hasty": Restless()})


class Juggler(Expert):
    """Makes a wait, awaits another thing first, and is given up meanwhile."""

    async def answer(self, query: Query, world: World) -> Estimate:
        nap = world.clock.sleep(1)
        if query.id % 2:
            await world.clock.sleep(5)
        await nap
        gc.collect()  # Now what was given up goes for good.
        return Estimate(world.rewards(query.points, world.clock.now))


def test_a_wait_that_was_to_be_awaited_later_is_not_forgotten() -> None:
    channel = Channel(patience=2)
    rules = Rules(rounds=9)
    trace = play(Asker(batch=1), Slope(), rules, experts={"juggler": (Juggler(), channel)})
    assert {"answered", "late"} <= set(trace.replies["fate"])
