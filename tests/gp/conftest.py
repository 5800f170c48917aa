"""What the tests of Gaussian processes share."""

from __future__ import annotations

import numpy as np
import pytest

from sparq_sim.gp.kernels import SquaredExponential


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20251021)


@pytest.fixture
def kernel() -> SquaredExponential:
    return SquaredExponential()
