"""Which points are asked about; divergences count what was played and what was answered."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparq_sim.domain import Box, Sites
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.gp.sparse.divergence import SparseFit
from sparq_sim.optimizers.shared.played import PlayedPoints, measure_divergences
from sparq_sim.optimizers.shared.selection import CandidateSelector, Selector, Way

KERNEL = SquaredExponential(variance=0.25, length_scale=4.0)


def points_played(*places: float) -> PlayedPoints:
    points = PlayedPoints(KERNEL)
    for x in places:
        points.add(np.array([x]))
    return points


def selector(way: Way, seed: int = 0) -> Selector:
    return Selector(way, steps=10, epsilon=None, rng=np.random.default_rng(seed))


def anywhere(way: Way, domain: Box | Sites, candidates: object = None) -> CandidateSelector:
    points = domain.points if isinstance(domain, Sites) else np.asarray(candidates)
    return CandidateSelector(way, points, domain, rng=np.random.default_rng(0))


# Of the points played.


def test_random_points_are_distinct_and_each_is_as_likely() -> None:
    played = points_played(*[0.0] * 50, 1.0, 2.0, 30.0, 31.0)
    chooser, counts = selector("random"), np.zeros(5)
    for _ in range(2000):
        rows = chooser.choose(played, 2, None)
        assert len({*rows.tolist()}) == 2
        counts[rows] += 1
    assert counts / 2000 == pytest.approx(np.full(5, 0.4), abs=0.05)
    assert sorted(chooser.choose(played, 9, None)) == [0, 1, 2, 3, 4]


def test_the_newest_points_are_those_played_last_each_once() -> None:
    played = points_played(5.0, 6.0, 7.0, 6.0, 8.0, 5.0, 5.0)
    chosen = selector("newest").choose(played, 3, None)
    assert_array_equal(played.points[chosen, 0], [5.0, 8.0, 6.0])
    everything = selector("newest").choose(played, 10, None)
    assert_array_equal(played.points[everything, 0], [5.0, 8.0, 6.0, 7.0])


def test_a_point_that_is_only_offered_counts_as_a_play_but_is_not_new() -> None:
    played = PlayedPoints(KERNEL)
    for x in (1.0, 2.0):
        played.offer(np.array([x]))
    played.add(np.array([2.0]))
    assert_array_equal(played.counts, [1.0, 2.0])
    assert_array_equal(selector("newest").choose(played, 2, None), [1])


def test_the_newest_need_no_chance() -> None:
    rng = np.random.default_rng(0)
    Selector("newest", steps=10, epsilon=None, rng=rng).choose(
        points_played(0.0, 9.0, 3.0), 2, None
    )
    assert rng.random() == np.random.default_rng(0).random()


def test_nothing_is_chosen_where_there_is_nothing_or_nothing_is_wanted() -> None:
    ways: tuple[Way, ...] = ("greedy", "chain", "exact", "random", "newest")
    for way in ways:
        assert len(selector(way).choose(PlayedPoints(KERNEL), 3, None)) == 0
        assert len(selector(way).choose(points_played(1.0), 0, None)) == 0


# Of the whole domain.


def test_uniform_points_are_distinct_candidates_and_each_is_as_likely() -> None:
    sites = Sites(np.arange(6.0)[:, None])
    chooser, counts = anywhere("uniform", sites), np.zeros(6)
    for _ in range(2000):
        chosen = chooser.choose(3)[:, 0].astype(int)
        assert len({*chosen.tolist()}) == 3
        counts[chosen] += 1
    assert counts / 2000 == pytest.approx(np.full(6, 0.5), abs=0.05)
    assert sorted(chooser.choose(10)[:, 0]) == list(range(6))


def test_a_grid_on_an_interval_has_equal_distances_and_both_ends() -> None:
    domain = Box(-50.0, 50.0)
    chooser = anywhere("grid", domain, domain.grid(501))
    assert chooser.choose(1)[:, 0] == pytest.approx([0.0])
    for size in (2, 3, 11, 38, 501):
        chosen = chooser.choose(size)[:, 0]
        assert len(np.unique(chosen)) == size
        assert np.abs(chosen - np.linspace(-50, 50, size)).max() <= 0.1 + 1e-9
        assert np.isin(chosen, domain.grid(501)).all()
    assert len(chooser.choose(600)) == 501
    assert chooser.choose(0).shape == (0, 1)


def test_a_grid_on_a_square_begins_in_the_middle_and_takes_the_corners_next() -> None:
    domain = Box([0.0, 0.0], [1.0, 100.0])
    chosen = anywhere("grid", domain, domain.grid(41)).choose(5)
    assert_array_equal(chosen[0], [0.5, 50.0])
    assert {tuple(point) for point in chosen[1:]} == {(0, 0), (0, 100), (1, 0), (1, 100)}


def test_on_sites_a_grid_leaves_smaller_gaps_than_chance() -> None:
    sites = Sites(np.random.default_rng(1).uniform(size=(300, 2)))

    def largest_gap(way: Way) -> float:
        chosen = anywhere(way, sites).choose(20)
        distances = np.linalg.norm(sites.points[:, None] - chosen[None], axis=-1)
        return float(distances.min(axis=1).max())

    assert largest_gap("grid") < 0.7 * largest_gap("uniform")
    assert_array_equal(anywhere("grid", sites).choose(5), anywhere("grid", sites).choose(20)[:5])


def test_each_selector_refuses_the_ways_of_the_other() -> None:
    with pytest.raises(ValueError, match="use CandidateSelector"):
        selector("grid")
    with pytest.raises(ValueError, match="use Selector"):
        anywhere("greedy", Sites([[0.0], [1.0]]))


def test_divergences_count_each_play_of_a_point_but_only_one_answer() -> None:
    points = points_played(*[0.0] * 10, 1.0, *[30.0] * 3)
    rows = np.array([0, 1])
    noted = measure_divergences(points, rows, 0.01)
    plays = np.array([0.0] * 10 + [1.0] + [30.0] * 3)[:, None]
    whole = SparseFit(KERNEL(plays, plays), [0, 10], noise_variances=0.01)
    assert noted["kl_bound"] == pytest.approx(whole.trace_bound)
    assert noted["kl"] == pytest.approx(whole.expected_divergence)
    assert noted["kl_subset"] == pytest.approx(whole.subset_divergence)
