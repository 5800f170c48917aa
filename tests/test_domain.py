from __future__ import annotations

import math
import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from numpy.typing import ArrayLike
from scipy.stats.qmc import discrepancy

from sparq_sim.domain import Box, Domain, Sites

SETTINGS = settings(max_examples=50, deadline=None)

finite = st.floats(-1e6, 1e6)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    lower = draw(st.lists(finite, min_size=1, max_size=4))
    widths = draw(st.lists(st.floats(1e-3, 1e6), min_size=len(lower), max_size=len(lower)))
    return Box(lower, np.add(lower, widths))


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


# Bounds of a box


@pytest.mark.parametrize(
    ("lower", "upper", "complaint"),
    [
        ([0.0, 2.0], [1.0, 2.0], r"lower \[0. 2.\] must lie below upper \[1. 2.\]"),
        (3.0, -3.0, r"lower \[3.\] must lie below upper \[-3.\]"),
        ([0.0, 0.0], [1.0], "need one number for each coordinate"),
        ([[0.0]], [[1.0]], "need one number for each coordinate"),
        (math.nan, 1.0, r"must be finite, not \[nan\] to \[1.\]"),
        (0.0, math.inf, r"must be finite, not \[0.\] to \[inf\]"),
    ],
)
def test_a_box_without_sound_bounds_is_refused_by_value(
    lower: ArrayLike, upper: ArrayLike, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Box(lower, upper)


def test_a_bare_number_bounds_one_coordinate() -> None:
    box = Box(-1, 2)
    assert (box.dimensions, box.lower.tolist(), box.upper.tolist()) == (1, [-1.0], [2.0])


def test_bounds_are_decoupled_from_the_callers_arrays_and_cannot_be_changed() -> None:
    lower, upper = np.zeros(2), np.ones(2)
    box = Box(lower, upper)
    lower[0] = upper[0] = 9.0
    assert (box.lower.tolist(), box.upper.tolist()) == ([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        box.upper[0] = 9.0


# Points in a box


def test_a_point_on_the_bounds_lies_in_the_box() -> None:
    box = Box([0.0, -1.0], [1.0, 1.0])
    corners = np.array([[0.0, -1.0], [1.0, 1.0]])
    assert box.contains(corners).all()
    assert box.check(corners).tolist() == corners.tolist()


def test_a_point_just_beyond_a_bound_lies_outside() -> None:
    box = Box(0.0, 1.0)
    beyond = np.array([[np.nextafter(1.0, 2.0)], [np.nextafter(0.0, -1.0)], [0.5], [math.nan]])
    assert box.contains(beyond).tolist() == [False, False, True, False]


def test_the_first_point_outside_is_named_with_the_reach_of_the_box() -> None:
    with pytest.raises(ValueError, match="start") as refused:
        Box([0.0, 0.0], [1.0, 2.0]).check([[0.5, 0.5], [0.5, 2.5], [9.0, 9.0]], "start")
    assert str(refused.value) == (
        "start: [0.5, 2.5] lies outside the domain, which reaches from [0.0, 0.0] to [1.0, 2.0]"
    )


def test_a_box_refuses_nan() -> None:
    with pytest.raises(ValueError, match=r"\[nan\] lies outside the domain"):
        Box(0.0, 1.0).check([[math.nan]])


@pytest.mark.parametrize("domain", [Box([0.0, 0.0], [1.0, 1.0]), Sites([[0.0, 0.0], [1.0, 1.0]])])
@pytest.mark.parametrize("points", [0.0, [0.0, 0.0], [[0.0]], [[0.0, 0.0, 0.0]], [[[0.0, 0.0]]]])
def test_points_of_another_shape_are_refused_with_the_shape_expected(
    domain: Domain, points: ArrayLike
) -> None:
    with pytest.raises(ValueError, match=r"moves have shape \(.*\); expected \(n, 2\)"):
        domain.check(points, "moves")


def test_no_points_at_all_pass_the_check() -> None:
    assert Box(0.0, 1.0).check(np.empty((0, 1))).shape == (0, 1)
    assert Sites([[0.0]]).index(np.empty((0, 1))).shape == (0,)


@SETTINGS
@given(box=boxes(), seed=st.integers(0, 2**64 - 1), count=st.integers(0, 50))
def test_samples_lie_in_the_box(box: Box, seed: int, count: int) -> None:
    samples = box.sample(stream(seed), count)
    assert samples.shape == (count, box.dimensions)
    assert box.contains(samples).all()


def test_samples_fill_the_box_uniformly() -> None:
    samples = Box([0.0, -3.0], [1.0, 5.0]).sample(stream(1), 20_000)
    error = 5 * np.array([1.0, 8.0]) / math.sqrt(12 * len(samples))
    assert (abs(samples.mean(axis=0) - [0.5, 1.0]) < error).all()
    assert (np.ptp(samples, axis=0) > [0.99, 7.9]).all()


@SETTINGS
@given(box=boxes(), per_dimension=st.integers(2, 5))
def test_a_grid_reaches_every_corner_and_stays_inside(box: Box, per_dimension: int) -> None:
    grid = box.grid(per_dimension)
    assert grid.shape == (per_dimension**box.dimensions, box.dimensions)
    assert box.contains(grid).all()
    corners = {tuple(row) for row in grid if ((row == box.lower) | (row == box.upper)).all()}
    assert len(corners) == 2**box.dimensions


def test_a_grid_has_even_steps() -> None:
    assert Box([0.0, 10.0], [1.0, 30.0]).grid(3).tolist() == [
        [x, y] for x in (0.0, 0.5, 1.0) for y in (10.0, 20.0, 30.0)
    ]


def test_a_grid_of_one_point_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 points a dimension, not 1"):
        Box(0.0, 1.0).grid(1)


@SETTINGS
@given(box=boxes(), count=st.integers(1, 200))
def test_a_cover_lies_in_the_box_and_repeats_no_point(box: Box, count: int) -> None:
    cover = box.cover(count)
    assert cover.shape == (count, box.dimensions)
    assert box.contains(cover).all()
    assert len(np.unique(cover, axis=0)) == count


@pytest.mark.parametrize(("dimensions", "tolerance"), [(1, 1e-6), (2, 1e-3), (4, 2e-2)])
def test_the_mean_of_a_smooth_function_over_a_cover_is_close_to_its_integral(
    dimensions: int, tolerance: float
) -> None:
    box = Box(np.full(dimensions, -2.0), np.full(dimensions, 6.0))
    shares = (box.cover(1000) - box.lower) / (box.upper - box.lower)
    # The mean of exp over the unit interval is e - 1.
    mean = np.prod(np.exp(shares) / (math.e - 1), axis=1).mean()
    assert mean == pytest.approx(1, abs=tolerance)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_cover_is_more_even_than_chance(dimensions: int) -> None:
    box = Box(np.zeros(dimensions), np.ones(dimensions))
    by_chance = [discrepancy(box.sample(stream(seed), 1000)) for seed in range(10)]
    assert discrepancy(box.cover(1000)) < min(by_chance)


def test_an_empty_cover_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 point, not 0"):
        Box(0.0, 1.0).cover(0)


# Sites


@pytest.mark.parametrize("points", [0.0, [0.0, 1.0], [[[0.0]]], [], np.empty((0, 2)), [[]]])
def test_sites_of_another_shape_are_refused(points: ArrayLike) -> None:
    with pytest.raises(ValueError, match=r"sites have shape \(.*\); expected \(n, d\)"):
        Sites(points)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_sites_that_are_nowhere_are_refused_by_value(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"sites must be finite, not \[\[0.0\], \[{bad}\]\]"):
        Sites([[0.0], [bad]])


def test_two_sites_at_one_place_are_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match="two sites lie at the same place; merge them or move one"):
        Sites([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0]])


def test_minus_zero_and_zero_are_one_place() -> None:
    with pytest.raises(ValueError, match="same place"):
        Sites([[0.0], [-0.0]])
    assert Sites([[1.0], [-0.0]]).index([[0.0]]).tolist() == [1]
    assert Sites([[1.0], [0.0]]).contains(np.array([[-0.0]])).tolist() == [True]


def test_a_place_that_is_no_site_is_named_with_the_remedy() -> None:
    with pytest.raises(ValueError, match="queries") as refused:
        Sites([[0.0], [1.0]]).check([[1.0], [0.5]], "queries")
    assert str(refused.value) == (
        "queries: [0.5] is none of the 2 sites; use the rows of domain.points"
    )


def test_sites_refuse_nan() -> None:
    with pytest.raises(ValueError, match=r"\[nan\] is none of the 1 sites"):
        Sites([[0.0]]).check([[math.nan]])


@SETTINGS
@given(
    places=st.lists(st.tuples(finite, finite), min_size=1, max_size=20, unique=True),
    picks=st.lists(st.integers(0, 10**6), max_size=10),
)
def test_the_index_of_a_site_is_its_row(
    places: list[tuple[float, float]], picks: list[int]
) -> None:
    sites = Sites(places)
    rows = np.array(picks, dtype=np.intp) % len(places)
    assert sites.contains(sites.points).all()
    assert sites.index(sites.points[rows]).tolist() == rows.tolist()


def test_samples_are_sites_each_as_likely() -> None:
    sites = Sites([[0.0], [1.0], [5.0], [7.0]])
    numbers = sites.index(sites.sample(stream(3), 20_000))
    shares = np.bincount(numbers, minlength=4) / len(numbers)
    assert (abs(shares - 0.25) < 5 * math.sqrt(0.25 * 0.75 / len(numbers))).all()


def test_the_grid_and_the_cover_of_sites_are_all_sites() -> None:
    sites = Sites([[3.0], [1.0]])
    assert sites.grid(100).tolist() == sites.cover(1).tolist() == [[3.0], [1.0]]


def test_sites_are_decoupled_from_the_callers_array_and_cannot_be_changed() -> None:
    places = np.array([[0.0], [1.0]])
    sites = Sites(places)
    places[0] = 1.0
    assert sites.points.tolist() == [[0.0], [1.0]]
    with pytest.raises(ValueError, match="read-only"):
        sites.points[0] = 1.0


# Names


def test_coordinates_are_named_in_order_unless_named() -> None:
    assert Box([0.0, 0.0], [1.0, 1.0]).names == ("x0", "x1")
    assert Box([0.0, 0.0], [1.0, 1.0], ["east", "north"]).names == ("east", "north")
    assert Sites([[0.0, 0.0]]).names == ("x0", "x1")
    assert Sites([[0.0, 0.0]], coordinates=["east", "north"]).names == ("east", "north")


@pytest.mark.parametrize("names", [["east"], ["east", "east"], ["east", "north", "up"]])
def test_coordinates_need_as_many_different_names(names: Sequence[str]) -> None:
    complaint = "2 coordinates need as many different names"
    with pytest.raises(ValueError, match=complaint):
        Box([0.0, 0.0], [1.0, 1.0], names)
    with pytest.raises(ValueError, match=complaint):
        Sites([[0.0, 0.0]], coordinates=names)


def test_sites_are_named_in_order_unless_named() -> None:
    assert Sites([[0.0], [1.0]]).site_names == ("site-0", "site-1")
    assert Sites([[0.0], [1.0]], ["quay", "mast"]).site_names == ("quay", "mast")


def test_sites_need_a_name_each() -> None:
    with pytest.raises(ValueError, match="2 sites have 1 names"):
        Sites([[0.0], [1.0]], ["quay"])


def test_site_names_that_repeat_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"site names repeat: .*'quay', 'quay'"):
        Sites([[0.0], [1.0]], ["quay", "quay"])


# Journeys between processes


def test_a_box_survives_a_pickle() -> None:
    box = Box([0.0, -1.0], [1.0, 1.0], ["east", "north"])
    copy = pickle.loads(pickle.dumps(box))
    assert isinstance(copy, Box)
    assert repr(copy) == repr(box) == "Box([0.0, -1.0], [1.0, 1.0], ['east', 'north'])"
    assert copy.sample(stream(), 3).tolist() == box.sample(stream(), 3).tolist()


def test_sites_survive_a_pickle() -> None:
    sites = Sites([[0.0], [1.0]], ["quay", "mast"], ["east"])
    copy = pickle.loads(pickle.dumps(sites))
    assert isinstance(copy, Sites)
    assert repr(copy) == repr(sites) == "Sites(2 in ['east'])"
    assert (copy.site_names, copy.index([[1.0]]).tolist()) == (("quay", "mast"), [1])
