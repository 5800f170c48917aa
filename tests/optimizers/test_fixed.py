"""Fixed play keeps to its point, which must lie in the domain."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparq_sim import Rules, play
from sparq_sim.errors import PluginError
from sparq_sim.optimizers.fixed import Fixed
from sparq_sim.testing import Slope


def test_a_fixed_point_is_played_for_ever_and_one_outside_refused() -> None:
    trace = play(Fixed(point=(0.25,)), Slope(), Rules(rounds=20))
    assert_array_equal(trace.points, np.full((20, 1), 0.25))
    with pytest.raises(PluginError, match="the fixed point"):
        play(Fixed(point=(2.0,)), Slope(), Rules(rounds=20))
