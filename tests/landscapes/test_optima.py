from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from scipy.optimize import minimize_scalar

from sparq_environments.synthetic import _SyntheticLandscape
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.landscapes.optima import OptimumSearch

SQUARE = Box([0.0, 0.0], [1.0, 1.0])
seeds = st.integers(0, 2**32)


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def hill(points: Points, centre: list[float] | Point, *, height: float, width: float) -> Values:
    squares: Values = ((points - np.asarray(centre)) ** 2).sum(axis=1)
    return height * np.exp(-squares / (2 * width**2))


class Hills:
    """Random hills, more of them broad than narrow, which sway with time."""

    def __init__(self, seed: int, dimensions: int) -> None:
        rng = stream(seed)
        self.centres = rng.random((12, dimensions))
        self.heights = rng.uniform(0.5, 1.0, 12)
        self.width = rng.choice([0.1, 0.2, 0.4], 12)

    def rewards(self, points: Points, time: float) -> Values:
        centres = self.centres + 0.1 * np.sin(time + np.arange(12))[:, None]
        squares = ((points[:, None] - centres) ** 2).sum(axis=2)
        values: Values = np.exp(-squares / (2 * self.width**2)) @ self.heights
        return values


@settings(max_examples=25, deadline=None)
@given(seed=seeds, time=st.floats(0, 1e4))
def test_no_point_of_a_dense_grid_is_higher_on_a_line_or_in_a_square(
    seed: int, time: float
) -> None:
    for box, fine in ((Box(0.0, 1.0), 20_001), (SQUARE, 101)):
        hills = Hills(seed, box.dimensions)
        point, value = OptimumSearch(box, hills.rewards).best(time)
        assert box.contains(point)
        assert value == hills.rewards(point[None], time)[0]
        assert hills.rewards(box.grid(fine), time).max() <= value + 1e-12


@settings(max_examples=25, deadline=None)
@given(seed=seeds)
def test_a_narrow_summit_is_found_beside_a_broad_one_that_is_hardly_lower(seed: int) -> None:
    rng = stream(seed)
    broad, narrow = rng.uniform(0.1, 0.4, 2), rng.uniform(0.6, 0.9, 2)

    def rewards(points: Points, time: float) -> Values:
        return np.maximum(
            hill(points, broad, height=0.97, width=0.2), hill(points, narrow, height=1, width=0.05)
        )

    point, value = OptimumSearch(SQUARE, rewards).best(0.0)
    assert value == pytest.approx(1.0, abs=1e-9)
    assert point == pytest.approx(narrow, abs=1e-5)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@settings(max_examples=15, deadline=None)
@given(seed=seeds, reward=st.integers(-12, 12), length=st.integers(-6, 6))
def test_neither_the_unit_of_reward_nor_that_of_length_matters(
    dimensions: int, seed: int, reward: int, length: int
) -> None:
    hills = Hills(seed, dimensions)
    unit = 10.0 ** (length * np.arange(1, dimensions + 1) / dimensions)

    def scaled(points: Points, time: float) -> Values:
        return 10.0**reward * hills.rewards(points / unit, time)

    _, value = OptimumSearch(Box(np.zeros(dimensions), np.ones(dimensions)), hills.rewards).best(
        1.0
    )
    _, other = OptimumSearch(Box(np.zeros(dimensions), unit), scaled).best(1.0)
    assert other == pytest.approx(10.0**reward * value, rel=1e-9)


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_a_summit_in_a_corner_is_reached(dimensions: int) -> None:
    box = Box(np.full(dimensions, -1.0), np.full(dimensions, 2.0))
    point, value = OptimumSearch(box, lambda points, time: points.sum(axis=1)).best(0.0)
    assert point.tolist() == [2.0] * dimensions
    assert value == 2.0 * dimensions


@pytest.mark.parametrize("dimensions", [1, 3])
def test_a_needle_is_found_where_the_world_knows_of_it(dimensions: int) -> None:
    box = Box(np.zeros(dimensions), np.ones(dimensions))
    needle = np.full(dimensions, 0.123456)

    def rewards(points: Points, time: float) -> Values:
        plain = hill(points, np.full(dimensions, 0.9), height=0.5, width=0.2)
        return np.maximum(plain, hill(points, needle, height=1.0, width=1e-4))

    assert OptimumSearch(box, rewards).best(0.0)[1] == pytest.approx(0.5)
    told = OptimumSearch(box, rewards, starts=lambda time: needle[None] + 1e-4).best(0.0)
    assert told[1] == pytest.approx(1.0, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_differences_serve_as_well_as_slopes(seed: int) -> None:
    hills = Hills(seed, 3)

    def slopes(points: Points, time: float) -> Points:
        offsets = hills.centres + 0.1 * np.sin(time + np.arange(12))[:, None] - points[:, None]
        weights = hills.heights * np.exp(-(offsets**2).sum(axis=2) / (2 * hills.width**2))
        sums: Points = ((weights / hills.width**2)[:, :, None] * offsets).sum(axis=1)
        return sums

    cube = Box(np.zeros(3), np.ones(3))
    with_slopes = OptimumSearch(cube, hills.rewards, slopes=slopes).best(0.0)[1]
    assert OptimumSearch(cube, hills.rewards).best(0.0)[1] == pytest.approx(with_slopes, rel=1e-9)


@pytest.mark.parametrize("box", [Box(0.0, 1.0), SQUARE])
def test_where_all_is_flat_any_point_will_do(box: Box) -> None:
    point, value = OptimumSearch(box, lambda points, time: np.full(len(points), 7.0)).best(0.0)
    assert box.contains(point)
    assert value == 7.0


@pytest.mark.parametrize("box", [Box(0.0, 1.0), SQUARE])
def test_a_summit_is_found_once_and_whatever_was_asked_before(box: Box) -> None:
    hills = Hills(3, box.dimensions)
    asked = []

    def rewards(points: Points, time: float) -> Values:
        asked.append(time)
        return hills.rewards(points, time)

    summits = OptimumSearch(box, rewards)
    forth = [summits.best(time) for time in (1.0, 2.0, 3.0)]
    asked.clear()
    assert [summits.best(time) for time in (1.0, 2.0, 3.0)] == forth
    assert not asked
    back = OptimumSearch(box, rewards)
    for (point, value), time in zip(reversed(forth), (3.0, 2.0, 1.0), strict=True):
        assert back.best(time)[0].tolist() == point.tolist()
        assert back.best(time)[1] == value


@settings(max_examples=60, deadline=None)
@given(time=st.floats(0, 20_000))
def test_the_papers_function_has_its_best_where_two_other_searches_find_it(time: float) -> None:
    landscape = _SyntheticLandscape()
    _, value = landscape.best(time)
    grid = np.linspace(-50.0, 50.0, 20_001)
    near = grid[landscape.rewards(grid[:, None], time).argmax()]
    dense = minimize_scalar(
        lambda x: -landscape.rewards(np.array([[x]]), time)[0],
        bounds=(near - 0.01, near + 0.01),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert value == pytest.approx(-dense.fun, abs=1e-12)
    summits = OptimumSearch(landscape.domain, landscape.rewards)
    assert value == pytest.approx(summits.best(time)[1], abs=1e-12)
