"""Priors are the densities of scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sparq_sim.gp.priors import Gamma, LogNormal


@given(value=st.floats(0.01, 50))
def test_priors_are_those_of_scipy(value: float) -> None:
    gamma, log_normal = Gamma(shape=6.0, rate=1 / 0.3), LogNormal(log_mean=0.5, log_std=1.7)
    assert gamma.log_density(value) == pytest.approx(stats.gamma(6.0, scale=0.3).logpdf(value))
    expected = stats.lognorm(1.7, scale=np.exp(0.5)).logpdf(value)
    assert log_normal.log_density(value) == pytest.approx(expected)
    for prior in (gamma, log_normal):
        above, below = prior.log_density(value * 1.00001), prior.log_density(value / 1.00001)
        slope = (above - below) / (2 * np.log(1.00001))
        assert prior.slope(value) == pytest.approx(slope, abs=1e-5)
