"""Data of a portrait: rewards of a landscape over space and time, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.domain import Box
from sparq_sim.errors import SparqError
from sparq_sim.landscapes.drift import measure_drift
from sparq_sim.plugin.environment import Landscape

__all__ = ["FRAMES", "Fields", "Places", "Portrait", "Slices", "sample"]

FRAMES = 20
"""Times at which the slider of a page stops."""
_ALONG, _ACROSS, _COVER = 201, 61, 512


@dataclass(frozen=True, eq=False)
class Slices:
    """Through the best point of each time, along each coordinate; in one dimension, everything."""

    axes: tuple[Values, ...]
    """For each coordinate, where the reward was taken: (x,)."""
    rewards: tuple[Matrix, ...]
    """For each coordinate: (times, x)."""


@dataclass(frozen=True, eq=False)
class Fields:
    """The reward over a plane, at the frames' times."""

    axes: tuple[Values, Values]
    """Where it was taken, across and up: (x,) and (y,)."""
    rewards: NDArray[np.float64]
    """(frames, second coordinate, first coordinate)."""


@dataclass(frozen=True, eq=False)
class Places:
    """The reward at each site."""

    points: Points
    """Of the sites, (sites, d)."""
    names: tuple[str, ...]
    """Of the sites."""
    rewards: Matrix
    """(times, sites)."""


@dataclass(frozen=True, eq=False)
class Portrait:
    """What is drawn of a landscape: plain arrays."""

    name: str
    """Of the environment."""
    coordinates: tuple[str, ...]
    """Names of the coordinates."""
    times: Values
    """Evenly from 0 to the horizon; their number less one is a multiple of FRAMES."""
    best_points: Points
    """Best point at each time, (times, d)."""
    best_rewards: Values
    """Its reward, (times,)."""
    mean_rewards: Values
    """Over all sites, or over an even cover of the box."""
    drift: Values
    """The greatest change between one time and the next, per unit of time: one fewer than times."""
    view: Slices | Fields | Places
    """The reward over space."""

    @property
    def frames(self) -> list[int]:
        """Places of the times that are frames; the horizon is the last."""
        return _frames(self.times)


def sample(landscape: Landscape, horizon: float, *, name: str = "") -> Portrait:
    """Return what a portrait shows of a landscape.

    Args:
        landscape: A started environment.
        horizon: Until when, from time 0, in clock units.
        name: Of the environment.

    Raises:
        SparqError: The horizon is not positive and finite.
    """
    if not (isfinite(horizon) and horizon > 0):
        raise SparqError(f"the horizon of a portrait must be positive and finite, not {horizon!r}")
    # One time a clock unit, unless that is too coarse or too fine to see.
    steps = FRAMES * round(min(max(horizon, 60.0), 240.0) / FRAMES)
    times = np.linspace(0.0, horizon, steps + 1)
    bests = [landscape.best(time) for time in times.tolist()]
    points = np.array([point for point, _ in bests])
    cover = landscape.domain.cover(_COVER)
    means = [landscape.rewards(cover, time).mean() for time in times.tolist()]
    return Portrait(
        name=name,
        coordinates=landscape.domain.names,
        times=times,
        best_points=points,
        best_rewards=np.array([value for _, value in bests]),
        mean_rewards=np.array(means),
        drift=measure_drift(landscape, times).per_unit_time,
        view=_view(landscape, times, points),
    )


def _frames(times: Values) -> list[int]:
    stride = (len(times) - 1) // FRAMES
    return list(range(stride, len(times), stride))


def _view(landscape: Landscape, times: Values, bests: Points) -> Slices | Fields | Places:
    domain = landscape.domain
    if not isinstance(domain, Box):
        rewards = [landscape.rewards(domain.points, time) for time in times.tolist()]
        return Places(domain.points, domain.site_names, np.array(rewards))
    if domain.dimensions == 2:
        across, up = np.linspace(domain.lower, domain.upper, _ACROSS).T
        plane = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
        fields = [landscape.rewards(plane, time) for time in times[_frames(times)].tolist()]
        return Fields((across, up), np.array(fields).reshape(-1, _ACROSS, _ACROSS))
    axes = np.linspace(domain.lower, domain.upper, _ALONG).T
    slices = []
    for number, axis in enumerate(axes):
        points = np.repeat(bests[:, None], _ALONG, axis=1)
        points[:, :, number] = axis
        rows = zip(points, times.tolist(), strict=True)
        slices.append(np.array([landscape.rewards(row, time) for row, time in rows]))
    return Slices(tuple(axes), tuple(slices))
