from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparq_sim import Estimate, Expert, Query, Rules, World, play_live
from sparq_sim.simulation.clock.blocking import BlockingWarning
from sparq_sim.testing import Asker, Slope, WaitlessLoop


class Blocker(Expert):
    """Sleeps where all others wait for it."""

    async def answer(self, query: Query, world: World) -> Estimate:
        await world.clock.sleep(0.0)
        time.sleep(0.05)
        return Estimate(world.rewards(query.points, world.clock.now))


class Crowded(Expert):
    """Computes until it has lacked a processor for half a second."""

    async def answer(self, query: Query, world: World) -> Estimate:
        await world.clock.sleep(0.0)
        began, used = time.perf_counter(), time.thread_time()
        while time.perf_counter() - began - (time.thread_time() - used) < 0.5:
            assert time.thread_time() - used < 0.25, "there was no crowd"
        return Estimate(world.rewards(query.points, world.clock.now))


def complaints(expert: Expert) -> list[str]:
    """Play three rounds live, and give what is said of those who block."""
    experts = {"slow": expert}
    with (
        warnings.catch_warnings(record=True) as caught,
        asyncio.Runner(loop_factory=WaitlessLoop) as runner,
    ):
        warnings.simplefilter("always", BlockingWarning)
        trace = runner.run(play_live(Asker(batch=1), Slope(), Rules(rounds=3), experts=experts))
    assert len(trace) == 3
    assert set(trace.replies["fate"]) == {"answered"}
    return [str(warning.message) for warning in caught]


def test_an_expert_that_blocks_all_others_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparq_sim.simulation.clock.blocking._BLOCKING", 0.04)
    told = r"expert 'slow' \(Blocker\).answer held up all others for \d+\.\d s; expected to await"
    assert any(re.match(told, said) for said in complaints(Blocker()))


@pytest.fixture
def crowd() -> Iterator[None]:
    """Let this thread share one processor with four that are always busy."""
    allowed = os.sched_getaffinity(0)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    for pid in (0, *(process.pid for process in busy)):
        os.sched_setaffinity(pid, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)
    for process in busy:
        process.kill()
        process.wait()


@pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists(), reason="needs Linux's schedstat"
)
@pytest.mark.usefixtures("crowd")
def test_an_expert_that_gets_no_processor_is_not_said_to_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sparq_sim.simulation.clock.blocking._BLOCKING", 0.3)
    assert complaints(Crowded()) == []
