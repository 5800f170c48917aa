"""The exchange chain walks as the paper says, and keeps its digits."""

from itertools import pairwise
from math import comb, factorial, inf, log

import mpmath
import numpy as np
import pytest

from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.exchange import ExchangeChain, exchange_variances, mixing_steps
from sparq_sim.gp.sparse.greedy import select_greedily


def test_exchange_ratios_hold_at_a_condition_number_of_1e10(rng: np.random.Generator) -> None:
    points = np.sort(rng.uniform(0, 10, 16))
    matrix = SquaredExponential(length_scale=3.5)(points[:, None], points[:, None])
    inside = select_greedily(matrix, 11, tolerance=1e-13)
    outside = np.setdiff1d(np.arange(16), inside)
    block = matrix[np.ix_(inside, inside)]
    assert 1e9 < np.linalg.cond(block) < 1e11
    factor = np.linalg.cholesky(block).astype(np.float64)
    leaving, entering = rng.integers(11, size=25), rng.choice(outside, 25)
    gained, lost = exchange_variances(
        factor, matrix[np.ix_(inside, entering)], matrix.diagonal()[entering], leaving=leaving
    )

    def determinant(rows: list[int]) -> mpmath.mpf:
        return mpmath.det(mpmath.matrix(matrix[np.ix_(rows, rows)].tolist()))

    with mpmath.workdps(60):
        before = determinant(inside.tolist())
        for place, row, ratio in zip(leaving, entering, gained / lost, strict=True):
            after = inside.copy()
            after[place] = row
            precise = float(determinant(after.tolist()) / before)
            assert min(1.0, ratio) == pytest.approx(min(1.0, precise), abs=1e-5)


def test_chain_keeps_the_factor_of_its_set_up_to_date(
    rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    points = rng.uniform(0, 30, (60, 1))
    matrix, weights = kernel(points, points), rng.uniform(1, 5, 60)
    chain = ExchangeChain(matrix, 12, rng=rng, weights=weights)
    start = chain.rows
    rows = chain.run(5000)
    assert len(set(rows.tolist())) == 12
    assert len(set(rows.tolist()) - set(start.tolist())) > 6
    assert chain._factor @ chain._factor.T == pytest.approx(matrix[np.ix_(rows, rows)])


def test_chain_stays_where_rounding_lets_a_singular_set_pass(rng: np.random.Generator) -> None:
    twins = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    chain = ExchangeChain(twins, 2, rng=rng, start=[0, 2])
    assert not chain._exchange(leaving=1, entering=2)
    assert chain.rows.tolist() == [0, 2]
    assert 2 in chain.run(200)


def test_half_of_all_steps_are_idle_where_every_proposal_is_accepted() -> None:
    chain = ExchangeChain(np.eye(20), 5, rng=np.random.default_rng(3))
    visited = [tuple(chain.run(1)) for _ in range(10_000)]
    moved = sum(one != other for one, other in pairwise(visited))
    assert moved / 9_999 == pytest.approx(0.5, abs=0.02)


def test_chain_starts_where_it_is_told(
    rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    points = np.arange(20.0)[:, None]
    matrix = kernel(points, points)
    assert sorted(ExchangeChain(matrix, 3, rng=rng, start=[4, 9, 2]).rows) == [2, 4, 9]
    longer = ExchangeChain(matrix, 5, rng=rng, start=[4, 9, 4, 2]).rows
    assert {4, 9, 2} < set(longer.tolist())
    assert len(set(longer.tolist())) == 5
    assert ExchangeChain(matrix, 2, rng=rng, start=[4, 9, 2]).rows.tolist() == [4, 9]


def test_mixing_steps_are_those_of_the_bound() -> None:
    direct = 50 * 4 * log(comb(50, 4) * factorial(4) / 1e-3)
    assert mixing_steps(50, 4, epsilon=1e-3) == pytest.approx(direct, abs=1)
    assert mixing_steps(500, 37, epsilon=1e-6) == pytest.approx(4.5e6, rel=0.05)
    assert mixing_steps(50, 4, epsilon=1e-3, most=100) == 100
    assert mixing_steps(0, 0, epsilon=0.5) == 0


def test_bad_input_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="size is -1"):
        ExchangeChain(np.eye(2), -1, rng=rng)
    with pytest.raises(ValueError, match="steps is -5"):
        ExchangeChain(np.eye(2), 1, rng=rng).run(-5)
    with pytest.raises(ValueError, match="least 0"):
        ExchangeChain(np.eye(2), 1, rng=rng, weights=np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="not finite"):
        ExchangeChain(np.diag([1.0, inf]), 1, rng=rng)
    with pytest.raises(ValueError, match="not symmetric"):
        ExchangeChain(np.array([[1.0, 0.5], [0.50001, 1.0]]), 2, rng=rng)
    with pytest.raises(ValueError, match="start"):
        ExchangeChain(np.eye(2), 1, rng=rng, start=[2])
    with pytest.raises(ValueError, match="size is 3 of 2"):
        mixing_steps(2, 3, epsilon=0.1)
    for epsilon in (0, 1, 1.5):
        with pytest.raises(ValueError, match=f"epsilon is {epsilon}"):
            mixing_steps(2, 1, epsilon=epsilon)
