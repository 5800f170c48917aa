from __future__ import annotations

import numpy as np
import pytest

from sparq_sim import Box, Sites
from sparq_sim.arrays import Points
from sparq_sim.errors import PluginError
from sparq_sim.gp.kernels import Matern52, SquaredExponential
from sparq_sim.gp.posterior import CholeskyPosterior
from sparq_sim.optimizers.shared.acquisition import Acquisition, pick


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def belief(
    points: Points, dimensions: int, kernel: SquaredExponential | Matern52
) -> CholeskyPosterior:
    posterior = CholeskyPosterior(kernel, candidates=points, mean=0.0)
    seen = np.random.default_rng(0).random((12, dimensions))
    posterior.add(seen, np.sin(5 * seen).sum(axis=1), variances=0.01)
    return posterior


def test_a_tie_is_broken_by_chance_never_by_order() -> None:
    scores = np.array([0.0, 1.0, 1.0 - 1e-12, 0.5, 1.0])
    drawn = {pick(scores, np.random.default_rng(seed)) for seed in range(60)}
    assert drawn == {1, 2, 4}


def test_without_a_tie_no_chance_is_drawn() -> None:
    one, other = rng(), rng()
    assert pick(np.array([0.0, 2.0, 1.0]), one) == 1
    assert one.random() == other.random()


def test_negative_scores_tie_likewise() -> None:
    assert pick(np.array([-3.0, -1.0, -2.0]), rng()) == 1


@pytest.mark.parametrize(("dimensions", "size"), [(1, 501), (2, 41**2), (3, 512), (6, 512)])
def test_candidates_are_a_grid_in_one_and_two_dimensions_and_a_sobol_set_beyond(
    dimensions: int, size: int
) -> None:
    domain = Box(np.zeros(dimensions), np.ones(dimensions))
    points = Acquisition().candidate_points(domain)
    assert points.shape == (size, dimensions)
    domain.check(points)


@pytest.mark.parametrize(("grid", "dimensions"), [(101, 3), (2, 20), (1_000_000, 1_000)])
def test_a_grid_of_more_points_than_can_be_searched_is_refused(grid: int, dimensions: int) -> None:
    domain = Box(np.zeros(dimensions), np.ones(dimensions))
    with pytest.raises(PluginError, match=f"a grid of {grid:,} points in each of {dimensions} dim"):
        Acquisition(grid=grid).candidate_points(domain)
    assert len(Acquisition(grid=100).candidate_points(Box(np.zeros(3), np.ones(3)))) == 10**6


def test_on_sites_the_best_site_is_chosen() -> None:
    sites = Sites(np.random.default_rng(1).random((30, 2)))
    acquisition = Acquisition()
    points = acquisition.candidate_points(sites)
    posterior = belief(points, 2, SquaredExponential(length_scale=0.3))
    chosen = acquisition.choose(posterior, 2.0, domain=sites, points=points, rng=rng())
    bounds = posterior.mean(points) + 2.0 * posterior.std(points)
    np.testing.assert_array_equal(chosen, points[bounds.argmax()])


@pytest.mark.parametrize(
    "kernel", [SquaredExponential(length_scale=0.4), Matern52(length_scale=0.4)]
)
@pytest.mark.parametrize("dimensions", [1, 2, 3, 6])
def test_climbing_beats_every_point_of_a_large_random_set(
    dimensions: int, kernel: SquaredExponential | Matern52
) -> None:
    domain = Box(np.zeros(dimensions), np.ones(dimensions))
    acquisition = Acquisition(refine=True, merge=1e-6, starts=8)
    points = acquisition.candidate_points(domain)
    posterior = belief(points, dimensions, kernel)
    chosen = acquisition.choose(posterior, 1.0, domain=domain, points=points, rng=rng())
    crowd = np.vstack([domain.sample(rng(), 5000), points])
    bounds = posterior.mean(crowd) + posterior.std(crowd)
    mine = posterior.mean(chosen[None])[0] + posterior.std(chosen[None])[0]
    assert mine >= bounds.max() - 1e-4


def test_climbed_points_are_rounded_so_that_repeats_merge() -> None:
    domain = Box([0.0, 10.0], [1.0, 30.0])
    acquisition = Acquisition(refine=True, merge=0.05)
    points = acquisition.candidate_points(domain)
    posterior = CholeskyPosterior(SquaredExponential(length_scale=(0.3, 6.0)), candidates=points)
    posterior.add([[0.33, 17.0]], [1.0], variances=0.01)
    chosen = acquisition.choose(posterior, 0.1, domain=domain, points=points, rng=rng())
    steps = (chosen - domain.lower) / (0.05 * (domain.upper - domain.lower))
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)


def test_scores_that_are_not_finite_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="too large to compute with"):
        pick(np.array([0.0, np.nan]), rng())
