"""The ground of a picture of place over time: true rewards, and what is called a place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import SparqError, mask_invisible
from sparq_sim.plugin.environment import Landscape
from sparq_sim.report.place.data import Ground, PlaceAxis
from sparq_sim.simulation.blas import one_thread

__all__ = ["Place", "World", "look_around"]

_MOST_TIMES = 240
"""At which true rewards are taken."""
_LINE, _FIELD, _COVER, _RINGS = 201, 41, 200, 40
"""Places of a line, per coordinate of a plane, of a domain that is only sampled; distances."""
_NARROW = 1 / 3
"""The share of a domain within which the best point moves, below which there is a window."""
_MARGIN = 0.75
"""How far a window reaches beyond the best points, as a share of how far they lie apart."""


@dataclass(frozen=True)
class World:
    """What is known of a landscape: the ground, and what a random point would cost."""

    domain: Domain
    """Where points may lie."""
    place: Place
    """How points become places."""
    times: Values
    """When true rewards were taken: (n,)."""
    best: Points
    """The best points at these times: (n, d)."""
    ground: Ground
    """True rewards by time and place."""
    random_regret: float
    """The mean regret of a point drawn at random."""

    def find_best(self, times: Values) -> Points:
        """Return the best points at other times, each that of the nearest known time: (k, d).

        Args:
            times: In clock units: (k,).
        """
        middles = (self.times[1:] + self.times[:-1]) / 2
        return self.best[np.searchsorted(middles, times)]


@dataclass(frozen=True)
class Place:
    """What is called a place: an axis, and how points come to lie on it."""

    axis: PlaceAxis
    """What it shows."""
    height: Callable[[Points, Points], Values]
    """Return where points lie, (k,), given them and the best points then, both (k, d)."""


def look_around(landscape: Landscape, played_at: Values, *, seconds: float) -> World:
    """Compute true rewards at some of the times at which rounds were played.

    Args:
        landscape: Started.
        played_at: When rounds were played: (k,), at least one. Recorded rewards may be known at no
            other times.
        seconds: How long it may take; where rewards take long, fewer times are taken.

    Returns:
        What is known of the landscape.

    Raises:
        SparqError: Not even a few times could be taken so fast.
    """
    domain = landscape.domain
    points = _choose_points(domain)
    every = np.unique(played_at)
    every = every[np.unique(np.linspace(0, len(every) - 1, _MOST_TIMES).round().astype(int))]
    until = monotonic() + seconds
    found: dict[int, tuple[Values, Values]] = {}
    with one_thread():
        for rows in _refine(len(every)):
            seen = {}
            for row in rows:
                time = float(every[row])
                seen[row] = landscape.rewards(points, time), landscape.best(time)
                if monotonic() > until:
                    break
            else:
                found |= {
                    row: (np.asarray(rewards, dtype=float), np.append(*best))
                    for row, (rewards, best) in seen.items()
                }
                continue
            break
    if not found:
        raise SparqError(f"its true rewards take longer than {seconds:g} s to compute")
    order = sorted(found)
    rewards = np.array([found[row][0] for row in order])
    best = np.array([found[row][1] for row in order])
    return _make_world(domain, points, every[order], rewards, best)


def _refine(count: int) -> Iterator[range | list[int]]:
    """Yield rows in passes, each of which halves the gaps: what is seen is evenly spread."""
    step = 1 << max(0, (count - 1).bit_length() - 4)
    yield range(0, count, step)
    while step > 1:
        step //= 2
        yield range(step, count, 2 * step)


def _choose_points(domain: Domain) -> Points:
    if isinstance(domain, Sites):
        return domain.points
    sizes = {1: _LINE, 2: _FIELD}
    size = sizes.get(domain.dimensions)
    return domain.cover(_COVER) if size is None else domain.grid(size)


def _make_world(
    domain: Domain, points: Points, times: Values, rewards: Values, best: Values
) -> World:
    where, highest = best[:, :-1], best[:, -1]
    shortfalls = highest[:, None] - rewards
    # Where all places rise and fall together, the common part would hide how they differ.
    relative = bool(rewards.mean(axis=1).var() > rewards.var(axis=1).mean())
    shown = rewards - rewards.mean(axis=1, keepdims=True) if relative else rewards
    if isinstance(domain, Sites) and domain.dimensions > 1:
        order = np.argsort(shown.mean(axis=0), kind="stable")
        place, shown = _rank_sites(domain, order), shown[:, order]
        heights = np.arange(float(len(order)))
    elif domain.dimensions == 1:
        order = np.argsort(points[:, 0])
        place, heights, shown = _along(domain, where), points[order, 0], shown[:, order]
    else:
        assert isinstance(domain, Box)
        place = _measure_distances(domain)
        heights, shown = _ring(place, points, where, shown)
    ground = Ground(
        times=times,
        heights=heights,
        rewards=shown,
        best=place.height(where, where),
        relative=relative,
    )
    return World(domain, place, times, where, ground, float(shortfalls.mean()))


def _along(domain: Domain, best: Points) -> Place:
    """Return the only coordinate, and the part of it in which the best point moves."""
    name = mask_invisible(domain.names[0])
    low, high = _find_limits(domain)
    least, most = float(best.min()), float(best.max())
    room = _MARGIN * max(most - least, 0.04 * (high - low))
    window = max(low, least - room), min(high, most + room)
    narrow = window[1] - window[0] < _NARROW * (high - low)
    axis = PlaceAxis("coordinate", name, (low, high), window if narrow else None)
    return Place(axis, lambda points, _: points[:, 0])


def _find_limits(domain: Domain) -> tuple[float, float]:
    if isinstance(domain, Box):
        return float(domain.lower[0]), float(domain.upper[0])
    low, high = float(domain.points.min()), float(domain.points.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _rank_sites(domain: Sites, order: NDArray[np.intp]) -> Place:
    ranks = np.argsort(order)
    names = [mask_invisible(domain.site_names[site]) for site in order]
    label = "site, by its mean reward"
    axis = PlaceAxis("sites", label, (-0.5, len(order) - 0.5), names=names)
    return Place(axis, lambda points, _: ranks[domain.index(points)].astype(float))


def _measure_distances(domain: Box) -> Place:
    """Return the distance to the best point, as a share of the diagonal of the domain."""
    scale = (domain.upper - domain.lower) * np.sqrt(domain.dimensions)

    def height(points: Points, best: Points) -> Values:
        return np.asarray(np.sqrt((((points - best) / scale) ** 2).sum(axis=1)))

    label = "distance to the best (share of the diagonal)"
    return Place(PlaceAxis("distance", label, (0.0, 1.0)), height)


def _ring(place: Place, points: Points, best: Points, rewards: Values) -> tuple[Values, Values]:
    """Return distances, and the highest reward at each by time; none where points are too few."""
    if points.shape[1] > 2:
        return np.empty(0), rewards[:, :0]
    edges = np.linspace(0, 1, _RINGS + 1)
    heights = (edges[1:] + edges[:-1]) / 2
    found = np.full((len(best), _RINGS), -np.inf)
    for row, centre in enumerate(best):
        distances = place.height(points, np.broadcast_to(centre, points.shape))
        rings = np.minimum((distances * _RINGS).astype(int), _RINGS - 1)
        np.maximum.at(found[row], rings, rewards[row])
        # Beyond the corners of the domain there is nothing, which is as bad as can be.
        found[row, ~np.isfinite(found[row])] = rewards.min()
    return heights, found
