from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import RegularGridInterpolator

from sparq_sim.domain import Box
from sparq_sim.landscapes.snapshots import CellGrid, NodeGrid, Snapshots, State


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


# Grids


@given(arrays(float, (12, 2), elements=st.floats(0.0, 1.0)), st.integers(0, 9))
def test_between_middles_of_cells_states_are_interpolated_linearly(unit: State, seed: int) -> None:
    grid = CellGrid(Box([0.0, 0.0], [2.0, 3.0]), 5)
    state = stream(seed).random((5, 5))
    middles = [np.array([0.2, 0.6, 1.0, 1.4, 1.8]), np.array([0.3, 0.9, 1.5, 2.1, 2.7])]
    points = unit * [2.0, 3.0]
    within = np.clip(points, [0.2, 0.3], [1.8, 2.7])
    expected = RegularGridInterpolator(middles, state)(within)
    assert_allclose(grid.sample(state, points), expected, atol=1e-12)


@given(arrays(float, (12, 2), elements=st.floats(0.0, 1.0)), st.integers(0, 9))
def test_between_nodes_values_are_interpolated_linearly_up_to_the_bounds(
    unit: State, seed: int
) -> None:
    grid = NodeGrid(Box([-1.0, 2.0], [1.0, 5.0]), 4)
    values = stream(seed).random((4, 4))
    points = np.array([-1.0, 2.0]) + unit * [2.0, 3.0]
    expected = RegularGridInterpolator(grid.axes, values)(np.clip(points, *grid.points[[0, -1]]))
    assert_allclose(grid.sample(values, points), expected, atol=1e-12)
    assert_array_equal(grid.sample(values, grid.points[[0, -1]]), values.flat[[0, -1]])


# Snapshots


class Counting:
    """A march of one number, which counts how often it is made to go."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self, state: State, number: int) -> State:
        self.steps += 1
        return (state * 1.7 + number) % 1.0


def march(kept: int = 8) -> tuple[Snapshots, Counting]:
    counting = Counting()
    return Snapshots(np.array([0.5]), counting, kept=kept), counting


@settings(max_examples=50)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=30))
def test_a_snapshot_is_the_same_whatever_was_asked_before(numbers: list[int]) -> None:
    snapshots, counting = march()
    states = [np.array([0.5])]
    for number in range(max(numbers)):
        states.append(counting(states[-1], number))
    for number in numbers:
        assert_array_equal(snapshots[number], states[number])
    assert len(snapshots) <= 16


def test_few_snapshots_are_kept_however_far_the_march_goes() -> None:
    snapshots, _ = march(kept=8)
    for number in (5_000, 3, 12_345, 7):
        snapshots[number]
        assert len(snapshots) <= 16


def test_the_way_forth_makes_each_snapshot_once() -> None:
    snapshots, counting = march()
    for number in range(1_000):
        snapshots[number], snapshots[number + 1]
    assert counting.steps == 1_000


def test_the_way_back_does_not_begin_anew_each_time() -> None:
    snapshots, counting = march(kept=64)
    snapshots[4_000]
    counting.steps = 0
    for number in reversed(range(4_001)):
        snapshots[number]
    assert counting.steps <= 2 * 4_000  # From the beginning each time it would be 8,000,000.


def test_nobody_can_change_a_snapshot() -> None:
    snapshots, _ = march()
    with pytest.raises(ValueError, match="read-only"):
        snapshots[3][0] = 1.0
