"""Divergences against dense formulas, their bounds, and each other."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sparq_sim.arrays import Matrix
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.divergence import SparseFit
from sparq_sim.gp.sparse.greedy import select_greedily


class Case:
    """A random regression with unequal noise, repeats, and a few inducing rows."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.count = int(rng.integers(2, 30))
        distinct = rng.uniform(0, 10, (int(rng.integers(1, self.count + 1)), 1))
        points = distinct[rng.integers(len(distinct), size=self.count)]
        kernel = SquaredExponential(
            length_scale=float(rng.uniform(0.3, 3)), variance=float(rng.uniform(0.2, 4))
        )
        self.matrix = kernel(points, points)
        self.noise = rng.uniform(0.01, 1, self.count)
        size = int(rng.integers(0, self.count + 1))
        self.rows = rng.choice(self.count, size, replace=False)
        self.fit = SparseFit(self.matrix, self.rows, noise_variances=self.noise)

    @property
    def projected(self) -> Matrix:
        """Q, by a pseudo-inverse."""
        block = self.matrix[np.ix_(self.rows, self.rows)]
        columns = self.matrix[self.rows]
        inverse = np.linalg.pinv(block, rcond=1e-11, hermitian=True)
        projected: Matrix = columns.T @ inverse @ columns
        return projected


@pytest.mark.parametrize("seed", range(100))
def test_expected_divergence_keeps_the_trace_bound(seed: int) -> None:
    fit = Case(seed).fit
    assert 0 <= fit.expected_divergence <= fit.trace_bound + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_trace_bound_is_the_papers_formula(seed: int) -> None:
    case = Case(seed)
    trace = np.trace((case.matrix - case.projected) / case.noise[:, None])
    assert case.fit.trace_bound == pytest.approx(trace, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_expected_divergence_is_the_papers_formula(seed: int) -> None:
    case = Case(seed)
    noise = np.diag(case.noise)
    full, sparse = noise + case.matrix, noise + case.projected
    _, log_full = np.linalg.slogdet(full)
    _, log_sparse = np.linalg.slogdet(sparse)
    gap = log_sparse - log_full - case.count + np.trace(np.linalg.solve(sparse, full))
    trace = np.trace(np.linalg.solve(noise, case.matrix - case.projected))
    assert case.fit.expected_divergence == pytest.approx((gap + trace) / 2, rel=1e-5, abs=1e-5)


def test_expected_divergence_is_the_mean_of_what_the_evidence_bound_leaves(
    rng: np.random.Generator,
) -> None:
    # KL[P^E || P^v] = log p(y) - L(Z), L(Z) = log N(y | 0, Sigma + Q) - tr(Sigma^-1 (K - Q)) / 2.
    case = Case(4)
    assert case.fit.expected_divergence > 0.1
    noise = np.diag(case.noise)
    dense = multivariate_normal(cov=case.matrix + noise)
    sparse = multivariate_normal(cov=case.projected + noise)
    values = rng.normal(size=(4000, case.count)) @ np.linalg.cholesky(case.matrix + noise).T
    realised = dense.logpdf(values) - sparse.logpdf(values) + case.fit.trace_bound / 2
    error = float(np.std(realised)) / 4000**0.5
    assert np.mean(realised) == pytest.approx(case.fit.expected_divergence, abs=4 * error)


def test_divergence_is_zero_when_every_distinct_point_is_chosen(
    rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    points = np.arange(0.0, 12)[rng.integers(12, size=60)][:, None]
    matrix = kernel(points, points)
    rows = select_greedily(matrix, 60)
    assert len(rows) == len(np.unique(points))
    fit = SparseFit(matrix, rows, noise_variances=0.01)
    assert fit.expected_divergence == pytest.approx(0, abs=1e-9)
    assert fit.trace_bound == pytest.approx(0, abs=1e-9)


def test_more_points_never_diverge_more(
    rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    points = rng.uniform(0, 20, (50, 1))
    matrix = kernel(points, points)
    rows = select_greedily(matrix, 15)
    fits = [SparseFit(matrix, rows[:m], noise_variances=0.1) for m in range(len(rows) + 1)]
    expected = [fit.expected_divergence for fit in fits]
    assert expected == sorted(expected, reverse=True)


def test_merged_repeats_with_pooled_noise_diverge_as_much(kernel: SquaredExponential) -> None:
    points = np.array([[0.0], [1.0], [1.0], [1.0], [2.5]])
    apart = SparseFit(kernel(points, points), [0, 4], noise_variances=0.3)
    merged = points[[0, 1, 4]]
    pooled = np.array([0.3, 0.1, 0.3])
    together = SparseFit(kernel(merged, merged), [0, 2], noise_variances=pooled)
    assert apart.expected_divergence == pytest.approx(together.expected_divergence)
    assert apart.trace_bound == pytest.approx(together.trace_bound)


def test_subset_divergence_is_the_mean_of_the_divergence_of_the_two_posteriors(
    rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    points, rows = rng.uniform(0, 4, (6, 1)), np.array([1, 4])
    matrix, noise = kernel(points, points), np.diag(rng.uniform(0.1, 1, 6))
    fit = SparseFit(matrix, rows, noise_variances=np.diagonal(noise))

    def posterior(told: list[int]) -> tuple[Matrix, Matrix]:
        gain: Matrix = np.linalg.solve((matrix + noise)[np.ix_(told, told)], matrix[told]).T.astype(
            np.float64
        )
        return gain, matrix - gain @ matrix[told]

    gain_few, few = posterior(rows.tolist())
    gain_all, full = posterior(list(range(6)))
    gap = gain_all.copy()
    gap[:, rows] -= gain_few  # the difference of the means is this times y
    squares = np.trace(np.linalg.solve(full, gap @ (matrix + noise) @ gap.T))
    volumes = np.linalg.slogdet(full)[1] - np.linalg.slogdet(few)[1]
    direct = (np.trace(np.linalg.solve(full, few)) - 6 + volumes + squares) / 2
    assert fit.subset_divergence == pytest.approx(direct, rel=1e-6)


def test_repeats_part_the_two_sparse_posteriors() -> None:
    fit = SparseFit(np.ones((100, 100)), [0], noise_variances=0.1)
    assert fit.trace_bound == pytest.approx(0, abs=1e-9)
    assert fit.expected_divergence == pytest.approx(0, abs=1e-9)
    assert fit.subset_divergence > 10


def test_no_points_and_no_rows_are_handled() -> None:
    nothing = SparseFit(np.zeros((0, 0)), [], noise_variances=1.0)
    assert nothing.trace_bound == nothing.expected_divergence == nothing.subset_divergence == 0
    prior = SparseFit(np.eye(3), [], noise_variances=0.5)
    assert prior.trace_bound == pytest.approx(6)
    everything = SparseFit(np.eye(3), [0, 1, 2], noise_variances=0.5)
    assert everything.subset_divergence == everything.expected_divergence == 0


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="noise variances 0"):
        SparseFit(np.eye(2), [0], noise_variances=0.0)
    with pytest.raises(ValueError, match="vanish"):
        SparseFit(np.ones((2, 2)), [0], noise_variances=1e-20)
    with pytest.raises(ValueError, match="2 points"):
        SparseFit(np.eye(2), [2], noise_variances=1.0)
    with pytest.raises(ValueError, match="not symmetric"):
        SparseFit(np.array([[1.0, 0.5], [0.1, 1.0]]), [0], noise_variances=1.0)
