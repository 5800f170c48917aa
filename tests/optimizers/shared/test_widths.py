from __future__ import annotations

from math import log, pi, sqrt

import numpy as np
import pytest
from pydantic import TypeAdapter

from sparq_sim import Box, Briefing, PluginError
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.posterior import CholeskyPosterior
from sparq_sim.messages import Query
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.shared.widths import (
    AnyWidth,
    ChowdhuryGopalanWidth,
    FiniteWidth,
    LogarithmicWidth,
    Occasion,
    PaperWidth,
    SrinivasWidth,
    Width,
)

KERNEL = SquaredExponential(variance=2.0, length_scale=0.3)
POINTS = np.linspace(0, 1, 7)[:, None]
NOISE = np.linspace(0.1, 0.5, 7)


@pytest.fixture
def occasion() -> Occasion:
    posterior = CholeskyPosterior(KERNEL, mean=0.0)
    posterior.add(POINTS, np.sin(POINTS[:, 0]), variances=NOISE)
    return Occasion(round=20, candidates=501, predictor=posterior)


def half_log_determinant() -> float:
    covariance = KERNEL(POINTS, POINTS)
    ratio = np.linalg.slogdet(covariance + np.diag(NOISE))[1] - np.log(NOISE).sum()
    return float(ratio) / 2


def test_the_papers_width_is_its_formula(occasion: Occasion) -> None:
    expected = sqrt(2 * (log(2) + half_log_determinant() - log(0.05))) + 3.0
    assert PaperWidth(norm=3.0)(occasion) == pytest.approx(expected)


def test_chowdhury_and_gopalans_width_is_their_formula(occasion: Occasion) -> None:
    expected = 3.0 + 0.2 * sqrt(2 * (half_log_determinant() + 1 + log(1 / 0.1)))
    assert ChowdhuryGopalanWidth(norm=3.0, noise_std=0.2)(occasion) == pytest.approx(expected)


def test_srinivas_widths_are_their_formulas(occasion: Occasion) -> None:
    expected = sqrt(2 * 9 + 300 * half_log_determinant() * log(20 / 0.1) ** 3)
    assert SrinivasWidth(norm=3.0)(occasion) == pytest.approx(expected)
    finite = sqrt(2 * log(501 * 20**2 * pi**2 / (6 * 0.1)))
    assert FiniteWidth()(occasion) == pytest.approx(finite)


def test_bogunovics_width_is_clipped_where_its_logarithm_is_negative() -> None:
    width = LogarithmicWidth(c1=0.8, c2=0.4)
    assert [width(Occasion(t, 1)) for t in (1, 2)] == [0.0, 0.0]
    assert width(Occasion(10, 1)) == pytest.approx(sqrt(0.8 * log(4)))


def test_the_norm_of_a_function_in_the_space_is_found_from_a_design() -> None:
    rng = np.random.default_rng(0)
    centres, weights = rng.random((6, 1)), rng.normal(size=6)
    norm = sqrt(weights @ KERNEL(centres, centres) @ weights)
    points = np.linspace(0, 1, 80)[:, None]
    values = KERNEL(points, centres) @ weights
    design = Query(1, "reward", points, 0.0).answer(values + 1.5)
    prepared = PaperWidth(ridge=1e-6).prepare(KERNEL, 1.5, design)
    assert isinstance(prepared, PaperWidth)
    assert prepared.norm == pytest.approx(norm, rel=1e-2)


def test_a_norm_that_is_neither_given_nor_to_be_found_is_asked_for_at_the_door() -> None:
    model = GPUCB(width={"kind": "paper"})
    with pytest.raises(PluginError, match="give its `norm`, or a design"):
        model.start(Briefing(Box(0.0, 1.0)), np.random.default_rng(0))


@pytest.mark.parametrize(
    "given",
    [2.0, {"kind": "paper", "norm": 1.0}, {"kind": "finite"}, {"kind": "logarithmic", "c1": 0.2}],
)
def test_widths_are_read_from_numbers_and_tables(given: object) -> None:
    width: Width = TypeAdapter(AnyWidth).validate_python(given)
    assert width(Occasion(3, 10)) > 0
