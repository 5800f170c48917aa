from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparq_experts.wireless.metre_map import METRES_PER_DEGREE, build_map, compute_distances
from sparq_sim.domain import Box, Sites
from sparq_sim.errors import PluginError

EARTH = 6_371_000.0  # m, the mean radius


def measure_on_sphere(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the distance of two places by the haversine formula, in m."""
    (north, east), (north2, east2) = np.radians(one), np.radians(other)
    squared = np.sin((north2 - north) / 2) ** 2
    squared += np.cos(north) * np.cos(north2) * np.sin((east2 - east) / 2) ** 2
    return float(2 * EARTH * np.arcsin(np.sqrt(squared)))


def test_a_degree_is_that_of_a_sphere_of_the_size_of_the_earth() -> None:
    assert pytest.approx(EARTH * np.pi / 180, rel=1e-4) == METRES_PER_DEGREE


@given(st.floats(-60, 60), st.floats(-170, 170), st.floats(-0.2, 0.2), st.floats(0.001, 0.2))
def test_distances_in_a_small_area_agree_with_those_on_the_sphere(
    lat: float, lon: float, north: float, east: float
) -> None:
    places = [(lat, lon), (lat + north, lon + east)]
    domain = Sites(places, None, ["lat", "lon"])
    metres = build_map(domain, domain.points, 1.0).to_metres(domain.points)
    flat = compute_distances(metres, metres)[0, 1]
    assert flat == pytest.approx(measure_on_sphere(*places), rel=1e-3)


def test_other_coordinates_are_metres_times_the_scale() -> None:
    domain = Box([-1.0, 0.0, 2.0], [1.0, 1.0, 3.0], ["depth", "lon", "lat"])
    points = np.array([[0.0, 1.0, 3.0]])
    metre_map = build_map(domain, points, 0.5)
    cosine = np.cos(np.radians(3.0))
    assert metre_map.to_metres(points)[0] == pytest.approx([0.5, 55_600 * cosine, 55_600])
    assert metre_map.draw(points)[0] == pytest.approx([55_600 * cosine, 55_600])


def test_a_latitude_without_a_longitude_is_a_coordinate_like_others() -> None:
    domain = Box([0.0, 0.0], [120.0, 1.0], ["lat", "height"])
    metre_map = build_map(domain, np.array([[100.0, 0.5]]), 10.0)
    assert metre_map.factors.tolist() == [10.0, 10.0]
    assert (metre_map.east, metre_map.north) == (0, 1)


def test_a_latitude_beyond_the_pole_is_refused() -> None:
    domain = Box([0.0, 0.0], [120.0, 1.0], ["lat", "lon"])
    with pytest.raises(PluginError, match=r"lat 100 is no latitude in degrees, -90 to 90"):
        build_map(domain, np.array([[100.0, 0.5]]), 1.0)


def test_distances_are_exactly_zero_between_equal_points() -> None:
    points = np.random.default_rng(0).uniform(size=(20, 3)) * 1e6
    distances = compute_distances(points, points)
    assert (np.diag(distances) == 0).all()
    assert (distances == distances.T).all()
