"""The browser of the report's tests, and a live play that was played without waiting."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sparq_sim.live.play import live
from sparq_sim.scenario.model import Scenario
from sparq_sim.testing import WaitlessLoop
from tests.live.watch.pages import small
from tests.report.conftest import browser

__all__ = ["browser", "curious_journal", "play_live"]

CURIOUS = {
    "kind": "sparq-gp-ucb",
    "kernel": {"kind": "squared-exponential", "length_scale": 3.0},
    "acquisition": {"grid": 21},
}
SAGE = {"kind": "truth", "channel": {"noise": 0.1, "cost": 0.1, "transit": 1.5, "loss": 0.2}}


def curious(**fields: Any) -> Scenario:
    """Return a scenario whose agent asks an expert, and believes something."""
    chosen = {"rounds": 8, "experts": {"sage": SAGE}, "optimizers": {"curious": CURIOUS}}
    return small(**(chosen | fields))


def play_live(scenario: Scenario, folder: Path) -> Path:
    """Play a scenario in real time on a loop that does not wait; return its journal."""
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        runner.run(live(scenario, folder=folder))
    return folder / "journal.jsonl"


@pytest.fixture(scope="session")
def curious_journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a play whose agent believes something; not to be changed."""
    return play_live(curious(), tmp_path_factory.mktemp("live") / "play")
