"""Halves of characters in the text of a plug-in are written out, and stop nothing."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.random import Generator

from sparq_sim.domain import Box
from sparq_sim.messages import Estimate, Move, Query
from sparq_sim.plugin.contract import (
    Agent,
    Briefing,
    Environment,
    Expert,
    Landscape,
    World,
)
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope
from tests.cli.invoking import ends_with
from tests.study.plays import scenario

HALF, SHOWN = "\udc80", r"\udc80"


class Halved(Expert):
    """Says what is no text, in *where*."""

    where: Literal["error", "absent", "notes", "note", "stop", "warning"] = "error"

    async def answer(self, query: Query, world: World) -> Estimate:
        values = world.rewards(query.points, world.clock.now)
        match self.where:
            case "error":
                raise ValueError(f"no text {HALF}")
            case "absent":
                return Estimate(values * np.nan, absent=f"no text {HALF}")
            case "notes":
                return Estimate(values, notes={f"half{HALF}": 1.0})
            case "note":
                world.note(**{f"half{HALF}": 1.0})
            case "stop":
                world.stop(f"no text {HALF}")
            case "warning":
                warnings.warn(f"no text {HALF}", UserWarning, stacklevel=1)
        return Estimate(values)

    def accounts(self, time: float) -> dict[str, dict[str, Any]]:
        return {"said": {"text": [f"no text {HALF}"]}}


class HalvedOptimizer(Asker):
    """Notes a name that is no text, or fails by what is none."""

    fails: bool = False

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        if self.fails:
            raise OSError(f"no text {HALF}")
        return _HalvedAgent(super().start(briefing, rng))


class _HalvedAgent:
    def __init__(self, inner: Agent) -> None:
        self._inner, self.tell = inner, inner.tell

    def ask(self, now: float) -> Move:
        move = self._inner.ask(now)
        return Move(move.point, move.queries, {f"half{HALF}": 1.0}, move.effort)


class HalvedWorld(Environment):
    """Has a coordinate whose name is no text."""

    def start(self, rng: Generator) -> Landscape:
        return _HalvedLandscape(Slope().start(rng))


class _HalvedLandscape:
    domain = Box(0.0, 1.0, [f"half{HALF}"])

    def __init__(self, inner: Landscape) -> None:
        self.rewards, self.best = inner.rewards, inner.best


@pytest.mark.parametrize("where", ["error", "absent", "notes", "note", "stop", "warning"])
def test_text_of_plug_ins_that_is_none_is_kept_and_shown(tmp_path: Path, where: Any) -> None:
    played = scenario(
        rounds=4,
        replications=1,
        environment=HalvedWorld(),
        experts={"half": Halved(where=where)},
        optimizers={"a": HalvedOptimizer(), "b": HalvedOptimizer(fails=True)},
    )
    done = Study(played, tmp_path).run(InProcess())
    assert len(done.failed_plays) == 1, done.failed_plays
    assert f"OSError: no text {SHOWN}" in done.failed_plays[0].reason
    study = Results.open(tmp_path)
    (play,) = study.finished()
    trace = study.read(play.key).trace
    assert f"half{SHOWN}" in trace.rounds
    assert trace.accounts["half/said"]["text"].tolist() == [f"no text {SHOWN}"]
    told = [*done.notes, trace.ended, *trace.replies, *trace.replies["reason"].tolist()]
    if where != "warning":
        assert any(SHOWN in text for text in told), told
    ends_with(0, "report", str(tmp_path), "--allow-import")
    ends_with(0, "export", str(tmp_path), str(tmp_path / "all.csv"))
    ends_with(0, "compare", str(tmp_path))
