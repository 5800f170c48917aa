from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, Philox
from pydantic import ValidationError

from sparq_environments.switching import Switching, _SwitchingLandscape
from sparq_sim.landscapes.drift import measure_drift


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def started(seed: int = 0, **fields: Any) -> _SwitchingLandscape:
    return _SwitchingLandscape(Switching(**fields), stream(seed))


def in_force(landscape: _SwitchingLandscape, times: np.ndarray[Any, Any]) -> list[int]:
    return [landscape.function(float(time)) for time in times]


# The functions


def test_slopes_are_those_of_the_rewards() -> None:
    landscape = started(dimensions=3)
    points = landscape.domain.sample(stream(1), 30)
    slopes = landscape._slopes(points, 1.0)
    for axis, step in enumerate(1e-6 * np.eye(3)):
        rise = landscape._values(points + step, 1.0) - landscape._values(points - step, 1.0)
        assert slopes[:, axis] == pytest.approx(rise / 2e-6, abs=1e-8)


def test_functions_differ_and_none_changes_while_it_stays() -> None:
    landscape = started(dwell=50.0, functions=3)
    points = landscape.domain.sample(stream(1), 30)
    spells = [landscape.rewards(points, 50.0 * spell) for spell in range(4)]
    assert np.array_equal(spells[0], landscape.rewards(points, 49.999))
    assert np.array_equal(spells[0], spells[3])
    for one, other in ((0, 1), (1, 2), (2, 0)):
        assert abs(spells[one] - spells[other]).max() > 0.1


# The switches


def test_in_a_cycle_functions_follow_each_other_every_dwell() -> None:
    landscape = started(dwell=2.0, functions=3)
    times = np.arange(0.0, 4000.0, 0.5)  # Through several blocks.
    assert in_force(landscape, times) == [int(time // 2) % 3 for time in times]


def test_at_random_any_other_function_is_as_likely_and_none_follows_itself() -> None:
    landscape = started(dwell=1.0, functions=4, order="random")
    numbers = np.array(in_force(landscape, np.arange(0.5, 6000.0)))
    jumps = np.diff(numbers) % 4
    shares = np.bincount(jumps, minlength=4) / len(jumps)
    assert shares[0] == 0
    assert (abs(shares[1:] - 1 / 3) < 5 * math.sqrt(2 / 9 / len(jumps))).all()


def test_exponential_dwells_make_switches_a_poisson_process() -> None:
    landscape = started(dwell={"kind": "exponential", "mean": 5.0}, functions=50)
    numbers = in_force(landscape, np.arange(0.0, 10_000.0, 5.0))
    switches = np.diff(np.unwrap(numbers, period=50))
    # Mean and variance of a Poisson count are equal, here 1.
    error = 5 / math.sqrt(len(switches))
    assert abs(switches.mean() - 1) < error
    assert abs(switches.var() - 1) < math.sqrt(3) * error


@pytest.mark.slow
def test_it_drifts_as_stated_and_at_switches_only() -> None:
    found = [measure_drift(started(seed), np.arange(501.0)) for seed in range(5)]
    assert np.mean([each.mean for each in found]) == pytest.approx(0.032, rel=0.05)
    assert np.mean([each.largest for each in found]) == pytest.approx(1.9, rel=0.05)
    for each in found:
        assert np.flatnonzero(each.per_unit_time).tolist() == list(range(49, 500, 50))


# What is refused


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"dwell": 0.0}, r"expected to stay for 0.001 or longer, not 0.0"),
        ({"dwell": -1.0}, "greater than or equal to 0"),
        ({"functions": 1}, "greater than or equal to 2"),
        ({"width": 0.0}, "greater than 0"),
    ],
)
def test_switches_that_cannot_be_are_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Switching(**fields)
