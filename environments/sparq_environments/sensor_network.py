"""The environment `sensor-network`: synthetic daily ozone at 28 named sites."""

from __future__ import annotations

from math import pi
from typing import Annotated

import numpy as np
from numpy.random import Generator, Philox
from pydantic import Field

from sparq_sim.arrays import Matrix, Point, Points, Values, freeze_array
from sparq_sim.domain import Sites
from sparq_sim.fields import Probability
from sparq_sim.plugin.contract import Environment, Units

__all__ = ["SensorNetwork"]

# Invented: a town by the sea, another inland, and the country around, with about as many pairs of
# sites at each distance as in the network that the field is calibrated to.
_PLACES = {
    "harbour": (40.74, -73.78),
    "breakwater": (40.63, -73.83),
    "northgate": (40.84, -73.80),
    "eastside": (40.88, -73.54),
    "westside": (40.89, -74.12),
    "ridge": (41.01, -74.24),
    "reservoir": (41.03, -74.37),
    "foothills": (40.89, -74.44),
    "quarry": (40.84, -74.69),
    "lightship": (40.41, -73.71),
    "sound": (40.78, -73.41),
    "headland": (40.93, -73.26),
    "orchard": (41.24, -73.55),
    "station": (41.28, -73.73),
    "mill": (41.30, -73.83),
    "lake": (41.43, -73.73),
    "crossing": (40.29, -74.69),
    "dunes": (40.14, -74.18),
    "town-hall": (40.01, -75.18),
    "old-town": (39.96, -75.25),
    "riverside": (40.06, -74.97),
    "ferry": (40.00, -74.86),
    "university": (40.09, -75.07),
    "refinery": (39.81, -75.06),
    "pinewood": (39.70, -74.79),
    "marsh": (39.53, -74.93),
    "valley": (40.28, -75.45),
    "estuary": (39.70, -76.02),
}
_KILOMETRES = 111.2  # in a degree of latitude
_YEAR = 365.25  # days
_BLOCK = 256  # days that are drawn together
_KEPT = 16  # blocks that are kept in memory: eleven years

_Size = Annotated[float, Field(ge=0, le=1e6)]
_Memory = Annotated[float, Field(ge=0, le=0.9)]


class SensorNetwork(Environment):
    """Daily maximum ozone (ppb) at 28 sites: a Gaussian process in space and time.

        f(i, t) = mean + season cos(2 pi (k - peak) / 365.25) + deviation u_k     the network
                  + offset a_i + swing (b_i cos(2 pi k / 365.25) + c_i sin(...))  the site's pattern
                  + anomaly s_k w_ik                                              its weather

    on day k = floor(t), never below 0 and rounded to *rounding*. Use it to choose where to measure,
    over any number of days and without a data file; day 0 is 1 January.

    u and each w_i are autoregressive in days, with variance 1; s_k = exp(unevenness z_k -
    unevenness^2) makes sites differ more on some days than on others. a, b, c and the w of each day
    are draws of a Gaussian process over the sites, centred over the network and scaled to a mean
    variance of 1, with covariance (1 - local) exp(-distance / reach) + local [same site].

    The defaults are calibrated to two years of EPA's readings at 28 monitors around New York
    (2016 and 2017): levels, spreads, correlations over distance and days, how often the best site
    changes, and the regret of simple policies; `python -m reproduce.ozone_table` compares them.
    """

    level_evaluations = 5_000_000
    units = Units(reward="ppb", coordinates=("°", "°"), time="days")

    mean: Annotated[float, Field(ge=-1e6, le=1e6)] = 36.9
    """The mean of all sites and days, in ppb."""
    season: _Size = 11.5
    """The amplitude of the yearly cycle of the network, in ppb."""
    peak: Annotated[float, Field(ge=0, le=366)] = 169.0
    """The day of the year at which the yearly cycle of the network is highest."""
    deviation: _Size = 8.8
    """The std of the network's daily deviations from its yearly cycle, in ppb."""
    deviation_memory: _Memory = 0.46
    """The correlation of the network's deviations from one day to the next."""
    offset: _Size = 2.2
    """The std of the permanent differences between sites, in ppb."""
    swing: _Size = 1.9
    """The std of the amplitudes of the sites' own yearly cycles, in ppb."""
    anomaly: _Size = 4.6
    """The std of the sites' daily anomalies, in ppb."""
    anomaly_memory: _Memory = 0.13
    """The correlation of the sites' anomalies from one day to the next."""
    unevenness: Annotated[float, Field(ge=0, le=2)] = 0.4
    """The std of the logarithm of the size of anomalies on a day; with 0 all days are alike."""
    reach: Annotated[float, Field(ge=1, le=10_000)] = 65.0
    """The distance over which the correlation between sites falls by a factor of e, in km."""
    local: Probability = 0.05
    """The share of the variance between sites that no neighbour shares."""
    rounding: _Size = 1.0
    """The unit to which values are rounded, in ppb, as monitors report them, so that ties occur; 0
    for no rounding."""

    def start(self, rng: Generator) -> _SensorNetworkLandscape:
        return _SensorNetworkLandscape(self, rng)


