"""Priors are fitted to what is observed, and warn where they rule it out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pydantic import ValidationError

from sparq_environments.function import from_function
from sparq_environments.synthetic import Synthetic
from sparq_sim import Answer, Box, Channel, Environment, Query, Rules, Sites, play
from sparq_sim.arrays import Points, Values
from sparq_sim.gp.grid_fit import GridFit, fit_on_grid
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.shared import ucb
from sparq_sim.optimizers.shared.prior import (
    Fitting,
    PriorParameters,
    PriorWarning,
    find_prior,
    find_prior_on_grid,
)
from sparq_sim.optimizers.shared.ucb import GPOptimizer
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB
from sparq_sim.simulation.measures import regret
from sparq_sim.testing import Slope, Teller

NOISE = Channel(noise=0.1)
LINE = Box(0.0, 1.0)


def test_kernel_and_mean_are_fitted_to_the_design() -> None:
    trace = play(GPUCB(), Synthetic(), Rules(rounds=60, design=100), feedback=NOISE)
    plays = play(GPUCB(), Synthetic(), Rules(rounds=60), feedback=NOISE)
    # Without a design, the first eight rounds go into one.
    assert trace.rounds["note_width"][0] > 0
    assert np.isnan(plays.rounds["note_width"][:8]).all()
    assert not np.isnan(plays.rounds["note_width"][8])


def test_a_prior_can_be_fitted_anew_every_so_many_rounds() -> None:
    model = GPUCB(fitting=Fitting(plays=5, every=10))
    trace = play(model, Slope(), Rules(rounds=35), feedback=Channel(noise=0.01))
    assert regret(trace)[5:].mean() < 0.2


def test_without_a_kernel_it_is_fitted_whenever_observations_have_doubled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: list[int] = []

    def count(model: GPOptimizer, answers: Sequence[Answer], **more: Any) -> PriorParameters:
        counts.append(sum(answer.query.source == "reward" for answer in answers))
        return find_prior_on_grid(model, answers, **more)

    monkeypatch.setattr(ucb, "find_prior_on_grid", count)
    play(GPUCB(), Synthetic(), Rules(rounds=70), feedback=NOISE)
    assert counts == [8, 16, 32, 64]
    play(GPUCB(kernel=SquaredExponential()), Synthetic(), Rules(rounds=20), feedback=NOISE)
    play(GPUCB(), Synthetic(), Rules(rounds=20, design=20), feedback=NOISE)
    assert len(counts) == 4


def test_a_fit_takes_the_newest_values_and_no_more_of_them_as_time_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[Values] = []

    def look(points: Points, values: Values, **more: Any) -> GridFit:
        taken.append(more["times"])
        return fit_on_grid(points, values, **more)

    monkeypatch.setattr("sparq_sim.gp.grid_fit.fit_on_grid", look)
    play(GPUCB(), Slope(), Rules(rounds=260), feedback=Channel(noise=0.01))
    assert [len(each) for each in taken] == [8, 16, 32, 64, 64, 64]
    assert_array_equal(taken[-1], np.arange(193, 257))


STUBBORN: dict[str, tuple[Environment, Channel]] = {
    "always equal": (from_function(lambda points, time: 0 * points[:, 0], LINE), Channel()),
    "equal, with noise": (from_function(lambda points, time: 0 * points[:, 0], LINE), NOISE),
    "two places": (
        from_function(lambda points, time: points[:, 0], Sites([[0.0, 1.0], [5.0, 1.0]])),
        NOISE,
    ),
    "lost, most of them": (Synthetic(), Channel(noise=0.1, loss=0.8)),
    "lost, all of them": (Synthetic(), Channel(loss=1.0)),
    "late": (Synthetic(), Channel(noise=0.1, transit=7.5)),
}


@pytest.mark.parametrize("case", STUBBORN)
@pytest.mark.parametrize("optimizer", [TVGPUCB(), SparQGPUCB()], ids=["tv", "sparq"])
def test_whatever_is_observed_it_plays_on(optimizer: GPOptimizer, case: str) -> None:
    world, channel = STUBBORN[case]
    experts = {"expert": (Teller(), channel)} if isinstance(optimizer, SparQGPUCB) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        trace = play(optimizer, world, Rules(rounds=40), experts=experts, feedback=channel)
    assert np.isfinite(trace.points).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"kernel": {"kind": "squared-exponential"}, "fitting": {"search": "grid"}}, "leave out"),
        ({"fitting": {"search": "grid", "free_noise": True}}, "leave out free_noise"),
        ({"fitting": {"every": "often"}}, "every"),
    ],
)
def test_a_search_that_does_not_go_with_the_rest_is_refused(
    model: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        GPUCB.model_validate(model)


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
