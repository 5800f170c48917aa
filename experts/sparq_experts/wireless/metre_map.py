"""Metre map: how coordinates of a domain become metres, and distances between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparq_sim.arrays import Matrix, Points, freeze_array
from sparq_sim.domain import Box, Domain
from sparq_sim.errors import PluginError

__all__ = ["METRES_PER_DEGREE", "MetreMap", "build_map", "compute_distances"]

METRES_PER_DEGREE = 111_200.0
"""The length of a degree of latitude, in m, on a sphere of radius 6,371 km."""

_LATITUDE = ("lat", "latitude")
_LONGITUDE = ("lon", "lng", "longitude")


@dataclass(frozen=True)
class MetreMap:
    """How coordinates of the domain become metres.

    Each coordinate is a distance along an axis of its own. Where two are named lat and lon, they
    are degrees on the earth, small enough an area to be flat: a degree of latitude is 111,200 m,
    one of longitude that times the cosine of the mean latitude of the nodes.
    """

    origin: Points
    """Where all metres are 0: the lowest value of each coordinate, (d,)."""
    factors: Points
    """How many metres a unit of each coordinate is, (d,)."""
    east: int
    """Which coordinate runs to the east on a map."""
    north: int | None
    """Which coordinate runs to the north; None in one dimension."""

    def to_metres(self, points: Points) -> Points:
        """Return points in metres from the origin: (n, d).

        Args:
            points: In coordinates of the domain, (n, d).
        """
        return (points - self.origin) * self.factors

    def draw(self, points: Points) -> Points:
        """Return where points are drawn on a map, east and north of the origin in m: (n, 2).

        Args:
            points: In coordinates of the domain, (n, d); those beyond the two are not drawn.
        """
        metres = self.to_metres(points)
        north = np.zeros(len(points)) if self.north is None else metres[:, self.north]
        return np.stack([metres[:, self.east], north], axis=1)


def build_map(domain: Domain, points: Points, scale: float) -> MetreMap:
    """Return how coordinates of a domain become metres.

    Args:
        domain: Where points may lie; the names of its coordinates tell whether they are degrees.
        points: The nodes, (n, d), whose mean latitude counts.
        scale: Metres per unit of the coordinates; where they are latitude and longitude, metres on
            the map per metre on the earth.

    Raises:
        PluginError: A coordinate is named as a latitude and is beyond 90 degrees.
    """
    origin = domain.lower if isinstance(domain, Box) else domain.points.min(axis=0)
    names = [name.lower() for name in domain.names]
    factors = np.full(len(names), float(scale))
    north = next((i for i, name in enumerate(names) if name in _LATITUDE), None)
    east = next((i for i, name in enumerate(names) if name in _LONGITUDE), None)
    if north is None or east is None:
        return MetreMap(freeze_array(origin), freeze_array(factors), 0, 1 if names[1:] else None)
    latitudes = points[:, north]
    if (beyond := np.abs(latitudes) > 90).any():
        raise PluginError(
            f"nodes: {domain.names[north]} {latitudes[beyond][0]:g} is no latitude in degrees, "
            "-90 to 90; name the coordinates otherwise if they are no degrees"
        )
    factors[[north, east]] *= METRES_PER_DEGREE
    factors[east] *= np.cos(np.radians(latitudes.mean()))
    return MetreMap(freeze_array(origin), freeze_array(factors), east, north)


def compute_distances(points: Points, places: Points) -> Matrix:
    """Compute the Euclidean distance of each pair of a point and a place.

    Args:
        points: In m, (n, d).
        places: In m, (m, d).

    Returns:
        The distances in m, (n, m).
    """
    # By coordinates: an array of three axes takes several times as long.
    squares: Matrix = (points[:, :1] - places[:, 0]) ** 2
    for axis in range(1, places.shape[1]):
        squares += (points[:, axis, None] - places[:, axis]) ** 2
    distances: Matrix = np.sqrt(squares)
    return distances
