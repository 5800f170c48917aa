from __future__ import annotations

from itertools import combinations_with_replacement
from math import e, exp, log, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sparq_sim.gp.bounds import (
    decay,
    divergence_bound,
    domain_constant,
    information_gains,
    operator_tail,
    regret_bound,
    std_ratio_bound,
    tail_bound,
)
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.matrices import tail_sum

KERNEL = SquaredExponential(variance=1.3, length_scale=0.2)
FEW = np.linspace(0, 1, 7)[:, None]


def gain(points: np.ndarray, *, noise_variance: float) -> float:
    inner = np.eye(len(points)) + KERNEL(points, points) / noise_variance
    return float(np.linalg.slogdet(inner)[1] / 2)


# Information gain


def test_greedy_gain_is_the_log_determinant_of_its_points() -> None:
    gains = information_gains(KERNEL, FEW, rounds=7, noise_variance=1e-9)
    # Without noise each point comes once, so the order does not matter to the last.
    assert_allclose(gains[-1], gain(FEW, noise_variance=1e-9), rtol=1e-6)


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_greedy_gain_is_near_the_best_of_all_choices(rounds: int) -> None:
    found = information_gains(KERNEL, FEW, rounds=rounds, noise_variance=0.1)[-1]
    choices = combinations_with_replacement(range(len(FEW)), rounds)
    best = max(gain(FEW[list(rows)], noise_variance=0.1) for rows in choices)
    assert (1 - 1 / e) * best <= found <= best + 1e-12
    assert found > 0.95 * best


def test_gain_of_one_candidate_grows_like_the_logarithm() -> None:
    gains = information_gains(KERNEL, FEW[:1], rounds=50, noise_variance=0.1)
    assert_allclose(gains, np.log1p(np.arange(1, 51) * 1.3 / 0.1) / 2, rtol=1e-10)


# Regret


def test_regret_bound_is_the_papers_formula() -> None:
    bound = regret_bound(500, widths=12.0, gains=60.0, noise_variance=0.01, divergence=0.1)
    ratio = sqrt(1 + sqrt(0.3))
    expected = 2 * 12 * ratio * sqrt(2 * 500 * (1 + (0.01 * log(500)) ** 2) * 60)
    assert_allclose(bound, expected, rtol=1e-12)


def test_regret_bound_takes_curves() -> None:
    rounds = np.arange(1, 11)
    curve = regret_bound(
        rounds, widths=np.full(10, 2.0), gains=np.ones(10), noise_variance=1e-6, divergence=0.0
    )
    assert_allclose(curve, 4 * np.sqrt(2.0 * rounds), rtol=1e-9)


# Eigenvalues


@given(st.floats(0.1, 2.0), st.floats(0.3, 3.0))
def test_operator_eigenvalues_are_those_of_a_quadrature(share: float, diameter: float) -> None:
    scale = share * diameter
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    points = (nodes * diameter / 8)[:, None]
    roots = np.sqrt(weights / sqrt(2 * pi))
    kernel = SquaredExponential(length_scale=scale)
    found = np.linalg.eigvalsh(kernel(points, points) * roots * roots[:, None])[::-1]
    ratio = exp(-decay(scale, diameter=diameter))
    assert_allclose(found[:8], (1 - ratio) * ratio ** np.arange(8), rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 20])
def test_operator_tail_in_two_dimensions_is_that_of_all_products(size: int) -> None:
    ratio = exp(-decay(0.2, diameter=1.0))
    alone = (1 - ratio) * ratio ** np.arange(200)
    products = np.sort(np.outer(alone, alone).ravel())[::-1]
    tail = operator_tail(size, length_scale=0.2, diameter=1.0, dimensions=2)
    assert_allclose(tail, products[size:].sum(), rtol=1e-10)


@given(st.integers(0, 60), st.integers(1, 3))
def test_operator_tail_begins_at_the_variance_and_falls(size: int, dimensions: int) -> None:
    tails = [
        operator_tail(rows, length_scale=0.3, diameter=1.0, variance=2.5, dimensions=dimensions)
        for rows in (0, size, size + 1)
    ]
    assert_allclose(tails[0], 2.5, rtol=1e-12)
    assert tails[0] >= tails[1] > tails[2] > 0


def test_operator_tail_far_beyond_the_rank_is_zero() -> None:
    assert operator_tail(100_000, length_scale=0.3, diameter=1.0) == 0


def test_tail_of_uniform_points_keeps_its_bound_on_the_unit_interval() -> None:
    points = np.random.default_rng(0).uniform(size=(200, 1))
    for size in range(12):
        bound = tail_bound(size, points=200, length_scale=0.2, diameter=1.0, variance=1.3)
        assert tail_sum(KERNEL(points, points), size) <= bound


def test_domain_constant_grows_with_the_unit_of_length_but_the_tail_does_not() -> None:
    metres, kilometres = (
        tail_bound(3, points=10, length_scale=0.2 * unit, diameter=unit) for unit in (1.0, 1e-3)
    )
    assert_allclose(kilometres, 1e-3 * metres, rtol=1e-9)
    assert_allclose(domain_constant(2.0, dimensions=2), 2 * pi / 16 * exp(8), rtol=1e-12)


def test_divergence_bound_is_the_papers_formula() -> None:
    bound = divergence_bound(
        9, points=50, tail=0.3, noise_variance=0.02, variance=1.5, epsilon=1e-3
    )
    assert_allclose(bound, (2 * 50 * 1.5 * 1e-3 + 10 * 0.3) / 0.02, rtol=1e-12)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 1/5"):
        std_ratio_bound(0.3)
    with pytest.raises(ValueError, match="noise_variance is 0"):
        information_gains(KERNEL, FEW, rounds=3, noise_variance=0.0)
    with pytest.raises(ValueError, match="rounds is 0"):
        information_gains(KERNEL, FEW, rounds=0, noise_variance=0.1)
    with pytest.raises(ValueError, match="numbered from 1"):
        regret_bound(0, widths=1.0, gains=1.0, noise_variance=0.1)
    with pytest.raises(ValueError, match="noise_variance"):
        regret_bound(5, widths=1.0, gains=1.0, noise_variance=0.0)
    with pytest.raises(ValueError, match="size is -1"):
        operator_tail(-1, length_scale=1.0, diameter=1.0)
    with pytest.raises(ValueError, match="length_scale is nan"):
        decay(float("nan"), diameter=1.0)
    with pytest.raises(ValueError, match="dimensions is 0"):
        domain_constant(1.0, dimensions=0)
