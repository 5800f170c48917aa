"""What several tests share."""

from __future__ import annotations

import asyncio
import gc
import shutil
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.clock.realtime import LiveClock
from sparq_sim.simulation.clock.virtual import SimClock
from sparq_sim.testing import WaitlessLoop

PATIENCE = 600.0
"""Seconds, after which what a test waits for will not come on the busiest machine."""

T = TypeVar("T")
Main = Callable[[Clock], Coroutine[Any, Any, T]]
Run = Callable[[Main[Any]], Any]

# A law either holds or not, however busy the machine is.
settings.register_profile(
    "sparq",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sparq")


def pytest_collection_finish() -> None:
    # What was collected lasts as long as the tests: no search for garbage need go through it.
    gc.collect()
    gc.freeze()


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def on_sim_clock(main: Main[T], period: float | None = None) -> T:
    clock = SimClock(period)
    return clock.run(main(clock))


def on_live_clock(main: Main[T], period: float | None = None) -> T:
    clock = LiveClock(period)
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        return runner.run(clock.run(main(clock)))


@pytest.fixture(params=[on_sim_clock, on_live_clock], ids=["sim", "live"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a process under either clock, without waiting."""
    chosen: Run = request.param
    return chosen


@pytest.fixture
def of_before(tmp_path: Path) -> Path:
    """Copy a study that version 0.1.0 has written: two plays in a compacted file, one in its own.

    They know neither the identity of their scenario nor the source of their code.
    """
    folder = tmp_path / "of-before"
    shutil.copytree(Path(__file__).parent / "data" / "format-2", folder)
    return folder
