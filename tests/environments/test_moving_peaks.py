from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from pydantic import ValidationError
from scipy import stats

from sparq_environments.moving_peaks import MovingPeaks, _MovingPeaksLandscape
from sparq_sim.landscapes.drift import measure_drift

moments = st.floats(0, 20_000)


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def started(seed: int = 0, **fields: Any) -> _MovingPeaksLandscape:
    return _MovingPeaksLandscape(MovingPeaks(**fields), stream(seed))


# What peaks look like


@pytest.mark.parametrize("shape", ["cone", "hill"])
def test_the_reward_is_that_of_the_highest_of_brankes_peaks(shape: str) -> None:
    landscape = started(shape=shape, dimensions=3)
    for time in (0.0, 123.4):
        places, heights, widths = landscape.peaks(time)
        for point in landscape.domain.sample(stream(1), 20):
            peaks = []
            for place, height, width in zip(places, heights, widths, strict=True):
                distance = math.dist(point, place)
                cone, hill = height - width * distance, height / (1 + width * distance**2)
                peaks.append(cone if shape == "cone" else hill)
            assert landscape.rewards(point[None], time)[0] == pytest.approx(max(peaks), rel=1e-12)


# How they wander


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    time=moments,
    severity=st.floats(0, 1e3),
    correlation=st.floats(0, 1),
    movement=st.sampled_from(["steps", "smooth"]),
)
def test_all_stay_within_their_bounds_however_far_they_step(
    seed: int, time: float, severity: float, correlation: float, movement: str
) -> None:
    landscape = started(
        seed,
        move_length=severity,
        height_severity=severity,
        width_severity=severity,
        correlation=correlation,
        movement=movement,
    )
    places, heights, widths = landscape.peaks(time)
    assert landscape.domain.contains(places).all()
    assert ((heights >= 30) & (heights <= 70)).all()
    assert ((widths >= 1) & (widths <= 12)).all()


def test_each_change_moves_a_peak_by_the_move_length_and_by_normal_steps() -> None:
    # Bounds so far away that none is met, over more than one block of changes.
    landscape = started(side=1e9, heights=(1.0, 1e9), widths=(1.0, 1e9), peaks=50, every=2.0)
    states = [landscape.peaks(2.0 * change) for change in range(400)]
    moves = np.diff([state.places for state in states], axis=0)
    assert np.linalg.norm(moves, axis=2) == pytest.approx(1.0, abs=1e-6)
    for steps, severity in (
        (np.diff([state.heights for state in states], axis=0), 7.0),
        (np.diff([state.widths for state in states], axis=0), 1.0),
    ):
        assert stats.kstest(steps.ravel() / severity, stats.norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("correlation", "cosine"),
    [
        (0.0, 0.0),
        (0.5, 2 / math.pi),  # It halves the angle, and the mean of cos(a / 2) over [0, pi] is this.
        (1.0, 1.0),
    ],
)
def test_a_move_keeps_the_last_direction_as_the_correlation_says(
    correlation: float, cosine: float
) -> None:
    landscape = started(side=1e6, peaks=50, correlation=correlation, every=1.0)
    places = np.array([landscape.peaks(float(change)).places for change in range(300)])
    moves = np.diff(places, axis=0)
    cosines = (moves[1:] * moves[:-1]).sum(axis=2).ravel()
    assert abs(cosines.mean() - cosine) <= 5 * cosines.std() / math.sqrt(cosines.size) + 1e-6


def test_on_a_line_opposite_directions_that_cancel_leave_a_move_of_full_length() -> None:
    landscape = started(dimensions=1, side=1e6, correlation=0.5, every=1.0)
    places = np.array([landscape.peaks(float(change)).places for change in range(100)])
    assert abs(np.diff(places, axis=0)) == pytest.approx(1.0, abs=1e-6)


def test_a_peak_is_as_likely_anywhere_late_as_early() -> None:
    landscape = started(peaks=2000, every=1.0, move_length=20.0)
    for time in (0.0, 700.0):
        places, heights, widths = landscape.peaks(time)
        for values, low, high in ((places[:, 0], 0, 100), (heights, 30, 70), (widths, 1, 12)):
            assert stats.kstest((values - low) / (high - low), "uniform").pvalue > 1e-3


def test_peaks_stand_still_between_steps() -> None:
    landscape = started(every=10.0)
    points = landscape.domain.sample(stream(1), 50)
    before, after = landscape.rewards(points, 10.0), landscape.rewards(points, 20.0)
    assert np.array_equal(before, landscape.rewards(points, 19.999))
    assert not np.array_equal(before, after)


def test_smooth_peaks_go_straight_from_change_to_change_and_meet_the_steps_there() -> None:
    steps, smooth = started(side=1e9), started(side=1e9, movement="smooth")
    for change in (0, 255, 256, 1000):
        begin, end = steps.peaks(10.0 * change).places, steps.peaks(10.0 * (change + 1)).places
        assert np.array_equal(smooth.peaks(10.0 * change).places, begin)
        midway = smooth.peaks(10.0 * change + 5.0).places
        assert midway == pytest.approx((begin + end) / 2, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "mean", "largest"),
    [({}, 5.9, 137.0), ({"movement": "smooth"}, 8.4, 26.0), ({"shape": "hill"}, 2.2, 39.0)],
)
def test_it_drifts_as_stated(fields: dict[str, Any], mean: float, largest: float) -> None:
    found = [measure_drift(started(seed, **fields), np.arange(501.0)) for seed in range(5)]
    assert np.mean([each.mean for each in found]) == pytest.approx(mean, rel=0.05)
    assert np.mean([each.largest for each in found]) == pytest.approx(largest, rel=0.05)


# What is refused


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"heights": (70.0, 30.0)}, r"heights \(70.0, 30.0\) must be finite, the lowest first"),
        ({"widths": (1.0, math.inf)}, r"widths \(1.0, inf\) must be finite, the lowest first"),
        ({"widths": (0.0, 1.0)}, "greater than 0"),
        ({"correlation": 1.5}, "less than or equal to 1"),
        ({"every": 0.0}, "greater than 0"),
        ({"shape": "sphere"}, "'cone' or 'hill'"),
    ],
)
def test_peaks_that_cannot_be_are_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        MovingPeaks(**fields)
