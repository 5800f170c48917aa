from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator, Philox
from pydantic import ValidationError

from reproduce import ozone_table
from sparq_environments.recorded import Recorded
from sparq_environments.sensor_network import _BLOCK, _KEPT, SensorNetwork, _SensorNetworkLandscape
from sparq_sim.arrays import Matrix
from tests.environments.ozone import ozone_file

REAL = {
    "mean": 36.9,
    "std": 13.2,
    "std across sites within a day": 5.0,
    "sup-variation from day to day": 18.4,
    "the same, network mean removed": 13.3,
    "correlation of values, 0-25 km": 0.96,
    "correlation of values, 25-50 km": 0.92,
    "correlation of values, 50-100 km": 0.86,
    "correlation of values, 150-250 km": 0.79,
    "correlation of anomalies, 0-25 km": 0.57,
    "correlation of anomalies, 25-50 km": 0.28,
    "correlation of anomalies, 50-100 km": -0.02,
    "correlation of anomalies, 150-250 km": -0.28,
    "autocorrelation of the network mean, lag 1": 0.70,
    "autocorrelation of the network mean, lag 2": 0.54,
    "autocorrelation of the network mean, lag 3": 0.48,
    "autocorrelation of the network mean, lag 7": 0.45,
    "autocorrelation of the network mean, lag 30": 0.41,
    "autocorrelation of a site's anomaly, lag 1": 0.25,
    "share of days on which the best site changes": 0.78,
    "share of days with tied maxima": 0.20,
    "regret of uniform play": 9.82,
    "regret of the best fixed site": 6.01,
    "regret of yesterday's best site": 5.50,
}
"""Measured on the ozone readings of 28 monitors around New York, 2016 and 2017."""


def begin(seed: int = 0, **changes: float) -> _SensorNetworkLandscape:
    return SensorNetwork.model_validate(changes).start(Generator(Philox(key=seed)))


def days(landscape: _SensorNetworkLandscape, first: int, last: int) -> Matrix:
    points = landscape.domain.points
    return np.stack([landscape.rewards(points, float(day)) for day in range(first, last)])


def autocorrelation(paths: Matrix, lag: int) -> float:
    return float((paths[lag:] * paths[:-lag]).mean() / (paths**2).mean())


@pytest.fixture(scope="module")
def synthetic() -> dict[str, float]:
    return ozone_table.average_synthetic()


# A landscape


def test_forgotten_blocks_come_back_the_same() -> None:
    landscape = begin()
    before = days(landscape, 0, 3)
    for block in range(1, _KEPT + 3):
        landscape.best(float(block * _BLOCK))
    np.testing.assert_array_equal(days(landscape, 0, 3), before)


def test_a_day_lasts_from_one_whole_number_to_the_next() -> None:
    landscape = begin()
    points = landscape.domain.points
    first, second = days(landscape, 5, 7)
    assert landscape.rewards(points, 5.999).tolist() == first.tolist() != second.tolist()


def test_values_are_whole_ppb_and_never_negative() -> None:
    values = days(begin(mean=5.0), 0, 200)
    assert (values == np.round(values)).all()
    assert values.min() == 0


def test_without_rounding_sites_do_not_tie() -> None:
    values = days(begin(rounding=0.0, mean=1e3), 0, 200)
    assert len(np.unique(values)) == values.size


# Chance


def test_what_is_left_without_chance_is_the_season() -> None:
    still = begin(deviation=0.0, offset=0.0, swing=0.0, anomaly=0.0, rounding=0.0)
    day = np.arange(400)
    expected = 36.9 + 11.5 * np.cos(2 * np.pi * (day - 169) / 365.25)
    np.testing.assert_allclose(days(still, 0, 400), np.repeat(expected[:, None], 28, axis=1))


def test_the_network_deviates_as_an_autoregression_does_across_blocks_too() -> None:
    only = begin(season=0.0, offset=0.0, swing=0.0, anomaly=0.0, rounding=0.0, mean=1e3)
    path = days(only, 0, 6000)[:, :1] - 1e3
    effective = len(path) * (1 - 0.46) / (1 + 0.46)
    assert abs(path.std() / 8.8 - 1) < 4 / np.sqrt(2 * effective)
    for lag in (1, 2, 4):
        assert abs(autocorrelation(path, lag) - 0.46**lag) < 4 / np.sqrt(effective)
    # The correlation of the last day of a block with the first of the next is that of any two.
    changes = np.diff(path[:, 0])
    at_seams = changes[_BLOCK - 1 :: _BLOCK]
    assert abs(at_seams.std() / changes.std() - 1) < 4 / np.sqrt(2 * len(at_seams))


def test_anomalies_have_the_covariance_of_the_formula() -> None:
    only = begin(season=0.0, deviation=0.0, offset=0.0, swing=0.0, rounding=0.0, mean=1e3)
    values = days(only, 0, 6000) - 1e3
    np.testing.assert_allclose(values.mean(axis=1), 0.0, atol=1e-9)
    latitude, longitude = only.domain.points.T
    north = 111.2 * (latitude[:, None] - latitude)
    east = 111.2 * np.cos(np.radians(latitude.mean())) * (longitude[:, None] - longitude)
    kernel = 0.95 * np.exp(-np.hypot(north, east) / 65.0) + 0.05 * np.eye(28)
    centred = kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()
    expected = 4.6**2 * centred / np.trace(centred) * 28
    found = values.T @ values / len(values)
    # The size of the day multiplies the variance of a product by E s^4 = exp(4 * 0.4^2).
    products = np.outer(np.diag(expected), np.diag(expected)) + expected**2
    errors = np.sqrt(np.exp(4 * 0.4**2) * products / len(values))
    assert (abs(found - expected) < 5 * errors).all()


def test_anomalies_remember_a_day_as_they_should() -> None:
    only = begin(
        season=0.0, deviation=0.0, offset=0.0, swing=0.0, rounding=0.0, unevenness=0.0, mean=1e3
    )
    values = days(only, 0, 3000) - 1e3
    # Sites are alike, so that the days count, not the values.
    assert abs(autocorrelation(values, 1) - 0.13) < 4 / np.sqrt(len(values))


@pytest.mark.parametrize(
    "changes",
    [{"mean": np.nan}, {"deviation": -1.0}, {"anomaly_memory": 0.95}, {"reach": 0.0}, {"local": 2}],
    ids=repr,
)
def test_parameters_that_cannot_be_are_refused(changes: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        SensorNetwork.model_validate(changes)


# Calibration


@pytest.mark.parametrize("figure", REAL)
def test_the_synthetic_network_is_within_a_fifth_of_the_real_one(
    synthetic: dict[str, float], figure: str
) -> None:
    # Of correlations near zero a fifth is nothing: within 0.1 there.
    near_zero = "correlation" in figure and abs(REAL[figure]) < 0.1
    bound = 0.1 if near_zero else 0.2 * abs(REAL[figure])
    assert abs(synthetic[figure] - REAL[figure]) <= bound


def test_the_figures_of_the_real_file_are_those_the_network_is_calibrated_to() -> None:
    real = ozone_table.compute_figures(
        Recorded(files=(str(ozone_file()),)).start(Generator(Philox(key=0)))
    )
    # A day's best site is counted here as expected over ties, and as the first of them there.
    changes = real.pop("share of days on which the best site changes")
    assert changes == pytest.approx(0.78, abs=0.03)
    assert real == pytest.approx({name: REAL[name] for name in real}, abs=0.06)
