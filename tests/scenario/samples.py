"""Scenario files and experts that several tests of scenarios use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparq_sim import Estimate, Expert, Query, World
from sparq_sim.errors import ScenarioError
from sparq_sim.scenario.model import Scenario

FULL = Path(__file__).parents[1] / "scenarios" / "full.toml"


SMALL = """\
rounds = 5
optimizers = ["uniform"]
environment = { kind = "synthetic" }
"""


SENSOR = """
[experts.sensor]
kind = "truth"
channel = { noise = 0.1 }
"""


class Lagged(Expert):
    """Knows the reward as it was *lag* ago."""

    lag: float = 2.0

    async def answer(self, query: Query, world: World) -> Estimate:
        then = max(0.0, world.clock.now - self.lag)
        return Estimate(world.rewards(query.points, then), measured_at=then)


class Librarian(Expert):
    """Names files in fields of its own."""

    book: Path
    shelf: tuple[Path, ...] = ()

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.full(len(query.points), float(self.book.read_text(encoding="utf-8"))))


def write(folder: Path, text: str | bytes, name: str = "scenario.toml") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def problems(source: str | Path, *overrides: str) -> tuple[str, ...]:
    with pytest.raises(ScenarioError) as refused:
        Scenario.load(source, overrides=overrides)
    return refused.value.problems


def problem(source: str | Path, *overrides: str) -> str:
    (only,) = problems(source, *overrides)
    return only


LIBRARIAN = """
[experts.librarian]
kind = "tests.scenario.samples:Librarian"
book = "book.txt"
shelf = ["shelf/one.txt", "/two.txt"]
"""


def librarian(scenario: Scenario) -> Librarian:
    expert = scenario.experts["librarian"].expert
    assert isinstance(expert, Librarian)
    return expert
