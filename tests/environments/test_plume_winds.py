from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose
from scipy.integrate import quad

from sparq_environments._plume_winds import Flow, Gusts, Rotating, Steady, Wind


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


@pytest.mark.parametrize(
    ("wind", "velocity"),
    [
        (Steady(velocity=(0.3, -0.1)), lambda t: (0.3, -0.1)),
        (
            Rotating(speed=0.4, cycle=20.0, phase=0.25),
            lambda t: (-0.4 * math.sin(0.1 * math.pi * t), 0.4 * math.cos(0.1 * math.pi * t)),
        ),
    ],
    ids=["steady", "rotating"],
)
def test_air_travels_as_far_as_its_velocity_takes_it(wind: Wind, velocity: Any) -> None:
    travel = wind.draw(stream()).travel(3.0, 9.5)
    expected = [quad(lambda t, axis=axis: velocity(t)[axis], 3.0, 9.5)[0] for axis in (0, 1)]
    assert_allclose(travel, expected, atol=1e-9)


@pytest.mark.parametrize("wind", [Steady(), Rotating(), Gusts()], ids=lambda wind: wind.kind)
def test_no_wind_is_faster_than_it_says_and_travels_add_up(wind: Wind) -> None:
    flow: Flow = wind.draw(stream())
    for begin in np.linspace(-50.0, 500.0, 300):
        first, second = (np.array(flow.travel(begin + k, begin + k + 1)) for k in (0.0, 1.0))
        assert np.linalg.norm(first) <= wind.fastest * (1 + 1e-12)
        assert_allclose(first + second, flow.travel(begin, begin + 2.0), atol=1e-12)
