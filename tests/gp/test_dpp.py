"""Both samplers against enumeration and against 60 digits."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise
from math import comb, factorial, inf, log

import mpmath
import numpy as np
import pytest
from scipy.stats import chisquare

from sparq_sim.arrays import Matrix, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.dpp import ExactSampler, eigenfeatures
from sparq_sim.gp.sparse.exchange import ExchangeChain, exchange_variances, mixing_steps
from sparq_sim.gp.sparse.greedy import Rows, select_greedily

Draws = Callable[[Matrix, int, Values, int], Iterable[Rows]]


def exact_draws(matrix: Matrix, size: int, weights: Values, count: int) -> Iterable[Rows]:
    rng = np.random.default_rng(1)
    sampler = ExactSampler(eigenfeatures(matrix), size, weights=weights)
    return (sampler.sample(rng) for _ in range(count))


def chain_draws(matrix: Matrix, size: int, weights: Values, count: int) -> Iterable[Rows]:
    chain = ExchangeChain(matrix, size, rng=np.random.default_rng(2), weights=weights)
    steps = size * len(matrix) + 20  # enough for draws to be nearly independent
    return (chain.run(steps) for _ in range(count))


both = pytest.mark.parametrize("draws", [exact_draws, chain_draws])


def probabilities(matrix: Matrix, size: int) -> dict[tuple[int, ...], float]:
    """Enumerate the M-DPP."""
    sets = list(combinations(range(len(matrix)), size))
    weights = np.array([np.linalg.det(matrix[np.ix_(rows, rows)]) for rows in sets])
    return dict(zip(sets, (weights / weights.sum()).tolist(), strict=True))


def agreement(drawn: Iterable[Rows], expected: dict[tuple[int, ...], float]) -> float:
    """Give the p-value of a chi-square test, rare sets taken together."""
    counts = Counter(tuple(sorted(rows.tolist())) for rows in drawn)
    assert set(counts) <= set(expected)
    total = counts.total()
    common = [rows for rows, p in expected.items() if p * total >= 10]
    rare = [rows for rows in expected if rows not in common]
    seen = [counts[rows] for rows in common] + [sum(counts[rows] for rows in rare)]
    awaited = [total * expected[rows] for rows in common]
    awaited.append(total - sum(awaited))
    if awaited[-1] < 10:
        seen[-2:], awaited[-2:] = [sum(seen[-2:])], [sum(awaited[-2:])]
    return float(chisquare(seen, awaited).pvalue)


@both
def test_draws_follow_the_enumerated_distribution(
    draws: Draws, rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    points = rng.uniform(0, 4, (8, 1))
    matrix = kernel(points, points)
    assert agreement(draws(matrix, 3, np.ones(8), 6000), probabilities(matrix, 3)) > 1e-3


@both
def test_weights_stand_for_repeated_points(
    draws: Draws, rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    distinct = rng.uniform(0, 4, (5, 1))
    counts = np.array([2.0, 1.0, 4.0, 1.0, 2.0])
    members = np.repeat(np.arange(5), counts.astype(int))
    plays = distinct[members]
    merged: Counter[tuple[int, ...]] = Counter()
    for rows, probability in probabilities(kernel(plays, plays), 3).items():
        merged[tuple(sorted(members[list(rows)].tolist()))] += probability  # type: ignore[assignment]
    expected = {rows: float(p) for rows, p in merged.items() if len(set(rows)) == 3}
    assert sum(expected.values()) == pytest.approx(1)
    root = np.sqrt(counts)
    matrix = kernel(distinct, distinct)
    assert expected == pytest.approx(probabilities(matrix * root * root[:, None], 3), abs=1e-12)
    assert agreement(draws(matrix, 3, counts, 6000), expected) > 1e-3


def precise_marginals(points: Values, *, length: float, size: int, weights: Values) -> Values:
    """Give Pr(i in Z) of the M-DPP from an eigendecomposition with 60 digits.

    Pr(i in Z) = sum_m v_m(i)^2 lambda_m e_{M-1}(all but lambda_m) / e_M(all).
    """
    count = len(points)
    with mpmath.workdps(60):
        x, w = [mpmath.mpf(float(p)) for p in points], [mpmath.mpf(float(v)) for v in weights]
        entries = [
            [
                mpmath.sqrt(w[i] * w[j]) * mpmath.exp(-(((x[i] - x[j]) / length) ** 2) / 2)
                for j in range(count)
            ]
            for i in range(count)
        ]
        values, vectors = mpmath.eigsy(mpmath.matrix(entries))

        def polynomial(order: int, left_out: int | None) -> mpmath.mpf:
            table = [mpmath.mpf(1)] + [mpmath.mpf(0)] * order
            for m in range(count):
                if m != left_out:
                    for degree in range(order, 0, -1):
                        table[degree] += values[m] * table[degree - 1]
            return table[order]

        whole = polynomial(size, None)
        chosen = [values[m] * polynomial(size - 1, m) / whole for m in range(count)]
        return np.array(
            [float(sum(vectors[i, m] ** 2 * chosen[m] for m in range(count))) for i in range(count)]
        )


@both
def test_marginals_hold_at_a_condition_number_of_1e10(
    draws: Draws, rng: np.random.Generator
) -> None:
    points = np.sort(rng.uniform(0, 10, 16))
    weights = rng.integers(1, 6, 16).astype(np.float64)
    matrix = SquaredExponential(length_scale=3.5)(points[:, None], points[:, None])
    chosen = select_greedily(matrix, 11, tolerance=1e-13)
    assert 1e9 < np.linalg.cond(matrix[np.ix_(chosen, chosen)]) < 1e11
    expected = precise_marginals(points, length=3.5, size=11, weights=weights)
    assert expected.sum() == pytest.approx(11)
    seen = np.zeros(16)
    for rows in draws(matrix, 11, weights, 4000):
        assert len(rows) == 11
        seen[rows] += 1
    margin = 4 * np.sqrt(expected * (1 - expected) / 4000)
    assert (np.abs(seen / 4000 - expected) < margin).all()


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


@both
def test_size_falls_to_the_rank(draws: Draws, rng: np.random.Generator) -> None:
    features = rng.normal(size=(3, 12))
    for rows in draws(features.T @ features, 5, np.ones(12), 20):
        assert len(rows) == len(set(rows.tolist())) == 3


@both
def test_size_falls_to_the_number_of_points(draws: Draws) -> None:
    for rows in draws(np.eye(4), 9, np.ones(4), 20):
        assert sorted(rows) == [0, 1, 2, 3]


@both
def test_a_smooth_kernel_on_crowded_points_gives_sets_and_no_warnings(draws: Draws) -> None:
    points = np.concatenate([np.linspace(0, 1e-6, 50), np.linspace(0, 10, 50)])[:, None]
    matrix = SquaredExponential(length_scale=3.0)(points, points)
    for rows in draws(matrix, 37, np.ones(100), 20):
        assert 5 < len(set(rows.tolist())) == len(rows) < 37


@both
@pytest.mark.parametrize("size", [0, 1, 3])
def test_one_point_and_none_are_handled(draws: Draws, size: int) -> None:
    for count in (0, 1):
        for rows in draws(np.ones((count, count)), size, np.ones(count), 3):
            assert rows.tolist() == [0][: min(size, count)]
    for rows in draws(np.zeros((2, 2)), size, np.ones(2), 3):
        assert rows.tolist() == []


def test_polynomials_do_not_underflow() -> None:
    spread = np.concatenate([np.ones(2), np.full(58, 1e-12)])
    sampler = ExactSampler(np.diag(np.sqrt(spread)), 40)
    rows = sampler.sample(np.random.default_rng(0))
    assert len(set(rows.tolist())) == 40
    assert {0, 1} < set(rows.tolist())


def test_eigenfeatures_reproduce_the_matrix(kernel: SquaredExponential) -> None:
    points = np.linspace(0, 10, 80)[:, None]
    matrix = kernel(points, points)
    features = eigenfeatures(matrix)
    assert len(features) < 40
    assert features.T @ features == pytest.approx(matrix, abs=1e-10)


def test_mixing_steps_are_those_of_the_bound() -> None:
    direct = 50 * 4 * log(comb(50, 4) * factorial(4) / 1e-3)
    assert mixing_steps(50, 4, epsilon=1e-3) == pytest.approx(direct, abs=1)
    assert mixing_steps(500, 37, epsilon=1e-6) == pytest.approx(4.5e6, rel=0.05)
    assert mixing_steps(50, 4, epsilon=1e-3, most=100) == 100
    assert mixing_steps(0, 0, epsilon=0.5) == 0


def test_bad_input_is_refused(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match="size is -1"):
        ExchangeChain(np.eye(2), -1, rng=rng)
    with pytest.raises(ValueError, match="size is -1"):
        ExactSampler(np.eye(2), -1)
    with pytest.raises(ValueError, match="steps is -5"):
        ExchangeChain(np.eye(2), 1, rng=rng).run(-5)
    with pytest.raises(ValueError, match="least 0"):
        ExchangeChain(np.eye(2), 1, rng=rng, weights=np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="3 points"):
        ExactSampler(np.eye(3), 1, weights=np.ones(2))
    with pytest.raises(ValueError, match="not finite"):
        ExchangeChain(np.diag([1.0, inf]), 1, rng=rng)
    with pytest.raises(ValueError, match="not symmetric"):
        ExchangeChain(np.array([[1.0, 0.5], [0.50001, 1.0]]), 2, rng=rng)
    with pytest.raises(ValueError, match="start"):
        ExchangeChain(np.eye(2), 1, rng=rng, start=[2])
    with pytest.raises(ValueError, match="tolerance is 0"):
        ExactSampler(np.eye(2), 1, tolerance=0)
    with pytest.raises(ValueError, match="features"):
        ExactSampler(np.full((2, 2), inf), 1)
    with pytest.raises(ValueError, match="size is 3 of 2"):
        mixing_steps(2, 3, epsilon=0.1)
    with pytest.raises(ValueError, match="epsilon is 0"):
        mixing_steps(2, 1, epsilon=0)
