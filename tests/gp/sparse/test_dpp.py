"""Both samplers against enumeration and against 60 digits."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations
from math import inf

import mpmath
import numpy as np
import pytest
from scipy.stats import chisquare

from sparq_sim.arrays import Matrix, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.dpp import ExactSampler, eigenfeatures
from sparq_sim.gp.sparse.exchange import ExchangeChain
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
    """Return the p-value of a chi-square test, rare sets taken together."""
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
    """Return Pr(i in Z) of the M-DPP from an eigendecomposition with 60 digits.

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


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="size is -1"):
        ExactSampler(np.eye(2), -1)
    with pytest.raises(ValueError, match="3 points"):
        ExactSampler(np.eye(3), 1, weights=np.ones(2))
    with pytest.raises(ValueError, match="tolerance is 0"):
        ExactSampler(np.eye(2), 1, tolerance=0)
    with pytest.raises(ValueError, match="features"):
        ExactSampler(np.full((2, 2), inf), 1)


def test_features_are_as_many_as_the_eigenvalues_that_float64_can_know(
    rng: np.random.Generator,
) -> None:
    basis, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    matrix = basis * np.array([1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15]) @ basis.T
    matrix = (matrix + matrix.T) / 2
    assert len(eigenfeatures(matrix)) == 5
    assert len(eigenfeatures(matrix, tolerance=1e-7)) == 3
    assert len(eigenfeatures(np.zeros((4, 4)))) == 0
    assert len(eigenfeatures(np.zeros((0, 0)))) == 0
