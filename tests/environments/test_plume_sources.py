from __future__ import annotations

import pytest
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose

from sparq_environments._plume_sources import Circle, Cycle, Line, Spells, Switch


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


@pytest.mark.parametrize("schedule", [Cycle(on=7.0, off=3.0), Spells(length=5.0, share=0.7)])
def test_a_source_is_on_for_its_share_of_the_time(schedule: Cycle | Spells) -> None:
    switch: Switch = schedule.draw(stream())
    assert switch.time_on(-100.0, 19_900.0) == pytest.approx(14_000.0, rel=0.03)
    pieces = [switch.time_on(0.3 * k, 0.3 * (k + 1)) for k in range(-50, 200)]
    assert sum(pieces) == pytest.approx(switch.time_on(-15.0, 60.0))
    assert {round(piece, 9) for piece in pieces} >= {0.0, 0.3}


def test_paths_come_back_after_a_cycle_and_reach_what_they_should() -> None:
    line = Line(begin=(1.0, 2.0), end=(5.0, 4.0), cycle=10.0, phase=0.0)
    circle = Circle(centre=(5.0, 5.0), radius=2.0, cycle=8.0, phase=0.25)
    assert_allclose([line.at(0.0), line.at(5.0), line.at(10.0)], [[1, 2], [5, 4], [1, 2]])
    assert_allclose([circle.at(0.0), circle.at(2.0)], [[5, 7], [3, 5]])