class _SensorNetworkLandscape:
    """The landscape of a network; days are drawn in blocks, each from its own part of a stream.

    Args:
        model: The fields of the environment.
        rng: The generator to draw the patterns of the sites and the key of the stream from.
    """

    def __init__(self, model: SensorNetwork, rng: Generator) -> None:
        self.domain = Sites(list(_PLACES.values()), list(_PLACES), ["lat", "lon"])
        self._model = model
        self._factor = _build_factor(self.domain.points, model.reach, model.local)
        self._patterns = self._factor @ rng.standard_normal((len(_PLACES), 3))
        self._memories = np.full(2 + len(_PLACES), model.anomaly_memory)
        self._memories[:2] = model.deviation_memory, 0.0
        self._key = rng.integers(2**64, size=2, dtype=np.uint64)
        self._blocks: dict[int, tuple[Matrix, list[int]]] = {}

    def rewards(self, points: Points, time: float) -> Values:
        block, day = divmod(int(time), _BLOCK)
        values: Values = self._block(block)[0][day, self.domain.index(points)]
        return values

    def best(self, time: float) -> tuple[Point, float]:
        block, day = divmod(int(time), _BLOCK)
        values, best = self._block(block)
        return self.domain.points[best[day]], float(values[day, best[day]])

    def _block(self, number: int) -> tuple[Matrix, list[int]]:
        """Return the values of a block, and the best site of each of its days."""
        if number not in self._blocks:
            if len(self._blocks) == _KEPT:
                self._blocks.pop(next(iter(self._blocks)))
            values = self._values(number)
            self._blocks[number] = values, values.argmax(axis=1).tolist()
        return self._blocks[number]

    def _values(self, number: int) -> Matrix:
        model = self._model
        days = np.arange(number * _BLOCK, (number + 1) * _BLOCK, dtype=float)
        year = 2 * pi / _YEAR
        network = model.season * np.cos(year * (days - model.peak))
        # The path begins one block earlier, so that a block does not depend on all before it: with
        # a memory of 0.9 the beginning has a weight of 2e-12.
        innovations = np.concatenate(
            [self._draw_innovations(number - 1), self._draw_innovations(number)]
        )
        path = _build_path(innovations, self._memories)
        network += model.deviation * path[:, 0]
        sizes = np.exp(model.unevenness * path[:, 1:2] - model.unevenness**2)
        weather = path[:, 2:] @ self._factor.T
        offset, cosine, sine = self._patterns.T
        swing = np.outer(np.cos(year * days), cosine) + np.outer(np.sin(year * days), sine)
        values = model.mean + network[:, None] + model.offset * offset + model.swing * swing
        values += model.anomaly * sizes * weather
        if model.rounding:
            values = model.rounding * np.round(values / model.rounding)
        return freeze_array(np.maximum(values, 0.0))

    def _draw_innovations(self, number: int) -> Matrix:
        """Draw what is new on each day of a block: for the network, for s and for the sites."""
        # The low words count draws; block -1 is the past of block 0.
        bits = Philox(key=self._key, counter=(number + 1) << 64)
        return Generator(bits).standard_normal((_BLOCK, 2 + len(_PLACES)))


def _build_path(innovations: Matrix, memories: Values) -> Matrix:
    """Return the last block of autoregressive paths of variance 1, one in each column."""
    path = innovations * np.sqrt(1 - memories**2)
    path[0] = innovations[0]
    for day in range(1, len(path)):
        path[day] += memories * path[day - 1]
    return path[-_BLOCK:]


def _build_factor(places: Points, reach: float, local: float) -> Matrix:
    """Return F with F F' the covariance of centred anomalies, of mean variance 1."""
    latitude, longitude = places.T
    east = _KILOMETRES * np.cos(np.radians(latitude.mean())) * longitude
    flat = np.column_stack([_KILOMETRES * latitude, east])
    distances = np.linalg.norm(flat[:, None] - flat, axis=2)
    sites = len(places)
    covariance = (1 - local) * np.exp(-distances / reach) + local * np.eye(sites)
    centring = np.eye(sites) - 1 / sites
    covariance = centring @ covariance @ centring
    sizes, directions = np.linalg.eigh(covariance * (sites / np.trace(covariance)))
    # Centred again, because the root of a rounding error of 1e-16 is 1e-8.
    factor: Matrix = centring @ (directions * np.sqrt(np.maximum(sizes, 0.0)))
    return factor
