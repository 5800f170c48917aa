"""Greedy selection, merging and spectra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparq_sim.arrays import Matrix
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.greedy import (
    GreedySelector,
    merge,
    pivoted_cholesky,
    select_greedily,
    select_points_greedily,
)

seeds = st.integers(0, 2**32 - 1)


def brute_force_determinants(matrix: Matrix, size: int) -> list[float]:
    """Follow the largest determinant, one row more at a time."""
    chosen: list[int] = []
    determinants = []
    for _ in range(size):
        others = [row for row in range(len(matrix)) if row not in chosen]
        values = [np.linalg.det(matrix[np.ix_([*chosen, row], [*chosen, row])]) for row in others]
        chosen.append(others[int(np.argmax(values))])
        determinants.append(max(values))
    return determinants


def test_merging_counts_repeats_in_the_order_of_their_coming() -> None:
    points = np.array([[2.0, 1.0], [0.0, 5.0], [2.0, 1.0], [-0.0, 5.0], [2.0, 0.0]])
    distinct = merge(points)
    assert distinct.points.tolist() == [[2.0, 1.0], [0.0, 5.0], [2.0, 0.0]]
    assert distinct.counts.tolist() == [2, 2, 1]
    assert distinct.firsts.tolist() == [0, 1, 4]
    assert distinct.members.tolist() == [0, 1, 0, 1, 2]


@given(seeds, st.integers(0, 30), st.integers(1, 3))
def test_merging_can_be_undone(seed: int, count: int, dimensions: int) -> None:
    points = np.random.default_rng(seed).integers(0, 3, (count, dimensions)).astype(np.float64)
    distinct = merge(points)
    assert np.array_equal(distinct.points[distinct.members], points)
    assert np.array_equal(distinct.points, points[distinct.firsts])
    assert len({tuple(point) for point in points}) == len(distinct.points)
    assert distinct.counts.sum() == count


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_greedy_is_brute_force_greedy(seed: int) -> None:
    points = np.random.default_rng(seed).uniform(0, 4, (10, 2))
    matrix = SquaredExponential()(points, points)
    rows = select_greedily(matrix, 5)
    found = [np.linalg.det(matrix[np.ix_(rows[:m], rows[:m])]) for m in range(1, 6)]
    assert found == pytest.approx(brute_force_determinants(matrix, 5), rel=1e-9)


def test_greedy_from_columns_is_greedy_from_the_matrix(
    rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    points = rng.uniform(0, 30, (200, 1))
    rows = select_points_greedily(kernel, points, size=20)
    assert len(rows) == 20
    assert rows.tolist() == select_greedily(kernel(points, points), 20).tolist()


def test_factor_reproduces_the_matrix_at_full_rank(
    rng: np.random.Generator, kernel: SquaredExponential
) -> None:
    points = rng.uniform(0, 30, (25, 1))
    matrix = kernel(points, points)
    _, factor = pivoted_cholesky(matrix.__getitem__, np.diagonal(matrix), size=25, tolerance=1e-13)
    assert factor.T @ factor == pytest.approx(matrix, abs=1e-12)


def test_greedy_stops_at_the_rank_of_a_linear_kernel(rng: np.random.Generator) -> None:
    features = rng.normal(size=(3, 40)) * rng.uniform(1e-3, 1e3, 40)
    assert len(select_greedily(features.T @ features, 10)) == 3


def test_greedy_chooses_no_point_twice(
    kernel: SquaredExponential,
) -> None:
    points = np.array([[0.0], [5.0], [0.0], [5.0], [0.0], [9.0]])
    assert sorted(select_points_greedily(kernel, points, size=5)) == [0, 1, 5]
    assert len(select_greedily(kernel(points, points), 5)) == 3


def test_greedy_stops_before_nearly_coincident_points(kernel: SquaredExponential) -> None:
    points = np.linspace(0, 10, 500)[:, None]
    rows = select_points_greedily(kernel, points, size=100)
    assert 10 < len(rows) < 30
    block = kernel(points[rows], points[rows])
    assert np.linalg.cond(block) < 1e10


def test_finer_tolerance_chooses_more(kernel: SquaredExponential) -> None:
    points = np.linspace(0, 10, 300)[:, None]
    sizes = [
        len(select_points_greedily(kernel, points, size=99, tolerance=t))
        for t in (1e-2, 1e-6, 1e-12)
    ]
    assert sizes == sorted(set(sizes))


def test_ties_are_broken_by_the_generator(kernel: SquaredExponential) -> None:
    matrix = kernel(np.arange(0.0, 90, 10)[:, None], np.arange(0.0, 90, 10)[:, None])
    matrix *= 1 + 1e-12 * np.arange(9)
    assert select_greedily(np.eye(9), 1).tolist() == [0]
    first = {
        int(select_greedily(matrix, 1, rng=np.random.default_rng(seed))[0]) for seed in range(99)
    }
    assert first == set(range(9))


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(3, 40), st.booleans())
def test_a_choice_kept_up_is_the_choice_made_anew(seed: int, size: int, wide: bool) -> None:
    # All can be explained by few, or by nothing less than all.
    points = np.random.default_rng(seed).uniform(0, 90 if wide else 3, (30, 1))
    matrix = SquaredExponential()(points, points)
    kept_up = GreedySelector()
    for count in range(1, 31):
        part = matrix[:count, :count]
        rows, anew = kept_up.choose(part, size), select_greedily(part, size)
        assert len(rows) == len(anew)
        for m in range(1, len(rows) + 1):
            # Where points are equal to rounding, another may be chosen: none worse.
            one, other = (np.linalg.slogdet(part[np.ix_(z[:m], z[:m])])[1] for z in (rows, anew))
            assert one == pytest.approx(other, abs=1e-2)


def test_what_explains_all_is_kept_until_it_does_not_or_another_is_due(
    kernel: SquaredExponential,
) -> None:
    near, far = np.linspace(0, 2, 60), np.array([30.0])
    points = np.concatenate([near[:40], near[40:], far])[:, None]
    matrix, kept_up = kernel(points, points), GreedySelector(rng=np.random.default_rng(0))
    first = kept_up.choose(matrix[:40, :40], 30)
    assert len(first) < 30
    assert all(kept_up.choose(matrix[:40, :40], 30) is first for _ in range(9))
    assert len(kept_up.choose(matrix[:40, :40], 3)) == 3
    kept_up.choose(matrix[:40, :40], 30)
    assert 59 in kept_up.choose(matrix[:60, :60], 30)
    assert 60 in kept_up.choose(matrix, 30)


def test_a_newcomer_that_is_no_point_of_the_kernel_is_refused() -> None:
    matrix = np.array([[1.0, 1.0, 1.5], [1.0, 1.0, 1.5], [1.5, 1.5, 1.0]])
    kept_up = GreedySelector()
    assert len(kept_up.choose(matrix[:2, :2], 3)) == 1
    with pytest.raises(ValueError, match="positive semidefinite"):
        kept_up.choose(matrix, 3)


def test_where_nothing_varies_nothing_is_chosen(capfd: pytest.CaptureFixture[str]) -> None:
    kept_up = GreedySelector()
    for count in (1, 2):
        assert len(kept_up.choose(np.zeros((count, count)), 3)) == 0
    assert capfd.readouterr() == ("", "")  # LAPACK complains on its own.


def test_where_not_all_can_be_chosen_ties_are_drawn_again(kernel: SquaredExponential) -> None:
    points = np.linspace(0, 90, 60)[:, None]
    matrix, made = kernel(points, points), GreedySelector(rng=np.random.default_rng(0))
    assert len({tuple(made.choose(matrix, 3).tolist()) for _ in range(50)}) > 20


def test_ties_are_drawn_again_where_no_choice_is_kept(kernel: SquaredExponential) -> None:
    points = np.linspace(0, 2, 60)[:, None]
    matrix = kernel(points, points)
    firsts = {}
    for keep in (True, False):
        made = GreedySelector(keep=keep, rng=np.random.default_rng(0))
        firsts[keep] = {int(made.choose(matrix, 30)[0]) for _ in range(50)}
    assert len(firsts[True]) == 1
    assert len(firsts[False]) > 20  # Before anything is chosen, all 60 are equal.


@pytest.mark.parametrize("size", [0, 1, 7])
def test_one_point_and_none_are_handled(kernel: SquaredExponential, size: int) -> None:
    one, none = np.zeros((1, 2)), np.zeros((0, 2))
    assert select_points_greedily(kernel, one, size=size).tolist() == [0][:size]
    assert select_points_greedily(kernel, none, size=size).tolist() == []
    assert len(select_greedily(np.zeros((0, 0)), size)) == 0
    assert len(select_greedily(np.zeros((3, 3)), size)) == 0


def test_bad_matrices_are_refused() -> None:
    with pytest.raises(ValueError, match="positive semidefinite"):
        select_greedily(np.array([[1.0, 2.0], [2.0, 1.0]]), 2)
    with pytest.raises(ValueError, match="not symmetric"):
        select_greedily(np.array([[1.0, 0.5], [0.1, 1.0]]), 2)
    with pytest.raises(ValueError, match="not finite"):
        select_greedily(np.array([[1.0, np.nan], [np.nan, 1.0]]), 2)
    with pytest.raises(ValueError, match="negative"):
        select_greedily(np.array([[-1.0]]), 1)
    with pytest.raises(ValueError, match="not square"):
        select_greedily(np.ones((2, 3)), 1)


def test_bad_numbers_are_refused(kernel: SquaredExponential) -> None:
    with pytest.raises(ValueError, match="size is -1"):
        select_greedily(np.eye(2), -1)
    with pytest.raises(ValueError, match="tolerance is 0"):
        select_greedily(np.eye(2), 1, tolerance=0)
    with pytest.raises(ValueError, match="shape"):
        merge(np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="finite"):
        select_points_greedily(kernel, np.array([[np.nan]]), size=1)
