from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim.arrays import Point
from sparq_sim.study.executors import landscapes
from sparq_sim.study.executors.landscapes import SharedLandscape, share_landscape
from tests.gappy import GappyLandscape
from tests.plants import Plant, plan, steer


def test_a_shared_landscape_has_all_that_the_landscape_has() -> None:
    landscape = GappyLandscape()
    shared = SharedLandscape(landscape)
    assert shared.cell_count == landscape.cell_count
    assert shared.available == landscape.available
    assert not hasattr(shared, "observe")


def test_of_too_many_times_the_first_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landscapes, "MOST_BESTS", 2)
    asked: list[float] = []

    class Asked(GappyLandscape):
        def best(self, time: float) -> tuple[Point, float]:
            asked.append(time)
            return super().best(time)

    shared = SharedLandscape(Asked())
    for moment in (1.0, 2.0, 2.0, 3.0, 3.0, 1.0):
        shared.best(moment)
    assert asked == [1.0, 2.0, 3.0, 1.0]


def test_what_is_steered_is_shared_by_no_plays(tmp_path: Path) -> None:
    assert share_landscape(Plant(), 0, 0) is None
    study = steer(tmp_path, replications=1)
    for play in study.plays():
        assert study.read(play).trace.digest() == plan().play(play.optimizer, 0).digest()
