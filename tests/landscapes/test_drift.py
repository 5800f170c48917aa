from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparq_environments.synthetic import _SyntheticLandscape
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import SparqError
from sparq_sim.landscapes.drift import measure_drift


@dataclass
class Tilting:
    """Rewards time * (sum of coordinates) on a domain; changes most where the sum is largest."""

    domain: Domain

    def rewards(self, points: Points, time: float) -> Values:
        values: Values = time * points.sum(axis=1)
        return values

    def best(self, time: float) -> tuple[Point, float]:
        raise AssertionError("drift needs no best")


class Jumping(Tilting):
    def rewards(self, points: Points, time: float) -> Values:
        return np.full(len(points), 3.0 if time >= 10 else 0.0)


def test_the_papers_function_drifts_as_was_measured() -> None:
    found = measure_drift(_SyntheticLandscape(), np.arange(0.0, 501.0))
    assert found.largest == pytest.approx(0.0957, abs=5e-5)
    assert found.mean == pytest.approx(0.061, abs=5e-4)
    assert found.budget == pytest.approx(30.4, abs=0.05)
    assert found.per_unit_time.shape == (500,)


@pytest.mark.parametrize(
    ("domain", "reach"),
    [
        (Box(0.0, 2.0), 2.0),
        (Box([0.0, 0.0], [1.0, 2.0]), 3.0),
        (Sites([[0.1], [0.7], [-0.9]]), 0.9),
    ],
    ids=["line", "plane", "sites"],
)
@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.floats(0.01, 10.0), min_size=1, max_size=6))
def test_of_what_tilts_evenly_all_is_known_however_uneven_the_times(
    domain: Domain, reach: float, steps: list[float]
) -> None:
    times = np.cumsum([1.0, *steps])
    found = measure_drift(Tilting(domain), times)
    assert found.per_unit_time == pytest.approx(reach, rel=1e-9)
    assert found.largest == pytest.approx(reach)
    assert found.mean == pytest.approx(reach)
    assert found.budget == pytest.approx(reach * (times[-1] - 1.0))


def test_in_four_dimensions_drift_is_bounded_from_below() -> None:
    found = measure_drift(Tilting(Box(np.zeros(4), np.ones(4))), [0.0, 1.0])
    assert 3.5 < found.largest <= 4.0


def test_a_jump_counts_in_full_in_the_step_that_it_falls_into() -> None:
    found = measure_drift(Jumping(Box(0.0, 1.0)), [0.0, 8.0, 9.5, 10.0, 20.0])
    assert found.per_unit_time.tolist() == [0.0, 0.0, 6.0, 0.0]
    assert (found.largest, found.budget, found.mean) == (6.0, 3.0, 3.0 / 20.0)


@pytest.mark.parametrize("times", [[], [1.0], [1.0, 1.0], [2.0, 1.0], [1.0, float("nan")]])
def test_times_that_do_not_pass_are_refused(times: Sequence[float]) -> None:
    with pytest.raises(SparqError, match="two times or more, each later"):
        measure_drift(_SyntheticLandscape(), times)
