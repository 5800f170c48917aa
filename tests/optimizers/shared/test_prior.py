"""Priors are fitted to what is observed, and warn where they rule it out."""

from __future__ import annotations

import numpy as np
import pytest

from sparq_environments.synthetic import Synthetic
from sparq_sim import Channel, Query, Rules, play
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.shared.prior import Fitting, PriorWarning, find_prior
from sparq_sim.simulation.measures import average_regret
from sparq_sim.testing import Slope

NOISE = Channel(noise=0.1)


def test_kernel_and_mean_are_fitted_to_the_design() -> None:
    trace = play(GPUCB(), Synthetic(), Rules(rounds=60, design=100), feedback=NOISE)
    plays = play(GPUCB(), Synthetic(), Rules(rounds=60), feedback=NOISE)
    # Without a design, the first ten rounds go into one.
    assert trace.rounds["note_width"][0] > 0
    assert np.isnan(plays.rounds["note_width"][:10]).all()
    assert not np.isnan(plays.rounds["note_width"][10])


def test_a_prior_can_be_fitted_anew_every_so_many_rounds() -> None:
    model = GPUCB(fitting=Fitting(plays=5, every=10))
    trace = play(model, Slope(), Rules(rounds=35), feedback=Channel(noise=0.01))
    assert average_regret(trace)[-1] < 0.15


def test_noise_can_be_fitted_and_length_scales_have_a_prior() -> None:
    design = Query(1, "reward", np.linspace(0, 1, 60)[:, None], 0.0)
    rng = _rng()
    values = np.sin(6 * design.points[:, 0]) + 0.2 * rng.normal(size=60)
    told = design.answer(values, stds=0.01)  # It claims to know better than it does.
    free = find_prior(GPUCB(fitting=Fitting(free_noise=True)), told, rng)
    assert free.noise_variance == pytest.approx(0.04, rel=0.4)
    tight = {"kind": "lognormal", "log_mean": np.log(0.05), "log_std": 0.01}
    held = find_prior(GPUCB(fitting={"length_scale": tight, "free_noise": True}), told, rng)
    assert isinstance(held.kernel, SquaredExponential)
    assert held.kernel.length_scale == pytest.approx(0.05, rel=0.05)


def test_a_prior_that_rules_out_what_is_seen_gives_a_warning_that_says_so() -> None:
    model = GPUCB(kernel=SquaredExponential(variance=0.01, length_scale=5.7), mean=0.0)
    with pytest.warns(PriorWarning, match="needs the mean it was fitted with"):
        play(model, Synthetic(), Rules(rounds=3), feedback=NOISE)


def _rng() -> np.random.Generator:
    return np.random.default_rng(3)
